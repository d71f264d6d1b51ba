"""GraphColoring."""

from __future__ import annotations

import colorsys
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Field, param
from gpuzoo.envs.jumanji.instances import OfSizedInstances, Part, SizedConfig, members
from gpuzoo.render import Canvas


@dataclasses.dataclass(frozen=True)
class GraphColoringConfig(SizedConfig):
    """The graph."""

    num_nodes: int = param(20, low=1, high=300, doc="nodes of the largest instance")
    edge_probability: float = param(0.8, low=0.0, high=1.0, doc="probability of an edge between two nodes")


class GraphColoring(OfSizedInstances):
    """Colour the nodes of a graph with as few colours as possible, never the same one at both ends of an edge.

    Each step colours the next node, from the first to the last. Each pair of nodes has an edge with
    ``edge_probability``, or the graphs are given.

    **Instances.** ``instances`` is a dataset with `adj_matrix`, (instances, num_nodes, num_nodes) of 0 and 1,
    symmetric, with 0 in the diagonal. Each episode takes one of them at random, or always the one that ``instance``
    names. Instances may be smaller than ``num_nodes``: `size` of the dataset, (instances,), says how many nodes there
    are; the first ones count. ``size`` does the same for drawn instances. It and ``edge_probability`` may differ
    between envs, or be drawn anew for each episode by ``gpuzoo.Uniform``. Absent nodes have no edges and no colour, and
    there are as many colours as nodes.

    **Actions.** `Discrete(num_nodes)`: the node's colour. The action mask holds the colours that no neighbour has.

    **Observation.** `Box(num_nodes squared + num_nodes + 1)`, float32: whether there is an edge, for each pair of
    nodes; colour of each node, -1 for none; the node to be coloured, which is 0 again after the last one.

    **Reward.** Minus the number of colours at the last step, otherwise 0. An illegal action gives minus the number of
    nodes.

    **End.** All nodes have a colour, or the action was illegal, which changes nothing. In Jumanji the node then has the
    illegal colour.
    """

    id = "GraphColoring-v1"
    Config = GraphColoringConfig
    exempt: ClassVar[Mapping[str, str]] = {
        "rows_are_stored_in_few_sectors": "Masks are no whole sectors; rows are long, so few envs observe at a time.",
    }
    invalid_action = -1
    action_mask = True
    chooses = True
    reference = "jumanji==1.1.2 GraphColoring-v1"
    links: ClassVar[Mapping[str, str]] = {
        "Jumanji": "https://instadeepai.github.io/jumanji/environments/graph_coloring/"
    }
    similar = (r"[Gg]raph[-_]?[Cc]olou?ring.*",)
    benchmarks: ClassVar[Mapping[str, Mapping[str, Any]]] = {"100 nodes": {"num_nodes": 100}}
    render_fps = 4

    def largest(self, cfg: GraphColoringConfig) -> int:
        return cfg.num_nodes

    def parts(self, cfg: GraphColoringConfig) -> dict[str, Part]:
        return {**super().parts(cfg), "adj_matrix": Part((cfg.num_nodes, cfg.num_nodes), "uint8", 0, 1)}

    def fault(self, cfg: GraphColoringConfig, instance: Mapping[str, NDArray[Any]]) -> str:
        edges = instance["adj_matrix"]
        fits = (edges == edges.T).all() and not edges.diagonal().any()
        return "" if fits else "adj_matrix must be symmetric, with 0 in the diagonal"

    def constants(self, cfg: GraphColoringConfig) -> dict[str, int]:
        words = -(-cfg.num_nodes // 64)
        return {**super().constants(cfg), "WORDS": words, "ROW_WORDS": cfg.num_nodes * words}

    def observation_space(self, cfg: GraphColoringConfig, group: str) -> spaces.Box:
        n = cfg.num_nodes
        low = np.array([0] * n * n + [-1] * n + [0], np.float32)
        high = np.array([1] * n * n + [n - 1] * (n + 1), np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    def action_space(self, cfg: GraphColoringConfig, group: str) -> spaces.Discrete:
        return spaces.Discrete(cfg.num_nodes)

    def observation_names(self, cfg: GraphColoringConfig, group: str) -> dict[str, int]:
        return {"whether there is an edge": cfg.num_nodes**2, "colour of each node": cfg.num_nodes, "current node": 1}

    def action_names(self, cfg: GraphColoringConfig, group: str) -> dict[str, int]:
        return {"colour": cfg.num_nodes}

    def fields(self, cfg: GraphColoringConfig) -> dict[str, Field]:
        return {
            "edges": Field("uint64", ("ROW_WORDS",), "neighbours of each node, a bit for each, 64 in a word"),
            "colors": Field("int16", ("num_nodes",), "colour of each node, -1 for none"),
            "size": Field("int32", doc="number of nodes"),
            "current_node_index": Field("int32", doc="the node to be coloured"),
            "used": Field("uint64", ("WORDS",), "colours that some node has, a bit for each"),
            "legal": Field("uint64", ("WORDS",), "colours that no neighbour of the current node has, a bit for each"),
        }

    def render(self, cfg: GraphColoringConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        size, colors = int(state["size"]), np.asarray(state["colors"])
        edges = members(np.asarray(state["edges"]).reshape(cfg.num_nodes, -1), cfg.num_nodes)[:size, :size]
        angles = 2 * np.pi * np.arange(size) / size
        places = np.stack([np.sin(angles), np.cos(angles)], 1)
        canvas.background("paper")
        canvas.view(-1.15, -1.15, 1.15, 1.15, hud=True)
        one, other = np.nonzero(np.triu(edges))
        canvas.lines(places[one], places[other], colour="line", width=max(0.4, min(1.2, 60 / max(len(one), 1))))
        current = int(state["current_node_index"])
        if colors[current] < 0:
            near = np.flatnonzero(edges[current])
            canvas.lines(np.repeat(places[[current]], len(near), 0), places[near], colour="slate", width=1.2)
        radius = min(0.09, 2.2 / size)
        for k, (x, y) in enumerate(places.tolist()):
            fill = _colour(int(colors[k])) if colors[k] >= 0 else "white"
            canvas.circle(x, y, radius, fill=fill, outline="ink" if k == current else "slate", width=1.5)
            if colors[k] >= 0 and size <= 40:
                canvas.text(x, y, str(int(colors[k])), colour="white", bold=True, height=0.9 * radius)
        used = len(set(colors[colors >= 0].tolist()))
        canvas.hud(left=f"{int((colors >= 0).sum())} of {size} nodes", right=f"{used} colours")


def _colour(k: int) -> str:
    """The k-th of many colours that can be told apart."""
    red, green, blue = colorsys.hsv_to_rgb(0.58 + 0.381966 * k, 0.55 + 0.2 * (k % 2), 0.6 + 0.15 * (k % 3))
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
