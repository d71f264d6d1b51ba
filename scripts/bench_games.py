"""Games side by side: gpuzoo and other libraries in one run, on one machine, taking turns, with random actions.

    python scripts/bench_games.py [--only REGEX] [--LIBRARY PYTHON ...] [--originals PYTHON] [--alone] [--threads 2]
        [--seconds 0.5] [--rounds 5] [--clock wall|cpu] [--device cpu|cuda] [--json FILE]

LIBRARY is a module of ``peers``: jaxmarl, gymnax, pgx, envpool, ... PYTHON is an interpreter in which that library is
installed, which need not have gpuzoo; ``games_peers.py`` runs there, in a process of its own for each game. --originals
is one with mpe2, lbforaging, rware, pettingzoo and magent2, or with overcooked-ai, which needs another NumPy, or with
hanabi-learning-environment, or with PettingZoo 1.25 and RLCard, or with gymnasium-robotics; PYTHONPATH may name a
checkout of sequential_social_dilemma_games. A library that is not given or not installed is left out, as is a game that
is not registered here. --alone times the games that this script compares with no library.

Each contestant first tries its batch sizes and goes on with its best one. Then they take turns, and the best of the
rounds counts. All have the same number of cores: libraries that use one core run in as many processes, and
their rates are added. JAX runs a batch on one device or shares it between two, whichever is faster. An env step moves
all agents of one env; finished episodes start anew in all. JAX's libraries draw actions and step in one
compiled loop (`lax.scan`), so ours is `Simulator.rollout`, which does the same; the others get actions that were drawn
before, one call for each step, so ours is `Simulator.step`. Where other programs use the machine, `--clock cpu
--threads 1` gives steps for each second of CPU time that a process took, all of its threads together. `--device cuda`
takes one GPU for gpuzoo and for JAX's libraries.

One file: nearly a third of it is the table of which game is compared with which.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import peers

import gpuzoo
from gpuzoo.core.backend import make_backend
from gpuzoo.tools import provenance

PEERS = Path(__file__).with_name("games_peers.py")
DEALS = str(Path(__file__).parents[1] / "gpuzoo" / "envs" / "card_games" / "bridge_deals.npy")
ABOUT = peers.libraries()
LIBRARIES = [name for name, about in ABOUT.items() if not about.original and name != "gpuzoo"]


@dataclasses.dataclass(frozen=True)
class Pair:
    """A game of ours, and what it is called elsewhere: an id, or a list of it, its configuration and its largest batch.

    A configuration `{"name": ...}` of ours is given by the id of another library that the game knows.
    """

    game: str
    config: dict[str, Any]
    peers: dict[str, Any]


def mpe(game: str, name: str, version: int = 3, **more: Any) -> Pair:
    peers = {"jaxmarl": f"MPE_{name}_v{version}", "mpe2": f"mpe2.{name}.{name}"}
    return Pair(game, {}, peers | more)


def gymnax(game: str, name: str, **more: Any) -> Pair:
    return Pair(game, {}, {"gymnax": name} | more)


def spiel(game: str, name: str, **config: Any) -> Pair:
    return Pair(game, {}, {"open_spiel": [name, config]})


def turns(game: str, name: str) -> Pair:
    """A card game of PettingZoo's that RLCard plays."""
    return Pair(game, {}, {"pettingzoo_turns": f"pettingzoo.classic.rlcard_envs.{name}"})


def jumanji(game: str, name: str = "", **more: Any) -> Pair:
    """A game of Jumanji's, which EnvPool has, too."""
    return Pair(game, {}, {"jumanji": name or game, "envpool": f"Jumanji/{name or game}"} | more)


def dilemma(game: str, name: str, agents: int) -> Pair:
    config = {"num_agents": agents}
    return Pair(game, config, {"social_dilemmas": [f"{name.lower()}:{name}Env", config]})


def smax(scenario: str, continuous: bool = False) -> Pair:
    action_type = "continuous" if continuous else "discrete"
    theirs = {"scenario": scenario, "action_type": action_type}
    game = "SMAXContinuous-v0" if continuous else "SMAX-v0"
    return Pair(game, {"name": scenario}, {"jaxmarl": ["HeuristicEnemySMAX", theirs]})


def mamujoco(game: str) -> Pair:
    scenario, _, factorisation = game.removeprefix("Ma").removesuffix("-v1").partition("-")
    return Pair(game, {}, {"mamujoco": f"{scenario}-{factorisation.replace('-', '|')}"})


PAIRS = (
    mpe("Simple-v0", "simple"),
    mpe("SimpleSpread-v0", "simple_spread", vmas="simple_spread"),
    mpe("SimpleTag-v0", "simple_tag", vmas="simple_tag"),
    mpe("SimpleAdversary-v0", "simple_adversary"),
    mpe("SimplePush-v0", "simple_push"),
    mpe("SimpleCrypto-v0", "simple_crypto"),
    mpe("SimpleReference-v0", "simple_reference"),
    mpe("SimpleSpeakerListener-v0", "simple_speaker_listener", 4),
    mpe("SimpleWorldComm-v0", "simple_world_comm"),
    *(
        Pair(f"{name}-v0", {}, {"mpe2": f"mpe2.{module}.{module}"})
        for name, module in (
            ("SimpleFormation", "simple_formation"),
            ("SimpleLine", "simple_line"),
            ("CollectTreasure", "collect_treasure"),
        )
    ),
    Pair("SwitchRiddle-v0", {}, {"jaxmarl": "switch_riddle"}),
    Pair("CoinGame-v0", {}, {"jaxmarl": "coin_game"}),
    Pair("Overcooked-v0", {}, {"jaxmarl": "overcooked", "overcooked_ai": "cramped_room"}),
    Pair("OvercookedV2-v0", {}, {"jaxmarl": "overcooked_v2"}),
    Pair("Storm2P-v0", {}, {"jaxmarl": "storm_2p"}),
    Pair("Storm-v0", {"num_agents": 3}, {"jaxmarl": ["storm", {"num_agents": 3}, 16]}),
    Pair("StormNP-v0", {}, {"jaxmarl": "storm_np"}),
    Pair("JaxNav-v0", {}, {"jaxmarl": ["jaxnav", {}, 256]}),
    smax("3m"),
    smax("2s3z"),
    smax("27m_vs_30m"),
    smax("smacv2_10_units"),
    smax("3m", continuous=True),
    Pair("Hanabi-v0", {}, {"jaxmarl": "hanabi", "hanabi": "Hanabi-Full"}),
    Pair("TicTacToe-v0", {}, {"pgx": "tic_tac_toe", "envpool": "TicTacToe-v1"}),
    Pair("ConnectFour-v0", {}, {"pgx": "connect_four", "envpool": "ConnectFour-v1"}),
    Pair("Othello-v0", {}, {"pgx": "othello", "envpool": "Othello-v1"}),
    Pair("Go-v0", {}, {"pgx": "go_9x9", "envpool": "Go9x9-v1"}),
    Pair("Go-v0", {"size": 19}, {"pgx": "go_19x19", "envpool": "Go19x19-v1"}),
    Pair("Hex-v0", {}, {"pgx": "hex", "envpool": "Hex-v1"}),
    Pair("KuhnPoker-v0", {}, {"pgx": "kuhn_poker", "envpool": "KuhnPoker-v1"}),
    Pair("Game2048-v0", {}, {"pgx": "2048", "envpool": "Play2048-v1"}),
    Pair("LeducHoldem-v0", {}, {"pgx": "leduc_holdem", "envpool": "LeducHoldem-v1"}),
    Pair("Chess-v0", {}, {"pgx": "chess", "envpool": "Chess-v1"}),
    Pair("GardnerChess-v0", {}, {"pgx": "gardner_chess", "envpool": "GardnerChess-v1"}),
    Pair("AnimalShogi-v0", {}, {"pgx": "animal_shogi", "envpool": "AnimalShogi-v1"}),
    Pair("Backgammon-v0", {}, {"pgx": "backgammon", "envpool": "Backgammon-v1"}),
    Pair("Shogi-v0", {}, {"pgx": "shogi", "envpool": "Shogi-v1"}),
    Pair("SparrowMahjong-v0", {}, {"pgx": "sparrow_mahjong"}),
    Pair("BridgeBidding-v0", {}, {"pgx": ["bridge_bidding", {"dds_results_table_path": DEALS}]}),
    spiel("Checkers-v0", "checkers"),
    spiel("DotsAndBoxes-v0", "dots_and_boxes", num_rows=5, num_cols=5),
    spiel("Quoridor-v0", "quoridor"),
    turns("TexasHoldem-v0", "texas_holdem"),
    turns("TexasHoldemNoLimit-v0", "texas_holdem_no_limit"),
    turns("GinRummy-v0", "gin_rummy"),
    Pair("LevelBasedForaging-v3", {"name": "Foraging-8x8-2p-2f-v3"}, {"gymnasium": "lbforaging:Foraging-8x8-2p-2f-v3"}),
    Pair(
        "LevelBasedForaging-v3",
        {"name": "Foraging-15x15-8p-4f-v3"},
        {"gymnasium": "lbforaging:Foraging-15x15-8p-4f-v3"},
    ),
    Pair(
        "RobotWarehouse-v0",
        {"name": "rware-tiny-4ag-v2"},
        {"gymnasium": "rware:rware-tiny-4ag-v2", "pufferlib": "rware.rware:Rware"},
    ),
    *(dilemma(f"{name}-v0", name, agents) for name in ("Harvest", "Cleanup") for agents in (5, 9)),
    Pair("MAgentBattle-v0", {}, {"magent2": "battle_v4"}),
    Pair("MAgentBattlefield-v0", {}, {"magent2": "battlefield_v5"}),
    Pair("MAgentCombinedArms-v0", {}, {"magent2": "combined_arms_v6"}),
    Pair("MAgentGather-v0", {}, {"magent2": "gather_v5"}),
    Pair("MAgentAdversarialPursuit-v0", {}, {"magent2": "adversarial_pursuit_v4"}),
    Pair("MAgentTigerDeer-v0", {}, {"magent2": "tiger_deer_v4"}),
    Pair("Pursuit-v0", {}, {"pettingzoo": "pettingzoo.sisl.pursuit.pursuit"}),
    Pair(  # without a mode it draws nothing, and prints a warning in each step
        "CooperativePong-v0",
        {},
        {"pettingzoo": ["pettingzoo.butterfly.cooperative_pong.cooperative_pong", {"render_mode": "rgb_array"}]},
    ),
    Pair(
        "KnightsArchersZombies-v0",
        {},
        {"pettingzoo": "pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies"},
    ),
    gymnax("CartPole-v1", "CartPole-v1", envpool="CartPole-v1", pufferlib="cartpole.cartpole:Cartpole"),
    gymnax("Pendulum-v1", "Pendulum-v1", envpool="Pendulum-v1"),
    gymnax("Acrobot-v1", "Acrobot-v1", envpool="Acrobot-v1"),
    gymnax("MountainCar-v0", "MountainCar-v0", envpool="MountainCar-v0"),
    gymnax("MountainCarContinuous-v0", "MountainCarContinuous-v0", envpool="MountainCarContinuous-v0"),
    gymnax("FrozenLake-v1", "FrozenLake-misc", envpool="FrozenLake-v1"),
    Pair("FrozenLake8x8-v1", {}, {"envpool": "FrozenLake8x8-v1"}),
    Pair("Taxi-v4", {}, {"envpool": "Taxi-v3"}),
    Pair("CliffWalking-v1", {}, {"envpool": "CliffWalking-v1"}),
    Pair("Blackjack-v1", {}, {"envpool": "Blackjack-v1"}),
    gymnax("Asterix-MinAtar-v1", "Asterix-MinAtar"),
    gymnax("Breakout-MinAtar-v1", "Breakout-MinAtar"),
    gymnax("Freeway-MinAtar-v1", "Freeway-MinAtar", pufferlib="freeway.freeway:Freeway"),
    gymnax("Seaquest-MinAtar-v1", "Seaquest-MinAtar"),
    gymnax("SpaceInvaders-MinAtar-v1", "SpaceInvaders-MinAtar"),
    gymnax("Catch-bsuite-v0", "Catch-bsuite", envpool="Catch-v0"),
    gymnax("DeepSea-bsuite-v0", "DeepSea-bsuite"),
    gymnax("MemoryChain-bsuite-v0", "MemoryChain-bsuite"),
    gymnax("UmbrellaChain-bsuite-v0", "UmbrellaChain-bsuite"),
    gymnax("DiscountingChain-bsuite-v0", "DiscountingChain-bsuite"),
    gymnax("MNISTBandit-bsuite-v0", "MNISTBandit-bsuite"),
    gymnax("SimpleBandit-bsuite-v0", "SimpleBandit-bsuite"),
    gymnax("BernoulliBandit-misc-v0", "BernoulliBandit-misc"),
    gymnax("GaussianBandit-misc-v0", "GaussianBandit-misc"),
    gymnax("FourRooms-v0", "FourRooms-misc"),
    gymnax("MetaMaze-v0", "MetaMaze-misc"),
    gymnax("PointRobot-v0", "PointRobot-misc"),
    gymnax("Reacher-misc-v0", "Reacher-misc"),
    gymnax("Swimmer-misc-v0", "Swimmer-misc"),
    gymnax("Pong-v0", "Pong-misc"),
    Pair("Pong-v0", {"use_visual_obs": False}, {"pufferlib": "pong.pong:Pong"}),  # it has numbers, no picture
    jumanji("TSP-v1"),
    jumanji("CVRP-v1"),
    jumanji("Knapsack-v1"),
    jumanji("Snake-v1"),
    jumanji("Maze-v0"),
    jumanji("Cleaner-v0"),
    jumanji("SlidingTilePuzzle-v0"),
    jumanji("Minesweeper-v0"),
    jumanji("Tetris-v0"),
    jumanji("GraphColoring-v1"),
    jumanji("RubiksCube-v0"),
    jumanji("RubiksCube-partly-scrambled-v0"),
    jumanji("JobShop-v0"),
    jumanji("Sudoku-v0"),
    jumanji("Sudoku-very-easy-v0"),
    jumanji("FlatPack-v0", jumanji=["FlatPack-v0", {}, 64]),
    jumanji("BinPack-v2", jumanji=["BinPack-v2", {}, 512]),
    jumanji("MMST-v0", jumanji=["MMST-v0", {}, 512]),
    Pair("Sokoban-v0", {"levels": "toy"}, {"jumanji": ["Sokoban-v0", {"generator": "toy"}]}),
    jumanji("Connector-v3", envpool="Jumanji/Connector-v2"),
    jumanji("LevelBasedForaging-jumanji-v0", "LevelBasedForaging-v0"),
    jumanji("RobotWarehouse-jumanji-v0", "RobotWarehouse-v0"),
    jumanji("PacMan-v1"),
    jumanji("MultiCVRP-v0"),
    jumanji("SearchAndRescue-v0"),
    *(  # the original of the coupled cheetahs fails with MuJoCo 4
        mamujoco(game)
        for game in gpuzoo.ids()
        if game.startswith("Ma") and game.endswith("-v1") and "Coupled" not in game
    ),
)


@dataclasses.dataclass(frozen=True)
class Timing:
    """How the contestants are timed.

    Attributes:
        threads: cores for each.
        seconds: of a turn.
        rounds: turns of each.
        clock: ``"wall"``, or ``"cpu"`` for CPU seconds.
        device: ``"cpu"`` or ``"cuda"``.
    """

    threads: int
    seconds: float
    rounds: int
    clock: str
    device: str = "cpu"


class ContestantError(Exception):
    """A contestant that ended early."""


class Process:
    """``games_peers.py`` with one game."""

    def __init__(self, python: str, library: str, game: dict[str, Any]) -> None:
        if game["device"] == "cuda":  # which several processes share
            variables = {"JAX_PLATFORMS": "cuda", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        else:
            devices = f"--xla_force_host_platform_device_count={game['threads']}"
            variables = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": devices}
        self.process = subprocess.Popen(
            [python, str(PEERS), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if library != "gpuzoo" else None,
            text=True,
            env={**os.environ, **variables},
        )
        self.send(game)
        self.about: Any = self.receive()

    def send(self, what: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def receive(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            stderr = self.process.stderr.read().strip() if self.process.stderr else ""
            raise ContestantError((stderr.splitlines() or ["it ended"])[-1])
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Contestant:
    """As many processes as fill the cores, which step at the same time."""

    def __init__(self, python: str, library: str, game: dict[str, Any]) -> None:
        first = Process(python, library, game)
        self.cases, count = first.about
        self.processes = [first, *(Process(python, library, game) for _ in range(count - 1))]
        self.best: dict[str, list[Any]] = {}
        self.rates: dict[str, list[float]] = {}

    def rate(self, case: list[Any], seconds: float) -> float:
        for process in self.processes:
            process.send([case, seconds])
        return float(sum(process.receive() for process in self.processes))

    def choose(self, seconds: float, kind: str = "") -> None:
        """Keeps the case with the highest rate, of those of one kind."""
        cases = [case for case in self.cases if not kind or case[0] == kind]
        rates = [self.rate(case, seconds) for case in cases]
        again = [rate > 0.3 * max(rates) for rate in rates]
        rates = [
            max(rate, self.rate(case, seconds)) if promising else rate
            for case, rate, promising in zip(cases, rates, again, strict=True)
        ]
        self.best[kind] = cases[rates.index(max(rates))]
        self.rates[kind] = []

    def turn(self, seconds: float) -> None:
        for kind, case in self.best.items():
            self.rates[kind].append(self.rate(case, seconds))

    def close(self) -> None:
        for process in self.processes:
            process.close()


def compare(pair: Pair, pythons: dict[str, str], timing: Timing) -> list[dict[str, Any]]:
    """A row for each peer that plays the game."""
    wanted = {name: (x if isinstance(x, list) else [x, {}]) for name, x in pair.peers.items() if name in pythons}
    if not wanted:
        return []
    short = timing.seconds / 4
    contestants: dict[str, Contestant] = {}
    for name, (peer_id, config, *most) in {"gpuzoo": (pair.game, pair.config), **wanted}.items():
        game = {"id": peer_id, "config": config, "threads": timing.threads, "clock": timing.clock}
        game["device"] = timing.device
        if most:
            game["most_envs"] = most[0]
        python = sys.executable if name == "gpuzoo" else pythons[name]
        print(f"{pair.game}: {name}", file=sys.stderr, flush=True)
        kinds = [""]
        if name == "gpuzoo":
            kinds = sorted({"rollout" if ABOUT[peer].compiled_loop else "step" for peer in wanted})
        try:
            contestant = Contestant(python, name, game)
            for kind in kinds:
                contestant.choose(short, kind)
            contestants[name] = contestant
        except ContestantError as error:
            print(f"{pair.game}: {name} is left out: {error}", file=sys.stderr)
            if name == "gpuzoo":
                return []
    ours = contestants["gpuzoo"]
    for _ in range(timing.rounds):
        for contestant in contestants.values():
            contestant.turn(timing.seconds)
    rows = []
    for name, contestant in contestants.items():
        if name == "gpuzoo":
            continue
        kind = "rollout" if ABOUT[name].compiled_loop else "step"
        rows.append(
            {
                "game": pair.game,
                "config": pair.config,
                "peer": name,
                "peer_id": wanted[name][0],
                "kind": kind,
                "ours": max(ours.rates[kind]),
                "our_case": ours.best[kind],
                "theirs": max(contestant.rates[""]),
                "their_case": contestant.best[""],
                "processes": len(contestant.processes),
                "rates": {"ours": ours.rates[kind], "theirs": contestant.rates[""]},
            }
        )
    for contestant in contestants.values():
        contestant.close()
    return rows


def alone(game: str, timing: Timing) -> tuple[float, int]:
    """Steps per second, each step with actions that were drawn before, and the batch size."""
    about = {"id": game, "config": {}, "threads": timing.threads, "clock": timing.clock, "device": timing.device}
    contestant = Contestant(sys.executable, "gpuzoo", about)
    contestant.choose(timing.seconds / 4, "step")
    for _ in range(timing.rounds):
        contestant.turn(timing.seconds)
    contestant.close()
    return max(contestant.rates["step"]), contestant.best["step"][-1]


def number(x: float) -> str:
    """Three digits, in thousands or millions."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if x >= size:
            return f"{x / size:.3g}{unit}" if x < 1000 * size else f"{x / size:,.0f}{unit}"
    return f"{x:.3g}"


def line(row: dict[str, Any]) -> str:
    config = row["config"]
    values = [config["name"]] if "name" in config else [f"{name}={value}" for name, value in config.items()]
    game = ", ".join([f"`{row['game']}`", *values])
    batch = f"{row['their_case'][-1]:,}" + (f" x {row['processes']}" if row["processes"] > 1 else "")
    ratio = row["ours"] / row["theirs"]
    return (
        f"| {game} | {number(row['ours'])} | {row['our_case'][-1]:,} | {ABOUT[row['peer']].title} "
        f"| {number(row['theirs'])} | {batch} | {f'{ratio:,.0f}' if ratio >= 100 else f'{ratio:.3g}'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression for ids and their configurations")
    for name in (*LIBRARIES, "originals"):
        parser.add_argument(f"--{name}", metavar="PYTHON")
    parser.add_argument("--alone", action="store_true", help="the games that have no other library in this script")
    parser.add_argument("--threads", type=int, default=2, help="cores for each contestant")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: CPU seconds, for busy machines")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", metavar="FILE", help="for all that was measured")
    chosen = parser.parse_args()
    if chosen.clock == "cpu" and chosen.threads > 1:
        parser.error("--clock cpu is for --threads 1: CPU time says nothing about several cores.")
    options = {name: "originals" if about.original else name for name, about in ABOUT.items() if name != "gpuzoo"}
    pythons = {name: getattr(chosen, option) for name, option in options.items()}
    pythons = {name: python for name, python in pythons.items() if python}
    if chosen.device == "cuda":
        if chosen.clock == "cpu":
            parser.error("--clock cpu says nothing about a GPU.")
        pythons = {name: python for name, python in pythons.items() if ABOUT[name].compiled_loop}
    here = provenance.describe(make_backend(chosen.device, chosen.threads if chosen.device == "cpu" else None))
    print(f"{here.get('gpu') or here['cpu']}, {here['cores']} cores, commit {here['commit']}\n")
    unit = {"wall": "steps/s", "cpu": "steps/CPU s"}[chosen.clock]
    timing = Timing(chosen.threads, chosen.seconds, chosen.rounds, chosen.clock, chosen.device)
    if chosen.alone:
        print(f"| game, alone | {unit} | envs |\n|:--|--:|--:|", flush=True)
        for game in gpuzoo.ids():
            if game not in {pair.game for pair in PAIRS} and re.search(chosen.only, game):
                rate, envs = alone(game, timing)
                print(f"| `{game}` | {number(rate)} | {envs:,} |", flush=True)
        return
    print(f"| game | gpuzoo, {unit} | envs | library | its {unit} | envs | ratio |")
    print("|:--|--:|--:|:--|--:|--:|--:|", flush=True)
    rows, missing = [], []
    for pair in PAIRS:
        if not re.search(chosen.only, " ".join([pair.game, *map(str, pair.config.values())])):
            continue
        if pair.game not in gpuzoo.ids():
            missing.append(pair.game)
            continue
        for row in compare(pair, pythons, timing):
            print(line(row), flush=True)
            rows.append(row)
    if missing:
        print(f"not registered, left out: {', '.join(missing)}", file=sys.stderr)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps({"machine": here, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
