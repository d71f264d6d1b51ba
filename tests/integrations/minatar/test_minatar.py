"""The games of MinAtar against the original: state, observation, reward and end, exactly.

The original gets the random numbers that ours has drawn: they are computed here, by a Philox of NumPy's, and decoded as
the rules decode them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from minatar import Environment

import gpuzoo
from gpuzoo import Simulator
from gpuzoo.envs.minatar.suite import BUTTONS

Row = dict[str, Any]  # the fields of one env

# ---- random numbers ----


def philox(words: list[Any], key: np.ndarray) -> np.ndarray:
    """Philox4x32-10: `words` are four arrays, `key` an array of 64 bits."""
    x, y, z, w = (np.asarray(v, np.uint64) for v in words)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    k0, k1 = key & low, key >> half
    for _ in range(10):
        a, b = x * np.uint64(0xD2511F53), z * np.uint64(0xCD9E8D57)
        x, y, z, w = (b >> half) ^ y ^ k0, b & low, (a >> half) ^ w ^ k1, a & low
        k0, k1 = k0 + np.uint64(0x9E3779B9) & low, k1 + np.uint64(0xBB67AE85) & low
    return np.stack([x, y, z, w], axis=-1)


def drawn(s: Simulator) -> np.ndarray:
    """The numbers that the rules draw with (seed, episode, elapsed steps) as they are now, (envs, 4)."""
    n, a = s.num_envs, s.arrays
    zeros = np.zeros(n, np.uint64)
    return philox([zeros, zeros, a["elapsed_steps"], a["episode"]], a["seed"].astype(np.uint64))


def below(bits: Any, n: int) -> int:
    return int(bits) * n >> 32


class Numbers:
    """Takes the place of a numpy.random.RandomState and gives what lies ready."""

    def __init__(self) -> None:
        self.ready: list[Any] = []

    def rand(self, *_: int) -> Any:
        return self.ready.pop(0)

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        value = self.ready.pop(0)
        return value(low if high is None else high) if callable(value) else value


# ---- the games ----


@dataclasses.dataclass(frozen=True)
class Game:
    """How a game is compared.

    Attributes:
        name: of the original.
        read: the original's state in our fields.
        write: the reverse, into an original that was reset.
        numbers: what the original's random numbers must be, from ours (without that of the sticky action).
        start: the same for a reset.
        wide: states drawn widely.
        clever: actions that play well, from our simulator.
        episodes: how many are played.
    """

    name: str
    read: Callable[..., Row]
    write: Callable[[Any, Row], None]
    wide: Callable[[np.random.Generator, int], Row]
    clever: Callable[[np.random.Generator, dict[str, np.ndarray]], np.ndarray]
    numbers: Callable[[Any, np.ndarray], list[Any]] = lambda env, bits: []
    start: Callable[[np.ndarray], list[Any]] = lambda bits: []
    episodes: int = 1000
    steps: int = 400


def read_breakout(env: Any) -> Row:
    assert not env.brick_map[0].any()
    assert not env.brick_map[4:].any()
    bricks = env.brick_map[1:4].ravel().astype(np.int64)
    names = ("ball_x", "ball_y", "last_x", "last_y", "ball_dir", "pos", "strike")
    return {name: getattr(env, name) for name in names} | {"bricks": int((bricks << np.arange(30)).sum())}


def write_breakout(env: Any, row: Row) -> None:
    for name in ("ball_x", "ball_y", "last_x", "last_y", "ball_dir", "pos"):
        setattr(env, name, int(row[name]))
    env.strike = bool(row["strike"])
    env.brick_map[1:4] = (int(row["bricks"]) >> np.arange(30) & 1).reshape(3, 10)


def wide_breakout(rng: np.random.Generator, n: int) -> Row:
    bricks = rng.integers(0, 1 << 30, n) & np.where(rng.random(n) < 0.5, rng.integers(0, 1 << 30, n), -1)
    bricks[rng.random(n) < 0.1] = 0
    ball_x, ball_y = rng.integers(0, 10, n), rng.integers(0, 9, n)
    return {
        "ball_x": ball_x,
        "ball_y": ball_y,
        "last_x": np.clip(ball_x + rng.integers(-1, 2, n), 0, 9),
        "last_y": np.clip(ball_y + rng.integers(-1, 2, n), 0, 8),
        "ball_dir": rng.integers(0, 4, n),
        "pos": np.where(rng.random(n) < 0.5, np.clip(ball_x + rng.integers(-2, 3, n), 0, 9), rng.integers(0, 10, n)),
        "bricks": bricks.astype(np.uint32),
        "strike": rng.random(n) < 0.3,
    }


def clever_breakout(rng: np.random.Generator, state: dict[str, np.ndarray]) -> np.ndarray:
    """Below where the ball comes down, to be hit from either side."""
    falls = state["ball_dir"] >= 2
    side = np.where((state["ball_dir"] == 1) | (state["ball_dir"] == 2), 1, -1)
    way = np.where(falls, 8 - state["ball_y"], 0) * side + state["ball_x"]
    there = np.abs(way)
    there = np.where(there > 9, 19 - there, there)
    there = np.where(way < 0, -way - 1, there)
    delta = np.sign(there - state["pos"].astype(int))
    return np.where(delta < 0, 1, np.where(delta > 0, 2, 0))


def digits(values: Any) -> int:
    return sum(int(x) << 4 * k for k, x in enumerate(values))


RAMP = ("spawn_speed", "spawn_timer", "move_speed", "move_timer", "ramp_timer", "ramp_index")


def read_asterix(env: Any) -> Row:
    there = [x is not None for x in env.entities]
    things = [x or [0, 0, False, False] for x in env.entities]
    assert all(x[1] == k + 1 for k, x in enumerate(things) if there[k])
    return {name: getattr(env, name) for name in ("player_x", "player_y", *RAMP)} | {
        "entities": digits(there),
        "entity_x": digits(x[0] for x in things),
        "rightward": digits(x[2] for x in things),
        "gold": digits(x[3] for x in things),
    }


def write_asterix(env: Any, row: Row) -> None:
    for name in ("player_x", "player_y", *RAMP):
        setattr(env, name, int(row[name]))
    x, there, right, gold = (
        [int(row[name]) >> 4 * k & 15 for k in range(8)] for name in ("entity_x", "entities", "rightward", "gold")
    )
    env.entities = [[x[k], k + 1, bool(right[k]), bool(gold[k])] if there[k] else None for k in range(8)]


def wide_asterix(rng: np.random.Generator, n: int) -> Row:
    there = rng.random((n, 8)) < rng.random((n, 1)) ** 0.5
    there[: n // 20] = True
    player_y, player_x = rng.integers(1, 9, n), rng.integers(0, 10, n)
    x = rng.integers(0, 10, (n, 8))
    near = np.clip(player_x + rng.integers(-2, 3, n), 0, 9)
    x[np.arange(n), player_y - 1] = np.where(rng.random(n) < 0.8, near, x[np.arange(n), player_y - 1])
    right, gold = rng.random((2, n, 8)) < 0.5
    spawn_speed, move_speed = rng.integers(1, 11, n), rng.integers(1, 6, n)
    return {
        "player_x": player_x,
        "player_y": player_y,
        "entities": np.array([digits(row) for row in there]),
        "entity_x": np.array([digits(row) for row in x * there]),
        "rightward": np.array([digits(row) for row in right & there]),
        "gold": np.array([digits(row) for row in gold & there]),
        "spawn_speed": spawn_speed,
        "spawn_timer": rng.integers(0, spawn_speed + 1) * (rng.random(n) < 0.6),
        "move_speed": move_speed,
        "move_timer": rng.integers(0, move_speed + 1) * (rng.random(n) < 0.6),
        "ramp_timer": np.where(rng.random(n) < 0.5, rng.integers(-1, 2, n), rng.integers(-1, 101, n)),
        "ramp_index": rng.integers(0, 12, n),
    }


def numbers_asterix(env: Any, bits: np.ndarray) -> list[Any]:
    if env.spawn_timer:
        return []
    full = None not in env.entities
    return [*((bits[1:3] >> np.uint64(8)) / 2**24), *([] if full else [lambda n: below(bits[3], n)])]


def clever_asterix(rng: np.random.Generator, state: dict[str, np.ndarray]) -> np.ndarray:
    """To the row with gold, or without a thing, that is the nearest; within it towards gold."""
    rows = np.arange(8)
    there, x, gold = (
        state[name].astype(np.int64)[:, None] >> 4 * rows & 15 for name in ("entities", "entity_x", "gold")
    )
    px, py = state["player_x"].astype(int)[:, None], state["player_y"].astype(int)[:, None] - 1
    threat = (there > 0) & (gold == 0) & (np.abs(x - px) <= 2)
    cost = np.abs(rows - py) + np.where(threat, 50, 0) - np.where((there > 0) & (gold > 0), 4, 0)
    step = np.sign(np.argmin(cost, axis=1) - py[:, 0])
    own = np.take_along_axis(np.where((there > 0) & (gold > 0), np.sign(x - px), 0), py, axis=1)[:, 0]
    next_row = np.clip(py[:, 0] + step, 0, 7)
    blocked = np.take_along_axis(threat & (np.abs(x - px) <= 1), next_row[:, None], axis=1)[:, 0]
    step = np.where(blocked, 0, step)
    sideways = np.where(own < 0, 1, np.where(own > 0, 3, 0))
    return np.where(step < 0, 2, np.where(step > 0, 4, sideways))


CARS = ("car_x", "car_timer", "car_speed")


def read_freeway(env: Any) -> Row:
    assert [car[1] for car in env.cars] == list(range(1, 9))
    x, timer, speed = (digits(abs(car[k]) for car in env.cars) for k in (0, 2, 3))
    return {
        "pos": env.pos,
        "move_timer": env.move_timer,
        "car_x": x,
        "car_timer": timer,
        "car_speed": speed,
        "rightward": digits(car[3] > 0 for car in env.cars),
        "elapsed_steps": 2500 - env.terminate_timer,
    }


def write_freeway(env: Any, row: Row) -> None:
    env.pos, env.move_timer = int(row["pos"]), int(row["move_timer"])
    env.terminate_timer = 2500 - int(row["elapsed_steps"])
    x, timer, speed, right = (
        [int(row[name]) >> 4 * k & 15 for k in range(8)] for name in (*CARS, "rightward")
    )  # fmt: skip
    env.cars = [[x[k], k + 1, timer[k], speed[k] if right[k] else -speed[k]] for k in range(8)]


def wide_freeway(rng: np.random.Generator, n: int) -> Row:
    speed = rng.integers(1, 6, (n, 8))
    near = rng.random((n, 8)) < 0.5
    values = {
        "car_x": np.where(near, rng.integers(3, 6, (n, 8)), rng.integers(0, 10, (n, 8))),
        "car_timer": rng.integers(0, speed + 1) * (rng.random((n, 8)) < 0.6),
        "car_speed": speed,
        "rightward": rng.random((n, 8)) < 0.5,
    }
    return {name: np.array([digits(row) for row in x]) for name, x in values.items()} | {
        "pos": np.where(rng.random(n) < 0.3, 1, rng.integers(1, 10, n)),
        "move_timer": rng.integers(0, 4, n) * (rng.random(n) < 0.5),
    }


def traffic(bits: np.ndarray) -> list[Any]:
    """Speeds, and numbers whose difference to one half has the sign of the direction."""
    cars = np.array([below(bits[1 + k // 4], 10000) // 10 ** (k % 4) % 10 for k in range(8)])
    return [1 + cars % 5, 0.25 + 0.5 * (cars // 5)]


def clever_freeway(rng: np.random.Generator, state: dict[str, np.ndarray]) -> np.ndarray:
    """Up, unless a car is about to come to the cell ahead."""
    ahead = np.maximum(state["pos"].astype(np.int64) - 2, 0)
    x, timer, _, right = (state[name].astype(np.int64) >> 4 * ahead & 15 for name in (*CARS, "rightward"))
    comes = (x == 4) | ((np.where(right == 1, x + 1, x - 1) == 4) & (timer <= 3))
    return np.where(comes & (state["pos"] > 1), 0, 1)


TIMERS = ("enemy_move_interval", "alien_move_timer", "alien_shot_timer", "shot_timer", "ramp_index")
MAPS = {"aliens": "alien_map", "shots": "f_bullet_map", "bombs": "e_bullet_map"}


def halves(maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    bits = maps.reshape(-1, 2, 50).astype(np.uint64) << np.arange(50, dtype=np.uint64)
    upper, lower = bits.sum(axis=2, dtype=np.uint64).T
    return upper, lower


def read_space_invaders(env: Any) -> Row:
    row = {name: getattr(env, name) for name in ("pos", "alien_dir", *TIMERS)}
    for name, theirs in MAPS.items():
        (row[f"{name}_upper"],), (row[f"{name}_lower"],) = halves(getattr(env, theirs))
    return row


def write_space_invaders(env: Any, row: Row) -> None:
    for name in ("pos", "alien_dir", *TIMERS):
        setattr(env, name, int(row[name]))
    for name, theirs in MAPS.items():
        bits = int(row[f"{name}_upper"]) | int(row[f"{name}_lower"]) << 50
        setattr(env, theirs, np.array([bits >> k & 1 for k in range(100)], float).reshape(10, 10))


def wide_space_invaders(rng: np.random.Generator, n: int) -> Row:
    """Any aliens anywhere, in waves that are cut out at random, and any bullets."""
    aliens = rng.random((n, 10, 10)) < rng.choice([0.01, 0.1, 0.5, 0.9], n)[:, None, None]
    wave = rng.random(n) < 0.6
    for k in np.flatnonzero(wave):
        top, left, rows, columns = rng.integers(0, 8), rng.integers(0, 8), rng.integers(1, 5), rng.integers(1, 7)
        cut = np.zeros((10, 10), bool)
        cut[top : top + rows, left : left + columns] = True
        aliens[k] = cut & (rng.random((10, 10)) < rng.choice([0.3, 1.0]))
    empty = ~aliens.any(axis=(1, 2))
    aliens[empty, rng.integers(0, 10), rng.integers(0, 10)] = True
    shots, bombs = rng.random((2, n, 10, 10)) < rng.choice([0.02, 0.2], (2, n))[:, :, None, None]
    shots[:, 9] = False
    bombs[:, 8] &= rng.random((n, 10)) < 0.3
    maps = {"aliens": aliens, "shots": shots, "bombs": bombs}
    parts = {name: dict(zip(("upper", "lower"), halves(x), strict=True)) for name, x in maps.items()}
    return {f"{name}_{half}": bits for name, x in parts.items() for half, bits in x.items()} | {
        "pos": rng.integers(0, 10, n),
        "alien_dir": rng.choice([-1, 1], n),
        "enemy_move_interval": rng.integers(6, 13, n),
        "alien_move_timer": rng.integers(0, 13, n) * (rng.random(n) < 0.5),
        "alien_shot_timer": rng.integers(0, 11, n) * (rng.random(n) < 0.5),
        "shot_timer": rng.integers(0, 6, n) * (rng.random(n) < 0.5),
        "ramp_index": rng.integers(0, 7, n),
    }


def clever_space_invaders(rng: np.random.Generator, state: dict[str, np.ndarray]) -> np.ndarray:
    """Shoots whenever it can, steps aside from bullets, and otherwise follows the aliens."""

    def of(name: str) -> np.ndarray:
        both = [state[f"{name}_{half}"][:, None] >> np.arange(50, dtype=np.uint64) for half in ("upper", "lower")]
        return (np.concatenate(both, axis=1) & np.uint64(1)).reshape(-1, 10, 10).astype(bool)

    pos, n = state["pos"].astype(int), len(state["pos"])
    danger = of("bombs")[:, 7:].any(axis=1)[np.arange(n), pos]
    columns = of("aliens").any(axis=1)
    distance = np.where(columns, np.abs(np.arange(10) - pos[:, None]), 99)
    way = np.sign(distance.argmin(axis=1) - pos)
    way = np.where(danger, np.where(pos < 5, 1, -1), way)
    follow = np.where(way < 0, 1, np.where(way > 0, 2, 0))
    return np.where(~danger & (state["shot_timer"] == 0), 3, follow)


SEAQUEST = (
    "sub_x", "sub_y", "sub_or", "oxygen", "diver_count", "surface", "e_spawn_speed", "e_spawn_timer", "d_spawn_timer",
    "move_speed", "shot_timer", "ramp_index",
)  # fmt: skip
CAPACITY = {"shots": 4, "bombs": 20, "enemies": 30, "divers": 4}


def pack(things: list[list[Any]], length: int) -> np.ndarray:
    """Numbers with the digits of each thing, and zeros."""
    out = np.zeros(length, np.uint32)
    out[: len(things)] = [digits(thing) for thing in things]
    return out


def unpack(row: Row, name: str) -> list[list[int]]:
    numbers = row[name][: int(row[f"num_{name}"])].tolist()
    return [[number >> 4 * k & 15 for k in range(5)] for number in numbers]


def read_seaquest(env: Any, order: list[str]) -> Row:
    """`order` says of which kind each of our enemies is, as the original has two lists."""
    fish, subs = ([*x, 0] for x in env.e_fish), ([*x[:4], x[4] + 1] for x in env.e_subs)
    kinds = {"fish": list(fish), "sub": list(subs)}
    enemies = [kinds[kind].pop(0) for kind in order if kinds[kind]]
    assert not any(kinds.values())
    lists = {"shots": env.f_bullets, "bombs": env.e_bullets, "enemies": enemies, "divers": env.divers}
    return (
        {name: getattr(env, name) for name in SEAQUEST}
        | {f"num_{name}": len(x) for name, x in lists.items()}
        | {name: pack(x, CAPACITY[name]) for name, x in lists.items()}
        | {"overflows": 0}
    )


def write_seaquest(env: Any, row: Row) -> None:
    for name in SEAQUEST:
        setattr(env, name, bool(row[name]) if name in ("sub_or", "surface") else int(row[name]))
    shots, bombs, enemies, divers = (unpack(row, name) for name in CAPACITY)
    env.f_bullets, env.e_bullets = ([[x, y, bool(right)] for x, y, right, *_ in things] for things in (shots, bombs))
    env.divers = [[x, y, bool(right), timer] for x, y, right, timer, _ in divers]
    env.e_fish = [[x, y, bool(right), timer] for x, y, right, timer, shot in enemies if not shot]
    env.e_subs = [[x, y, bool(right), timer, shot - 1] for x, y, right, timer, shot in enemies if shot]


def wide_seaquest(rng: np.random.Generator, n: int) -> Row:
    """Things near each other and near the submarine, equal ones among them."""
    sub_x, sub_y = rng.integers(0, 10, n), rng.choice([0, 0, 1, 2, 3, 5, 8], n)
    state: Row = {
        "sub_x": sub_x,
        "sub_y": sub_y,
        "sub_or": np.where(sub_x == 0, False, np.where(sub_x == 9, True, rng.random(n) < 0.5)),
        "oxygen": np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), rng.integers(0, 201, n)),
        "diver_count": rng.choice([-2, -1, 0, 1, 3, 5, 6, 6], n),
        "surface": rng.random(n) < 0.3,
        "e_spawn_speed": rng.integers(1, 21, n),
        "e_spawn_timer": rng.integers(0, 21, n) * (rng.random(n) < 0.5),
        "d_spawn_timer": rng.integers(0, 31, n) * (rng.random(n) < 0.5),
        "move_speed": rng.integers(2, 6, n),
        "shot_timer": rng.integers(0, 6, n) * (rng.random(n) < 0.5),
        "ramp_index": rng.integers(0, 21, n),
        "overflows": np.zeros(n),
    }
    for name, room in (("shots", 1), ("bombs", 14), ("enemies", 3), ("divers", 1)):
        size = CAPACITY[name]
        state[name] = np.zeros((n, size), np.uint32)
        state[f"num_{name}"] = rng.integers(0, size - room + 1, n) if rng.random() < 0.8 else np.zeros(n, int)
        for k in range(n):
            things = []
            for _ in range(state[f"num_{name}"][k]):
                y = (
                    sub_y[k]
                    if rng.random() < 0.3
                    else rng.choice([1, 2, 3])
                    if rng.random() < 0.7
                    else rng.integers(1, 9)
                )
                x = sub_x[k] + rng.integers(-2, 3) if rng.random() < 0.1 else rng.integers(0, 10)
                thing = [np.clip(x, 0, 9), max(y, 0 if name == "shots" else 1), rng.random() < 0.5]
                if name in ("enemies", "divers"):
                    thing.append(state["move_speed"][k] if rng.random() < 0.3 else rng.choice([0, 0, 0, 1, 5]))
                if name == "enemies":
                    thing.append(rng.choice([0, 0, 0, 0, 1, 2, 7, 11]))
                if things and rng.random() < 0.4:  # equal to one that was there before, or to what it will be
                    thing = list(things[rng.integers(len(things))])
                    thing[0] = np.clip(thing[0] - rng.integers(2) * (1 if thing[2] else -1), 0, 9)
                things.append(thing)
            state[name][k] = pack(things, size)
    return state


def numbers_seaquest(env: Any, bits: np.ndarray) -> list[Any]:
    out: list[Any] = []
    if env.e_spawn_timer == 0:
        draw = below(bits[1], 48)
        out += [0.25 if draw & 1 else 0.75, 0.2 if draw // 2 % 3 == 0 else 0.6, 1 + draw // 6]
    if env.d_spawn_timer == 0:
        draw = below(bits[2], 16)
        out += [0.25 if draw & 1 else 0.75, 1 + draw // 2]
    return out


def clever_seaquest(rng: np.random.Generator, state: dict[str, np.ndarray]) -> np.ndarray:
    """Shoots at what is ahead, leaves rows in which something comes, fetches divers, and brings them up."""
    actions = np.zeros(len(state["sub_x"]), int)
    for k in range(len(actions)):
        row = {name: x[k] for name, x in state.items()}
        x, y = int(row["sub_x"]), int(row["sub_y"])
        enemies, bombs, divers = (unpack(row, name) for name in ("enemies", "bombs", "divers"))
        near = [t for t in enemies + bombs if t[1] == y and abs(t[0] - x) <= 3]
        taken = {t[1] for t in enemies + bombs if abs(t[0] - x) <= 3}
        up = row["diver_count"] == 6 or (row["oxygen"] < 40 and row["diver_count"] != 0)
        lowest = 0 if up or (row["diver_count"] < 0 and rng.random() < 0.5) else 1
        if near and y > 0:
            t = near[0]
            faces = t[0] >= x if row["sub_or"] else t[0] <= x
            if row["shot_timer"] == 0 and abs(t[0] - x) > 1:
                actions[k] = 5 if faces else 3 if t[0] > x else 1
            else:
                actions[k] = 4 if y + 1 not in taken and y < 8 else 2 if y - 1 >= lowest else 4
        elif up or row["diver_count"] < 0:
            actions[k] = 2 if y > 0 else 4
        elif y == 0:
            actions[k] = 4
        elif divers:
            t = min(divers, key=lambda t: abs(t[0] - x) + abs(t[1] - y))
            actions[k] = 1 if t[0] < x else 3 if t[0] > x else 2 if t[1] < y else 4
            way = np.sign(t[1] - y)
            if way and y + way not in taken and y + way >= lowest:
                actions[k] = 2 if way < 0 else 4
        elif row["shot_timer"] == 0:
            actions[k] = 5
    return actions


GAMES = {
    "Breakout-MinAtar-v1": Game(
        "breakout", read_breakout, write_breakout, wide_breakout, clever_breakout,
        start=lambda bits: [below(bits[0], 2)],
    ),
    "Asterix-MinAtar-v1": Game(
        "asterix", read_asterix, write_asterix, wide_asterix, clever_asterix, numbers_asterix, steps=1500
    ),
    "Freeway-MinAtar-v1": Game(
        "freeway", read_freeway, write_freeway, wide_freeway, clever_freeway,
        numbers=lambda env, bits: traffic(bits), start=traffic, episodes=4, steps=500,
    ),
    "SpaceInvaders-MinAtar-v1": Game(
        "space_invaders", read_space_invaders, write_space_invaders, wide_space_invaders, clever_space_invaders,
        steps=800,
    ),
    "Seaquest-MinAtar-v1": Game(
        "seaquest", read_seaquest, write_seaquest, wide_seaquest, clever_seaquest, numbers_seaquest, steps=1000
    ),
}  # fmt: skip


# ---- both together ----


class Both:
    """Our envs and as many originals."""

    def __init__(self, env_id: str, count: int, **config: Any) -> None:
        self.game, self.count = GAMES[env_id], count
        self.ours = Simulator(gpuzoo.get(env_id), count, device="cpu", autoreset_mode="disabled", **config)
        cfg = self.ours.program.cfg
        self.buttons = [BUTTONS.index(b) for b in type(gpuzoo.get(env_id))().pressed(cfg)]
        ramping = getattr(cfg, "difficulty_ramping", True)
        # The probability of ours is a float32.
        chance = float(np.float32(cfg.sticky_action_prob))
        self.theirs = [Environment(self.game.name, chance, ramping) for _ in range(count)]
        for env in self.theirs:
            env.random, env.env.random = Numbers(), Numbers()

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return self.ours.arrays

    def state(self) -> dict[str, np.ndarray]:
        return {name: self.arrays[name].copy() for name in self.ours.program.fields}

    def reset(self, seed: int) -> None:
        self.ours.reset(seed=seed)
        bits = drawn(self.ours)
        for env, numbers in zip(self.theirs, bits, strict=True):
            env.last_action = 0
            env.env.random.ready = self.game.start(numbers)
            env.reset()
            assert not env.env.random.ready
        self.compare(range(self.count))

    def place(self, state: Row, elapsed: np.ndarray | None = None) -> None:
        """Both into states that are given in our fields."""
        elapsed = np.zeros(self.count, np.int32) if elapsed is None else elapsed
        fields = self.ours.program.fields
        values = {name: np.asarray(x).astype(fields[name].dtype) for name, x in state.items()}
        self.ours.set_state(values | {"elapsed_steps": elapsed.astype(np.int32)})
        for k, env in enumerate(self.theirs):
            env.last_action = int(state["last_action"][k])
            self.game.write(env.env, {name: x[k] for name, x in state.items()} | {"elapsed_steps": elapsed[k]})
        self.compare(range(self.count))

    def step(self, actions: np.ndarray, playing: list[int]) -> list[int]:
        """Those who still play after one step."""
        self.arrays["action"].reshape(-1)[...] = actions
        before = self.state()
        self.ours.step()
        bits = drawn(self.ours)
        rewards, ends = np.zeros(self.count), np.zeros(self.count, bool)
        for k in playing:
            env = self.theirs[k]
            env.random.ready = [float(bits[k, 0] >> np.uint64(8)) / 2**24]
            env.env.random.ready = self.game.numbers(env.env, bits[k])
            rewards[k], ends[k] = env.act(self.buttons[actions[k]])
            assert not env.random.ready
        if "overflows" in self.arrays:  # lists that a wide state made too long
            full = self.arrays["overflows"] > 0
            assert full.mean() < 0.02
            playing = [k for k in playing if not full[k]]
        np.testing.assert_array_equal(self.arrays["reward"].reshape(-1)[playing], rewards[playing])
        np.testing.assert_array_equal(self.arrays["terminated"].reshape(-1)[playing], ends[playing])
        self.compare(playing)
        self.stuck = np.array([self.theirs[k].last_action != self.buttons[actions[k]] for k in playing])
        self.before, self.rewards = before, rewards
        return [k for k in playing if not ends[k]]

    def order(self, k: int) -> list[list[str]]:
        numbers = self.arrays["enemies"][k, : self.arrays["num_enemies"][k]]
        return [["sub" if number >> 16 else "fish" for number in numbers]]

    def compare(self, playing: Any) -> None:
        playing = list(playing)
        seen = np.stack([self.theirs[k].state() for k in playing])
        np.testing.assert_array_equal(self.arrays["observation"].reshape(self.count, *seen.shape[1:])[playing], seen)
        rows = []
        for k in playing:
            about = self.order(k) if self.game.name == "seaquest" else []
            rows.append(self.game.read(self.theirs[k].env, *about) | {"last_action": self.theirs[k].last_action})
        assert set(rows[0]) >= set(self.ours.program.fields), "every field is compared"
        for name in rows[0]:
            np.testing.assert_array_equal(self.arrays[name][playing], [row[name] for row in rows], name)


class Foresight:
    """Tries all pairs of actions in copies of the states, and keeps out of what ends an episode."""

    def __init__(self, env_id: str, count: int, buttons: int) -> None:
        self.buttons, self.count = buttons, count
        self.copies = Simulator(
            gpuzoo.get(env_id), count * buttons**2, device="cpu", autoreset_mode="disabled", sticky_action_prob=0.0
        )

    def better(self, state: dict[str, np.ndarray], actions: np.ndarray) -> np.ndarray:
        n, pairs = self.buttons, self.buttons**2
        self.copies.reset()
        self.copies.set_state({name: np.repeat(x, pairs, axis=0) for name, x in state.items()})
        worth = np.zeros((self.count, n, n))
        for k in range(2):
            self.copies.arrays["action"].reshape(self.count, n, n)[...] = (
                np.arange(n)[:, None] if k == 0 else np.arange(n)
            )
            self.copies.step()
            ended = self.copies.arrays["terminated"].reshape(worth.shape)
            worth += self.copies.arrays["reward"].reshape(worth.shape) - 100 * ended
        best = worth.max(axis=2)
        best[np.arange(self.count), actions] += 0.5
        return best.argmax(axis=1)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"sticky_action_prob": 0.0, "use_minimal_action_set": False},
    {"sticky_action_prob": 0.5, "difficulty_ramping": False},
]


def options_of(env_id: str, options: dict[str, Any]) -> dict[str, Any]:
    known = {f.name for f in dataclasses.fields(gpuzoo.get(env_id).Config)}
    return {k: v for k, v in options.items() if k in known}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("env_id", GAMES)
def test_wide_states(env_id: str, options: dict[str, Any]) -> None:
    """Three steps from each of 600 states, and of as many more with the usual options."""
    count, rng = 600, np.random.default_rng(0)
    both = Both(env_id, count, **options_of(env_id, options))
    for turn in range(1 if options else 2):
        both.reset(seed=turn)
        late = rng.random(count) < 0.1
        elapsed = np.where(late, rng.integers(2495, 2501, count), rng.integers(0, 2495, count))
        both.place(both.game.wide(rng, count) | {"last_action": rng.choice(both.buttons, count)}, elapsed)
        playing = list(range(count))
        for _ in range(3):
            playing = both.step(rng.integers(0, len(both.buttons), count), playing)
            assert both.stuck.any() == (both.ours.program.cfg.sticky_action_prob > 0)
        assert 0 < len(playing) < count


@pytest.mark.parametrize("env_id", GAMES)
def test_random_episodes(env_id: str) -> None:
    game = GAMES[env_id]
    both, rng = Both(env_id, game.episodes), np.random.default_rng(0)
    both.reset(seed=3)
    playing = list(range(both.count))
    while playing:
        playing = both.step(rng.integers(0, len(both.buttons), both.count), playing)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [(env_id, {}) for env_id in GAMES]
    + [
        (env_id, {"difficulty_ramping": False}) for env_id in GAMES if options_of(env_id, {"difficulty_ramping": False})
    ],
    ids=str,
)
def test_clever_episodes(env_id: str, options: dict[str, Any]) -> None:
    """Players that live long, and so come to where random ones do not."""
    game = GAMES[env_id]
    both, rng = Both(env_id, 16, **options), np.random.default_rng(0)
    both.reset(seed=4)
    foresight = Foresight(env_id, both.count, len(both.buttons))
    playing = list(range(both.count))
    total = np.zeros(both.count)
    for _ in range(game.steps):
        if not playing:
            break
        playing = both.step(foresight.better(both.state(), game.clever(rng, both.state())), playing)
        total += both.rewards
    assert total.mean() > 2, "nobody played well"
    if "ramp_index" in both.arrays:
        assert (both.arrays["ramp_index"].max() > 1) == (not options)


def test_full_lists() -> None:
    """What finds no place is left out and counted."""
    s = Simulator(gpuzoo.get("Seaquest-MinAtar-v1"), 5, device="cpu", autoreset_mode="disabled", sticky_action_prob=0.0)
    s.reset(seed=0)
    quiet = {"shots": [1, 8, 1], "bombs": [1, 8, 1], "enemies": [1, 8, 1, 5, 0], "divers": [1, 8, 1, 5]}
    state: Row = {name: np.zeros((5, size), np.uint32) for name, size in CAPACITY.items()}
    state |= {f"num_{name}": np.zeros(5, np.int8) for name in CAPACITY}
    for k, name in enumerate(CAPACITY):
        state[name][k], state[f"num_{name}"][k] = digits(quiet[name]), CAPACITY[name]
    state["enemies"][1, 0], state["num_enemies"][1] = digits([1, 8, 1, 5, 1]), 1  # a submarine that shoots
    timers = {"e_spawn_timer": np.array([9, 9, 0, 9, 9]), "d_spawn_timer": np.array([9, 9, 9, 0, 9])}
    s.set_state(state | timers | {"sub_y": np.ones(5), "surface": np.zeros(5)})
    s.arrays["action"].reshape(-1)[...] = [5, 0, 0, 0, 5]
    s.step()
    assert s.arrays["overflows"].tolist() == [1, 1, 1, 1, 0]
    for k, name in enumerate(CAPACITY):
        assert s.arrays[f"num_{name}"][k] == CAPACITY[name]
    assert s.arrays["num_shots"][4] == 1
    s.reset(seed=0)
    assert not s.arrays["overflows"].any()


@pytest.mark.parametrize("env_id", GAMES)
def test_spaces(env_id: str) -> None:
    import minatar.gym as original

    for minimal in (True, False):
        theirs = original.BaseEnv(GAMES[env_id].name, use_minimal_action_set=minimal)
        ours = gpuzoo.make(env_id, 1, use_minimal_action_set=minimal).simulator.layout
        assert ours.observation_spaces["agent"].shape == theirs.observation_space.shape
        assert ours.action_spaces["agent"] == theirs.action_space
