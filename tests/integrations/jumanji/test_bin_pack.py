"""BinPack against Jumanji's; drawn items are compared in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from against import EPS, Against, keys, resets, same_distribution, simulator
from jumanji.environments import BinPack
from jumanji.environments.packing.bin_pack.generator import CSVGenerator, RandomGenerator, ToyGenerator
from jumanji.environments.packing.bin_pack.reward import DenseReward, SparseReward
from jumanji.environments.packing.bin_pack.space import Space
from jumanji.environments.packing.bin_pack.types import Item, Location, State

pytestmark = [
    pytest.mark.rotates,
    pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning"),  # within Jumanji
]
AXES = ("x1", "x2", "y1", "y2", "z1", "z2")


def bin_pack(
    n: int, items: int = 20, ems: int = 40, seen: int = 40, reward: str = "dense", unit: bool = True,
    container=(5870, 2330, 2200), generator=None, splits: int = 2, **options,
) -> Against:  # fmt: skip
    made = generator or RandomGenerator(items, ems, split_num_same_items=splits, container_dims=container)
    env = BinPack(made, seen, DenseReward() if reward == "dense" else SparseReward(), normalize_dimensions=unit)
    flat = options.get("action_form") != "parts"
    sides = dict(zip(("container_x", "container_y", "container_z"), container, strict=True))
    sim = simulator(
        "BinPack-v2", n, max_num_items=items, max_num_ems=ems, obs_num_ems=seen, reward=reward,
        normalize_dimensions=unit, split_num_same_items=splits, **sides, **options,
    )  # fmt: skip

    def state_of(arrays):
        fitting = np.unpackbits(arrays["fitting"].view(np.uint8), axis=-1, bitorder="little")[..., :items]
        ends = [0, container[0], 0, container[1], 0, container[2]]
        whole = Space(**{axis: np.full(n, end, np.int32) for axis, end in zip(AXES, ends, strict=True)})
        return State(
            container=whole,
            ems=Space(**{axis: arrays["ems"][..., k].astype(np.int32) for k, axis in enumerate(AXES)}),
            ems_mask=arrays["ems_mask"] != 0,
            items=Item(*np.moveaxis(arrays["items"], 2, 0).astype(np.int32)),
            items_mask=arrays["items_mask"] != 0,
            items_placed=arrays["items_placed"] != 0,
            items_location=Location(*np.moveaxis(arrays["items_location"], 2, 0).astype(np.int32)),
            action_mask=fitting.reshape(n, seen, items) != 0,
            sorted_ems_indexes=arrays["sorted_ems"].astype(np.int32),
            key=keys(n),
        )

    def shown(o):
        spaces = np.stack([*(getattr(o.ems, axis) for axis in AXES), o.ems_mask], -1)
        each = np.stack([*o.items, o.items_mask, o.items_placed], -1)
        return np.concatenate([spaces.reshape(n, -1), each.reshape(n, -1)], 1)

    def mask(o):
        whole = np.asarray(o.action_mask)
        return whole.reshape(n, -1) if flat else np.concatenate([whole.any(2), whole.any(1)], 1)

    return Against(
        sim, env, state_of, shown, mask,
        action=lambda actions: np.stack(np.divmod(actions, items), 1) if flat else actions,
        # XLA multiplies by the reciprocals of the container's lengths and volume, and adds in an order of its own
        rounding=EPS if reward == "dense" else items * EPS, seen_rounding=EPS,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        ({}, 100_000),
        (
            {"items": 12, "ems": 15, "seen": 8, "reward": "sparse", "unit": False, "container": (900, 700, 31000)},
            20_000,
        ),
        ({"items": 70, "ems": 30, "seen": 30, "splits": 5, "container": (50, 40, 30)}, 20_000),
    ],
    ids=["default", "few-spaces", "many-items"],
)  # fmt: skip
def test_episodes(options, moves):
    """With few places for spaces these run out; in a small container many are of equal size."""
    bin_pack(500, **options).follow(moves)


def test_toy():
    game = bin_pack(500, ems=60, generator=ToyGenerator())
    toy = simulator("BinPack-v2", 500, max_num_ems=60, generator="toy")
    toy.reset(seed=0)
    theirs = resets(game.env, 500)
    np.testing.assert_array_equal(np.moveaxis(toy.arrays["items"], 2, 0), np.stack(theirs.items))
    game.sim = toy
    game.follow(5000)


def test_items_from_a_csv_file(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("Item_Name,Length,Width,Height,Quantity\nshape_1,1080,760,300,5\nshape_2,1100,430,250,3\n")
    theirs = resets(BinPack(CSVGenerator(str(path), 40)), 2)
    sim = simulator("BinPack-v2", 2, instances=path, max_num_items=8)
    sim.reset(seed=0)
    np.testing.assert_array_equal(np.moveaxis(sim.arrays["items"], 2, 0), np.stack(theirs.items))
    sim = simulator("BinPack-v2", 2, instances=path)
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["items_mask"].sum(1), [8, 8])
    with pytest.raises(ValueError, match="has 8 items, and max_num_items is 5"):
        simulator("BinPack-v2", 2, instances=str(path), max_num_items=5)
    path.write_text("Length,Width\n1,2\n")
    with pytest.raises(ValueError, match="must have the columns Item_Name, Length"):
        simulator("BinPack-v2", 2, instances=str(path))


def test_actions_in_parts():
    game = bin_pack(500, action_form="parts")
    for seed in range(2):
        game.sim.reset(seed=seed)
        live, rng = np.ones(500, bool), np.random.default_rng(seed)
        for _ in range(12):
            game.sim.random_actions()
            before, actions = game.arrays()["items_placed"].sum(1), game.sim.arrays["action"][:, 0].copy()
            wild = rng.random(500) < 0.05
            actions[wild] = game.any_actions(rng, legal=True)[wild]
            was, live = live, live & ~game.step(actions, live)
            more = game.sim.arrays["items_placed"].sum(1) - before
            assert (more[was & ~wild] == 1).all()


def test_steps_from_drawn_states():
    """Spaces anywhere in a small container, some of them in others, and items that cut them."""
    n, items, ems, rng = 20_000, 8, 14, np.random.default_rng(0)
    container = np.array([9, 7, 8])
    low = rng.integers(0, container, (n, ems, 3))
    high = low + 1 + rng.integers(0, container - low)
    low, high = (
        np.where(rng.random((n, ems, 1)) < 0.2, 0, low),
        np.where(rng.random((n, ems, 1)) < 0.2, container, high),
    )
    spaces = np.stack([low[..., 0], high[..., 0], low[..., 1], high[..., 1], low[..., 2], high[..., 2]], -1)
    there = rng.random((n, ems)) < rng.random((n, 1)) + 0.1
    sides = 1 + rng.integers(0, 4, (n, items, 3))
    exists, placed = rng.random((n, items)) < 0.9, rng.random((n, items)) < 0.2
    for reward in ("dense", "sparse"):
        game = bin_pack(n, items, ems, 11, reward, container=tuple(container.tolist()))
        volume = np.where(there, (high - low).prod(2), 0)
        order = np.argsort(-volume, 1, kind="stable")
        size = np.take_along_axis(high - low, order[..., None], 1)[:, :11, None]
        usable = (exists & ~placed)[:, None] & np.take_along_axis(there, order, 1)[:, :11, None]
        fits = (sides[:, None] <= size).all(3) & usable
        game.from_states({
            "ems": spaces.astype(np.int16), "ems_mask": there, "items": sides.astype(np.int16), "items_mask": exists,
            "items_placed": exists & placed, "items_location": np.zeros((n, items, 3), np.int16),
            "sorted_ems": order.astype(np.int16),
            "fitting": (fits @ (1 << np.arange(items))).astype(np.uint64)[..., None],
        })  # fmt: skip


@pytest.mark.parametrize(("items", "splits"), [(20, 2), (12, 5)])
def test_generator(items, splits):
    n = 4000
    game = bin_pack(n, items, splits=splits)
    game.sim.reset(seed=0)
    ours, theirs = game.state_of(game.arrays()), resets(game.env, n)
    samples = [(np.stack(state.items, -1), np.asarray(state.items_mask)) for state in (ours, theirs)]
    same_distribution(*(mask.sum(1) for _, mask in samples))
    for item in range(items):
        same_distribution(*(mask[:, item] for _, mask in samples))
        for axis in range(3):
            same_distribution(*(sides[:, item, axis] for sides, _ in samples))
    for sides, mask in samples:
        assert ((sides > 0) | ~mask[..., None]).all()
    volumes = [np.sort(sides.astype(float).prod(2) * mask, 1) for sides, mask in samples]
    for rank in range(items):
        same_distribution(*(volume[:, rank] for volume in volumes))


def test_drawn_items_of_unlike_number():
    sim = simulator("BinPack-v2", 4, size=np.array([20, 10, 5, 2]))
    sim.reset(seed=0)
    np.testing.assert_array_equal(sim.arrays["items_mask"].sum(1), [19, 9, 4, 1])
    np.testing.assert_array_equal(sim.arrays["action_mask"][:, 0].sum(1), [19, 9, 4, 1])
