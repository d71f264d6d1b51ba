"""GraphColoring against Jumanji's; drawn graphs are compared in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from against import Against, keys, resets, same_distribution, simulator
from jumanji.environments import GraphColoring
from jumanji.environments.logic.graph_coloring.generator import RandomGenerator
from jumanji.environments.logic.graph_coloring.types import State

from gpuzoo.envs.jumanji.instances import bits, members

pytestmark = pytest.mark.rotates


def coloring(n: int, nodes: int, probability: float) -> Against:
    env = GraphColoring(RandomGenerator(nodes, probability))

    def state_of(arrays):
        return State(
            adj_matrix=members(arrays["edges"].reshape(n, nodes, -1), nodes),
            colors=arrays["colors"].astype(np.int32),
            current_node_index=arrays["current_node_index"],
            action_mask=members(arrays["legal"], nodes),
            key=keys(n),
        )

    def seen(o):
        return np.concatenate([o.adj_matrix.reshape(n, -1), o.colors, o.current_node_index[:, None]], 1)

    sim = simulator("GraphColoring-v1", n, num_nodes=nodes, edge_probability=probability)
    return Against(sim, env, state_of, seen, lambda o: o.action_mask, after_illegal=False)


@pytest.mark.parametrize(("nodes", "probability"), [(20, 0.8), (70, 0.1), (3, 0.5), (1, 0.5)])
def test_episodes(nodes, probability):
    coloring(1000, nodes, probability).follow(100_000 if nodes == 20 else 20_000)


def test_steps_from_drawn_states():
    n, nodes, rng = 20_000, 20, np.random.default_rng(0)
    edges = np.tril(rng.random((n, nodes, nodes)) < rng.random((n, 1, 1)), -1)
    edges |= edges.transpose(0, 2, 1)
    current = rng.integers(0, nodes, n)
    colors = np.where(
        np.arange(nodes) < current[:, None], rng.integers(0, rng.integers(1, nodes + 1, (n, 1)), (n, nodes)), -1
    )
    taken = np.zeros((n, nodes + 1), bool)
    near = edges[np.arange(n), current]
    np.put_along_axis(taken, np.where(near & (colors >= 0), colors, nodes), True, axis=1)
    used = np.zeros((n, nodes + 1), bool)
    np.put_along_axis(used, np.where(colors >= 0, colors, nodes), True, axis=1)
    coloring(n, nodes, 0.8).from_states({
        "edges": bits(edges).reshape(n, -1), "colors": colors.astype(np.int16),
        "current_node_index": current.astype(np.int32), "used": bits(used[:, :nodes]), "legal": bits(~taken[:, :nodes]),
    })  # fmt: skip


def test_generator():
    n = 5000
    theirs, sim = resets(GraphColoring(), n), simulator("GraphColoring-v1", n)
    sim.reset(seed=0)
    ours, others = members(sim.arrays["edges"].reshape(n, 20, -1), 20), np.asarray(theirs.adj_matrix)
    assert (ours == ours.transpose(0, 2, 1)).all()
    assert not ours.diagonal(axis1=1, axis2=2).any()
    same_distribution(ours.sum((1, 2)), others.sum((1, 2)))
    one, other = ours.mean(0), others.mean(0)
    assert (abs(one - other) < 5 * np.sqrt(2 * 0.16 / n)).all()


def test_given_graphs_of_unlike_size():
    ring = np.roll(np.eye(5, dtype=int), 1, 0)
    given = {"adj_matrix": np.stack([ring + ring.T, 1 - np.eye(5, dtype=int)]), "size": np.array([5, 3])}
    sim = simulator("GraphColoring-v1", 2, num_nodes=5, instances=given, instance=np.array([0, 1]))
    sim.reset(seed=0)
    edges = members(sim.arrays["edges"].reshape(2, 5, 1), 5)
    np.testing.assert_array_equal(edges[0], ring + ring.T)
    np.testing.assert_array_equal(edges[1, :3, :3], 1 - np.eye(3))
    assert not edges[1, 3:].any()
    for colour in range(3):
        np.testing.assert_array_equal(sim.arrays["action_mask"][1, 0, 3:], 0)
        sim.arrays["action"][:, 0, 0] = (colour % 2, colour)
        sim.step()
    np.testing.assert_array_equal(sim.arrays["terminated"][:, 0], [False, True])
    np.testing.assert_array_equal(sim.arrays["reward"][:, 0], [0, -3])
