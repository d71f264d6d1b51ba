"""Backgammon against Pgx, from drawn positions and over whole games, and its official rules against OpenSpiel.

Pgx throws by a function of its key. Here the key is the dice that our game has thrown, and the function returns it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pgx.backgammon
import pyspiel
import pytest

from gpuzoo import Simulator
from gpuzoo.envs.backgammon.backgammon import Backgammon, seen_by_white

pytestmark = [pytest.mark.rotates, pytest.mark.filterwarnings("ignore:.*player_id")]

ENV: Any = pgx.make("backgammon")
pgx.backgammon._roll_dice = lambda dice: dice
STEP = jax.jit(jax.vmap(ENV.step))
SEEN = jax.jit(jax.vmap(ENV.observe, (0, None)))
MASK = jax.jit(jax.vmap(pgx.backgammon._legal_action_mask))
RNG = np.random.default_rng(0)


def in_pgx(sim: Simulator) -> Any:
    """The same positions there, where player p is player_p."""
    board, dice, rolled = (sim.arrays[name].astype(np.int32) for name in ("board", "dice", "rolled"))
    n, to_move = len(board), sim.arrays["to_move"].copy()  # JAX would share its memory
    playable = np.full((n, 4), -1, np.int32)
    alike = rolled[:, 0] == rolled[:, 1]
    for k in range(4):  # dice that are alike are played from the last one on
        playable[alike & (dice.sum(1) > k), k] = rolled[alike & (dice.sum(1) > k), 0] - 1
    for k in range(2):
        left = ~alike & (dice[np.arange(n), rolled[:, k] - 1] > 0)
        playable[left, k] = rolled[left, k] - 1
    states: Any = jax.vmap(ENV.init)(jax.random.split(jax.random.key(0), n))
    return states.replace(
        current_player=jnp.asarray(to_move, jnp.int32),
        _board=jnp.asarray(board),
        _dice=jnp.asarray(rolled - 1),
        _playable_dice=jnp.asarray(playable),
        _played_dice_num=jnp.asarray(np.where(alike, 4, 2) - dice.sum(1), jnp.int32),
        _turn=jnp.asarray(to_move, jnp.int32),
        legal_action_mask=MASK(jnp.asarray(board), jnp.asarray(playable)),
    )


def chosen(mask: np.ndarray) -> np.ndarray:
    return (RNG.random(mask.shape) * mask).argmax(1)


def step(sim: Simulator, theirs: Any, actions: np.ndarray) -> Any:
    given = sim.arrays["action"]
    given[:, :, 0] = -1  # who is not to move
    given[np.arange(sim.num_envs), sim.arrays["to_move"], 0] = actions
    sim.step()
    return STEP(theirs, jnp.asarray(actions), jnp.asarray(sim.arrays["rolled"].astype(np.int32) - 1))


def compare(sim: Simulator, theirs: Any, live: np.ndarray) -> None:
    """Observations, masks, rewards and ends of the games that were going on before this step."""
    arrays, over = sim.arrays, np.asarray(theirs.terminated)
    np.testing.assert_array_equal(arrays["to_move"][live], np.asarray(theirs.current_player)[live])
    for a in range(2):
        np.testing.assert_array_equal(arrays["observation"][live, a], np.asarray(SEEN(theirs, a))[live])
        np.testing.assert_array_equal(arrays["reward"][live, a], np.asarray(theirs.rewards)[live, a])
        np.testing.assert_array_equal(arrays["terminated"][live, a], over[live])
        mask = np.asarray(theirs.legal_action_mask) & (arrays["to_move"] == a)[:, None]
        np.testing.assert_array_equal(arrays["action_mask"][live & ~over, a], mask[live & ~over])


def drawn(n: int) -> dict[str, np.ndarray]:
    """Positions of 15 checkers each, near the start and near the end, and what is left of a turn's dice."""
    board = np.zeros((n, 28), np.int8)
    for k in range(n):
        furthest = RNG.integers(1, 25, 2)
        owned = RNG.random(24) < 0.5
        for player, count in enumerate(RNG.integers(1, 16, 2)):
            points = np.flatnonzero(owned == bool(player))
            points = points[(24 - points if player == 0 else points + 1) <= furthest[player]]
            on_bar = min(int(count), int(RNG.integers(1, 4))) if RNG.random() < 0.2 or not len(points) else 0
            board[k, 24 + player] = on_bar
            board[k, 26 + player] = 15 - count
            chosen_points = RNG.choice(points, count - on_bar) if count > on_bar and len(points) else []
            board[k, 24 + player] += count - on_bar if not len(points) else 0
            np.add.at(board[k], chosen_points, 1 if player == 0 else -1)
    board[:, [25, 27]] *= -1
    rolled = RNG.integers(1, 7, (n, 2))
    alike, rows, dice = rolled[:, 0] == rolled[:, 1], np.arange(n), np.zeros((n, 6), np.int8)
    for k in range(2):
        played = ~alike & (k == 0) & (RNG.random(n) < 0.3)
        dice[rows[~played], rolled[~played, k] - 1] = 1
    dice[rows[alike], rolled[alike, 0] - 1] = RNG.integers(1, 5, alike.sum())
    return {"board": board, "rolled": rolled.astype(np.int8), "dice": dice, "to_move": RNG.integers(0, 2, n, np.int32)}


@pytest.mark.timeout(600)
def test_moves_from_drawn_positions() -> None:
    """Those that end a game are among them."""
    n = 20_000
    sim = Simulator(Backgammon, n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=0)
    sim.set_state(drawn(n))
    theirs = in_pgx(sim)
    mask = np.asarray(theirs.legal_action_mask)
    bits = (mask.reshape(n, 26, 6).transpose(0, 2, 1) << np.arange(26)).sum(2)
    sim.set_state({"legal": bits.astype(np.uint32)})
    live, points = np.ones(n, bool), []
    for _ in range(6):
        theirs = step(sim, theirs, chosen(np.asarray(theirs.legal_action_mask)))
        compare(sim, theirs, live)
        points += np.asarray(theirs.rewards)[live, 0].tolist()
        live &= ~np.asarray(theirs.terminated)
    assert {*points} == {-3, -2, -1, 0, 1, 2, 3}
    assert live.sum() > n / 2


@pytest.mark.timeout(600)
def test_whole_games() -> None:
    n, moves = 600, 0
    sim = Simulator(Backgammon, n, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=1)
    assert (sim.arrays["rolled"][:, 0] != sim.arrays["rolled"][:, 1]).all()
    theirs = in_pgx(sim)
    live = np.ones(n, bool)
    compare(sim, theirs, live)
    while live.any():
        theirs = step(sim, theirs, chosen(np.asarray(theirs.legal_action_mask)))
        compare(sim, theirs, live)
        moves += int(live.sum())
        live &= ~np.asarray(theirs.terminated)
    assert moves >= 100_000


def test_an_illegal_move_ends_the_game() -> None:
    """The offender loses three here and there; the other one has 0 here and 3 there."""
    sim = Simulator(Backgammon, 32, device="cpu", autoreset_mode="disabled")
    sim.reset(seed=2)
    theirs = step(sim, in_pgx(sim), np.zeros(32, int))
    np.testing.assert_array_equal(sim.arrays["reward"], np.tile([-3.0, 0.0], (32, 1)))
    assert sim.arrays["terminated"].all()
    np.testing.assert_array_equal(np.asarray(theirs.rewards), np.tile([-3.0, 3.0], (32, 1)))


BAR_OF_SPIEL = 100
Line = tuple[int, ...]  # board and bars after a turn's next two dice, as player_0 sees them


def ends(sim: Simulator, before: dict[str, np.ndarray]) -> list[set[Line]]:
    """Of each position, what one or two dice can lead to: the second one if the turn goes on."""
    n = len(before["board"])
    envs, first = masks(before).nonzero()
    after = played(sim, {name: value[envs] for name, value in before.items()}, first)
    same = (after["to_move"] == before["to_move"][envs]) & (after["ended"] == 0)
    rows, second = (masks(after) & same[:, None]).nonzero()
    last = played(sim, {name: after[name][rows] for name in before}, second)
    found: list[set[Line]] = [set() for _ in range(n)]
    for state, of, some in ((after, envs, ~same), (last, envs[rows], np.ones(len(rows), bool))):
        for k in np.flatnonzero(some):
            found[of[k]].add(tuple(seen_by_white(state["board"][k], int(state["to_move"][k]))))
    return found


def masks(state: dict[str, np.ndarray]) -> np.ndarray:
    """Legal actions; the six that mean no move count as one."""
    mask = (state["legal"][:, None, :] >> np.arange(26)[:, None] & 1).reshape(-1, 156) > 0
    mask[:, 1:6] = False
    return mask


def played(sim: Simulator, before: dict[str, np.ndarray], actions: np.ndarray) -> dict[str, np.ndarray]:
    parts = []
    for low in range(0, len(actions), sim.num_envs):
        part = slice(low, low + sim.num_envs)
        some = np.arange(len(actions[part]))
        sim.reset(seed=0)
        sim.set_state({name: value[part] for name, value in before.items()}, some)
        sim.arrays["action"][some] = actions[part][:, None, None]
        sim.step(some)
        parts.append({name: sim.arrays[name][some].copy() for name in (*before, "ended")})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def end_of_spiel(state: Any, action: int) -> Line:
    after = state.clone()
    after.apply_action(action)
    return board_of_spiel(after)


def board_of_spiel(state: Any) -> Line:
    points = [state.board(0, k) - state.board(1, k) for k in range(24)]
    bars = [state.board(0, BAR_OF_SPIEL), -state.board(1, BAR_OF_SPIEL)]
    lost = [15 - sum(max(0, p) for p in points) - bars[0], -15 - sum(min(0, p) for p in points) - bars[1]]
    return (*points, *bars, *lost)


def throw(state: Any, rolled: np.ndarray) -> None:
    """OpenSpiel's next chance. Its x is player 0, who begins here."""
    low, high = sorted(int(k) for k in rolled)
    said = {state.action_to_string(-1, action): action for action in state.legal_actions()}
    (action,) = (action for text, action in said.items() if f"(roll: {low}{high})" in text and "O starts" not in text)
    state.apply_action(action)


@pytest.mark.timeout(600)
def test_official_games() -> None:
    """What each turn's next two dice can lead to, and results. OpenSpiel plays two dice at once."""
    games, turns, results = 100, 0, set()
    sim = Simulator(Backgammon, games, device="cpu", autoreset_mode="disabled", official=True)
    other = Simulator(Backgammon, 4096, device="cpu", autoreset_mode="disabled", official=True)
    sim.reset(seed=3)
    game = pyspiel.load_game("backgammon(scoring_type=full_scoring)")
    spiel = [game.new_initial_state() for _ in range(games)]
    names = ("board", "dice", "rolled", "legal", "to_move")
    playing = np.arange(games)
    while len(playing):
        state = {name: sim.arrays[name][playing].copy() for name in names}
        found = ends(other, state)
        lengths = []
        for k, position, mover in zip(playing, found, state["to_move"], strict=True):
            there = spiel[k]
            if there.is_chance_node():
                throw(there, sim.arrays["rolled"][k])
            assert there.current_player() == mover
            of_action = {a: end_of_spiel(there, a) for a in there.legal_actions()}
            assert {*of_action.values()} == position
            action = int(RNG.choice(list(of_action)))
            moves = [m for m in there.spiel_move_to_checker_moves(mover, action) if m.num > 0]
            there.apply_action(action)
            assert board_of_spiel(there) == of_action[action]
            lengths.append([6 * source(m.pos, mover) + m.num - 1 for m in moves] or [0])
        turns += len(playing)
        for k in range(2):
            given = [(env, line[k]) for env, line in zip(playing, lengths, strict=True) if len(line) > k]
            if k == 1:  # what cannot be played is passed
                alone = [env for env, line in zip(playing, lengths, strict=True) if len(line) == 1 and line != [0]]
                given += [(env, 0) for env in alone if not sim.arrays["ended"][env] and spiel[env].is_chance_node()]
            envs = np.array([env for env, _ in given], int)
            if not len(envs):
                continue
            sim.arrays["action"][envs] = np.array([action for _, action in given])[:, None, None]
            sim.step(envs)
        for k in playing:
            assert bool(sim.arrays["ended"][k]) == spiel[k].is_terminal()
            if spiel[k].is_terminal():
                np.testing.assert_array_equal(sim.arrays["reward"][k], spiel[k].returns())
                results.add(abs(spiel[k].returns()[0]))
        playing = np.array([k for k in playing if not spiel[k].is_terminal()], int)
    assert turns > 5_000
    assert results >= {1.0, 2.0}


def source(place: int, mover: int) -> int:
    return 1 if place == BAR_OF_SPIEL else 2 + (place if mover == 0 else 23 - place)
