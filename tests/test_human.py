"""``gpuzoo play ID --human``: a person at the keyboard, in a window that nobody sees."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pygame
import pytest
from typer.testing import CliRunner

from gpuzoo.render import Window
from gpuzoo.tools import cli, controls, human
from gpuzoo.tools.live import Live

Typist = Callable[[int], list[Any]]


def key(code: int, kind: int = pygame.KEYDOWN) -> Any:
    return pygame.event.Event(kind, key=code)


def typed(monkeypatch: pytest.MonkeyPatch, typist: Typist) -> None:
    """Lets events come before the k-th picture."""
    monkeypatch.setattr("gpuzoo.render.window.os.environ", {**os.environ, "SDL_VIDEODRIVER": "dummy"})
    count = 0

    class Typed(Window):
        def show(self, frame: np.ndarray[Any, Any]) -> bool:
            nonlocal count
            if self._screen is not None:
                for event in typist(count):
                    pygame.event.post(event)
                count += 1
            return super().show(frame)

    monkeypatch.setattr(human, "Window", Typed)


def test_a_game_of_connect_four_is_won_against_somebody_who_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Column 4 four times; the other one drops into column 1, as the first action of a game without a still one."""
    game = Live("ConnectFour-v0", players={"player": "still"})
    seen: list[int] = []

    def typist(k: int) -> list[Any]:
        seen.append(game.steps)
        over = game.over
        return (
            [key(pygame.K_ESCAPE)] if over else [key(pygame.K_4), key(pygame.K_4, pygame.KEYUP)] if k % 3 == 0 else []
        )

    typed(monkeypatch, typist)
    try:
        assert human.play(game, "player_0", 64) == [{"player_0": 1.0, "player_1": -1.0}]
    finally:
        game.close()
    assert max(seen) == 7  # four moves of the person and three answers: it waited for each


def test_any_legal_action_is_chosen_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tab goes on to the next one, and Enter takes it; keys alone reach nine of gin rummy's 110 actions."""
    game = Live("GinRummy-v0")
    titles: list[str] = []

    def typist(k: int) -> list[Any]:
        titles.append(pygame.display.get_caption()[0])
        if k > 2000 or game.steps > 12:  # pictures go by while the other one moves
            return [key(pygame.K_ESCAPE)]
        return [key(pygame.K_TAB)] if k % 3 < 2 else [key(pygame.K_RETURN)]

    typed(monkeypatch, typist)
    try:
        human.play(game, "player_0", 64)
        assert game.steps > 12
        assert "GinRummy-v0: you are player_0" in titles
        assert any("Enter: discard the " in title for title in titles)
    finally:
        game.close()


def test_an_illegal_key_loses_no_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 is a pass in Othello, which is illegal while there is a move; the title says so, and the game waits."""
    game = Live("Othello-v0", players={"player": "still"})
    titles: list[str] = []

    def typist(k: int) -> list[Any]:
        titles.append(pygame.display.get_caption()[0])
        return [key(pygame.K_ESCAPE)] if k > 20 else [key(pygame.K_1), key(pygame.K_1, pygame.KEYUP)]

    typed(monkeypatch, typist)
    try:
        assert human.play(game, "player_0", 64) == []
        assert game.steps == 0
        assert titles[-1] == "Othello-v0: pass is illegal now, so nothing was done."
    finally:
        game.close()


def test_a_game_of_many_choices_is_for_the_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Live("JobShop-v0")
    typed(monkeypatch, lambda k: [])
    try:
        with pytest.raises(ValueError, match="JobShop-v0: an action has 10 choices, too many for keys: play it in"):
            human.play(game, "agent_0", 64)
    finally:
        game.close()


def test_a_game_that_waits_does_not_move_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Live("CartPole-v1")
    typed(monkeypatch, lambda k: [] if k < 20 else [key(pygame.K_ESCAPE)])
    try:
        assert human.play(game, "agent_0", 64) == []
        assert game.steps == 0
    finally:
        game.close()


def test_a_held_key_and_the_mouse_move_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    game = Live("Simple-v0")
    speeds: list[float] = []

    def typist(k: int) -> list[Any]:
        game.env.render_fps = 1000  # type: ignore[misc]  # of this declaration alone
        if game.steps in (1, 6):
            right = pygame.event.Event(pygame.MOUSEBUTTONDOWN, pos=(2, 32), button=1)
            return [key(pygame.K_RIGHT)] if game.steps == 1 else [key(pygame.K_RIGHT, pygame.KEYUP), right]
        speeds.append(float(game.seen("agent")[0][0, 0, 0]))
        return [key(pygame.K_ESCAPE)] if game.steps >= 14 else []

    typed(monkeypatch, typist)
    try:
        human.play(game, "agent_0", 64)
    finally:
        game.close()
    assert max(speeds) > 0.8
    assert speeds[-1] < -0.8


def test_places_on_the_picture_are_keys() -> None:
    four = Live("ConnectFour-v0")
    try:
        parts = four.controls["player"]
        assert controls.pointed(parts, 0.01, 0.5) == ["1"]
        assert controls.pointed(parts, 0.99, 0.5) == ["7"]
    finally:
        four.close()
    parts = [controls.Part("", 0, 4, keys={"ArrowLeft": 1, "ArrowUp": 2})]
    assert controls.pointed(parts, 0.1, 0.2) == ["ArrowLeft", "ArrowUp"]
    assert controls.pointed(parts, 0.5, 0.05) == ["ArrowUp"]
    assert controls.pointed(parts, 0.52, 0.48) == []


def test_a_search_is_played_from_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    met: list[Live] = []
    monkeypatch.setattr("gpuzoo.render.window.need_display", lambda: None)
    monkeypatch.setattr(human, "play", lambda live, agent: met.append(live) or [])

    def told(*words: str) -> str:
        return CliRunner().invoke(cli.app, ["play", *words], env={"NO_COLOR": "1", "COLUMNS": "200"}).output

    told("ConnectFour-v0", "--human", "--checkpoint", "search")
    assert [live.players for live in met] == [{"player": "search"}]
    assert "goes with --human" in told("ConnectFour-v0", "--checkpoint", "search")
    assert "leave out --player" in told("Go-v0", "--human", "--checkpoint", "search", "--player", "player_1=random")
    assert "no policy 'search'" in told("CartPole-v1", "--human", "--checkpoint", "search")


def test_without_a_display_it_is_refused_in_a_sentence() -> None:
    hidden = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
    command = [sys.executable, "-m", "gpuzoo", "play", "ConnectFour-v0", "--human"]
    done = subprocess.run(command, env=hidden, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "a window needs a display, and there is none" in done.stderr
    assert "Traceback" not in done.stderr
