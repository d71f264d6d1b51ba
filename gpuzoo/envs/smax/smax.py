"""SMAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces

from gpuzoo.envs.smax.battle import MOVES, Battle, BattleConfig


class SMAX(Battle):
    """Two armies of StarCraft units fight; allies are agents, and enemies follow a heuristic or are agents, too.

    Rutherford et al., "JaxMARL: Multi-Agent RL Environments and Algorithms in JAX" (2023), after SMAC and SMACv2.

    **Agents.** `ally_0`, `ally_1`, ...; with `enemy_policy="agents"` also `enemy_0`, ... for self-play.

    **Scenarios.** JaxMARL's maps are `3m`, `2s3z`, `25m`, `3s5z`, `8m`, `5m_vs_6m`, `10m_vs_11m`, `27m_vs_30m`,
    `3s5z_vs_3s6z`, `3s_vs_5z`, `6h_vs_8z`, `smacv2_5_units`, `smacv2_10_units` and `smacv2_20_units`. Other armies are
    written in the same way, such as `2M1h_vs_20zg`, up to 1,024 units. A map's name is a name of this game, too:
    `gpuzoo.get("2s3z")`.

    | | sign | velocity | attack | range | sight | radius | health | recharge |
    |---|---|--:|--:|--:|--:|--:|--:|--:|
    | marine | m | 3.15 | 9 | 5 | 9 | 0.375 | 45 | 0.61 |
    | marauder | M | 2.25 | 10 | 6 | 10 | 0.5625 | 125 | 1.07 |
    | stalker | s | 4.13 | 13 | 6 | 10 | 0.625 | 160 | 1.87 |
    | zealot | z | 3.15 | 8 | 2 | 9 | 0.5 | 150 | 0.86 |
    | zergling | zg | 4.13 | 5 | 2 | 8 | 0.375 | 35 | 0.5 |
    | hydralisk | h | 3.15 | 12 | 5 | 9 | 0.625 | 80 | 0.59 |

    **Start.** Allies begin at a quarter of the map's width, enemies at three quarters, both at half its height. Each
    unit is moved by up to 2 in x and y. In `smacv2_N_units` each ally has a random type, and the k-th enemy has the
    type of the k-th ally. There, half of the episodes begin with allies anywhere in the left half and enemies at their
    mirror images. In the other half, one team, drawn at random, begins in the middle of the map. Each unit of the other
    team begins near one of four points, which are drawn uniformly on the lines from the corners to the middle. All
    units are moved by up to 2 in x and y. Finally, units that overlap push each other.

    **Actions.** `Discrete(5 + opponents)`: 0 north (y + 1), 1 east, 2 south, 3 west, 4 stop, 5 + k attack the k-th
    opponent. Enemies count their opponents backwards, from the last ally. The mask excludes attacks on opponents that
    are dead or out of range. A dead unit can only stop. An illegal action counts as stop.

    **World steps.** An action lasts `world_steps_per_env_step` = 8 world steps of `time_per_step` = 1/16 s. In each of
    them all living units act at once. An attack hits if the unit's cooldown is not above 0, its target is alive, and
    the target is nearer than the unit's range. The target then loses health by the strength of the attack, and the
    cooldown becomes the recharge time plus a uniform number from -1 to 2 times `time_per_step`. If the unit does not
    hit, its cooldown falls by `time_per_step`. At the same time, units that move go velocity · `time_per_step` far, at
    most to the edge of the map. A unit at the edge dies, unless `walls_cause_death` is false. Units without health die.
    Then living units that overlap push each other: if d is the distance of two units and r the sum of their radii, each
    moves away from the other by d (r / (d + 1e-6) - 1) / 2. A unit adds the moves that several others cause.

    **Enemies** with the heuristic act on what they would observe. An enemy with opponents in range attacks the one that
    it attacked last, if that one is still in range. Otherwise it attacks the nearest one, the first in its order on
    ties, or with `attack_mode="random"` any of them. An enemy with nobody in range moves towards a visible opponent,
    which it draws in each step. If it sees nobody, it moves to the place opposite to its first one. It takes the
    direction that comes nearest, the first one on ties. Without `enemy_shoots`, enemies always move.

    **Observation.** `unit_list`: 13 numbers for each other unit, allies first, then enemies, in order. Enemies see the
    units in reverse order, their own side first. Then come 10 numbers of the unit itself. The 13 are: health as a share
    of the type's; x and y relative to the observer, divided by its sight; the last move in x and y; the last action, if
    it was an attack, divided by the number of the last action; the cooldown as a share of the recharge time, clipped to
    [0, 1]; six bits for the type. They are zeros for dead units, and for units that are not nearer than the sight.
    Without `see_enemy_actions`, moves and attacks of opponents are zeros. The 10 are: health, x and y as shares of the
    map, cooldown, type; zeros for a dead unit.

    `conic`: 13 numbers of two units for each of 32 sections of the circle around the unit, counterclockwise from the
    west, then its own 10. The two are the first units of a section within sight.

    **State.** For each unit ten numbers: health as a share, x, y, cooldown in seconds, six bits for the type; zeros for
    dead units. Then each unit's team, 0 or 1; then each unit's type, 0 to 5.

    **Reward.** All agents of a team get the same, dead ones included: the health that the opponents lost, each as a
    share of its own, divided by their number; and `won_battle_bonus` = 1 if the last opponent died and a unit of the
    team is alive. So a victory has a return of 2. With `use_self_play_reward`, the winner gets only the bonus, and the
    loser its negative.

    **End.** A team has no living unit. Time limit: 101 steps. With `dead_units_leave`, each unit terminates when it
    dies, and gets no more rewards; JaxMARL reports such units as done and goes on paying them. Infos: `won` and `lost`
    say whether the allies won or lost in this step.

    **As in the original.** Its limit of 100 steps ends episodes after 101. In SMACv2's scenarios, units may begin
    outside of the map, and then die at once; enemies without a counterpart are marines. In conic observations, the
    first ally is invisible, and so is a unit exactly on the border of two sections; dead units are visible.

    **Unlike the original.** The original also accepts masked actions: an attack on a unit out of range hits if that
    unit comes into range within the step. Its moves are 6e-8 shorter, because a rotation computes them.
    """

    id = "SMAX-v0"
    Config = BattleConfig
    max_episode_steps = 101
    action_mask = True
    invalid_action = 4
    reference = "jaxmarl 0.2.0 HeuristicEnemySMAX"
    aliases = (
        "HeuristicEnemySMAX",
        r"(\d+(zg|[mMszh]))+(_vs_(\d+(zg|[mMszh]))+)?",
        r"smacv2_\d+(_vs_\d+)?_units",
    )
    similar = (
        "LearnedPolicyEnemySMAX",
        r"smac.*",
        r"smax_.*",
        r"MMM2?|corridor|(bane|so_many_baneling).*",
        r"\d+gen_\w+",
    )
    exempt: ClassVar[Mapping[str, str]] = {
        **Battle.exempt,
        "rows_are_stored_in_few_sectors": "The masks of an env begin and end inside of sectors. Large "
        "armies' rows are too long for shared memory, and each is written by many lanes.",
    }
    benchmarks = {
        "2s3z": {"scenario": "2s3z"},
        "smacv2_10_units": {"scenario": "smacv2_10_units"},
        "27m_vs_30m": {"scenario": "27m_vs_30m"},
    }

    @staticmethod
    def config_of(name: str) -> dict[str, Any]:
        """The parameters of a map's name, or of JaxMARL's env with its default armies of five marines."""
        return {"scenario": "5m" if name == "HeuristicEnemySMAX" else name}

    def action_space(self, cfg: BattleConfig, group: str) -> spaces.Discrete:
        allies, enemies = self._both(cfg)
        return spaces.Discrete(MOVES + len(enemies if group == "ally" else allies))

    def action_names(self, cfg: BattleConfig, group: str) -> dict[str, int]:
        allies, enemies = self._both(cfg)
        opponents = [f"enemy_{k}" for k in range(len(enemies))]
        if group == "enemy":
            opponents = [f"ally_{k}" for k in reversed(range(len(allies)))]
        return dict.fromkeys(["north (y + 1)", "east", "south", "west", "stop", *(f"attack {o}" for o in opponents)], 1)
