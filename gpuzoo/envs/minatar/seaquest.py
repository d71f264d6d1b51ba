"""Seaquest of MinAtar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from gpuzoo.core.definition import Field
from gpuzoo.envs.minatar.suite import MinAtar, RampingConfig
from gpuzoo.render import Canvas, fade, mix


class Seaquest(MinAtar):
    """A submarine rescues divers, shoots at fish and enemy submarines, and must come up for air.

    The game is played on 10 rows (0 is the top) and 10 columns. The submarine moves in rows 0 (the surface) to 8 and
    looks to the left or to the right. Fish, enemy submarines and divers cross rows 1 to 8, each in one direction. Young
    and Tian, "MinAtar" (2019).

    **Start.** The submarine is at the surface in column 5, looks to the left, and has air for 200 steps. Nothing else
    is there. The next enemy comes after 20 steps, as `e_spawn_speed` says, the next diver after 30; `move_speed` is 5.
    The button of the step before counts as no-op.

    **Actions.** `Discrete(6)`: no-op, left, up, right, down, fire; `use_minimal_action_set` changes nothing. With
    probability `sticky_action_prob` the action is ignored and the button that counted in the step before counts again.
    An action out of range is a no-op.

    **Rules.** In this order. (1) If `e_spawn_timer` is 0 it is set to `e_spawn_speed`, and an enemy is drawn: to come
    from the left, in column 0, or from the right, in column 9, with equal chances; a submarine with probability 1/3 or
    a fish; in one of the rows 1 to 8. If an enemy of the other direction is in that row nothing comes. An enemy moves
    after `move_speed` steps, an enemy submarine shoots after 10. (2) If `d_spawn_timer` is 0 it is set to 30, and a
    diver comes, from one of the sides, in one of the rows; it moves after 5 steps. (3) The submarine moves and stays on
    the screen, and left and right turn it; or it shoots from its cell if `shot_timer` is 0, which is then set to 5. (4)
    Its bullets move by one column. One that comes to an enemy's cell is gone, with the enemy: of a fish, or else of a
    submarine, each time the one that came first. (5) A diver in the submarine's cell comes on board if there are less
    than six. Otherwise the diver moves if its timer is 0, which is then set to 5, and comes on board from the new cell.
    (6) Enemy submarines: one in the submarine's cell ends the game. One whose timer is 0 moves, and the timer is set to
    `move_speed`; it ends the game in the submarine's cell, and is gone, with the bullet, in that of a bullet. Then it
    shoots, every 11 steps, gone or not. (7) The bullets of enemies move by one column; one that is in the submarine's
    cell before or after that ends the game. (8) Fish do as submarines do, but do not shoot. Whatever leaves the screen
    is gone. (9) The timers count down to 0. (10) Without air the game ends. Below the surface the air falls by 1. A
    submarine that has come up to the surface in this step without a diver ends the game; otherwise the air is 200 again
    and one diver goes. If there were six, all go, and `diver_count` becomes -1, so that the next diver does not count,
    as in the original. With `difficulty_ramping`, while `e_spawn_speed` is above 1 or `move_speed` above 2, each time
    at the surface lowers `e_spawn_speed` by 1, but not below 1, and every second time `move_speed`, but not below 2.

    **Observation.** `Box(0, 1, (10, 10, 10), int8)`: row, column and channel: front of the submarine, its back (the
    cell behind), bullet of the submarine, trail (the cell behind an enemy or a diver, if it is on the screen), bullet
    of an enemy, fish, enemy submarine, air (in row 9, one cell from the left for each full 20 steps), divers on board
    (in row 9, columns 8, 7, ...), diver.

    **Reward.** 1 for each enemy that is shot or runs into a bullet. Surfacing with six divers gives 1 for each cell
    of air.

    **End.** See above. There is no time limit, as in the original (Gymnax stops after 1,000 steps).

    Things are kept in lists in the order of their arrival, which decides who is hit, with room for 4 bullets, 20
    bullets of enemies, 30 enemies and 4 divers. Play never needs more than 2, 16, 30 and 2. What finds no place, from a
    state that was set by hand, does not come, and `overflows` counts it. The original has a list of fish and one of
    submarines; here they share one. As there, what is taken out of a list is the first thing that is equal, and if
    another one takes its place it acts once more.

    In the original the first action of an episode may be replaced by the last one of the episode before, and
    observations are bool.
    """

    id = "Seaquest-MinAtar-v1"
    Config = RampingConfig
    reference = "minatar 1.0.15 seaquest"
    aliases = (r"minatar-seaquest", r"MinAtar/Seaquest-v1")
    similar = (r"(ALE/)?Seaquest(NoFrameskip)?-v\d",)
    title = "Seaquest"
    channels = (
        "sub_front", "sub_back", "friendly_bullet", "trail", "enemy_bullet",
        "enemy_fish", "enemy_sub", "oxygen_gauge", "diver_gauge", "diver",
    )  # fmt: skip
    buttons = ("noop", "left", "up", "right", "down", "fire")

    def constants(self, cfg: RampingConfig) -> dict[str, int]:  # type: ignore[override]
        return super().constants(cfg) | {"SHOTS": 4, "BOMBS": 20, "ENEMIES": 30, "DIVERS": 4}

    def fields(self, cfg: RampingConfig) -> dict[str, Field]:  # type: ignore[override]
        thing = "hexadecimal digits, from the last one: column, row, 1 if it moves to the right"
        return super().fields(cfg) | {
            "sub_x": Field("int8", doc="column of the submarine"),
            "sub_y": Field("int8", doc="row of the submarine"),
            "sub_or": Field("bool", doc="whether the submarine looks to the right"),
            "oxygen": Field("int32", doc="steps until there is no air"),
            "diver_count": Field("int32", doc="divers on board, or less than none"),
            "surface": Field("bool", doc="whether the submarine has not dived since it came up"),
            "num_shots": Field("int8", doc="number of bullets of the submarine"),
            "shots": Field("uint32", ("SHOTS",), f"bullets of the submarine: {thing}"),
            "num_bombs": Field("int8", doc="number of bullets of enemies"),
            "bombs": Field("uint32", ("BOMBS",), f"bullets of enemies: {thing}"),
            "num_enemies": Field("int8", doc="number of enemies"),
            "enemies": Field(
                "uint32", ("ENEMIES",), f"{thing}, steps until it moves, 0 for a fish or 1 + steps until it shoots"
            ),
            "num_divers": Field("int8", doc="number of divers in the sea"),
            "divers": Field("uint32", ("DIVERS",), f"{thing}, steps until it moves"),
            "overflows": Field("int32", doc="things that found no place in their list, in this episode"),
            "e_spawn_speed": Field("int8", doc="steps from one enemy to the next"),
            "e_spawn_timer": Field("int8", doc="steps until the next enemy"),
            "d_spawn_timer": Field("int8", doc="steps until the next diver"),
            "move_speed": Field("int8", doc="steps that an enemy waits after a move"),
            "shot_timer": Field("int8", doc="steps until the submarine may shoot"),
            "ramp_index": Field("int8", doc="how often the game has become harder"),
        }

    def render(self, cfg: RampingConfig, state: Mapping[str, NDArray[Any]], canvas: Canvas) -> None:
        self.screen(
            state, canvas, "#10365c", f"divers {max(int(state['diver_count']), 0)}   oxygen {int(state['oxygen'])}"
        )
        canvas.rect(0, 0, 10, 0.5, fill="water")
        for k in range(9):
            canvas.rect(0, k + 0.5, 10, k + 1.5, fill=mix("#4aa3df", "#154a7d", k / 8))
        canvas.rect(0, 9, 10, 10, fill="sand")
        for k in range(10):
            canvas.circle(k + 0.3, 9.0, 0.3, fill="sand")
            canvas.circle(k + 0.7, 9.05, 0.3, fill="sand")
        things = {
            name: [[int(x) >> 4 * k & 15 for k in range(5)] for x in state[name][: int(state[f"num_{name}"])]]
            for name in ("divers", "enemies", "bombs", "shots")
        }
        for column, row, right, *_ in things["divers"]:
            x, y, way = column + 0.5, row + 0.5, 1 if right else -1
            canvas.line(x - way * 0.4, y + 0.1, x + way * 0.05, y + 0.02, colour="ink", width=7)
            canvas.line(x - way * 0.4, y + 0.1, x - way * 0.5, y - 0.08, colour="orange", width=4)
            canvas.line(x, y + 0.05, x + way * 0.2, y + 0.26, colour="ink", width=4)
            canvas.circle(x + way * 0.2, y - 0.06, 0.17, fill="sand", outline="ink")
            canvas.circle(x + way * 0.26, y - 0.08, 0.07, fill="teal")
        for column, row, right, _, shot in things["enemies"]:
            if shot:
                self.submarine(canvas, column + 0.5, row + 0.5, 1 if right else -1, 0.46, "red")
            else:
                self.fish(canvas, column + 0.5, row + 0.5, 1 if right else -1)
        for name, colour in (("bombs", "red"), ("shots", "yellow")):
            for column, row, right, *_ in things[name]:
                x, y, way = column + 0.5, row + 0.52, 1 if right else -1
                canvas.line(x - way * 0.25, y, x + way * 0.15, y, colour=colour, width=4)
                canvas.line(x - way * 0.5, y, x - way * 0.35, y, colour=fade("white", 0.6), width=2)
        way = 1 if state["sub_or"] else -1
        self.submarine(canvas, int(state["sub_x"]) + 0.5 - way * 0.42, int(state["sub_y"]) + 0.5, way, 0.9, "yellow")
        canvas.rect(0.25, 9.4, 9.75, 9.72, fill="#c9b58a", radius=0.1)
        oxygen = min(max(int(state["oxygen"]), 0) / 200, 1.0)
        if oxygen > 0.02:
            canvas.rect(0.25, 9.4, 0.25 + 9.5 * oxygen, 9.72, fill="blue" if oxygen > 0.25 else "red", radius=0.1)
        for k in range(min(max(int(state["diver_count"]), 0), 6)):
            canvas.circle(9.4 - 0.5 * k, 9.56, 0.15, fill="sand", outline="ink")

    def fish(self, canvas: Canvas, x: float, y: float, way: int) -> None:
        """One that swims in direction ``way``."""
        canvas.polygon([(x - way * 0.2, y), (x - way * 0.46, y - 0.22), (x - way * 0.46, y + 0.22)], fill="orange")
        body = [
            (-0.25, 0.0),
            (-0.1, -0.2),
            (0.15, -0.22),
            (0.35, -0.1),
            (0.42, 0.0),
            (0.35, 0.1),
            (0.15, 0.22),
            (-0.1, 0.2),
        ]
        canvas.polygon([(x + way * a, y + b) for a, b in body], fill="orange")
        canvas.line(x + way * 0.05, y - 0.18, x + way * 0.05, y + 0.18, colour="white", width=3)
        canvas.circle(x + way * 0.24, y - 0.06, 0.065, fill="white")
        canvas.circle(x + way * 0.26, y - 0.06, 0.035, fill="ink")

    def submarine(self, canvas: Canvas, x: float, y: float, way: int, half: float, colour: str) -> None:
        """One of length ``2 * half`` that looks in direction ``way``."""
        canvas.line(x - way * half, y - 0.12, x - way * half, y + 0.24, colour="ink", width=3)
        canvas.rect(x - 0.14, y - 0.42, x + 0.14, y, fill=colour, radius=0.08)
        canvas.line(x, y - 0.42, x + way * 0.14, y - 0.46, colour=colour, width=3)
        canvas.rect(x - half * 0.96, y - 0.18, x + half * 0.96, y + 0.3, fill=colour, radius=0.23)
        for k in (-1, 0, 1):
            canvas.circle(x + 0.55 * half * k + way * 0.04, y + 0.05, 0.09, fill="water", outline="ink", width=1)
