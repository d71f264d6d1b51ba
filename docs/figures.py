"""The plots of the start page and of the benchmarks, from what was measured and from the registry."""

from __future__ import annotations

import re
import statistics

import charts
import measured
from markdown_text import raw

import gpuzoo

SPREAD = "SimpleSpread-v0"
BESIDE = "CleanRL"
#: libraries with the same name for several packages
TITLES = {
    "gymnasium": "Gymnasium", "mpe2": "MPE2", "gymnax": "Gymnax", "minatar": "MinAtar", "pettingzoo": "PettingZoo",
    "jaxmarl": "JaxMARL", "pgx": "Pgx", "magent2": "MAgent2", "rlwarpdrive": "WarpDrive",
    "gymnasiumrobotics": "Gymnasium-Robotics", "jumanji": "Jumanji", "rlcard": "RLCard",
}  # fmt: skip
FEW = 3  #: libraries with fewer games share a bar


def batches() -> str:
    """Steps per second by the number of envs."""
    found = measured.batches()["series"]
    return charts.lines(
        {("- " if " " in name else "") + name: points for name, points in found.items()},
        "Env steps per second by the number of envs",
        "envs",
        "env steps per second",
    )


def peers() -> str:
    """How many times as fast games are as those of other libraries."""
    # A game that was timed in both ways counts once, by the two cores, which come first.
    ratios = {(speed.library, speed.game, speed.case): speed.ratio for speed in reversed(measured.games())}
    by_library: dict[str, list[float]] = {}
    for (library, _, _), ratio in ratios.items():
        by_library.setdefault(library, []).append(ratio)
    order = sorted(by_library, key=lambda name: -len(by_library[name]))
    return charts.dots(
        {f"{name} ({len(by_library[name])})": by_library[name] for name in order},
        "How many times as many steps per second as another library, by game",
        "times as many steps per second; a dot is a game, the line their median",
    )


def _one_game() -> tuple[str, float]:
    rows = [speed for speed in measured.games() if speed.game == SPREAD]
    best = max(rows, key=lambda speed: speed.theirs)
    ours = [("gpuzoo", "gpuzoo", best.ours)]
    theirs = [(s.library, "others", s.theirs) for s in sorted(rows, key=lambda s: -s.theirs)]
    label = f"Env steps per second of {SPREAD} on two CPU cores"
    return charts.bars([*ours, *theirs], label, "env steps per second"), best.ratio


def training(setting: str = "") -> tuple[str, float]:
    """The time of a whole training run beside other libraries', and how many times as long CleanRL's is."""
    rows = [run for run in measured.training() if run.setting.startswith(setting or measured.training()[0].setting)]
    chosen = [(run.trainer, "gpuzoo" if run.trainer.startswith("gpuzoo") else "others", run.whole) for run in rows]
    text = charts.bars(
        chosen, f"Seconds of a whole training run: {rows[0].setting}", "seconds, start to end", log=False
    )
    return text, next(run.whole for run in rows if run.trainer.startswith(BESIDE)) / rows[0].whole


def _exact() -> tuple[str, int]:
    """Games by the library that they are compared with."""
    counts: dict[str, int] = {}
    for env_id in gpuzoo.ids():
        name = re.split(r"[\s=]", gpuzoo.get(env_id).reference)[0]
        name = TITLES.get(name.replace("-", ""), name)
        if name:
            counts[name] = counts.get(name, 0) + 1
    few = {name for name, count in counts.items() if count < FEW}
    merged = {name: count for name, count in counts.items() if name not in few}
    rows = [(name, "games", float(count)) for name, count in sorted(merged.items(), key=lambda item: -item[1])]
    rows += [(f"{len(few)} others", "games", float(sum(counts[name] for name in few)))] if few else []
    return charts.bars(rows, "Games by the library that they are compared with", "games", log=False), sum(
        counts.values()
    )


def _on_gpu() -> str:
    by_library: dict[str, list[float]] = {}
    for speed in measured.on_gpu():
        by_library.setdefault(speed.library, []).append(speed.ratio)
    ratios = [ratio for found in by_library.values() for ratio in found]
    plot = charts.dots(
        {f"{name} ({len(found)})": found for name, found in by_library.items()},
        "How many times as many steps per second as a library of JAX on the same GPU, by game",
        "times as many steps per second; a dot is a game, the line their median",
    )
    return _figure(
        f"{statistics.median(ratios):.0f} ×", "the steps of JAX's libraries on one GPU", plot,  # noqa: RUF001
        f"The median of {len(ratios)} games on an NVIDIA H200. [The table](benchmarks.md#beside-jax-on-the-same-gpu). "
        "[What has run on a GPU](gpu.md).",
    )  # fmt: skip


def _figure(big: str, title: str, plot: str, text: str) -> str:
    head = f'<p class="big">{big}</p><h3>{title}</h3>'
    return "\n\n".join(["````{container} figure", raw(head + "\n" + plot), text, "````"])


def substitutions() -> dict[str, str]:
    """``figures`` of the start page, and the plots of the benchmarks."""
    speed, ratio = _one_game()
    run, faster = training()
    exact, count = _exact()
    four = [
        _figure(
            f"{ratio:.0f} ×", "the steps of the fastest other library", speed,  # noqa: RUF001
            f"{SPREAD} with random actions, on two CPU cores. [All games and libraries](benchmarks.md).",
        ),
        _figure(
            f"{faster:.0f} ×", f"faster to a trained policy than {BESIDE}", run,  # noqa: RUF001
            f"The whole run, imports and compilation included: {measured.training()[0].setting}. "
            "[More settings](benchmarks.md#training).",
        ),
        _figure(
            f"{count} of {len(gpuzoo.ids())}", "games compared with the original", exact,
            "Tests compare states, observations, rewards and ends, and each game's page says how. The same seed gives "
            "the same bits on every device. [Determinism](determinism.md).",
        ),
        _on_gpu(),
    ]  # fmt: skip
    machine = measured.batches()
    threads = machine["threads"]
    where = f"{threads} thread{'s' * (threads > 1)} of {machine['machine']['cpu']}"
    return {
        "figures": "`````{container} figures\n" + "\n\n".join(four) + "\n`````",
        "plot_batches": raw(batches()),
        "plot_batches_machine": where,
        "plot_peers": raw(peers()),
        "plot_training": raw(run),
    }
