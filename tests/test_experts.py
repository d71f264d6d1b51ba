"""Experts: those that games have, and how they play."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

import gpuzoo
from baselines.report.evaluation import evaluate
from baselines.report.match import arrange
from baselines.train.actions import Actions
from baselines.train.experts import Expert, ExpertPlayer
from gpuzoo.envs.jumanji import exact_cover, thistlethwaite, tile_by_tile
from gpuzoo.interfaces.infos import names_of


def balance(group: str, observation: Tensor) -> Tensor:
    """Pushes a cart to the side to which the pole falls."""
    return one_hot((observation[:, 2] + observation[:, 3] > 0).long(), 2)


def certain(group: str, observation: Tensor) -> Any:
    """Of actions of three and two parts: the first or last with any, then nothing."""
    return np.array([[1, 0, 1, 1, 1], [0, 0, 0, 0, 0]])


# ---- how they play ----


def test_an_expert_plays_in_the_place_of_a_policy() -> None:
    player = ExpertPlayer(Expert("CartPole-v1", f"{__name__}:balance"), "agent", spaces.Discrete(2))
    assert evaluate("CartPole-v1", {"agent": player}, 32).returns["agent"].mean() > 400
    assert evaluate("CartPole-v1", {}, 32).returns["agent"].mean() < 50


def test_it_draws_among_what_it_wants_and_what_is_legal() -> None:
    player = ExpertPlayer(Expert("CartPole-v1", f"{__name__}:certain"), "agent", spaces.MultiDiscrete([3, 2]))
    generator, mask = torch.Generator().manual_seed(1), torch.tensor([[[1, 1, 1, 0, 1], [0, 1, 1, 1, 1]]])
    out, _ = player.act(torch.zeros(1, 2, 4))
    found = torch.stack([player.actions.sample(out, player.log_std, mask, generator)[0] for _ in range(300)], 1)
    assert found[0].unique(dim=0).tolist() == [[0, 1], [2, 1]]
    assert found[1].unique(dim=0).tolist() == [[1, 0], [1, 1], [2, 0], [2, 1]]  # it wants nothing: all that is legal
    assert player.actions.greedy(out, mask)[0].tolist() == [[0, 1], [1, 0]]


EXPERTS = [name for name in gpuzoo.ids() if gpuzoo.get(name).expert]
#: the share of solved games, where chance decides, too: 97 % and 50 % in longer runs
MORE_THAN = {"Game2048-v0": 0.75, "PacMan-v1": 0.2}


@pytest.mark.parametrize("name", [name for name in EXPERTS if "solved" in names_of(gpuzoo.get(name))])
def test_the_expert_of_a_game_solves_it(name: str) -> None:
    """Given time: the partly scrambled cube's 20 steps are too few for some."""
    short = (gpuzoo.get(name).max_episode_steps or 300) < 300
    arranged = arrange(name, {}, "expert", {"max_episode_steps": 300} if short else {})
    by_chance = name in MORE_THAN
    rates = evaluate(name, arranged.players, 40 if by_chance else 20, seed=3, config=arranged.config).rates
    assert rates["solved"] > MORE_THAN[name] if by_chance else rates == {"solved": 1.0}, rates


@pytest.mark.parametrize("name", EXPERTS)
def test_the_expert_of_a_game_says_something_in_each_step(name: str) -> None:
    """What it wants is legal, while random play goes on; but for FlatPack, as random play makes grids unsolvable."""
    envs = gpuzoo.make_vec(name, num_envs=8, device="cpu", output="torch", autoreset_mode="same_step")
    expert, (seen, _) = Expert(name), envs.reset(seed=1)
    choices, generator = sum(Actions(envs.single_action_space).nvec), torch.Generator().manual_seed(1)
    for _ in range(30):
        has_mask = isinstance(seen, dict)
        mask = seen["action_mask"] if has_mask else torch.ones(8, choices)
        found = expert("agent", seen["observation"] if has_mask else seen, choices)
        assert name == "FlatPack-v0" or found.any(1).all()
        assert (mask[found] == 1).all()
        anything = ~mask.any(1, keepdim=True)  # a grid that is full, or can't be filled further
        seen, *_ = envs.step(torch.multinomial((mask + anything).float(), 1, generator=generator)[:, 0])
    envs.close()


class Counts:
    """Takes the action whose number is that of its calls so far."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, group: str, observation: Tensor) -> Tensor:
        self.calls += 1
        return one_hot(torch.full((len(observation),), self.calls - 1), 6)


def test_an_expert_that_is_a_class_remembers() -> None:
    """Each player begins anew."""
    for _ in range(2):
        expert = Expert("CartPole-v1", f"{__name__}:Counts")
        found = [expert("agent", torch.zeros(3, 4), 6).int().argmax(1).tolist() for _ in range(4)]
        assert found == [[0] * 3, [1] * 3, [2] * 3, [3] * 3]


def test_what_cannot_play_is_refused() -> None:
    with pytest.raises(ValueError, match=r"TSP-v1 has no expert of its own: choose another player than 'expert'\."):
        arrange("TSP-v1", {}, "expert")
    with pytest.raises(ValueError, match=r"there is no expert 'nothing:here'"):
        Expert("TSP-v1", "nothing:here")
    with pytest.raises(ValueError, match=r"an expert plays where actions are choices, but those of 'agent' are Box"):
        ExpertPlayer(Expert("CartPole-v1", f"{__name__}:balance"), "agent", spaces.Box(-1, 1, (2,)))
    player = ExpertPlayer(Expert("TSP-v1", f"{__name__}:balance"), "agent", spaces.Discrete(20))
    with pytest.raises(ValueError, match=r"test_experts:balance must return shape \(8, 20\), not \(8, 2\)\."):
        evaluate("TSP-v1", {"agent": player}, 8)


# ---- what counts as solved ----


@pytest.mark.parametrize(
    ("name", "config", "paid"),
    [
        ("BinPack-v2", {"max_num_items": 5}, 1.0),  # all items fill the container
        ("Cleaner-v0", {"num_rows": 4, "num_cols": 4, "max_episode_steps": 20}, None),
        ("Connector-v3", {"num_agents": 2, "grid_size": 4, "reward": "shared_sparse"}, 2.0),
        ("FlatPack-v0", {"num_row_blocks": 2, "num_col_blocks": 2, "generator": "toy"}, 1.0),
        ("LevelBasedForaging-jumanji-v0", {"grid_size": 5, "fov": 5, "force_coop": False, "num_food": 1}, None),
        ("MMST-v0", {"num_agents": 2, "num_nodes": 8, "num_edges": 9, "num_nodes_per_agent": 2}, None),
        ("Maze-v0", {"num_rows": 5, "num_cols": 5, "max_episode_steps": 10}, 1.0),
        ("Minesweeper-v0", {"num_rows": 3, "num_cols": 3, "num_mines": 2}, 7.0),
        ("RubiksCube-v0", {"num_scrambles_on_reset": 1, "max_episode_steps": 5}, 1.0),
        ("SearchAndRescue-v0", {"num_targets": 1, "target_contact_range": 0.2, "max_episode_steps": 50}, None),
        ("SlidingTilePuzzle-v0", {"grid_size": 2, "max_episode_steps": 20}, None),
        ("Snake-v1", {"num_rows": 2, "num_cols": 2, "max_episode_steps": 9}, None),
        ("Sudoku-v0", {"database": "very-easy"}, 1.0),
    ],
)
def test_an_instance_is_solved_where_the_rules_reward_or_end_it(
    name: str, config: dict[str, Any], paid: float | None
) -> None:
    """In random play, most of which ends in either way.

    Args:
        name: of the game.
        config: its parameters.
        paid: the return of a solved instance; None where the rules end the episode if, and only if, it is solved.
    """
    seen = evaluate(name, {}, 400, seed=2, config=config)
    (returns,), (over,) = seen.returns.values(), seen.terminated.values()
    expected = over.all(1) if paid is None else np.isclose(returns[:, 0], paid)
    np.testing.assert_array_equal(seen.outcomes["solved"], expected)
    assert 0 < expected.mean() < 1


# ---- the expert for Rubik's cube ----


@pytest.mark.rotates
def test_its_phases_have_the_positions_and_the_longest_ways_that_are_known() -> None:
    """As https://www.jaapsch.net/puzzles/thistle.htm has them."""
    positions = [2048, 1082565, 29400, 663552]
    found = [np.count_nonzero(phase.best) for phase in thistlethwaite.phases()]
    # of the third phase each position stands for 96 arrangements of corners that half turns make of each other
    assert found == [positions[0] - 1, positions[1] - 1, 96 * (positions[2] - 1), positions[3] - 1]
    assert [phase.longest for phase in thistlethwaite.phases()] == [7, 10, 13, 15]


@pytest.mark.rotates
def test_it_solves_every_cube_in_at_most_45_turns() -> None:
    """By the rules of the game, which `tests/integrations/jumanji` compares with Jumanji's."""
    cubes, generator = 2000, torch.Generator().manual_seed(1)
    env = gpuzoo.make_vec("RubiksCube-v0", num_envs=cubes, device="cpu", output="torch", autoreset_mode="same_step")
    observation, _ = env.reset(seed=5)
    turns = np.zeros(cubes, int)
    for turn in range(1, 46):
        best = torch.from_numpy(thistlethwaite.best_moves("agent", observation))
        assert best.any(1).all(), "a cube that is not solved"
        observation, reward, *_ = env.step(torch.multinomial(best.float(), 1, generator=generator)[:, 0])
        turns[(turns == 0) & (np.asarray(reward) == 1)] = turn
    assert turns.all()
    assert 28 < turns.mean() < 36  # about 31 in the literature
    env.close()


@pytest.mark.rotates
def test_a_solved_cube_has_no_best_move() -> None:
    solved = (np.arange(54) // 9).reshape(1, 6, 9)
    assert not thistlethwaite.best_moves("agent", solved).any()


def test_another_cube_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is for cubes of size 3, .*, not for shape \(1, 6, 4\)"):
        thistlethwaite.best_moves("agent", np.zeros((1, 6, 4), np.int8))


@pytest.mark.rotates
def test_one_turn_before_the_end_that_turn_is_the_best() -> None:
    """A quarter turn of front breaks the first phase, one of the right the second, and one of the top the third."""
    env = gpuzoo.make_vec("RubiksCube-v0", num_envs=18, device="cpu", output="torch", num_scrambles_on_reset=0)
    env.reset(seed=1)
    observation, *_ = env.step(torch.arange(18))
    best = torch.from_numpy(thistlethwaite.best_moves("agent", observation))
    inverse = torch.tensor([3 * (k // 3) + (1, 0, 2)[k % 3] for k in range(18)])
    assert best[torch.arange(18), inverse].all()
    half = torch.arange(18) % 3 == 2
    assert (best[half].sum(1) == 1).all(), "of a half turn nothing else is as short"
    env.close()


# ---- the expert for sliding tiles ----


@pytest.mark.parametrize(("size", "most"), [(2, 6), (3, 55), (4, 150), (5, 280)])
def test_it_solves_every_puzzle(size: int, most: int) -> None:
    """By the rules of the game, which `tests/integrations/jumanji` compares with Jumanji's."""
    puzzles, generator = 500, torch.Generator().manual_seed(1)
    settings: dict[str, Any] = {"grid_size": size, "num_random_moves": 2001}  # an odd number of moves solves none
    env = gpuzoo.make_vec(
        "SlidingTilePuzzle-v0", num_envs=puzzles, device="cpu", output="torch", autoreset_mode="same_step", **settings
    )
    seen, _ = env.reset(seed=5)
    moves = np.zeros(puzzles, int)
    for move in range(1, most + 1):
        best = torch.from_numpy(tile_by_tile.best_moves("agent", seen["observation"]))
        assert best.any(1).all(), "a puzzle that is not solved"
        assert (seen["action_mask"][best] == 1).all(), "a move that leaves the board"
        seen, _, terminated, *_ = env.step(torch.multinomial(best.float(), 1, generator=generator)[:, 0])
        moves[(moves == 0) & np.asarray(terminated)] = move
    assert moves.all()
    env.close()


def test_four_cells_have_the_positions_and_the_longest_way_that_are_known() -> None:
    """Three tiles have 12 positions, of which the farthest is solved in six moves: the rotations of a cycle."""
    for size in (2, 5):
        *_, last = tile_by_tile.goals(size)
        assert np.count_nonzero(last.best) == 12 - 1
    puzzle = np.array([[[0, 3], [2, 1]]])
    for left in range(6, 0, -1):
        ways = tile_by_tile.best_moves("agent", puzzle)[0]
        assert ways.sum() == (2 if left == 6 else 1)
        (row, column), (down, right) = np.argwhere(puzzle[0] == 0)[0], tile_by_tile.WAYS[int(ways.argmax())]
        puzzle[0, row, column], puzzle[0, row + down, column + right] = puzzle[0, row + down, column + right], 0
    assert puzzle.tolist() == [[[1, 2], [3, 0]]]


def test_boards_that_are_solved_or_cannot_be_have_no_best_move() -> None:
    solved = np.roll(np.arange(25), -1).reshape(1, 5, 5)
    assert not tile_by_tile.best_moves("agent", solved).any()
    unsolvable = solved.copy()
    unsolvable[0, 3, 3:] = 20, 19
    assert not tile_by_tile.best_moves("agent", unsolvable).any()


@pytest.mark.parametrize("shape", [(1, 4, 5), (1, 9, 9), (1, 1, 1)])
def test_other_boards_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"is for square boards of 2 to 8 rows, not for shape"):
        tile_by_tile.best_moves("agent", np.zeros(shape, np.int32))


# ---- the expert for FlatPack ----


def filled(grid: int, options: Sequence[Sequence[int]]) -> bool:
    """Whether one option of each block fills what is free of a grid, by trying all of them in order."""
    if not options:
        return True
    return any(not grid & cells and filled(grid | cells, options[1:]) for cells in options[0])


@pytest.mark.parametrize(("seed", "moves"), [(1, 0), (2, 1), (3, 1)])
def test_it_finds_a_solution_exactly_where_there_is_one(seed: int, moves: int) -> None:
    """Also after moves of which half are random, which often leave none."""
    envs = gpuzoo.make_vec("FlatPack-v0", num_envs=60, device="cpu", num_row_blocks=2, num_col_blocks=2)
    seen, _ = envs.reset(seed=seed)
    random = np.random.default_rng(seed)
    for _ in range(moves):
        good = exact_cover.best_moves("agent", seen["observation"]) & (random.random((60, 1)) < 0.5)
        among = np.where(good.any(1, keepdims=True), good, seen["action_mask"])
        seen, *_ = envs.step(np.array([random.choice(np.flatnonzero(row)) for row in among]))
    best, solvable = exact_cover.best_moves("agent", seen["observation"]), []
    for row, mask in zip(seen["observation"], seen["action_mask"].reshape(60, 4, 4, 3, 3), strict=True):
        options = []
        for square, legal in zip(row[25:].reshape(4, 3, 3), mask, strict=True):
            placements = np.argwhere(legal)
            if square.max() not in row[:25]:
                options.append([placed(np.rot90(square, -turns), top, left) for turns, top, left in placements])
        solvable.append(filled(sum(1 << k for k in np.flatnonzero(row[:25]).tolist()), options))
    np.testing.assert_array_equal(best.any(1), solvable)
    assert 0 < np.mean(solvable) < 1
    assert (seen["action_mask"][best] == 1).all()
    envs.close()


def placed(square: NDArray[Any], top: int, left: int) -> int:
    """The cells of a 5 x 5 grid that a square fills, a bit for each."""
    return sum(1 << int(5 * (top + row) + left + column) for row, column in np.argwhere(square))


@pytest.mark.parametrize("config", [{}, {"generator": "turned-toy", "num_row_blocks": 2, "num_col_blocks": 2}])
def test_each_of_its_moves_keeps_to_a_solution(config: dict[str, Any]) -> None:
    """Whichever is taken."""
    envs = gpuzoo.make_vec("FlatPack-v0", num_envs=30, device="cpu", autoreset_mode="disabled", **config)
    seen, _ = envs.reset(seed=4)
    random, total = np.random.default_rng(1), np.zeros(30)
    while True:
        best = exact_cover.best_moves("agent", seen["observation"])
        assert best.any(1).all()
        seen, rewards, terminations, *_ = envs.step(np.array([random.choice(np.flatnonzero(row)) for row in best]))
        total += rewards
        if terminations.all():
            break
    np.testing.assert_allclose(total, 1, rtol=1e-5)
    assert not exact_cover.best_moves("agent", seen["observation"]).any(), "nothing is left to do"
    envs.close()


def test_an_exact_cover_is_that_of_knuth() -> None:
    """The example of "Dancing links", page 2, and one without a solution."""
    options = np.array([
        [0, 0, 1, 0, 1, 1, 0], [1, 0, 0, 1, 0, 0, 1], [0, 1, 1, 0, 0, 1, 0],
        [1, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 0, 1],
    ]) != 0  # fmt: skip
    assert sorted(exact_cover.exact_cover(options, np.arange(7))) == [0, 3, 4]
    for k in (0, 3, 4):
        without = np.delete(options, k, 0)
        assert exact_cover.exact_cover(without, np.arange(7)) == []


def test_a_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_cover, "STEPS", 3)
    monkeypatch.setattr(exact_cover, "SEARCHES", 2)
    exact_cover.solution.cache_clear()
    envs = gpuzoo.make_vec("FlatPack-v0", num_envs=3, device="cpu")
    seen, _ = envs.reset(seed=1)
    assert not exact_cover.best_moves("agent", seen["observation"]).any()
    exact_cover.solution.cache_clear()
    envs.close()


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (5, 4)])
def test_grids_of_other_forms_are_refused(rows: int, columns: int) -> None:
    numbers = (2 * rows + 1) * (2 * columns + 1) + 9 * rows * columns
    with pytest.raises(ValueError, match=rf"as many rows as columns, not for observations of {numbers} numbers\."):
        exact_cover.best_moves("agent", np.zeros((1, numbers), np.uint8))
