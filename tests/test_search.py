"""Tree search: what it finds, whether its trees are sound, what it refuses. tests/integrations/mctx compares trees."""

from __future__ import annotations

import functools
import math
import sys

import numpy as np
import pytest
from ptx.exact import inexact, unwritten_fusions
from ptx.host import PtxBackend, ptx_of
from test_compile import nvrtc_missing

torch = pytest.importorskip("torch")

import gpuzoo  # noqa: E402
from gpuzoo.core import nvrtc, occupancy  # noqa: E402
from gpuzoo.core.backend_cpu import CpuBackend  # noqa: E402
from gpuzoo.search import Cached, Search, Settings, Tree, result_of  # noqa: E402
from gpuzoo.search.states import States  # noqa: E402
from gpuzoo.search.tree import KERNELS, code, considered_visits  # noqa: E402

pytestmark = pytest.mark.rotates  # about this folder

RULES = ("puct", "gumbel", "uct")
PTX = pytest.mark.skipif(sys.platform != "linux" and bool(nvrtc_missing()), reason=nvrtc_missing())


def envs_of(game, count, moves, seed=0, **config):
    """Envs after some random moves."""
    envs = gpuzoo.Simulator(gpuzoo.get(game), count, device="cpu", autoreset_mode="disabled", threads=1, **config)
    envs.reset(seed=seed)
    envs.rollout(moves)
    return envs


def uniform(observation, legal):
    """Knows nothing."""
    return torch.zeros(legal.shape), torch.zeros(len(legal))


def searcher(game, roots, rule, **options):
    given = {"device": "cpu", "threads": 1, "settings": Settings(considered=100, gumbel_scale=0.0)}
    return Search(game, roots, rule=rule, **given | options)


def evaluation_of(rule):
    return None if rule == "uct" else uniform


def winning(envs):
    """bool (R, A): the moves that win at once, found by trying them."""
    layout = envs.layout
    actions = int(next(iter(layout.action_spaces.values())).n)
    found = np.zeros((envs.num_envs, actions), bool)
    for action in range(actions):
        other = gpuzoo.Simulator(envs.env, envs.num_envs, device="cpu", autoreset_mode="disabled", threads=1)
        other.restore(envs.snapshot())
        mover = other.arrays[envs.env.turn].copy()
        here = np.arange(envs.num_envs)
        legal = other.arrays["action_mask"][here, mover, action] != 0
        other.arrays["action"][...] = action
        other.step()
        found[:, action] = legal & (other.arrays["reward"][here, mover] > 0)
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["ConnectFour-v0", "TicTacToe-v0"])
def test_takes_a_win_and_prevents_a_loss(name, rule):
    moves = 12 if name == "ConnectFour-v0" else 4
    envs = envs_of(name, 200, moves)
    wins = winning(envs)
    alive = ~(envs.arrays["ended"] | envs.arrays["waiting"])
    search = searcher(name, 200, rule, simulations=300)
    result = search.run(envs, evaluation_of(rule))
    sharp = alive & wins.any(1)
    assert sharp.sum() > 20
    assert wins[np.arange(200), result.action.numpy()][sharp].mean() > 0.98
    q = result.q[torch.arange(200), result.action].numpy()
    assert (q[sharp] > 0.95).mean() > 0.98
    # the same positions with the move passed on: who could win next must be stopped, where one move does
    threat = envs.snapshot()
    turn = threat.arrays[envs.env.turn]
    if name == "TicTacToe-v0":
        return  # there a pass makes boards that no game has
    threat.arrays[envs.env.turn] = (1 - turn).astype(turn.dtype)
    passed = gpuzoo.Simulator(envs.env, 200, device="cpu", autoreset_mode="disabled", threads=1)
    passed.reset(seed=0)
    passed.set_state({name: threat.arrays[name] for name in envs.program.fields})
    one = alive & (wins.sum(1) == 1) & ~winning(passed).any(1)
    assert one.sum() > 10
    result = search.run(passed, evaluation_of(rule))
    assert wins[np.arange(200), result.action.numpy()][one].mean() > 0.95


@pytest.mark.parametrize("rule", RULES)
def test_trees_are_sound(rule):
    """Nodes are where their parents say; visits and values are those of what lies below; nothing is illegal."""
    envs = envs_of("ConnectFour-v0", 30, 25, seed=3)
    search = searcher("ConnectFour-v0", 30, rule, simulations=120, discount=0.9)
    result = search.run(envs, evaluation_of(rule))
    tree, legal = search.tree, torch.from_numpy(np.array(envs.arrays["action_mask"])) != 0
    mover = torch.from_numpy(np.array(envs.arrays["to_move"])).long()
    over = torch.from_numpy(np.array(envs.arrays["ended"] | envs.arrays["waiting"]))
    assert (result.visits[~over].sum(1) == 120).all()
    assert (result.visits[over] == 0).all()
    assert not result.visits[~legal[torch.arange(30), mover]].any()
    torch.testing.assert_close(result.policy[~over].sum(1), torch.ones(int((~over).sum())))
    for k in torch.nonzero(~over)[:, 0].tolist():
        nodes = int(tree.size[k])
        for node in range(nodes):
            children = [int(c) for c in tree.child[k, node] if c > 0]
            assert all(int(tree.parent[k, c]) == node < c for c in children)
            below = sum(int(tree.visits[k, c]) for c in children)
            if tree.over[k, node]:
                assert not children
                assert tree.value[k, node] == 0
                continue
            assert int(tree.visits[k, node]) == 1 + below
            q = [float(tree.reward[k, c] + tree.discount[k, c] * tree.value[k, c]) for c in children]
            total = sum(int(tree.visits[k, c]) * x for c, x in zip(children, q, strict=True))
            want = (float(tree.raw_value[k, node]) + total) / (1 + below)
            assert float(tree.value[k, node]) == pytest.approx(want, abs=1e-5)
        assert sum(1 for node in range(1, nodes) if int(tree.parent[k, node]) >= 0) == nodes - 1


def test_a_game_of_one_agent():
    """In FrozenLake the way to the goal is found by random play; who moves is always the same, so no sign changes."""
    envs = envs_of("FrozenLake-v1", 8, 0, is_slippery=False)
    search = Search(
        "FrozenLake-v1", 8, rule="uct", simulations=3000, playouts=4, playout_steps=60, discount=0.95, device="cpu",
        threads=1, is_slippery=False,
    )  # fmt: skip
    for _ in range(6):
        result = search.run(envs)
        assert (result.value > 0).all()
        envs.arrays["action"][:, 0, 0] = result.action.numpy()
        envs.step()
    assert (envs.arrays["final_return"][:, 0] == 1).all()  # the shortest way has six steps


def test_same_seed_same_search():
    envs = envs_of("ConnectFour-v0", 16, 6)
    found = [searcher("ConnectFour-v0", 16, "uct", simulations=40, seed=seed).run(envs) for seed in (1, 1, 2)]
    assert torch.equal(found[0].visits, found[1].visits)
    assert not torch.equal(found[0].visits, found[2].visits)


def test_roots_are_left_alone():
    envs = envs_of("Hex-v0", 4, 10)
    before = envs.snapshot()
    searcher("Hex-v0", 4, "gumbel", simulations=20).run(envs, uniform)
    for name, array in envs.snapshot().arrays.items():
        np.testing.assert_array_equal(array, before.arrays[name])


def test_a_rules_own_choice_of_actions():
    """Chess has no masks in its state: what is legal is computed anew at each node."""
    envs = envs_of("Chess-v0", 3, 20)
    search = searcher("Chess-v0", 3, "puct", simulations=30)
    result = search.run(envs, uniform)
    mover = envs.arrays["to_move"]
    legal = envs.arrays["action_mask"][np.arange(3), mover] != 0
    assert not result.visits.numpy()[~legal].any()
    assert (result.visits.sum(1) == 30).all()


def test_noise_of_alphazero():
    """Shares of the noise as given; illegal actions get none."""
    envs = envs_of("ConnectFour-v0", 2, 0)
    settings = Settings(dirichlet_fraction=1.0, value_range=(-1.0, 1.0))
    search = searcher("ConnectFour-v0", 2, "puct", simulations=1, settings=settings)
    noise = torch.tensor([[0.1, 0.1, 0.1, 0.4, 0.1, 0.1, 0.1], [0.7, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]])
    found = search.run(envs, uniform, dirichlet=noise)
    assert found.action.tolist() == [3, 0]
    torch.testing.assert_close(search.tree.logits[:, 0].softmax(1), noise)
    search.run(envs, uniform)
    drawn = search.tree.logits[:, 0].softmax(1)
    torch.testing.assert_close(drawn.sum(1), torch.ones(2))
    assert not torch.allclose(drawn, noise)


def test_sequential_halving():
    """16 actions and 64 simulations: four rounds of 16 visits each, the last two actions share what is left."""
    visits = considered_visits(16, 64)
    assert visits[:16] == [0] * 16
    assert visits[16:32] == [1] * 8 + [2] * 8
    assert len(visits) == 64
    assert max(visits) == visits[-1]
    assert considered_visits(1, 5) == [0, 1, 2, 3, 4]


def trees_of(backend, rule):
    """What 70 trees of random numbers are."""
    draw = functools.partial(torch.rand, generator=torch.Generator().manual_seed(0))
    tree = Tree(70, 25, 5, rule, backend, Settings(considered=3))
    tree.begin(draw(70, 5), draw(70), torch.zeros(70, dtype=torch.bool))
    tree.gumbel.copy_(draw(70, 5))
    for _ in range(25):
        tree.select()
        tree.backup(draw(70, 5), draw(70), draw(70), draw(70) * 2 - 1, draw(70) < 0.1)
    return tree.child, tree.value, result_of(tree).policy


def states_of(backend):
    """States of envs, taken out and put into others."""
    envs = gpuzoo.Simulator(gpuzoo.get("Hex-v0"), 12, backend=backend)
    envs.reset(seed=0)
    envs.rollout(30)
    rows = torch.arange(12).flip(0)
    states = States(envs, rows, count=12)
    states.save()
    others = gpuzoo.Simulator(gpuzoo.get("Hex-v0"), 24, backend=backend)
    others.reset(seed=1)
    States(others, rows, 2, into=states).load()
    return {name: array.copy() for name, array in others.episode_arrays().items()}, envs.snapshot().arrays


@pytest.mark.parametrize("rule", RULES)
def test_trees_in_the_form_of_a_gpu_have_the_same_bits(rule):
    """One thread per tree, on the host."""
    for one, other in zip(trees_of(CpuBackend(1), rule), trees_of(CpuBackend(1, simt=True), rule), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("simt", [False, True])
def test_states_go_out_and_in(simt):
    """In the form of a GPU the elements of fields lie otherwise."""
    found, want = states_of(CpuBackend(1, simt=simt))
    for name, array in found.items():
        np.testing.assert_array_equal(array, np.repeat(want[name], 2, axis=0), err_msg=name)


@PTX
def test_the_ptx_has_the_same_bits():
    backend = PtxBackend()
    for rule in RULES:
        for one, other in zip(trees_of(CpuBackend(1), rule), trees_of(backend, rule), strict=True):
            assert torch.equal(one, other)
    found, want = states_of(backend)
    for name, array in found.items():
        np.testing.assert_array_equal(array, np.repeat(want[name], 2, axis=0), err_msg=name)
    assert inexact(ptx_of(code(), "search")) == set()
    assert unwritten_fusions(code(), ptx_of(code(), "search")) == set()


@PTX
def test_no_spills():
    log = nvrtc.compile_cubin(code(), "search", "sm_90", (*nvrtc.OPTIONS, "--ptxas-options=-v"))[1]
    usage = occupancy.usage(log)
    assert {name: use.local for name, use in usage.items()} == dict.fromkeys(KERNELS, 0)


def test_an_evaluation_that_answers_otherwise():
    search = searcher("ConnectFour-v0", 4, "puct", simulations=2)
    envs = envs_of("ConnectFour-v0", 4, 0)
    with pytest.raises(ValueError, match=r"must return logits and values of shapes \(4, 7\) and \(4,\), not \(4, 7\)"):
        search.run(envs, lambda observation, legal: (torch.zeros(4, 7), torch.zeros(4, 1)))
    with pytest.raises(ValueError, match="rule='puct' needs evaluate"):
        search.run(envs)
    with pytest.raises(ValueError, match="rule='uct' plays random games: give no evaluate"):
        searcher("ConnectFour-v0", 4, "uct", simulations=2).run(envs, uniform)
    with pytest.raises(ValueError, match="the snapshot has 3 envs"):
        search.run(envs_of("ConnectFour-v0", 3, 0), uniform)
    with pytest.raises(ValueError, match="snapshot of TicTacToe-v0"):
        search.run(envs_of("TicTacToe-v0", 4, 0), uniform)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("SimpleSpread-v0", {}, "one agent, or two who move in turn"),
        ("Pendulum-v1", {}, "one Discrete action space in common"),
        ("ConnectFour-v0", {"simulations": 0}, "simulations must be at least 1, not 0"),
        ("ConnectFour-v0", {"playouts": 0}, "playouts must be at least 1, not 0"),
        ("ConnectFour-v0", {"rule": "minimax"}, "rule must be one of puct, gumbel, uct, not 'minimax'"),
    ],
)
def test_what_cannot_be_searched(name, options, message):
    with pytest.raises(ValueError, match=message):
        Search(name, 4, device="cpu", **options)


@pytest.mark.parametrize(
    "wrong", [{"value_range": (1.0, 1.0)}, {"considered": 0}, {"dirichlet_fraction": 2.0}, {"dirichlet_alpha": 0.0}]
)
def test_settings_out_of_range(wrong):
    with pytest.raises(ValueError, match="must be"):
        Settings(**wrong)


def test_values_of_random_play():
    """With many playouts the value of the empty board is that of many random games, for who begins."""
    envs = envs_of("ConnectFour-v0", 1, 0)
    search = searcher("ConnectFour-v0", 1, "uct", simulations=1, playouts=4000)
    search.run(envs)
    found = float(search.tree.raw_value[0, 0])
    many = envs_of("ConnectFour-v0", 4000, 60, seed=9)
    want, spread = many.arrays["final_return"][:, 0].mean(), math.sqrt(2 / 4000)
    assert abs(found - want) < 4 * spread


# ---- evaluators that remember ----


class Asked:
    """A network that counts the rows it evaluates, and remembers each observation."""

    def __init__(self, observed, actions):
        generator = torch.Generator().manual_seed(1)
        self.weights = torch.randn((observed, actions + 1), generator=generator) / 3
        self.rows, self.sizes = [], []

    def __call__(self, observation, legal):
        self.sizes.append(len(observation))
        self.rows += [row.numpy().tobytes() for row in observation]
        out = (observation.flatten(1).float().unsqueeze(1) * self.weights.T).sum(2)  # a row's sum is that of any batch
        return out[:, :-1], torch.tanh(out[:, -1])


@pytest.mark.parametrize("rule", ["puct", "gumbel"])
@pytest.mark.parametrize("capacity", [1, 64, 2**18])
def test_a_cached_evaluator_changes_nothing(rule, capacity):
    plain, asked = Asked(84, 7), Asked(84, 7)
    cached = Cached(asked, capacity)
    envs = envs_of("ConnectFour-v0", 96, 4)
    one, other = (searcher("ConnectFour-v0", 96, rule, simulations=20) for _ in range(2))
    for _ in range(4):
        found, same = one.run(envs, plain), other.run(envs, cached)
        for field in ("action", "policy", "value", "visits", "q"):
            assert torch.equal(getattr(found, field), getattr(same, field)), field
        assert torch.equal(one.tree.logits, other.tree.logits)
        envs.arrays["action"][:, :, 0] = found.action.numpy()[:, None]
        envs.step()
    assert cached.asked == len(plain.rows) == 4 * 21 * 96
    assert cached.evaluated < cached.asked
    assert cached.evaluated <= len(asked.rows)
    if capacity == 2**18:
        positions = len(set(plain.rows))
        assert positions == len(set(asked.rows))
        assert positions <= cached.evaluated < 1.05 * positions  # a few share a slot
        assert cached.evaluated < 0.75 * cached.asked
    assert set(asked.sizes) <= {1, 2, 4, 8, 16, 32, 64, 96}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int8])
def test_a_cached_evaluator_tells_positions_apart(dtype):
    observation = torch.zeros((200, 3))
    observation[:64, 1] = 1 + torch.arange(64) * 2.0**-23  # numbers that differ in their last bits
    observation[64:100, 1] = 2.0 ** torch.arange(-18, 18)  # and in their exponents alone
    observation[100:164, 2] = -torch.arange(1, 65) / 64
    observation = observation.to(dtype)
    legal = torch.ones((200, 2), dtype=torch.bool)
    legal[164:, 0] = False  # as observations these are one
    legal[182:, 1] = False

    def evaluate(observation, legal):
        return observation[:, :2] + legal, observation.double().sum(1).float() - legal.float() @ torch.tensor(
            [1.0, 4.0]
        )

    cached = Cached(evaluate)
    for _ in range(2):
        for got, want in zip(cached(observation, legal), evaluate(observation, legal), strict=True):
            assert torch.equal(got, want.float())  # what searches compute with
    different = len({(*map(float, seen), *map(bool, can)) for seen, can in zip(observation, legal, strict=True)})
    assert cached.evaluated == different


def test_a_cached_evaluator_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="capacity must be at least 1, not 0"):
        Cached(uniform, 0)
    cached = Cached(lambda observation, legal: (torch.zeros(len(legal), 5), torch.zeros(len(legal))))
    envs = envs_of("ConnectFour-v0", 4, 2)
    with pytest.raises(ValueError, match=r"logits and values of shapes \(\d, 7\)"):
        searcher("ConnectFour-v0", 4, "puct", simulations=2).run(envs, cached)
