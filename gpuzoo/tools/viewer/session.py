"""One open page: the game that it watches, and what its buttons ask for.

A page sends words from a short list, with numbers and names. Each is checked; nothing that it sends is run.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from gpuzoo import registry
from gpuzoo.core.suggestions import unknown
from gpuzoo.core.values import config_types
from gpuzoo.tools.live import Live, has_trained
from gpuzoo.tools.players import RANDOM, SEARCH, TRAINED, Policy
from gpuzoo.tools.viewer import describe

WALLS = (1, 4, 16, 64)  #: numbers of envs to choose from
SIDE = {1: 480, 4: 300, 16: 180, 64: 112}  #: pixels of an env's picture
_MOST_FRAMES = 30  #: a second; of a faster game some steps are not shown
_SPEEDS = (0.05, 64.0)
_HOLD = 0.7  #: seconds for which the end of a single env's episode is shown
_AT_ONCE = 0.05  #: seconds of stepping after which a page is listened to again
#: what a user can cause, and is told in a sentence
REFUSALS = (
    ValueError, TypeError, KeyError, IndexError, ImportError, RuntimeError, NotImplementedError, OverflowError, OSError,
)  # fmt: skip


class Channel(Protocol):
    """What a session needs of a connection; that of ``websockets.sync`` has it."""

    def send(self, message: str | bytes, /) -> None:
        """Sends a text or a picture."""

    def recv(self, timeout: float | None = None) -> str | bytes:
        """The next message; raises TimeoutError when it does not come in time."""


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be a number, not {value!r}.")
    return value


def _integer(value: Any, what: str, low: int, high: int) -> int:
    number = _number(value, what)
    if number != int(number) or not low <= number <= high:
        raise ValueError(f"{what} must be an integer from {low} to {high}, not {value!r}.")
    return int(number)


class Session:
    """Answers a page until it is closed.

    Args:
        channel: the connection.
        first: the game to begin with.
        config: its parameters.
        player: who plays at first.
        scripted: policies of one's own, see `Live`.
        device: where the envs are.
    """

    def __init__(
        self, channel: Channel, first: str, config: Mapping[str, Any], player: str,
        scripted: Mapping[str, Policy], device: str = "cpu",
    ) -> None:  # fmt: skip
        self._channel, self._scripted, self._device = channel, scripted, device
        self._player = player
        self._live: Live | None = None
        self._given: dict[str, Any] = dict(config)
        self._playing, self._speed, self._waits = True, 1.0, False
        self._due, self._shown_at, self._seen = 0.0, 0.0, True
        self._env, self._agent, self._seed = 0, "", 0
        self._first = first

    def run(self) -> None:
        """Serves the page, until it goes away and the channel says so by an exception."""
        self._tell({"kind": "games", "games": describe.games(), "walls": WALLS})
        self._try(lambda: self._open(self._first, 1, self._given))
        try:
            while True:
                try:
                    self._hear(self._channel.recv(timeout=self._wait()))
                except TimeoutError:
                    self._try(self._advance)
        finally:
            if self._live is not None:
                self._live.close()

    # ---- time ----

    def _wait(self) -> float | None:
        """Seconds until there is something to do; None: only when the page asks."""
        if self._live is None or not self._playing or self._held():
            return None
        return max(0.0, self._due - time.monotonic())

    def _held(self) -> bool:
        """Whether the game waits for the person to choose."""
        return self._waits and self._live is not None and self._live.my_turn

    def _advance(self) -> None:
        """The steps that are due, and a picture of the last one."""
        assert self._live is not None
        live, now = self._live, time.monotonic()
        if now < self._due:
            return
        period = 1 / (live.env.render_fps * self._speed)
        ended = False
        self._due = max(self._due, now - 2 * period - 1 / _MOST_FRAMES)  # what was missed is not made up for
        while self._due <= now and not self._held():
            live.step()
            self._due += period
            ended = live.over
            if ended or time.monotonic() - now > _AT_ONCE:
                break
        if ended and live.num_envs == 1:
            self._due = time.monotonic() + max(period, _HOLD / max(1.0, self._speed))
        self._show(ended or self._held())

    def _show(self, always: bool = True) -> None:
        """Sends state and picture, unless the page has not yet drawn the last ones or has just had some."""
        live, now = self._live, time.monotonic()
        if live is None or (not always and (not self._seen or now - self._shown_at < 0.9 / _MOST_FRAMES)):
            return
        self._tell(describe.state(live, self._env, self._agent))
        from PIL import Image

        data = io.BytesIO()
        Image.fromarray(live.picture(SIDE[live.num_envs])).save(data, "PNG", compress_level=1)
        self._channel.send(data.getvalue())
        self._seen, self._shown_at = False, now

    # ---- words of the page ----

    def _tell(self, message: Mapping[str, Any]) -> None:
        self._channel.send(json.dumps(message, allow_nan=False))

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except TimeoutError:
            raise
        except REFUSALS as error:
            text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            self._playing = self._playing and isinstance(error, (ValueError, TypeError))
            self._tell({"kind": "error", "text": text or type(error).__name__})

    def _hear(self, message: str | bytes) -> None:
        self._try(lambda: self._obey(message))

    def _obey(self, message: str | bytes) -> None:
        try:
            words = json.loads(message)
        except ValueError:
            raise ValueError("a message of the page must be JSON.") from None
        if not isinstance(words, dict) or not isinstance(words.get("do"), str):
            raise ValueError("a message of the page must be an object with the word 'do'.")
        todo = {name.removeprefix("do_"): name for name in dir(self) if name.startswith("do_")}
        if words["do"] not in todo:
            raise ValueError(unknown("the viewer cannot", words["do"], todo))
        getattr(self, todo[words["do"]])(words)

    def _open(self, game: str, envs: int, config: dict[str, Any]) -> None:
        env = registry.get(game)
        self._tell({"kind": "busy", "text": f"Compiling {env.id}"})
        groups = {} if self._live is None or self._live.env.id != env.id else self._live.players
        usual = RANDOM if self._player == TRAINED and not has_trained(env) else self._player
        players = {g: groups.get(g, usual) for g in env.agents(env.Config())}
        live = self._made(env.id, envs, players, config)
        if self._live is not None:
            self._live.close()
        self._live, self._given = live, config
        self._env, self._agent, self._waits = 0, live.agents[0], False
        self._due = time.monotonic()
        self._tell(describe.game(live))
        self._show()

    def _made(self, game: str, envs: int, players: dict[str, str], config: dict[str, Any]) -> Live:
        options: dict[str, Any] = {"seed": self._seed, "device": self._device, "scripted": self._scripted, **config}
        try:
            return Live(game, envs, players, **options)
        except (ValueError, ImportError) as error:
            if not {TRAINED, SEARCH} & {*players.values()}:
                raise
            live = Live(game, envs, **options)  # what is wrong with the parameters is raised here
            self._tell({"kind": "error", "text": f"{error} Random agents play."})
            return live

    @property
    def live(self) -> Live:
        """The game that runs.

        Raises:
            RuntimeError: there is none.
        """
        if self._live is None:
            raise RuntimeError("choose a game first.")
        return self._live

    def do_open(self, words: dict[str, Any]) -> None:
        """``game``, ``envs``, and ``config``: parameters by name, on top of those that were given for this game."""
        game = registry.get(words.get("game", ""))
        envs = _integer(words.get("envs", 1), "the number of envs", 1, max(WALLS))
        if envs not in WALLS:
            raise ValueError(f"the number of envs must be one of {', '.join(map(str, WALLS))}, not {envs}.")
        config = words.get("config", {})
        if not isinstance(config, dict):
            raise TypeError("the parameters must be an object.")
        types = config_types(game.Config)
        for name in config:
            if name not in types:
                raise ValueError(unknown(f"{game.id} has no parameter", str(name), types))
        same = self._live is not None and self._live.env.id == game.id
        self._open(game.id, envs, {**(self._given if same else {}), **config})

    def do_play(self, words: dict[str, Any]) -> None:
        """Goes on."""
        self._playing, self._due = True, time.monotonic()

    def do_pause(self, words: dict[str, Any]) -> None:
        """Stands still, and shows the present step."""
        self._playing = False
        self._show()

    def do_step(self, words: dict[str, Any]) -> None:
        """One step, and a pause."""
        self._playing = False
        self.live.step()
        self._show()

    def do_reset(self, words: dict[str, Any]) -> None:
        """New episodes, with ``seed``."""
        self._seed = _integer(words.get("seed", 0), "the seed", 0, 2**53)
        self.live.reset(self._seed)
        self._due = time.monotonic()
        self._show()

    def do_speed(self, words: dict[str, Any]) -> None:
        """``speed``: how many times as fast as the game's own."""
        speed = _number(words.get("speed"), "the speed")
        if not _SPEEDS[0] <= speed <= _SPEEDS[1]:
            raise ValueError(f"the speed must be from {_SPEEDS[0]:g} to {_SPEEDS[1]:g}, not {speed!r}.")
        self._speed, self._due = speed, time.monotonic()

    def do_param(self, words: dict[str, Any]) -> None:
        """``name`` and ``value`` of a parameter that changes while the game runs."""
        name, value = str(words.get("name")), _number(words.get("value"), f"{words.get('name')}")
        self.live.simulator.set_params(**{name: float(value)})
        self._given[name] = float(value)
        self._show()

    def do_player(self, words: dict[str, Any]) -> None:
        """``group`` and who plays it: ``player``."""
        self.live.set_player(str(words.get("group")), str(words.get("player")))
        self._tell({"kind": "players", "players": self.live.players})

    def do_person(self, words: dict[str, Any]) -> None:
        """``agent`` that the person plays, or null; ``waits``: whether the game waits for each action."""
        agent = words.get("agent")
        self.live.play(None if agent is None else str(agent))
        self._waits = bool(words.get("waits")) and agent is not None
        self._due = time.monotonic()
        if agent is not None:
            self._env, self._agent = 0, str(agent)
        self._tell({"kind": "person", "agent": self.live.person, "waits": self._waits})
        self._show()

    def do_act(self, words: dict[str, Any]) -> None:
        """``values``: what the person does, a number for each part of an action; ``go``: and the game goes on."""
        values = words.get("values")
        if not isinstance(values, list):
            raise TypeError("an action must be a list of numbers.")
        go = bool(words.get("go"))
        self.live.choose(values, takes=go and self._held())
        self._go(go)

    def do_press(self, words: dict[str, Any]) -> None:
        """``x`` and ``y``: where on the picture of a board, from 0 to 1 rightwards and downwards."""
        place = [_number(words.get(name), name) for name in ("x", "y")]
        done = self.live.press(place[0], place[1])
        self._go(done)
        if not done:
            self._show()

    def _go(self, wanted: bool) -> None:
        """A step, where the game waits for the person."""
        if wanted and self._held() and self._playing:
            self.live.step()
            self._due = time.monotonic() + 1 / (self.live.env.render_fps * self._speed)
            if self.live.over:
                self._due = time.monotonic() + _HOLD
            self._show()

    def do_look(self, words: dict[str, Any]) -> None:
        """``env`` and ``agent`` whose observation is shown."""
        live = self.live
        env = _integer(words.get("env", self._env), "the env", 0, live.num_envs - 1)
        agent = str(words.get("agent", self._agent))
        if agent not in live.agents:
            raise ValueError(unknown(f"{live.env.id} has no agent", agent, live.agents))
        self._env, self._agent = env, agent
        self._show()

    def do_seen(self, words: dict[str, Any]) -> None:
        """The page has drawn the last picture."""
        self._seen = True
