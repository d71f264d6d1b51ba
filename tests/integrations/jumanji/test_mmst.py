"""MMST against Jumanji's; drawn graphs are compared in distribution."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from against import Against, resets, same_distribution, simulator
from jumanji.environments import MMST
from jumanji.environments.routing.mmst import utils
from jumanji.environments.routing.mmst.generator import SplitRandomGenerator
from jumanji.environments.routing.mmst.reward import DenseRewardFn
from jumanji.environments.routing.mmst.types import State

from gpuzoo.envs.jumanji.instances import bits, members

pytestmark = pytest.mark.rotates


def mmst(n: int, agents: int, nodes: int, edges: int, degree: int, own: int, limit: int, rewards=(10.0, -1.0, -1.0)):
    env = MMST(SplitRandomGenerator(nodes, edges, degree, agents, own, limit), DenseRewardFn(rewards), limit)
    tried = jax.random.split(jax.random.key(7), 4000)
    orders = jax.vmap(lambda key: jax.random.permutation(jax.random.split(key)[1], agents))(tried)
    key_of = {tuple(order): k for k, order in enumerate(np.asarray(orders).tolist())}

    def state_of(arrays):
        adjacent, free = members(arrays["adjacent"], nodes), members(arrays["open"], nodes)
        edges = np.where(adjacent[:, None] & free[:, :, None], np.arange(nodes), -1)
        known = members(arrays["connected"], nodes)
        path = np.sort(np.where(known, np.arange(nodes), nodes), axis=2)
        path = np.pad(
            np.where(path < nodes, path, -1), ((0, 0), (0, 0), (0, max(0, limit - nodes))), constant_values=-1
        )
        drawn = [key_of[tuple(order)] for order in sim.arrays["order"].tolist()]  # of the step that has been made
        return State(
            node_types=arrays["node_types"].astype(np.int32),
            adj_matrix=adjacent.astype(np.int32),
            connected_nodes=path,
            connected_nodes_index=np.where(known, np.arange(nodes), -1),
            nodes_to_connect=arrays["nodes_to_connect"].astype(np.int32),
            node_edges=edges,
            positions=arrays["position"],
            position_index=known.sum(2).astype(np.int32) - 1,
            action_mask=arrays["action_mask"] != 0,
            finished_agents=arrays["finished"] != 0,
            step_count=arrays["elapsed_steps"],
            key=tried[np.array(drawn)],
        )

    def also(ours, theirs, live):
        """The nodes of a path count, not their order. The global state is what Jumanji observes."""
        for path, other in zip(ours.connected_nodes[live], np.asarray(theirs.connected_nodes)[live], strict=True):
            assert [{*a} - {-1} for a in path.tolist()] == [{*a} - {-1} for a in other.tolist()]
        o = jax.vmap(env._state_to_observation)(theirs)
        shown = np.concatenate([o.node_types, o.adj_matrix.reshape(n, -1), o.positions], 1)
        np.testing.assert_array_equal(np.asarray(sim.global_state()).reshape(n, -1)[live], shown[live])

    def seen(o):
        """What each agent sees, where Jumanji shows the view of the first one."""
        types = np.asarray(o.node_types)
        views = [
            np.concatenate([
                np.where(types < 0, -1, 2 * ((types // 2 - agent) % agents) + types % 2),
                np.asarray(o.adj_matrix).reshape(n, -1), np.roll(np.asarray(o.positions), -agent, axis=1),
            ], 1)
            for agent in range(agents)
        ]  # fmt: skip
        return np.stack(views, 1).reshape(n, -1)

    sim = simulator(
        "MMST-v0", n, num_agents=agents, num_nodes=nodes, num_edges=edges, max_degree=degree, num_nodes_per_agent=own,
        max_episode_steps=limit,
        **dict(zip(("reward_connected", "reward_time_step", "reward_noop"), rewards, strict=True)),
    )  # fmt: skip
    return Against(
        sim, env, state_of, seen, lambda o: o.action_mask.reshape(n, -1), also=also,
        action=lambda actions: actions.reshape(n, agents), chance=("connected_nodes", "position_index"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "moves"),
    [((3, 36, 72, 5, 4, 70), 100_000), ((2, 12, 30, 6, 3, 40), 10_000), ((1, 5, 8, 4, 3, 20), 5000)], ids=str,
)  # fmt: skip
def test_episodes(sizes, moves):
    mmst(200, *sizes, rewards=(10.0, -1.0, -1.0) if sizes[0] == 3 else (3.5, -0.25, -2.0)).follow(moves, illegal=0.05)


def test_steps_from_drawn_states():
    """Any graph, agents anywhere, nodes that are taken or not, agents that are through; few nodes, so many ties."""
    n, agents, nodes, own, rng = 20_000, 4, 20, 3, np.random.default_rng(0)
    adjacent = np.triu(rng.random((n, nodes, nodes)) < 0.5, 1)
    adjacent |= adjacent.transpose(0, 2, 1)
    to_connect = rng.random((n, nodes)).argsort(1)[:, : agents * own].reshape(n, agents, own)
    types = np.full((n, nodes), -1)
    for agent in range(agents):
        np.put_along_axis(types, to_connect[:, agent], agent, axis=1)
    known = rng.random((n, agents, nodes)) < 0.3
    finished = rng.random((n, agents)) < 0.2
    game = mmst(n, agents, nodes, 60, 5, own, 70)
    game.from_states({
        "adjacent": bits(adjacent), "node_types": types.astype(np.int8),
        "nodes_to_connect": to_connect.astype(np.int16),
        "open": bits(rng.random((n, agents, nodes)) < 0.8), "connected": bits(known),
        "position": rng.integers(0, nodes, (n, agents)).astype(np.int32),
        "finished": finished, "was_finished": finished & (rng.random((n, agents)) < 0.5),
        "came_from": np.full((n, agents, nodes), -1, np.int16),
    }, illegal=0.4)  # fmt: skip
    assert len(np.unique(game.sim.arrays["order"], axis=0)) == 24


@pytest.mark.parametrize("sizes", [(3, 36, 72, 5, 4, 70), (2, 13, 30, 4, 3, 40)], ids=str)
def test_generator(sizes, monkeypatch):
    """Edges within and between the parts of the agents, degrees, and where the agents' nodes are.

    Jumanji joins the last two parts with the same key, so that their edges depend on each other. Here each has its own.
    """
    merge = utils.merge_graphs
    monkeypatch.setattr(
        utils, "merge_graphs", lambda one, other, edges, degree, key: merge(
            one, other, edges, degree, jax.random.fold_in(key, len(one.nodes))
        ),
    )  # fmt: skip
    n, (agents, nodes, *_) = 4000, sizes
    game = mmst(n, *sizes)
    game.sim.reset(seed=0)
    ours, theirs = game.state_of(game.arrays()), resets(game.env, n)
    parts = np.array_split(np.arange(nodes), agents)
    samples = [np.asarray(state.adj_matrix) for state in (ours, theirs)]
    for k, one in enumerate(parts):
        for other in parts[k:]:
            same_distribution(*(adjacent[:, one][:, :, other].sum((1, 2)) for adjacent in samples))
        for node in one:
            same_distribution(*(adjacent[:, node].sum(1) for adjacent in samples))
        same_distribution(*(np.sort(adjacent[:, one].sum(2), 1)[:, -1] for adjacent in samples))
    for place in np.ndindex(agents, sizes[4]):
        same_distribution(*(np.asarray(state.nodes_to_connect)[:, place[0], place[1]] for state in (ours, theirs)))
    for name in ("positions", "action_mask", "finished_agents"):
        assert getattr(ours, name).shape == np.asarray(getattr(theirs, name)).shape
    for state in (ours, theirs):
        np.testing.assert_array_equal(state.positions, np.asarray(state.nodes_to_connect)[:, :, 0])
    same_distribution(ours.action_mask.sum((1, 2)), np.asarray(theirs.action_mask).sum((1, 2)))


def test_own_rewards_add_up_to_the_teams():
    """The reward of each agent; the team's is compared with Jumanji's above."""
    sims = [simulator("MMST-v0", 200, reward=reward) for reward in ("team", "own")]
    for sim in sims:
        sim.reset(seed=0)
    for _ in range(30):
        for sim in sims:
            sim.random_actions()
            sim.step()
        team, own = (sim.arrays["reward"] for sim in sims)
        np.testing.assert_array_equal(team, np.repeat(own.sum(1, keepdims=True), 3, 1))


def test_given_graphs():
    adjacent = np.zeros((1, 6, 6), np.uint8)
    for a, b in ((0, 1), (1, 2), (3, 4), (4, 5), (1, 4)):
        adjacent[0, a, b] = adjacent[0, b, a] = 1
    given = {"adj_matrix": adjacent, "nodes_to_connect": np.array([[[0, 2], [3, 5]]])}
    sizes = {"num_agents": 2, "num_nodes": 6, "num_nodes_per_agent": 2}
    sim = simulator("MMST-v0", 1, **sizes, instances=given)
    sim.reset(seed=0)
    for actions in ((1, 4), (2, 5)):
        sim.arrays["action"][0, :, 0] = actions
        sim.step()
    assert sim.arrays["terminated"].all()
    assert sim.arrays["reward"].tolist() == [[20, 20]]
    with pytest.raises(ValueError, match="instance 0: nodes_to_connect must have different nodes"):
        simulator("MMST-v0", 1, **sizes, instances={**given, "nodes_to_connect": np.array([[[0, 2], [2, 5]]])})
    with pytest.raises(ValueError, match="instance 0: adj_matrix must be symmetric"):
        simulator("MMST-v0", 1, **sizes, instances={**given, "adj_matrix": np.triu(adjacent)})
