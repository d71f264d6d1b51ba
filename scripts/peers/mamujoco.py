"""MaMuJoCo of gymnasium-robotics, one env; the id is `SCENARIO-FACTORISATION`."""

from __future__ import annotations

from . import About, Game, Peer, pettingzoo

ABOUT = About("MaMuJoCo", original=True, one_core=True)


def peer(game: Game) -> Peer:
    scenario, _, factorisation = game["id"].partition("-")
    config = {"scenario": scenario, "agent_conf": factorisation, **game["config"]}
    return pettingzoo.peer({**game, "id": "gymnasium_robotics.envs.multiagent_mujoco.mamujoco_v1", "config": config})
