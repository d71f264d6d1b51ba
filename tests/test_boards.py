"""A person moves on a board by pressing on its picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pygame
import pytest
from test_human import key, typed

import gpuzoo
from gpuzoo.interfaces.batch import drawn, state_of
from gpuzoo.tools import board, controls, human
from gpuzoo.tools.live import Live

SIZE = 240
BOARDS = [env_id for env_id in gpuzoo.ids() if board.has_places(gpuzoo.get(env_id))]


def fractions(game: Live, point: board.Point) -> tuple[float, float]:
    """Where a point of the view is on the picture."""
    canvas = drawn(game.simulator, 0, SIZE)
    x, y = canvas.at(0, 0), canvas.at(1, 1)
    return (point[0] - x[0]) / (y[0] - x[0]), (point[1] - x[1]) / (y[1] - x[1])


def places(game: Live, action: int) -> Sequence[board.Press]:
    return game.env.presses(game.simulator.config(0), state_of(game.simulator, 0), action)


def pressed(game: Live, action: int) -> list[bool]:
    """What the game answers to the presses of an action, one after the other."""
    found = []
    for press in places(game, action):
        point = game._presses.spots(drawn(game.simulator, 0, SIZE), game._ways())[press] if found else press
        assert not isinstance(point, str)
        found.append(game.press(*fractions(game, point)))
    return found


def around(game: Live, picture: np.ndarray[Any, Any], point: board.Point) -> np.ndarray[Any, Any]:
    """The cell around a point."""
    corners = [fractions(game, (point[0] + d, point[1] + d)) for d in (-0.4, 0.4)]
    (left, right), (top, bottom) = (sorted(min(max(x, 0.0), 1.0) for x in axis) for axis in zip(*corners, strict=True))
    height, width = picture.shape[:2]
    rows, columns = (round(y * height) for y in (top, bottom)), (round(x * width) for x in (left, right))
    return picture[slice(*rows), slice(*columns)].astype(int)


@pytest.mark.rotates
@pytest.mark.parametrize("env_id", BOARDS)
def test_each_legal_move_is_reached_by_its_places_and_changes_the_picture_there(env_id: str) -> None:
    game = Live(env_id)
    rng, moves = np.random.default_rng(0), 0
    try:
        while moves < 40:
            if game.over:
                game.step()
            mover = game.agents[int(game.array(game.env.turn, 0))] if game.env.turn else game.agents[0]
            game.play(mover)
            before = game.picture(SIZE)
            legal = np.flatnonzero(game.seen(game.group(mover))[1][0, game.agents.index(mover)])  # type: ignore[index]
            for action in rng.permutation(legal)[:8].tolist():
                found = pressed(game, action)
                assert found == [False] * (len(found) - 1) + [True] * bool(found)
                assert not found or game.choice == [action]
            where = [place for place in places(game, action) if not isinstance(place, str)]
            game.choose([action])
            game.step()
            moves += 1
            if not game.over and where:
                after = game.picture(SIZE)
                for point in where:
                    assert np.abs(around(game, before, point) - around(game, after, point)).max() > 20
    finally:
        game.close()


def test_a_piece_that_was_pressed_is_marked_and_another_one_may_be_taken() -> None:
    game = Live("GardnerChess-v0", players={"player": "still"})
    try:
        game.play("player_0")
        plain = game.picture(SIZE)
        press = lambda x, y: game.press(*fractions(game, (x, y)))  # noqa: E731
        assert not press(0.5, 2.5)  # an empty square
        assert (game.picture(SIZE) == plain).all()
        assert not press(0.5, 3.5)  # the pawn before the rook
        marked = game.picture(SIZE)
        assert (around(game, marked, (0.5, 2.5)) != around(game, plain, (0.5, 2.5))).any()
        assert not press(1.5, 4.5)  # the knight instead
        assert (game.picture(SIZE) != marked).any()
        assert press(0.5, 2.5)
        game.step()
        assert "N" in str(gpuzoo.envs.chess.fen.Position.of_state(state_of(game.simulator, 0)))
    finally:
        game.close()


@pytest.mark.parametrize(("side", "letters"), [("w", "QRBN"), ("b", "qrbn")])
def test_a_pawn_becomes_what_a_person_chooses(side: str, letters: str) -> None:
    pawns = {"w": "8/1P5k/8/8/8/8/8/K7", "b": "7K/8/8/8/8/8/k5p1/8"}[side]
    wanted = dict(zip(("queen", "rook", "bishop", "knight"), letters, strict=True))
    for word, letter in wanted.items():
        game = Live("Chess-v0", players={"player": "still"}, fen=f"{pawns} {side} - - 0 1")
        try:
            game.play("player_0" if side == "w" else "player_1")
            begin, end = ((1.5, 1.5), (1.5, 0.5)) if side == "w" else ((6.5, 6.5), (6.5, 7.5))
            plain = game.picture(SIZE)
            assert not game.press(*fractions(game, begin))
            assert not game.press(*fractions(game, end))
            spots = game._presses.spots(drawn(game.simulator, 0, SIZE), game._ways())
            assert {*spots} == {*wanted}
            offered = game.picture(SIZE)
            assert (around(game, offered, spots[word]) != around(game, plain, spots[word])).any()
            assert game.press(*fractions(game, spots[word]))
            game.step()
            assert letter in str(gpuzoo.envs.chess.fen.Position.of_state(state_of(game.simulator, 0))).split()[0]
        finally:
            game.close()


def test_digits_to_choose_from_lie_within_the_picture() -> None:
    game = Live("Sudoku-v0")
    try:
        game.play("agent_0")
        (x0, y0, x1, y1), ways = drawn(game.simulator, 0, SIZE).window, game._ways()
        for row in range(9):
            for column in range(9):
                game.press(*fractions(game, (column + 0.5, row + 0.5)))
                spots = game._presses.spots(drawn(game.simulator, 0, SIZE), ways)
                for word, (x, y) in spots.items():
                    if isinstance(word, str):
                        assert x0 - 1e-9 <= x - 0.5 <= x + 0.5 <= x1 + 1e-9
                        assert y0 - 1e-9 <= y - 0.5 <= y + 0.5 <= y1 + 1e-9
                game._presses.done.clear()
    finally:
        game.close()


def test_a_pass_is_the_space_bar() -> None:
    game = Live("Go-v0", size=5)
    try:
        (part,) = game.controls["player"]
        assert part.board
        assert part.keys == {"1": 25, " ": 25}
        assert controls.legend([part]).startswith("click on the board")
        assert controls.pointed([part], 0.1, 0.1) == []
    finally:
        game.close()


def test_a_game_of_tic_tac_toe_is_played_by_the_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells one after the other, if they are free or not: the game takes those that are."""
    game = Live("TicTacToe-v0", players={"player": "still"})
    clicked: list[int] = []

    def typist(k: int) -> list[Any]:
        if game.over or k > 100:
            return [key(pygame.K_ESCAPE)]
        if k % 3:
            return []
        clicked.append(len(clicked) % 9)
        across, down = fractions(game, places(game, clicked[-1])[0])  # type: ignore[arg-type]
        place = {"pos": (round(across * 96), round(down * 96)), "button": 1}
        return [pygame.event.Event(pygame.MOUSEBUTTONDOWN, place), pygame.event.Event(pygame.MOUSEBUTTONUP, place)]

    typed(monkeypatch, typist)
    try:
        (returns,) = human.play(game, "player_1", 96)
    finally:
        game.close()
    assert len(clicked) > 3  # the game waits for each move, and some cells were not free
    assert abs(returns["player_1"]) in (0.0, 1.0)
