"""The interfaces to a batch of envs: Gymnasium, PettingZoo, EnvPool, dm_env and the batched multi-agent one."""
