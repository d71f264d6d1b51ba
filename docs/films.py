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
from gpuzoo.interfaces.infos import names_of
from gpuzoo.tools.players import EXPERT, imported

SECONDS, HOLD, PIXELS, STILL = 4, 1.5, 600, 360
LEAST = 24  #: pictures of a film of trained agents: games that are played in turns show one or two a second
MOMENT = 20  #: the step that a still shows
BEST_OF, MOST = 200, 2000  #: of so many episodes the best is shown, and of so many one that is solved
MOST_SECONDS = 12  #: of such a film, which shows an episode whole
FASTEST = 2  #: by how much it may be faster than the game's own speed; an expert's film may be a time-lapse
OF_EXPERT, LONGEST = 20, 10_000  #: episodes of an expert, and steps of one
RANDOM_SECONDS, RANDOM_FPS = 3, 12  #: of a film of a game that nobody has trained
SOLVED, BY_EXPERT = "solved", "by-expert"
KINDS = rf"({BY_EXPERT}-?)?((best|part|solved-\d+)-of-\d+(-\d+x)?)?"  #: how names of films end, if they show an episode


@dataclasses.dataclass(frozen=True)
class Shots:
    """Names of a game's pictures, nothing where it does not draw itself.

    Attributes:
        film: the MP4 file.
        still: the PNG file.
        trained: whether pretrained agents play in the film, and not random ones.
        shows: `Episode.kind`, or nothing if the film does not show a certain episode.
        aspect: width by height.
        by_expert: the MP4 file of the game's expert, where it solves what the agents do not.
        expert_shows: `Episode.kind` of that film.
        config: the pretrained agents' parameters that are not the game's defaults.
    """

    film: str
    still: str
    trained: bool
    shows: str
    aspect: float
    by_expert: str = ""
    expert_shows: str = ""
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


@dataclasses.dataclass(frozen=True)
class Episode:
    """The first episode of one of several envs, or a part of it.

    Attributes:
        env: which of them.
        length: in steps.
        solved: how many of the envs were solved, if this one was.
        envs: how many there are.
        start: the steps before the part; None for a whole episode.
        speed: of its film, as a multiple of the game's own.
    """

    env: int
    length: int
    solved: int
    envs: int
    start: int | None = None
    speed: float = 1.0

    @property
    def kind(self) -> str:
        """``best-of-200``, ``part-of-200``, or ``solved-3-of-200`` if it was one of three that were solved.

        ``-10x`` follows if the film is a time-lapse.
        """
        which = f"solved-{self.solved}" if self.solved else "best" if self.start is None else "part"
        return f"{which}-of-{self.envs}" + (f"-{round(self.speed)}x" if self.speed > FASTEST else "")


def best_episode(env: EnvDef, player: str) -> Episode | None:
    """One that is solved, as the game's infos say; otherwise the best one, by the agents' mean return.

    Of several that are as good it is one of middle length. If it is too long for a film, it is the part of an episode
    in which the agents earn the most. None if agents are of several groups or play against each other.
    """
    if env.interaction == "competitive" or len(env.agents(env.Config())) > 1:
        return None
    if player == EXPERT:
        return _best_of(OF_EXPERT, env, player, LONGEST)
    steps = max(_steps(env), round(MOST_SECONDS * env.render_fps * FASTEST))
    best = _best_of(BEST_OF, env, player, steps)
    if not best.solved and SOLVED in names_of(env):
        more = _best_of(MOST, env, player, steps)
        best = more if more.solved else best
    return best


def _best_of(envs: int, env: EnvDef, player: str, steps: int) -> Episode:
    arranged = match.arrange(env.id, {}, player)
    batch = gpuzoo.BatchEnv(env, envs, device="cpu", output="torch", autoreset_mode="disabled", **arranged.config)
    with contextlib.closing(batch):
        state, earned = batch.simulator.arrays, [np.zeros(envs)]
        for _ in itertools.islice(play(batch, arranged.players, 0), steps):
            over = state["waiting"]
            earned.append(np.where(over, state["final_return"].mean(1), state["episode_return"].mean(1)))
            if over.all():
                break
        lengths, returns = state["final_length"].max(1), earned[-1]
        solved = over & env.infos(batch.simulator.cfg, state).get(SOLVED, False)
    best = np.flatnonzero(solved if solved.any() else returns == returns.max())
    if over[best].all():
        which = int(sorted(best, key=lambda k: lengths[k])[len(best) // 2])
        length = int(lengths[which])
        return Episode(which, length, int(solved.sum()), envs, None, max(1.0, length / (MOST_SECONDS * env.render_fps)))
    length = _steps(env)
    gains = np.array(earned[length:]) - earned[:-length]
    most = np.argwhere(gains == gains.max())
    start, which = most[len(most) // 2].tolist()
    return Episode(which, length, 0, envs, start)


def _steps(env: EnvDef) -> int:
    """Those of a film that shows no whole episode."""
    fps, stride = video.rate(env.id)
    return stride * (max(LEAST, round(SECONDS * fps)) - 1) + 1


def filmed(env: EnvDef, player: str) -> tuple[list[Any], float, Episode | None]:
    """The pictures, pictures per second, and the episode: as pretrained agents or the game's expert play it."""
    arranged, best = match.arrange(env.id, {}, player), best_episode(env, player)
    speed, length, options = 1.0, _steps(env), {"envs": 1}
    if best:
        speed, length = best.speed, best.length
        options = {"envs": best.envs, "shown": (best.env,), "start": best.start or 0}
    fps, stride = video.rate(env.id, speed)
    shown = video.pictures(env.id, arranged.players, arranged.config, size=PIXELS, speed=speed, **options)
    with contextlib.closing(shown):
        film = [*itertools.islice(shown, -(-(length - 1) // stride) + 1)]
    return film + film[-1:] * (round(HOLD * fps) if best and best.start is None else 0), fps, best


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
    parts += [Path(inspect.getfile(imported(env.expert, "expert"))).read_bytes()] if env.expert else []
    return hashlib.sha256(b"".join(parts)).hexdigest()[:10]


def shots(env: EnvDef, folder: Path) -> Shots:
    """Makes a game's pictures unless they are there already."""
    from PIL import Image

    trained = pretrained(env.id)
    stem = f"{env.id}-{_digest(env, trained)}"
    still = folder / f"{stem}.png"
    if not still.exists():
        first = frames(env, 1, 1, start=MOMENT)
        if not first:
            return Shots("", "", False, "", 1.0)
        shown, fps, episode = filmed(env, PRETRAINED) if trained else (*_random(env), None)
        render.save_animation(shown, folder / (f"{stem}-{episode.kind}.mp4" if episode else f"{stem}.mp4"), fps)
        if env.expert and not (episode and episode.solved):
            shown, fps, episode = filmed(env, EXPERT)
            render.save_animation(shown, folder / f"{stem}-{BY_EXPERT}{f'-{episode.kind}' if episode else ''}.mp4", fps)
        image = Image.fromarray(first[0]).quantize(64, dither=Image.Dither.NONE)
        part = still.with_suffix(".part")
        image.save(part, format="png", optimize=True)
        part.replace(still)
    ours = re.compile(rf"{re.escape(env.id)}-[0-9a-f]{{10}}(-{KINDS})?")
    for old in folder.glob(f"{env.id}-*"):
        if ours.fullmatch(old.stem) and not old.stem.startswith(stem):
            old.unlink()
    found = {film.stem.removeprefix(stem).removeprefix("-"): film.name for film in folder.glob(f"{stem}*.mp4")}
    of_expert = {kind for kind in found if kind.startswith(BY_EXPERT)}
    (shows,), expert_shows = {*found} - of_expert, "".join(of_expert)
    return Shots(
        found[shows],
        still.name,
        bool(trained),
        shows,
        env.aspect(env.Config()),
        found.get(expert_shows, "") if of_expert else "",
        expert_shows.removeprefix(BY_EXPERT).removeprefix("-"),
        match.arrange(env.id, {}, PRETRAINED).config if trained else {},
    )


def all_shots(names: Iterable[str], folder: Path) -> dict[str, Shots]:
    """The pictures of games, by id."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [*names]
    with ThreadPoolExecutor() as pool:  # most of it is compilation and encoding
        return dict(zip(names, pool.map(lambda name: shots(gpuzoo.get(name), folder), names), strict=True))
