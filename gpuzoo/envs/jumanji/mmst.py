"""MMST."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import InstanceConfig, OfInstances, Part, members
from gpuzoo.render import CYCLE, Canvas, mix


@dataclasses.dataclass(frozen=True)
class MMSTConfig(InstanceConfig):
    """The graph, the agents and the rewards."""

    num_agents: int = param(3, low=1, high=32, doc="number of agents")
    num_nodes: int = param(36, low=2, high=100, doc="nodes of the graph")
    num_edges: int = param(72, low=1, high=4950, doc="edges of the graph")
    max_degree: int = param(5, low=1, high=100, doc="a node with more edges gets no further ones")
    num_nodes_per_agent: int = param(4, low=1, high=100, doc="nodes that each agent has to connect")
    reward_connected: float = param(10.0, doc="reward for one of these nodes")
    reward_time_step: float = param(-1.0, doc="reward for a step to another node")
    reward_noop: float = param(-1.0, doc="added to that of a step if the action was illegal")
    reward: Literal["team", "own"] = param("team", doc="the sum over all agents for each of them, or its own reward")


class MMST(OfInstances):
    """Multi minimum spanning tree: each agent connects its nodes of a graph, and no two agents may share a node.

    An agent begins in the first of its nodes and moves along edges. The nodes to which it has come are connected. Nodes
    that belong to no agent are utility nodes; once an agent has been in one, no other can enter it. If several agents
    want to move to the same node, the first one in a random order gets it, and the others stay where they are. Agents
    that have connected their nodes stay where they are.

    **Graph.** The nodes are divided into as many parts as there are agents, one after the other, of equal size or one
    more for the first ones. Each part gets a tree by a random walk among its nodes: where the walk comes to a new node,
    an edge leads there from the node before. Then edges between random nodes of the part are added, up to half of
    ``num_edges`` in all. After that the parts are joined one by one, each by an edge to a random node of those before,
    and by edges between random nodes of all that are joined; the k-th of K joints gets k / (1 + ... + K) of the other
    half. An edge is dropped and drawn again if it was drawn before in this direction, or if a node of it has more than
    ``max_degree`` edges. So there may be fewer than ``num_edges``, as an edge may be drawn in both directions. The
    agents' nodes are drawn from their parts.

    **Instances.** ``instances`` is a dataset with `adj_matrix`, (instances, num_nodes, num_nodes) of 0 and 1, and
    `nodes_to_connect`, (instances, num_agents, num_nodes_per_agent). Each episode takes one of them at random, or
    always the one that ``instance`` names, which may differ between envs. Smaller graphs have nodes without edges.

    **Actions.** `Discrete(num_nodes)`: the node to move to. The action mask holds the neighbours that no other agent
    has made its own. For an agent that has connected its nodes, it is empty from the second step after that.

    **Observation.** `Box(num_nodes + num_nodes squared + num_agents)`, int8: the type of each node, the adjacency
    matrix, the node of each agent. The type is -1 for a utility node that nobody has connected, 2 k for nodes that the
    k-th agent from this one has connected, and 2 k + 1 for those that it has to connect; k is 0 for the agent itself.
    The agents' nodes are in the same order.

    **State.** The observation of the first agent, which is Jumanji's.

    **Reward.** 10 for a node that the agent had to connect, -2 for an illegal action, otherwise -1; 0 for an agent that
    wanted a node that another one got, and for one that had connected its nodes before. Going back to a connected node
    gives -1. So does an illegal action of an agent that has connected the last node of the graph, as in Jumanji. With
    ``reward="team"`` all agents get the sum.

    **End.** All agents have connected their nodes. Time limit: 70 steps.

    **In Jumanji** one agent acts for all, the time limit terminates the episode, and the number of steps is observed.
    The last two joints of a graph share their random numbers there; here they do not.
    """

    id = "MMST-v0"
    Config = MMSTConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "legal_actions": "An agent that has connected its nodes waits for the others.",
        "rows_are_stored_in_few_sectors": "Lanes write single bytes, of rows and masks that begin inside of sectors.",
    }
    max_episode_steps = 70
    invalid_action = -1
    action_mask = True
    chooses = True
    interaction = "cooperative"
    observes_apart = True
    reference = "jumanji==1.1.2 MMST-v0"
    links: ClassVar[Mapping[str, str]] = {"Jumanji": "https://instadeepai.github.io/jumanji/environments/mmst/"}
    similar = (r"mmst.*", r"MMST.*")
    render_fps = 4

    def agents(self, cfg: MMSTConfig) -> dict[str, int]:
        return {"agent": cfg.num_agents}

    def lanes(self, cfg: MMSTConfig) -> int:
        return 32

    def parts(self, cfg: MMSTConfig) -> dict[str, Part]:
        return {
            "adj_matrix": Part((cfg.num_nodes, cfg.num_nodes), "uint8", 0, 1),
            "nodes_to_connect": Part((cfg.num_agents, cfg.num_nodes_per_agent), "int32", 0, cfg.num_nodes - 1),
        }

    def fault(self, cfg: MMSTConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        adjacent, nodes = instance["adj_matrix"], instance["nodes_to_connect"]
        if (adjacent != adjacent.T).any() or adjacent.diagonal().any():
            return "adj_matrix must be symmetric, with zeros from corner to corner"
        return "" if len(np.unique(nodes)) == nodes.size else "nodes_to_connect must have different nodes"

    def check(self, cfg: MMSTConfig) -> None:
        super().check(cfg)
        if cfg.num_agents * cfg.num_nodes_per_agent > 0.8 * cfg.num_nodes:
            raise ValueError(f"{self.id}: the agents must not have more than 80 percent of the nodes to connect.")
        if cfg.num_nodes_per_agent > cfg.num_nodes // cfg.num_agents:
            raise ValueError(f"{self.id}: num_nodes_per_agent must not be above num_nodes / num_agents.")
        most = min(cfg.num_nodes * (cfg.num_nodes - 1) // 2, cfg.num_nodes * (cfg.max_degree + 1) // 2)
        if not cfg.instances and not cfg.num_nodes - 1 <= cfg.num_edges <= most:
            raise ValueError(f"{self.id}: num_edges must be from {cfg.num_nodes - 1} to {most}, not {cfg.num_edges}.")
        if not cfg.instances and min(joint_edges(cfg), default=1) < 1:
            raise ValueError(f"{self.id}: num_edges={cfg.num_edges} leave none to join the parts of the agents.")

    def constants(self, cfg: MMSTConfig) -> dict[str, int]:
        tries = 200 * (cfg.num_nodes + cfg.num_edges)  # nearly always enough, and a bound for a graph that cannot be
        return {**super().constants(cfg), "WORDS": -(-cfg.num_nodes // 64), "TRIES": tries}

    def tables(self, cfg: MMSTConfig) -> dict[str, NDArray[Any]]:
        joints = joint_edges(cfg) or [0]
        own = {"part_edges": np.array(part_edges(cfg), np.int32), "merge_edges": np.array(joints, np.int32)}
        return {**super().tables(cfg), **own}

    def observation_space(self, cfg: MMSTConfig, group: str) -> spaces.Box:
        nodes, agents = cfg.num_nodes, cfg.num_agents
        low = np.array([-1] * nodes + [0] * (nodes**2 + agents), np.int8)
        high = np.array([2 * agents - 1] * nodes + [1] * nodes**2 + [nodes - 1] * agents, np.int8)
        return spaces.Box(low, high, dtype=np.int8)

    def state_space(self, cfg: MMSTConfig) -> spaces.Box:
        return self.observation_space(cfg, "agent")

    def action_space(self, cfg: MMSTConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_nodes)

    def observation_names(self, cfg: MMSTConfig, group: str) -> dict[str, int]:
        nodes = cfg.num_nodes
        return {"type of each node": nodes, "edge between two nodes": nodes**2, "node of each agent": cfg.num_agents}

    def action_names(self, cfg: MMSTConfig, group: str) -> dict[str, int]:
        return {"node": cfg.num_nodes}

    def fields(self, cfg: MMSTConfig) -> dict[str, Field]:
        return {
            "adjacent": Field("uint64", ("num_nodes", "WORDS"), "neighbours of each node, a bit for each"),
            "node_types": Field("int8", ("num_nodes",), "agent that has to connect each node, -1 for a utility node"),
            "nodes_to_connect": Field(
                "int16", ("agents", "num_nodes_per_agent"), "nodes that each agent has to connect"
            ),
            "open": Field("uint64", ("agents", "WORDS"), "nodes that no other agent has made its own, a bit for each"),
            "connected": Field("uint64", ("agents", "WORDS"), "nodes that each agent has connected, a bit for each"),
            "came_from": Field(
                "int16", ("agents", "num_nodes"), "from where each node was connected, -1 if it was not"
            ),
            "position": Field("int32", ("agents",), "node of each agent"),
            "order": Field("int32", ("agents",), "order in which the agents had their choice in the last step"),
            "finished": Field("bool", ("agents",), "whether each agent has connected its nodes"),
            "was_finished": Field("bool", ("agents",), "whether it had done so before the last step"),
            "goal": Field("int32", ("agents",), "node to which each agent can move", scratch=True),
            "target": Field("int32", ("agents",), "the same, -1 where another agent is first", scratch=True),
            "outcome": Field("int32", ("agents",), "what comes of each action", scratch=True),
            "left": Field("uint64", ("WORDS",), "nodes that an agent may get", scratch=True),
            "degree": Field("int32", ("num_nodes",), "edges of each node", scratch=True),
            "arc": Field("bool", ("num_nodes", "num_nodes"), "edges that were drawn", scratch=True),
            "visited": Field("bool", ("num_nodes",), "nodes of a part that are in its tree", scratch=True),
            "edges": Field("int32", (), "edges so far", scratch=True),
            "tries": Field("int32", (), "edges that were drawn so far", scratch=True),
        }

    def infos(self, cfg: MMSTConfig, state: Mapping[str, Any]) -> Mapping[str, Any]:
        finished = state["finished"].sum(1)
        return {"num_finished": finished, "solved": finished == cfg.num_agents}

    def aspect(self, cfg: MMSTConfig) -> float:
        return 1.2

    def render(self, cfg: MMSTConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        adjacent = members(np.asarray(state["adjacent"]), cfg.num_nodes)
        places = layout(np.packbits(adjacent).tobytes(), cfg.num_nodes)
        radius = min(0.042, 0.3 / np.sqrt(cfg.num_nodes))
        canvas.background("paper")
        canvas.view(-0.08, -0.08, 1.28, 1.08, y_down=True, hud=True)
        for one, other in np.argwhere(np.triu(adjacent)):
            canvas.line(*places[one], *places[other], colour="line", width=1.6)
        came_from, position = np.asarray(state["came_from"]), np.asarray(state["position"])
        connected = members(np.asarray(state["connected"]), cfg.num_nodes)
        for agent in range(cfg.num_agents):
            colour = CYCLE[agent % len(CYCLE)]
            for node in np.flatnonzero(came_from[agent] >= 0).tolist():
                canvas.line(*places[came_from[agent, node]], *places[node], colour=colour, width=4.5)
        for node, (x, y) in enumerate(places):
            kind = int(state["node_types"][node])
            owners = np.flatnonzero(connected[:, node])
            if kind >= 0:
                colour = CYCLE[kind % len(CYCLE)]
                fill = colour if connected[kind, node] else mix(colour, "white", 0.75)
                canvas.circle(x, y, 1.1 * radius, fill=fill, outline=colour, width=2.5)
            else:
                fill = mix(CYCLE[owners[0] % len(CYCLE)], "white", 0.45) if owners.size else "white"
                canvas.circle(x, y, 0.65 * radius, fill=fill, outline="grey", width=1.2)
        for agent, place in enumerate(position.tolist()):
            x, y = places[place]
            canvas.circle(x, y, 0.55 * radius, fill="ink")
            canvas.circle(x, y, 0.38 * radius, fill=CYCLE[agent % len(CYCLE)])
        done = int(sum(connected[kind, node] for node, kind in enumerate(state["node_types"]) if kind >= 0))
        nodes = cfg.num_agents * cfg.num_nodes_per_agent
        canvas.hud(left=f"{done} of {nodes} nodes connected", right=f"step {int(state['elapsed_steps'])}")


def part_edges(cfg: MMSTConfig) -> list[int]:
    """Edges within the part of each agent."""
    nodes, half, agents = cfg.num_nodes, cfg.num_edges // 2, cfg.num_agents
    out = []
    for part in range(agents):
        size = nodes // agents + (part < nodes % agents)
        out.append(min(size * (size - 1) // 2, max(size - 1, half // agents + (part < half % agents))))
    return out


def joint_edges(cfg: MMSTConfig) -> list[int]:
    """Edges that come with each joint of a part to those before."""
    rest, joints = cfg.num_edges - sum(part_edges(cfg)), np.arange(1, cfg.num_agents)
    ends = np.cumsum(rest * joints[:-1] / max(joints.sum(), 1)).astype(int)
    return [int(n) for n in np.diff([0, *ends, rest])] if joints.size else []


@functools.lru_cache(maxsize=64)
def layout(adjacent: bytes, nodes: int) -> NDArray[np.float64]:
    """Places of the nodes of a graph in a picture, (nodes, 2): nodes push each other away, and edges pull."""
    edges = np.unpackbits(np.frombuffer(adjacent, np.uint8))[: nodes * nodes].reshape(nodes, nodes)
    angle = 2.4 * np.arange(nodes)  # radians of the golden angle
    places = 0.5 * np.sqrt((np.arange(nodes) + 0.5) / nodes)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    ideal = 0.8 / np.sqrt(nodes)
    for step in range(300):
        offset = places[:, None] - places[None]
        distance = np.maximum(np.sqrt((offset**2).sum(-1)), 1e-3)
        force = ideal**2 / distance**2 - edges * distance / ideal
        move = (offset * force[..., None]).sum(1) - 0.3 * places
        length = np.maximum(np.sqrt((move**2).sum(1, keepdims=True)), 1e-9)
        places = places + move / length * np.minimum(length, 0.1 * (1 - step / 300))
    low, high = places.min(0), places.max(0)
    return np.asarray((places - low) / np.maximum(high - low, 1e-9) * [1.2, 1.0], np.float64)
