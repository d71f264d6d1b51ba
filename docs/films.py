"""Films of trained agents and stills of random play, each made once from what it depends on."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import itertools
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import gpuzoo
from baselines import run
from baselines.report import checkpoint, match, video
from baselines.report.evaluation import play
from baselines.train.command import PRETRAINED, checkpoint_of
from gpuzoo import render
from gpuzoo.core.codegen import program
from gpuzoo.core.definition import EnvDef

SECONDS, HOLD, PIXELS, STILL = 4, 1.5, 600, 360
LEAST = 24  #: pictures of a film of trained agents: games that are played in turns show one or two a second
MOMENT = 20  #: the step that a still shows
BEST_OF = 200  #: of so many episodes the best is shown, if the film can show it whole
MOST_SECONDS, BEST = 12, "-best"  #: of such a film, and how its name ends
FASTEST = 2  #: by how much it may be faster than the game's own speed
RANDOM_SECONDS, RANDOM_FPS = 3, 12  #: of a film of a game that nobody has trained


@dataclasses.dataclass(frozen=True)
class Shots:
    """Names of a game's pictures, nothing where it does not draw itself.

    Attributes:
        film: the MP4 file.
        still: the PNG file.
        trained: whether pretrained agents play in the film, and not random ones.
        best: whether it is the best of `BEST_OF` episodes.
        aspect: width by height.
        config: the pretrained agents' parameters that are not the game's defaults.
    """

    film: str
    still: str
    trained: bool
    best: bool
    aspect: float
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def pretrained(game: str) -> Path | None:
    """The file of the game's pretrained agents, if there is one."""
    try:
        return Path(checkpoint_of(game, PRETRAINED))
    except ValueError:
        return None


def algorithm(game: str) -> str:
    """The name of the algorithm that trained them."""
    path = pretrained(game)
    assert path is not None
    trainer, _ = run.algorithm(checkpoint.load_run(path)[1]["args"]["algorithm"])
    return trainer.__name__


def frames(
    env: EnvDef, count: int, stride: int, seed: int = 0, size: int = STILL, aspect: float | None = None, start: int = 0
) -> list[Any]:
    """Pictures of one env under random actions; an empty list if the game does not draw itself.

    Args:
        env: the game.
        count: how many pictures.
        stride: steps from one to the next.
        seed: of the env.
        size: pixels of the longer side.
        aspect: width by height; by default the game's own.
        start: steps before the first picture.
    """
    batch = gpuzoo.BatchEnv(env, 1, device="cpu", threads=1)
    try:
        batch.reset(seed=seed)
        batch.simulator.rollout(start) if start else None
        out = []
        for _ in range(count):
            state = {name: array[0] for name, array in batch.simulator.state(0).items()}
            width_and_height = render.picture_size(env.aspect(batch.simulator.cfg) if aspect is None else aspect, size)
            canvas = gpuzoo.Canvas(*width_and_height, supersample=2)
            env.render(batch.simulator.cfg, state, canvas)
            out.append(canvas.array())
            batch.simulator.rollout(stride)
        return out
    except NotImplementedError:
        return []
    finally:
        batch.close()


def _best(env: EnvDef, arranged: match.Match, steps: int) -> tuple[int, int] | None:
    """Which of `BEST_OF` envs has the best first episode, by the agents' mean return, and its length.

    Of several that are as good it is one of middle length. None if agents are of several groups or play against each
    other, or if the best one has not ended after so many steps.
    """
    if env.interaction == "competitive" or len(env.agents(env.Config())) > 1:
        return None
    batch = gpuzoo.BatchEnv(env, BEST_OF, device="cpu", output="torch", autoreset_mode="disabled", **arranged.config)
    with contextlib.closing(batch):
        for _ in itertools.islice(play(batch, arranged.players, 0), steps):
            pass
        state = batch.simulator.arrays
        over, lengths = state["waiting"], state["final_length"].max(1)
        returns = np.where(over, state["final_return"].mean(1), state["episode_return"].mean(1))
        best = np.flatnonzero(returns == returns.max())
        which = int(sorted(best, key=lambda k: lengths[k])[len(best) // 2])
        return (which, int(lengths[which])) if over[best].all() else None


def _trained(env: EnvDef) -> tuple[list[Any], float, bool]:
    """The pictures, pictures per second, and whether it is the best of several episodes."""
    arranged = match.arrange(env.id, {}, PRETRAINED)
    best = _best(env, arranged, round(MOST_SECONDS * env.render_fps * FASTEST))
    speed = max(1.0, best[1] / (MOST_SECONDS * env.render_fps)) if best else 1.0
    fps, stride = video.rate(env.id, speed)
    count, options = max(LEAST, round(SECONDS * fps)), {"envs": 1}
    if best:
        count, options = -(-best[1] // stride), {"envs": BEST_OF, "shown": best[:1], "speed": speed}
    shown = video.pictures(env.id, arranged.players, arranged.config, size=PIXELS, **options)
    with contextlib.closing(shown), contextlib.suppress(NotImplementedError):
        film = [*itertools.islice(shown, count)]
        return film + film[-1:] * (round(HOLD * fps) if best else 0), fps, bool(best)
    return [], fps, False


def _random(env: EnvDef) -> tuple[list[Any], float]:
    stride = -(-env.render_fps // RANDOM_FPS)
    fps = env.render_fps / stride
    return frames(env, max(2, round(RANDOM_SECONDS * fps)), stride, size=PIXELS), fps


@functools.cache
def _programs() -> bytes:
    """The text of what makes pictures."""
    return b"".join(Path(inspect.getfile(module)).read_bytes() for module in (render, video)) + _here()


def _here() -> bytes:
    return Path(__file__).read_bytes()


def _digest(env: EnvDef, trained: Path | None) -> str:
    """Of all that the pictures follow from: rules, declaration, agents, and the code that draws."""
    parts = [program(env, env.Config()).code.encode(), Path(inspect.getfile(type(env))).read_bytes(), _programs()]
    parts += [trained.read_bytes()] if trained else []
    return hashlib.sha256(b"".join(parts)).hexdigest()[:10]


def shots(env: EnvDef, folder: Path) -> Shots:
    """Makes a game's pictures unless they are there already."""
    from PIL import Image

    trained = pretrained(env.id)
    stem = f"{env.id}-{_digest(env, trained)}"
    ordinary, of_best, still = (folder / f"{stem}{end}" for end in (".mp4", f"{BEST}.mp4", ".png"))
    film = of_best if of_best.exists() else ordinary
    if not (film.exists() and still.exists()):
        first = frames(env, 1, 1, start=MOMENT)
        if not first:
            return Shots("", "", False, False, 1.0)
        shown, fps, best = _trained(env) if trained else (*_random(env), False)
        film = of_best if best else ordinary
        render.save_animation(shown, film, fps)
        image = Image.fromarray(first[0]).quantize(64, dither=Image.Dither.NONE)
        part = still.with_suffix(".part")
        image.save(part, format="png", optimize=True)
        part.replace(still)
    for old in folder.glob(f"{env.id}-*"):
        if old.stem.removesuffix(BEST) != stem and re.fullmatch(
            rf"{re.escape(env.id)}-[0-9a-f]{{10}}({BEST})?", old.stem
        ):
            old.unlink()
    config = match.arrange(env.id, {}, PRETRAINED).config if trained else {}
    return Shots(film.name, still.name, bool(trained), film == of_best, env.aspect(env.Config()), config)


def all_shots(names: Iterable[str], folder: Path) -> dict[str, Shots]:
    """The pictures of games, by id."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [*names]
    with ThreadPoolExecutor() as pool:  # most of it is compilation and encoding
        return dict(zip(names, pool.map(lambda name: shots(gpuzoo.get(name), folder), names), strict=True))
