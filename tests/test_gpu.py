"""What needs a GPU: the same bits as on the CPU, torch's streams, CUDA graphs, and no waiting for the device."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from toys.glide import Glide
from toys.herd import Herd
from toys.lamps import Lamps

import gpuzoo
from gpuzoo import Simulator, VectorEnv, make_vec, testing
from gpuzoo.testing.tools import LIMIT, assert_same, leaves_of, read, to_host

pytestmark = pytest.mark.gpu

MODES = ("next_step", "same_step", "disabled")


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return module


def pair(game, num_envs, **options):
    """The same batch on the CPU and on the GPU."""
    options = {"autoreset_mode": "same_step", "max_episode_steps": LIMIT} | options
    return [Simulator(game, num_envs, device=device, **options) for device in ("cpu", "cuda")]


# ---- the same bits ----


@pytest.mark.parametrize("mode", MODES)
def test_cuda_equals_cpu(game, mode):
    sims = pair(game, 130, autoreset_mode=mode)
    for sim in sims:
        sim.reset(seed=5)
    assert_same("reset", *map(read, sims))
    for block in (1, 1, 2, 40, 100, 300):
        for sim in sims:
            sim.rollout(block)
        assert_same(f"rollout({block})", *map(read, sims))
        for sim in sims:
            sim.random_actions()
            sim.step()
        assert_same(f"a step after rollout({block})", *map(read, sims))
        for sim in sims:
            sim.between_episodes = read
            sim.random_actions()
            sim.step()
            sim.between_episodes = None
        assert_same(f"a step in halves after rollout({block})", *map(read, sims))
        mask = np.random.default_rng(block).random(130) < 0.3
        for sim in sims:
            sim.reset(mask=sim.xp.asarray(mask))
        assert_same(f"a partial reset after rollout({block})", *map(read, sims))


def test_cuda_equals_cpu_with_the_games_own_limit(game):
    sims = pair(game, 33, max_episode_steps="default")
    for sim in sims:
        sim.reset(seed=77)
        sim.rollout(1500)
    assert_same("1500 steps", *map(read, sims))


@pytest.mark.parametrize("n", [1, 2, 127, 129, 1000])
def test_any_number_of_envs(game, n):
    sims = pair(game, n)
    for sim in sims:
        sim.reset(seed=1)
        sim.rollout(20)
    assert_same(f"{n} envs", *map(read, sims))


@pytest.mark.parametrize("lanes", [1, 2, 16, 32, 64, 256, 1024])
def test_any_number_of_lanes(wide_game, lanes):
    cpu, _ = pair(wide_game, 5)
    cuda = Simulator(wide_game, 5, device="cuda", lanes=lanes, autoreset_mode="same_step", max_episode_steps=LIMIT)
    for sim in (cpu, cuda):
        sim.reset(seed=3)
        sim.rollout(60)
    assert_same(f"{lanes} lanes", read(cpu), read(cuda))


def test_illegal_actions(game):
    """Every bit pattern is an action: nothing breaks, and the CPU sees the same."""
    sims = pair(game, 40)
    for sim in sims:
        sim.reset(seed=2)
    rng = np.random.default_rng(0)
    for step in range(60):
        bits = rng.integers(0, 2**32, sims[0].arrays["action"].shape, np.uint32)
        bits[rng.random(bits.shape) < 0.5] = 0x7FC00000
        for sim in sims:
            sim.arrays["action"][...] = sim.xp.asarray(bits.view(sim.layout.action_dtype))
            sim.step()
        assert_same(f"step {step}", *map(read, sims))


def test_parameters_per_env():
    wind = np.linspace(0, 1, 64, dtype=np.float32)
    sims = pair(Glide, 64, wind=wind)
    for sim in sims:
        sim.reset(seed=0)
        sim.rollout(30)
        sim.set_params(np.arange(64) < 7, wind=0.5)
        sim.rollout(30)
    assert_same("parameters", *map(read, sims))
    assert_same("params", sims[0].params, sims[1].params)


def test_snapshot_between_cpu_and_gpu(game):
    cpu, cuda = pair(game, 20)
    for sim in (cpu, cuda):
        sim.reset(seed=8)
        sim.rollout(25)
    there, back = cpu.snapshot(), cuda.snapshot([3, 1, 4])
    for sim in (cpu, cuda):
        sim.rollout(50)
    want = read(cpu)
    cuda.reset(seed=999)
    cuda.restore(there)
    cuda.rollout(50)
    assert_same("restored on the GPU", want, read(cuda))
    other = Simulator(game, 3, device="cpu", autoreset_mode="same_step", max_episode_steps=LIMIT)
    other.restore(back.numpy())
    other.rollout(50)
    assert_same("restored on the CPU", {k: v[[3, 1, 4]] for k, v in want.items()}, read(other))


def test_state(game):
    cpu, cuda = pair(game, 9)
    for sim in (cpu, cuda):
        sim.reset(seed=8)
        sim.rollout(12)
        sim.set_state(sim.state([5, 6]), [0, 8])
    assert_same("state", *({k: sim.backend.to_numpy(v) for k, v in sim.state().items()} for sim in (cpu, cuda)))


# ---- the interfaces ----


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("output", ["numpy", "torch", "cupy"])
def test_vector_env_equals_the_cpus(game, mode, output, torch):
    options = {"num_worlds": 7, "autoreset_mode": mode, "max_episode_steps": 9, "statistics": True}
    cpu = make_vec(game, device="cpu", **options)
    cuda = make_vec(game, device="cuda", output=output, **options)
    cpu.action_space.seed(4)
    assert_same("reset", leaves_of(cpu.reset(seed=6)), leaves_of(cuda.reset(seed=6)))
    kept = []
    for step in range(25):
        actions = cpu.action_space.sample()
        sent = {"numpy": lambda a: a, "torch": lambda a: torch.as_tensor(a).cuda(), "cupy": cuda.simulator.xp.asarray}
        want, got = cpu.step(actions), cuda.step(sent[output](actions))
        assert_same(f"step {step}", leaves_of(want[:4]), leaves_of(got[:4]))
        kept.append(({k: v.copy() for k, v in leaves_of(got[:4]).items()}, got[:4]))
        if output == "torch":
            assert got[0]["observation"].is_cuda if isinstance(got[0], dict) else got[0].is_cuda
        if "final_obs" in want[4]:
            done = want[2] | want[3]
            left, right = leaves_of(want[4]["final_obs"]), leaves_of(got[4]["final_obs"])
            pick = {k: v[done] for k, v in left.items()}, {k: v[done] for k, v in right.items()}
            assert_same(f"final observations of step {step}", *pick)
            left, right = leaves_of(want[4]["episode"]), leaves_of(got[4]["episode"])
            pick = {k: v[done] for k, v in left.items()}, {k: v[done] for k, v in right.items()}
            assert_same(f"statistics of step {step}", *pick)
        prev = [to_host(e.prev_done) for e in (cpu, cuda)]
        assert_same(f"prev_done of step {step}", {"p": prev[0]}, {"p": prev[1]})
        if mode == "disabled" and step % 9 == 8:
            for env in (cpu, cuda):
                env.reset(options={"reset_mask": np.ones(env.num_envs, bool)})
    for was, values in kept:
        assert_same("kept arrays", was, leaves_of(values))


@pytest.mark.parametrize("output", ["numpy", "torch", "cupy"])
def test_rows_of_movers_equal_the_cpus(output, torch):
    options = {"num_envs": 7, "observers": "mover", "autoreset_mode": "same_step", "masks": "info", "statistics": True}
    cpu = make_vec("TicTacToe-v0", device="cpu", **options)
    cuda = make_vec("TicTacToe-v0", device="cuda", output=output, **options)
    send = {"numpy": lambda a: a, "torch": lambda a: torch.as_tensor(a).cuda(), "cupy": cuda.simulator.xp.asarray}[
        output
    ]
    rng, ends = np.random.default_rng(0), 0
    want, got = cpu.reset(seed=6), cuda.reset(seed=6)
    for step in range(25):
        mask = want[-1]["action_mask"]
        for name in ("player", "rewards", "action_mask") if step else ("player", "action_mask"):
            np.testing.assert_array_equal(to_host(got[-1][name]), want[-1][name])
        actions = (rng.random(mask.shape) * mask).argmax(1)
        want, got = cpu.step(actions), cuda.step(send(actions))
        assert_same(f"step {step}", leaves_of(want[:4]), leaves_of(got[:4]))
        done = want[2]
        if done.any():
            ends += int(done.sum())
            for one, other in ((want[-1]["final_obs"], got[-1]["final_obs"]),
                               (want[-1]["episode"]["r"], got[-1]["episode"]["r"])):  # fmt: skip
                np.testing.assert_array_equal(to_host(other)[done], one[done])
    assert ends > 7


@pytest.mark.parametrize("mode", MODES)
def test_vector_env_keeps_gymnasiums_contract(game, mode):
    testing.check_vector_env(make_vec(game, num_worlds=4, autoreset_mode=mode, device="cuda", max_episode_steps=20))


def test_batch_env(game, torch):
    cpu = gpuzoo.make(game, 5, device="cpu", max_episode_steps=9)
    cuda = gpuzoo.make(game, 5, device="cuda", max_episode_steps=9)
    assert cuda.output == "torch"
    assert_same("reset", leaves_of(cpu.reset(seed=1)[0]), leaves_of(cuda.reset(seed=1)[0]))
    for step in range(25):
        want, got = cpu.step(cpu.random_actions()), cuda.step(cuda.random_actions())
        assert_same(f"step {step}", leaves_of(want[:4]), leaves_of(got[:4]))


def test_pettingzoo_and_single_env_on_the_gpu():
    one, other = (gpuzoo.parallel_env(Herd, device=d, max_cycles=9) for d in ("cpu", "cuda"))
    assert_same("reset", leaves_of(one.reset(seed=1)[0]), leaves_of(other.reset(seed=1)[0]))
    while one.agents:
        actions = {a: one.action_space(a).sample() for a in one.agents}
        assert_same("step", leaves_of(one.step(actions)[:4]), leaves_of(other.step(actions)[:4]))
    singles = [gpuzoo.SingleEnv(Lamps, device=d) for d in ("cpu", "cuda")]
    assert_same("reset", *(leaves_of(e.reset(seed=1)[0]) for e in singles))
    assert_same("step", *(leaves_of(e.step(np.array([1, 0]))[:1]) for e in singles))


def test_opponents_by_function_get_tensors(torch):
    def policy(observations, masks):
        assert observations.is_cuda
        return torch.ones(observations.shape[:2], dtype=torch.int64, device="cuda")

    env = VectorEnv(Herd, 6, group="sheep", opponents=policy, device="cuda", output="torch")
    env.reset(seed=0)
    for _ in range(5):
        env.step(torch.ones(6, dtype=torch.int64, device="cuda"))
    assert (to_host(env.simulator.arrays["action"])[:, :2] == 1).all()


def test_masks_on_the_device(torch):
    for make_mask in (lambda sim, m: m, lambda sim, m: sim.xp.asarray(m), lambda sim, m: torch.as_tensor(m).cuda()):
        sims = pair(Herd, 6)
        mask = np.array([True, False, False, True, True, False])
        for sim in sims:
            sim.reset(seed=0)
            sim.rollout(5)
        sims[0].reset(mask=mask)
        sims[1].reset(mask=make_mask(sims[1], mask))
        assert_same("masks", *map(read, sims))
    env = VectorEnv(Glide, 3, device="cuda", output="torch")
    env.reset(seed=0)
    with pytest.raises(TypeError, match="must be a bool array"):
        env.reset(options={"reset_mask": torch.ones(3, device="cuda")})


# ---- streams, graphs, waiting ----


def test_views_are_the_simulators_memory(torch, game):
    from gpuzoo.tensors import views

    sim = Simulator(game, 5, device="cuda")
    tensors = views(sim)
    sim.reset(seed=0)
    for name, tensor in tensors.items():
        assert tensor.is_cuda
        assert tensor.data_ptr() == sim.arrays[name].data.ptr, name
        host = tensor.cpu().numpy()
        assert host.tobytes() == np.ascontiguousarray(sim.backend.to_numpy(sim.arrays[name])).tobytes(), name


def test_steps_are_ordered_with_torchs_current_stream(torch):
    """On a stream that is busy, while the default stream is busy too, actions come before the step, results after."""
    cpu, cuda = pair(gpuzoo.get("CartPole-v1"), 4096)
    from gpuzoo.tensors import views

    tensors = views(cuda)
    rng = np.random.default_rng(0)
    for sim in (cpu, cuda):
        sim.reset(seed=0)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    for step in range(20):
        host = rng.integers(0, 2, (4096, 1, 1)).astype(np.int32)
        cpu.arrays["action"][...] = host
        cpu.step()
        stream = streams[step % 2]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)
            tensors["action"].copy_(torch.from_numpy(host).cuda(non_blocking=True))
            cuda.step()
            observation = tensors["observation"].clone()
        torch.cuda.current_stream().wait_stream(stream)
        assert_same(f"step {step}", {"o": cpu.arrays["observation"]}, {"o": observation.cpu().numpy()})


@pytest.mark.parametrize("mode", MODES)
def test_cuda_graph_of_the_simulator(torch, game, mode):
    """100 replays are 100 eager steps; settings in device memory can change between them."""
    cpu, cuda = pair(game, 200, autoreset_mode=mode)
    for sim in (cpu, cuda):
        sim.reset(seed=4)
        sim.random_actions()
        sim.step()
        sim.rollout(1)  # each kernel once, because its first launch may load it
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        cuda.random_actions()
        cuda.step()
        cuda.rollout(2)
    for sim in (cpu, cuda):
        sim.reset(seed=4)
    for k in range(100):
        graph.replay()
        cpu.random_actions()
        cpu.step()
        cpu.rollout(2)
        if k == 50:
            for sim in (cpu, cuda):
                sim.max_episode_steps = 7
                sim.autoreset_mode = "same_step"
    torch.cuda.synchronize()
    assert_same("100 replays", read(cpu), read(cuda))


def test_cuda_graph_of_a_vector_env(torch):
    """A policy and the env in one graph."""
    env = VectorEnv("CartPole-v1", 512, device="cuda", output="torch", copy=False, autoreset_mode="same_step")
    eager = VectorEnv("CartPole-v1", 512, device="cuda", output="torch", autoreset_mode="same_step")
    weights = torch.tensor([0.1, 0.5, 1.0, 1.0], device="cuda")
    total = torch.zeros((), device="cuda")

    def play(which, observation):
        actions = ((observation * weights).sum(-1) > 0).to(torch.int64)
        observation, rewards, terminations, truncations, _ = which.step(actions)
        return observation, rewards.sum() + (terminations | truncations).sum()

    observation, _ = env.reset(seed=0)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            observation, _ = play(env, observation)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _, score = play(env, observation)
        total += score
    total.zero_()
    env.reset(seed=0)
    for _ in range(100):
        graph.replay()
    want = torch.zeros((), device="cuda")
    seen, _ = eager.reset(seed=0)
    for _ in range(100):
        seen, score = play(eager, seen)
        want += score
    assert total.item() == want.item()
    assert_same("100 replays", read(eager.simulator), read(env.simulator))


def test_nothing_waits_for_the_device(torch, game):
    env = make_vec(game, num_worlds=8, device="cuda", output="torch", autoreset_mode="same_step", statistics=True)
    batch = gpuzoo.make(game, 8, device="cuda")
    batch.reset(seed=0)
    shape = (env.num_envs, *env.single_action_space.shape)
    kind = torch.float32 if env.simulator.layout.action_dtype == "float32" else torch.int64
    actions = torch.zeros(shape, dtype=kind, device="cuda")
    mask = torch.ones(env.num_envs, dtype=torch.bool, device="cuda")
    env.reset(seed=0)
    env.step(actions)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            env.step(actions)
        env.reset(options={"reset_mask": mask})
        env.step(actions)
        batch.step(batch.random_actions())
        batch.reset(options={"reset_mask": mask[:8]})
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_step_allocates_nothing(torch):
    sim = Simulator(Herd, 1000, device="cuda", autoreset_mode="same_step")
    sim.reset(seed=0)
    sim.step()
    pool = sim.xp.get_default_memory_pool()
    before = torch.cuda.memory_stats()["allocation.all.allocated"], pool.total_bytes()
    for _ in range(50):
        sim.random_actions()
        sim.step()
        sim.rollout(3)
    assert (torch.cuda.memory_stats()["allocation.all.allocated"], pool.total_bytes()) == before


def test_close_gives_the_memory_back(torch):
    def used():
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    for _ in range(3):
        make_vec("CartPole-v1", 100_000, device="cuda").close()
    before = used()
    for _ in range(100):
        env = make_vec("CartPole-v1", 100_000, device="cuda", output="torch")
        env.reset(seed=0)
        assert used() > before
        env.close()
        del env
    assert used() <= before + 2**20


def test_without_torch_in_the_process():
    """CuPy alone: its own memory and its own current stream."""
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import cupy, gpuzoo\n"
        "a, b = (gpuzoo.Simulator(gpuzoo.get('CartPole-v1'), 300, device=d) for d in ('cpu', 'cuda'))\n"
        "a.reset(seed=1); a.rollout(200)\n"
        "b.synchronize()\n"
        "with cupy.cuda.Stream(non_blocking=True):\n"
        "    b.reset(seed=1); b.rollout(200)\n"
        "    seen = cupy.asnumpy(b.arrays['observation'])\n"
        "assert (a.arrays['observation'] == seen).all()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fork_is_refused():
    """A CUDA context does not survive a fork: the child is told so, and does not hang."""
    code = (
        "import os, signal, sys, gpuzoo\n"
        "sim = gpuzoo.Simulator(gpuzoo.get('CartPole-v1'), 4, device='cuda')\n"
        "sim.reset(seed=0)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    signal.alarm(30)\n"
        "    try:\n"
        "        sim.step()\n"
        "    except RuntimeError as error:\n"
        "        os._exit(0 if 'made in another process' in str(error) else 3)\n"
        "    os._exit(4)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_device_names():
    assert Simulator(Glide, 1, device="auto").device.startswith("cuda")
    assert Simulator(Glide, 1, device="cuda:0").device == "cuda:0"
    with pytest.raises(RuntimeError, match="device='cuda:99': there are"):
        Simulator(Glide, 1, device="cuda:99")
