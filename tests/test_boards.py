"""Networks that say of each cell of a board what to do there, and where games declare their actions to lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

torch = pytest.importorskip("torch")

import training  # noqa: E402, F401, makes the trainers importable
from torch import nn  # noqa: E402

import gpuzoo  # noqa: E402
from baselines import run  # noqa: E402
from baselines.ppo import PPO, Args  # noqa: E402
from baselines.report.match import arrange  # noqa: E402
from baselines.train.boards import BoardNetwork, Chosen  # noqa: E402
from baselines.train.loading import load  # noqa: E402
from baselines.train.networks import Policy  # noqa: E402

#: 3 x 4 cells of 5 numbers, with two kinds of actions on the first eight cells, and two actions without a cell
CELLS = np.array([[-1, 0], *([cell, kind] for kind in (1, 0) for cell in range(8)), [-1, 0]])


def declared(env_id: str) -> Any:
    env = gpuzoo.get(env_id)
    cfg = env.Config()
    return env.action_cells(cfg, next(iter(env.agents(cfg))))


DECLARED = [env_id for env_id in gpuzoo.ids() if declared(env_id) is not None]


def policy(members: int = 1, **form: Any) -> Policy:
    torch.manual_seed(2)
    box = spaces.Box(-np.inf, np.inf, (3, 4, 5), np.float32)
    made = Policy(
        box, spaces.Discrete(len(CELLS)), range(members), hidden=(7, 6), channels=(4, 8, 8), encoder="board",
        cells=CELLS, activation="relu", **form,
    )  # fmt: skip
    with torch.no_grad():
        made.flat.add_(0.3 * torch.randn(made.flat.shape))
    return made


def plain(network: BoardNetwork, k: int, x: Any) -> tuple[Any, Any]:
    """What member k says of one observation (3, 4, 5), in torch's own layers."""
    w = {name: tensor.detach()[k] for name, tensor in network.named_parameters()}

    def dense(name: str, y: Any) -> Any:
        return nn.functional.linear(y, w[f"{name}.weight"].T, w[f"{name}.bias"][0])

    y = dense("describe", x).relu().permute(2, 0, 1)[None]
    for layer in range(2):
        kernel = w[f"kernels.{layer}"]
        filters = kernel.T.reshape(kernel.shape[1], -1, 3, 3)
        y = nn.functional.conv2d(y, filters, w[f"offsets.{layer}"][0], padding=1).relu()
    y = y[0].permute(1, 2, 0)
    z = torch.cat([y.mean((0, 1)), y.amax((0, 1))])
    z = dense("dense.1", dense("dense.0", z).relu()).relu()
    value = dense("whole", z) if "whole.weight" in w else None
    if "each.weight" not in w:
        return None, value
    each, elsewhere = dense("each", (y + dense("tell", z)).relu()), dense("elsewhere", z)
    free = iter(elsewhere)
    logits = [each[cell // 4, cell % 4, kind] if cell >= 0 else next(free) for cell, kind in CELLS.tolist()]
    return torch.stack(logits), value


@pytest.mark.parametrize("critic", ["shared", "separate"])
@pytest.mark.parametrize("heads", [(), ("other",)])
def test_members_are_what_torchs_own_layers_say(critic: str, heads: tuple[str, ...]) -> None:
    made, x = policy(3, critic=critic, heads=heads), torch.randn(3, 6, 3, 4, 5)
    with torch.no_grad():
        logits, values, _ = made(x)
        values = values if heads else values[..., None]
        for k in range(3):
            for row in range(6):
                mine, worth = plain(made.actor, k, x[k, row])
                worth = worth if made.critic is None else plain(made.critic, k, x[k, row])[1]
                torch.testing.assert_close(logits[k, row], mine, rtol=1e-4, atol=1e-4)
                torch.testing.assert_close(values[k, row], worth, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(made.act(x)[0], logits)
        torch.testing.assert_close(made.member(1)(x[1:2])[0], logits[1:2])


def test_gradients_of_chosen_columns() -> None:
    columns = torch.tensor([4, 0, 2])
    back = torch.tensor([1, 3, 2, 3, 0])
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.equal(Chosen.apply(x, columns, back), x[..., columns])
    assert torch.autograd.gradcheck(lambda y: Chosen.apply(y, columns, back), (x,))


#: of cells (planes) and kinds, what holds where a legal action lies
HOLDS: dict[str, Any] = {
    "Chess-v0": lambda cell, kind: cell[:6].any(),
    "GardnerChess-v0": lambda cell, kind: cell[:6].any(),
    "Shogi-v0": lambda cell, kind: not (cell[:14].any() or (kind >= 20 and cell[31:45].any())),
    "AnimalShogi-v0": lambda cell, kind: cell[:5].any() if kind < 8 else not cell[:10].any(),
    "Othello-v0": lambda cell, kind: not cell.any(),
    "Go-v0": lambda cell, kind: not cell[:2].any(),
    "Hex-v0": lambda cell, kind: not cell[:2].any(),
    "TicTacToe-v0": lambda cell, kind: not cell.any(),
    "ConnectFour-v0": lambda cell, kind: not cell.any(),
    "Checkers-v0": lambda cell, kind: cell[:2].any(),
    "DotsAndBoxes-v0": lambda cell, kind: cell[3],
    "Quoridor-v0": lambda cell, kind: not cell[2:4].any(),
    "Minesweeper-v0": lambda cell, kind: cell[0] == -1,
}


@pytest.mark.parametrize("env_id", DECLARED)
def test_cells_of_actions(env_id: str) -> None:
    sim = gpuzoo.Simulator(gpuzoo.get(env_id), 1, device="cpu")
    (group,) = sim.layout.groups
    cells, space = sim.layout.action_cells[group], sim.layout.observation_spaces[group]
    assert cells is not None
    assert cells.shape == (sim.layout.action_spaces[group].n, 2)  # type: ignore[attr-defined]
    height, width, *_ = space.shape  # type: ignore[misc]
    on_board = cells[cells[:, 0] >= 0]
    assert len({*map(tuple, on_board.tolist())}) == len(on_board)
    assert on_board[:, 0].max() < height * width
    assert cells.min() >= -1


@pytest.mark.parametrize("env_id", HOLDS)
def test_actions_lie_where_games_say(env_id: str) -> None:
    sim = gpuzoo.Simulator(gpuzoo.get(env_id), 8, device="cpu")
    (group,) = sim.layout.groups
    cells: Any = sim.layout.action_cells[group]
    height, width, *_ = sim.layout.observation_spaces[group].shape  # type: ignore[misc]
    sim.reset(seed=1)
    tried = 0
    for _ in range(12):
        sim.rollout(5)
        mover = sim.arrays[sim.env.turn] if sim.env.turn else [0] * 8
        for env in range(8):
            seen = sim.arrays["observation"][env, mover[env]].reshape(height * width, -1)
            for action in np.flatnonzero(sim.arrays["action_mask"][env, mover[env]]):
                cell, kind = cells[action]
                if cell >= 0:
                    assert HOLDS[env_id](seen[cell], kind), (action, cell, kind)
                    tried += 1
    assert tried > 100


def trained(tmp_path: Path, normalize: bool = False) -> tuple[Policy, str]:
    args = Args(
        "Othello-v0", encoder="board", channels=(4, 4), hidden=(8,), num_envs=4, num_steps=8, total_steps=64,
        population=2, normalize_observations=normalize, device="cpu", out=str(tmp_path),
    )  # fmt: skip
    (kept,) = run.train(PPO, args, True).policies.values()
    return kept, str(tmp_path / "checkpoint.safetensors")


def test_a_run_is_loaded_and_plays_boards_of_any_size(tmp_path: Path) -> None:
    kept, file = trained(tmp_path)
    for size in (8, 6):
        played = arrange("Othello-v0", {"player": f"{file}#1"}, config={"size": size}).players["player"]
        assert played is not None
        x = torch.randint(0, 2, (1, 3, size, size, 2)).to(torch.int8)
        assert played(x)[0].shape == (1, 3, size * size + 1)
        torch.testing.assert_close(played.flat, kept.flat[1:])


@pytest.mark.parametrize("executor", ["plain", "fast"])
def test_numbers_on_a_board_are_channels(tmp_path: Path, executor: str) -> None:
    """Beside the layers above: the channels of a cell are its number, one-hot, and boards may have any size."""
    args = Args(
        "Minesweeper-v0", encoder="board", one_hot=True, channels=(4, 4), hidden=(8,), num_envs=4, num_steps=8,
        total_steps=64, device="cpu", executor=executor, out=str(tmp_path),
    )  # fmt: skip
    run.train(PPO, args, True)
    config = {"num_rows": 4, "num_cols": 6, "num_mines": 5}
    file = str(tmp_path / "checkpoint.safetensors")
    played = arrange("Minesweeper-v0", {"agent": file}, config=config).players["agent"]
    assert played is not None
    board = torch.randint(-1, 9, (1, 3, 4, 6), dtype=torch.int8)
    channels = nn.functional.one_hot(board.long() + 1, 10).float()
    assert torch.equal(played.features(board), channels)
    assert played(board)[0].shape == (1, 3, 24)


def test_what_a_policy_for_boards_cannot_play(tmp_path: Path) -> None:
    _, file = trained(tmp_path)
    with pytest.raises(ValueError, match="boards whose cells have other numbers or actions than here"):
        load(file, "player", "Othello-v0", gpuzoo.Simulator(gpuzoo.get("Hex-v0"), 1, device="cpu").layout, "player")
    _, file = trained(tmp_path, normalize=True)
    with pytest.raises(ValueError, match="was trained with the observation space"):
        arrange("Othello-v0", {"player": file}, config={"size": 6})


@pytest.mark.parametrize(
    ("env_id", "options", "message"),
    [
        ("CartPole-v1", {}, r"CartPole-v1: encoder='board' is for games that say where actions lie"),
        ("Minesweeper-v0", {}, r"encoder='board' needs channels of each cell: take one_hot for observations \(rows"),
        ("Hex-v0", {"channels": ()}, r"encoder='board' needs channels for the cells' description"),
        ("Hex-v0", {"memory": 8}, r"encoder='board' does not go with memory: leave one away"),
    ],
)
def test_what_does_not_fit(env_id: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Args(env_id, encoder="board", **options).check()
