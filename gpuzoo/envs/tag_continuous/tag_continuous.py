"""TagContinuous."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpuzoo.core.definition import Config, EnvDef, Field, param
from gpuzoo.render import Canvas, fade


@dataclasses.dataclass(frozen=True)
class TagContinuousConfig(Config):
    """The constants of WarpDrive's TagContinuous, with the values of its published experiment but for five taggers."""

    num_taggers: int = param(5, low=1, high=1023, doc="taggers")
    num_runners: int = param(100, low=1, high=1023, doc="runners; at most 1024 agents in all")
    grid_length: float = param(20.0, low=1e-3, doc="side of the square field")
    max_speed: float = param(1.0, low=1e-6, doc="top speed per step of an agent with skill level 1")
    skill_level_tagger: float = param(1.0, low=0.0, doc="factor of the taggers' top speed")
    skill_level_runner: float = param(1.0, low=0.0, doc="factor of the runners' top speed")
    max_acceleration: float = param(0.1, doc="largest change of the acceleration per step")
    min_acceleration: float = param(-0.1, doc="smallest change of the acceleration per step")
    max_turn: float = param(2.356194, doc="largest change of the heading per step, rad")
    min_turn: float = param(-2.356194, doc="smallest change of the heading per step, rad")
    num_acceleration_levels: int = param(20, low=0, high=1000, doc="changes of the acceleration, besides none")
    num_turn_levels: int = param(20, low=0, high=1000, doc="changes of the heading, besides none")
    edge_hit_penalty: float = param(0.0, high=0.0, doc="added to the reward of an agent that runs into the edge")
    use_full_observation: bool = param(False, doc="whether agents see everybody, or those nearest")
    num_other_agents_observed: int = param(
        10, low=1, high=1023, doc="how many of the nearest agents are seen, without full observation"
    )
    tagging_distance: float = param(0.02, low=0.0, doc="a runner nearer than this share of grid_length is tagged")
    tag_reward_for_tagger: float = param(10.0, doc="reward for each runner tagged")
    tag_penalty_for_runner: float = param(-10.0, doc="added to a runner's reward when it is tagged")
    step_penalty_for_tagger: float = param(0.0, doc="added to each tagger's reward in every step")
    step_reward_for_runner: float = param(0.0, doc="added to the reward of each runner in the game in every step")
    end_of_game_reward_for_runner: float = param(1.0, doc="reward of runners still in the game when time is up")
    runner_exits_game_after_tagged: bool = param(True, doc="whether a tagged runner leaves the game")
    start: Literal["random", "fixed"] = param(
        "random", doc="drawn for every env and episode, or the same for all of them"
    )
    start_seed: int = param(0, low=0, high=2**31 - 1, doc="what the start is drawn from if it is fixed")


class TagContinuous(EnvDef):
    """Taggers chase runners over a square field. Everybody steers by turning and by changing their acceleration.

    Agents are the taggers (`tagger_0`, ...) and then the runners (`runner_0`, ...). A tagged runner leaves the game,
    unless `runner_exits_game_after_tagged` is false.

    **Start.** Everybody stands still in a random place, headed in one of the directions 0, π/2, π and 3π/2. With
    `start="random"` places and headings are drawn for every env and every episode; with `start="fixed"` they are drawn
    once, from `start_seed`, and are the same for all envs and episodes, as in WarpDrive.

    **Actions.** `MultiDiscrete([A + 1, B + 1])` for A = `num_acceleration_levels` and B = `num_turn_levels`. The first
    entry changes the acceleration: 0 not at all, k the k-th of A equally spaced values from `min_acceleration` to
    `max_acceleration` (one level: the minimum). The second entry changes the heading in the same way, with `min_turn`
    and `max_turn`. An entry out of range counts as 0.

    **Movement**, in this order: the acceleration changes; the heading changes, modulo 2π; the speed grows by the
    acceleration and is clipped to [0, max_speed · skill_level]; the acceleration is set to 0 if the speed is at either
    end of that range; the agent moves and stays inside the field. Moving over an edge costs `edge_hit_penalty` once.

    **Tagging.** Each runner in the game is tagged by the nearest tagger (the one with the lowest index on ties) if that
    one is nearer than `tagging_distance` · `grid_length`.

    **Observation.** float32, seven groups of values about other agents, then time / max_episode_steps. The groups:
    differences (other minus own) of x and y over the field's diagonal, of speed and acceleration over `max_speed`, of
    heading over 2π; type (tagger 1, runner 0); whether the other is in the game. Without `use_full_observation`,
    `Box(7 K + 1)`: the K = `num_other_agents_observed` nearest others in the game, nearest first, lowest index first
    on ties, padded with zeros; an agent that has left sees zeros only. With it, `Box(7 (N - 1) + 1)`: all others in
    order; an agent that has left sees types and who is in the game, and zeros otherwise. Observations show the moves of
    a step but not yet its tags: a runner that is tagged appears as in the game once more.

    **Reward.** `step_penalty_for_tagger` or `step_reward_for_runner`, plus `edge_hit_penalty`; `tag_reward_for_tagger`
    for every runner tagged and `tag_penalty_for_runner` for that runner; `end_of_game_reward_for_runner` for the
    runners in the game when time is up (not for those tagged in the last step and leaving).

    **End.** No runner is left. Time limit: 500 steps.
    """

    id = "TagContinuous-v0"
    Config = TagContinuousConfig
    max_episode_steps = 500
    reference = "rl-warp-drive==2.7.1 example_envs TagContinuous (recorded)"
    similar = (r"magent.*",)  # many who hunt
    interaction = "competitive"
    links: ClassVar[Mapping[str, str]] = {
        "WarpDrive": "https://github.com/salesforce/warp-drive",
        "Lan et al. 2022": "https://arxiv.org/abs/2108.13976",
    }
    benchmarks = {"1024 agents": {"num_taggers": 24, "num_runners": 1000}}
    render_fps = 15

    def agents(self, cfg: TagContinuousConfig) -> dict[str, int]:
        return {"tagger": cfg.num_taggers, "runner": cfg.num_runners}

    def lanes(self, cfg: TagContinuousConfig) -> int:
        return min(512, max(32, 1 << (cfg.num_taggers + cfg.num_runners - 1).bit_length()))

    def check(self, cfg: TagContinuousConfig) -> None:
        agents = cfg.num_taggers + cfg.num_runners
        if agents > 1024:
            raise ValueError(f"TagContinuous: at most 1024 agents, not {agents}: reduce num_taggers or num_runners.")
        for what in ("acceleration", "turn"):
            low, high = getattr(cfg, f"min_{what}"), getattr(cfg, f"max_{what}")
            if low > high:
                raise ValueError(f"TagContinuous: min_{what} must not be above max_{what}: {low} > {high}.")

    def observation_space(self, cfg: TagContinuousConfig, group: str) -> spaces.Box:
        others = cfg.num_taggers + cfg.num_runners - 1
        seen = others if cfg.use_full_observation else cfg.num_other_agents_observed
        # An acceleration that neither stops an agent nor takes it to its top speed is below the top speed.
        skill = max(1.0, cfg.skill_level_tagger, cfg.skill_level_runner)
        high = np.repeat(np.array([1, 1, skill, 2 * skill, 1, 1, 1], np.float32) * np.float32(1.0001), seen)
        low = np.repeat(np.array([-1, -1, -1, -1, -1, 0, 0], np.float32), seen) * high
        return spaces.Box(np.append(low, np.float32(0)), np.append(high, np.float32(1)), dtype=np.float32)

    def action_space(self, cfg: TagContinuousConfig, group: str) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete([cfg.num_acceleration_levels + 1, cfg.num_turn_levels + 1])

    def observation_names(self, cfg: TagContinuousConfig, group: str) -> dict[str, int]:
        others = cfg.num_taggers + cfg.num_runners - 1
        seen = others if cfg.use_full_observation else cfg.num_other_agents_observed
        whose = "all others" if cfg.use_full_observation else f"the {seen} nearest"
        what = ("x", "y", "speed", "acceleration", "heading")
        names = {f"difference in {name} of {whose}": seen for name in what}
        names |= {f"whether each of {whose} is a tagger": seen, f"whether each of {whose} is in the game": seen}
        return names | {"time / max_episode_steps": 1}

    def action_names(self, cfg: TagContinuousConfig, group: str) -> dict[str, int]:
        return {
            f"change of the acceleration: 0 none, or one of {cfg.num_acceleration_levels} values": 1,
            f"change of the heading: 0 none, or one of {cfg.num_turn_levels} values": 1,
        }

    def fields(self, cfg: TagContinuousConfig) -> dict[str, Field]:
        nearest = 1 if cfg.use_full_observation else cfg.num_other_agents_observed
        return {
            "x": Field("float32", ("agents",), "position, 0..grid_length"),
            "y": Field("float32", ("agents",), "position, 0..grid_length"),
            "speed": Field("float32", ("agents",), "distance per step"),
            "heading": Field("float32", ("agents",), "direction, rad, 0..2π"),
            "acceleration": Field("float32", ("agents",), "change of the speed per step"),
            "tagged_by": Field("int32", ("runners",), "who tagged the runner, in this step or when it left, or -1"),
            "features": Field("float32", (5, "agents"), "what observations show: x, y, speed, acceleration, heading"),
            "nearest": Field("int32", ("agents", nearest), "the nearest others in the game, or -1"),
        }

    def render(self, cfg: TagContinuousConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        length, taggers = cfg.grid_length, cfg.num_taggers
        xy = np.stack([state["x"], state["y"]], 1)
        heading = np.asarray(state["heading"])
        tagged = np.asarray(state["tagged_by"]) >= 0
        left = tagged if cfg.runner_exits_game_after_tagged else np.zeros_like(tagged)
        size = length * (0.016 if len(xy) <= 200 else 0.011)
        canvas.background("paper")
        canvas.view(-size, -size, length + size, length + size, pad=6, hud=True)
        canvas.cached(_field, length, size)
        runners, reach = xy[taggers:], cfg.tagging_distance * length
        canvas.circles(xy[:taggers], reach, fade("red", 0.15), outline=fade("red", 0.5), width=1.0)
        canvas.circles(runners[left], 0.5 * size, fade("grey", 0.45))
        way = np.stack([np.cos(heading), np.sin(heading)], 1) * np.asarray(state["speed"])[:, None]
        here = np.ones(len(xy), bool)
        here[taggers:] = ~left
        fast = here & (np.asarray(state["speed"]) > 0.3 * size)
        before = np.clip(xy - 2 * way, 0, length)  # where they were in the last two steps, at this speed
        for colour, part in (("red", slice(None, taggers)), ("blue", slice(taggers, None))):
            moving = fast[part]
            canvas.lines(xy[part][moving], before[part][moving], colour=fade(colour, 0.22), width=2.5)
        for k in np.flatnonzero(tagged & (np.asarray(state["speed"])[taggers:] > 0)).tolist():
            x, y = xy[int(state["tagged_by"][k])]
            canvas.line(runners[k, 0], runners[k, 1], x, y, colour="yellow", width=2)
            canvas.circles(runners[[k]], 1.3 * size, fade("yellow", 0.6))
        canvas.darts(runners[~left], heading[taggers:][~left], size, "blue")
        canvas.darts(xy[:taggers], heading[:taggers], 1.4 * size, "red")
        share = 1 - float(left.mean())  # of the runners are in the game
        canvas.rect(0, length + 0.35 * size, share * length, length + 0.8 * size, fill="blue", radius=0.2 * size)
        canvas.hud(
            left=f"taggers {taggers}, runners {int((~left).sum())} of {cfg.num_runners}",
            right=f"step {int(state['elapsed_steps'])}",
        )


def _field(canvas: Canvas, length: float, margin: float) -> None:
    """The field, with lines at each tenth of its side."""
    canvas.rect(-margin, -margin, length + margin, length + margin, fill="white", outline="line")
    for place in np.linspace(0, length, 11)[1:-1].tolist():
        canvas.line(place, 0, place, length, colour="mist", width=0.8)
        canvas.line(0, place, length, place, colour="mist", width=0.8)
