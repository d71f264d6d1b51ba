"""``gpuzoo view``: what its server answers and refuses, what a page can ask for, and the page in a browser."""

from __future__ import annotations

import contextlib
import http.client
import json
import operator
import re
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

import chromium
import numpy as np
import pytest
from gymnasium import spaces
from typer.testing import CliRunner
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from gpuzoo import registry
from gpuzoo.core.layout import layout
from gpuzoo.tools import cli, controls, live, players
from gpuzoo.tools.viewer.server import Viewer, own_host

PNG = b"\x89PNG"


class Client:
    """A page without a browser."""

    def __init__(self, url: str, origin: str | None = None) -> None:
        address = url.removeprefix("http://").rstrip("/")
        self._open = contextlib.ExitStack()
        self.connection = self._open.enter_context(
            connect(f"ws://{address}/live", origin=origin or f"http://{address}", max_size=None)
        )

    def close(self) -> None:
        self._open.close()

    def next(self, kind: str) -> Any:
        """The next message of a kind."""
        while True:
            message = self.connection.recv(timeout=60)
            if isinstance(message, bytes):
                assert message.startswith(PNG)
                self.connection.send(json.dumps({"do": "seen"}))
                found: Any = {"kind": "picture", "data": message}
            else:
                found = json.loads(message)
            if found["kind"] == kind:
                return found
            assert found["kind"] != "error", found

    def ask(self, kind: str, **words: Any) -> Any:
        self.connection.send(json.dumps(words))
        found = self.next(kind)
        while kind == "game" and (found["id"], found["envs"]) != (words["game"], words["envs"]):  # the first page's
            found = self.next(kind)
        return found

    def paused(self) -> Any:
        """The state, once nothing moves any more: what the page asks after that is the next that it is told."""
        self.connection.send(json.dumps({"do": "pause"}))
        self.connection.send(json.dumps({"do": "the last word"}))
        state = None
        while True:
            message = self.connection.recv(timeout=60)
            news = json.loads(message) if isinstance(message, str) else {"kind": "picture"}
            state = news if news["kind"] == "state" else state
            if news["kind"] == "error":
                assert "the last word" in news["text"]
                assert state is not None
                return state


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Viewer("CartPole-v1").running() as address:
        yield address


@pytest.fixture
def page(url: str) -> Iterator[Client]:
    client = Client(url)
    try:
        yield client
    finally:
        client.close()


def get(url: str, path: str, **headers: str) -> http.client.HTTPResponse:
    address = url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


# ---- the server ----


def test_the_files_of_the_page_are_served_and_nothing_else(url: str) -> None:
    for path in ("/", "/index.html", "/app.js", "/style.css", "/icon.svg"):
        answer = get(url, path)
        assert answer.status == 200
        assert answer.read()
        assert "default-src 'none'" in str(answer.headers["Content-Security-Policy"])
    for path in ("/server.py", "/../server.py", "/%2e%2e/server.py", "/etc/passwd", "/page"):
        assert get(url, path).status == 404


def test_the_page_loads_nothing_from_elsewhere(url: str) -> None:
    for path in ("/", "/app.js", "/pad.js", "/facts.js", "/parameters.js", "/style.css"):
        text = get(url, path).read().decode()
        assert "https://" not in text
        assert "http://" not in text.replace("http://www.w3.org/", "")
        assert "eval(" not in text
        assert "innerHTML" not in text


def test_a_rebound_name_is_refused(url: str) -> None:
    port = url.rstrip("/").rpartition(":")[2]
    answer = get(url, "/", Host=f"evil.example:{port}")
    assert answer.status == 421
    assert "evil.example" in answer.read().decode()
    assert get(url, "/", Host=f"localhost:{port}").status == 200
    assert get(url, "/", Host=f"[::1]:{port}").status == 200


def test_names_of_the_server() -> None:
    names = frozenset({"localhost", "lab"})
    for host in ("localhost", "LOCALHOST:80", "lab:8008", "127.0.0.1:8008", "[::1]:8008", "10.0.0.7:1"):
        assert own_host(host, names), host
    for host in (None, "", "evil.example", "evil.example:8008", "127.0.0.1.evil.example", "localhost.evil:1", "[::1"):
        assert not own_host(host, names), host


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://localhost:1"])
def test_a_page_from_elsewhere_is_refused(url: str, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Client(url, origin)
    assert refused.value.response.status_code == 403


def test_it_listens_to_this_machine_alone(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")


def test_with_a_token_nothing_is_told_to_those_who_do_not_know_it() -> None:
    with Viewer("CartPole-v1", token="a-b_c").running() as address:
        at = urllib.parse.urlsplit(address)
        assert at.query == "token=a-b_c"

        def answer(path: str, **headers: str) -> tuple[int, str | None]:
            connection = http.client.HTTPConnection(at.netloc, timeout=60)
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            response.read()
            return response.status, response.getheader("Set-Cookie")

        status, cookie = answer(f"/?{at.query}")
        assert status == http.HTTPStatus.OK
        assert cookie is not None
        assert "HttpOnly; SameSite=Strict" in cookie
        name = cookie.partition(";")[0]
        assert answer("/style.css", Cookie=f"other=1; {name}") == (http.HTTPStatus.OK, None)
        other = name.replace(f"gpuzoo-{at.port}", "gpuzoo-1")
        for path, cookies in (
            ("/", ""),
            ("/?token=a-b", ""),
            ("/style.css", "x=a-b_c"),
            ("/", other),
            ("/", "=;,[;"),
        ):
            assert answer(path, Cookie=cookies) == (http.HTTPStatus.UNAUTHORIZED, None)
        with pytest.raises(InvalidStatus):
            connect(f"ws://{at.netloc}/live", origin=f"http://{at.netloc}")
        with connect(
            f"ws://{at.netloc}/live", origin=f"http://{at.netloc}", additional_headers={"Cookie": name}
        ) as page:
            assert page.recv(timeout=60)


def test_a_token_has_characters_of_an_address() -> None:
    with pytest.raises(ValueError, match="a token has letters, digits, - and _ only, not 'a b'"):
        Viewer("CartPole-v1", token="a b")


@pytest.mark.parametrize(
    ("options", "tells"),
    [
        ([], False),
        (["--host", "0.0.0.0"], True),
        (["--host", "0.0.0.0", "--token", ""], False),
        (["--token", "x"], True),
    ],
)
def test_other_machines_need_a_token(monkeypatch: pytest.MonkeyPatch, options: list[str], tells: bool) -> None:
    def interrupted(viewer: Viewer) -> None:
        thread = threading.Thread(target=viewer._server.serve_forever)
        thread.start()
        viewer.close()
        thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(Viewer, "serve_forever", interrupted)
    result = CliRunner().invoke(cli.app, ["view", "CartPole-v1", "--no-browser", "--port", "0", *options])
    assert result.exit_code == 0, result.output
    assert ("/?token=" in result.output) == tells
    assert ("Whoever has this address" in result.output) == tells


def test_too_many_pages_are_told_so(url: str) -> None:
    clients = [Client(url) for _ in range(8)]
    try:
        for client in clients:
            client.next("games")
        late = Client(url)
        with pytest.raises(Exception, match="close one"):
            late.connection.recv(timeout=30)
        late.close()
    finally:
        for client in clients:
            client.close()


# ---- a session ----


def test_a_page_is_told_of_the_games_and_sees_one(page: Client) -> None:
    assert {game["id"] for game in page.next("games")["games"]} == {*registry.ids()}
    game = page.next("game")
    assert game["id"] == "CartPole-v1"
    assert sum(game["groups"]["agent"]["observation"]["names"].values()) == 4
    state = page.next("state")
    assert len(state["observation"]) == 4
    assert page.next("picture")["data"].startswith(PNG)


def test_steps_are_single_and_seeds_repeat(page: Client) -> None:
    page.next("state")
    page.paused()
    first = page.ask("state", do="reset", seed=5)
    assert (first["step"], first["seed"]) == (0, 5)
    steps = [page.ask("state", do="step") for _ in range(3)]
    assert [state["step"] for state in steps] == [1, 2, 3]
    page.ask("state", do="reset", seed=5)
    assert [page.ask("state", do="step")["observation"] for _ in range(3)] == [s["observation"] for s in steps]


def test_it_goes_on_by_itself_until_it_is_paused(page: Client) -> None:
    seen = [page.next("state")["step"] for _ in range(3)]
    assert len({*seen}) == 3
    still = page.paused()
    assert page.ask("state", do="step")["step"] == still["step"] + 1


def test_parameters_change_while_it_runs_or_make_it_anew(page: Client) -> None:
    page.next("state")
    page.paused()
    page.ask("state", do="param", name="gravity", value=3.5)
    game = page.ask("game", do="open", game="CartPole-v1", envs=4)
    assert game["envs"] == 4
    values = {one["name"]: one["value"] for one in game["parameters"]}
    assert values["gravity"] == pytest.approx(3.5)
    game = page.ask("game", do="open", game="SimpleSpread-v0", envs=1, config={"N": 2})
    assert game["groups"]["agent"]["agents"] == ["agent_0", "agent_1"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"do": "param", "name": "gravity", "value": "much"}, "must be a number"),
        ({"do": "param", "name": "gravty", "value": 1.0}, "gravity"),
        ({"do": "open", "game": "CartPol-v1", "envs": 1}, "CartPole-v1"),
        ({"do": "open", "game": "CartPole-v1", "envs": 7}, "the number of envs must be one of"),
        ({"do": "open", "game": "CartPole-v1", "envs": 1, "config": {"threads": 4}}, "no parameter"),
        ({"do": "open", "game": 3}, "a game is given by its id"),
        ({"do": "look", "agent": "agent_9"}, "no agent"),
        ({"do": "look", "env": 1}, "the env must be an integer from 0 to 0"),
        ({"do": "speed", "speed": 0}, "the speed must be from"),
        ({"do": "reset", "seed": -1}, "the seed must be an integer"),
        ({"do": "act", "values": [0]}, "choose the agent"),
        ({"do": "player", "group": "agent", "player": "os:system"}, "there is no policy"),
        ({"do": "__init__"}, "the viewer cannot"),
        ({"do": "obey"}, "the viewer cannot"),
        ([1, 2], "must be an object"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence_and_the_page_lives_on(page: Client, words: Any, told: str) -> None:
    page.next("state")
    page.paused()
    page.connection.send(json.dumps(words))
    answer: Any = {"kind": ""}
    while answer["kind"] != "error":
        message = page.connection.recv(timeout=30)
        answer = json.loads(message) if isinstance(message, str) else {"kind": "picture"}
    assert told in answer["text"]
    assert "\n" not in answer["text"]
    assert page.ask("state", do="reset", seed=1)["step"] == 0


def test_a_message_that_is_no_json_is_refused(page: Client) -> None:
    page.next("state")
    page.connection.send("import os")
    with pytest.raises(AssertionError, match="must be JSON"):
        page.next("never")


def test_a_person_plays_and_the_game_waits(page: Client) -> None:
    page.ask("game", do="open", game="ConnectFour-v0", envs=1)
    page.ask("person", do="person", agent="player_0", waits=True)
    page.paused()  # so that no state of the game before is still on its way
    page.ask("state", do="reset", seed=0)
    page.connection.send(json.dumps({"do": "play"}))
    state = page.ask("state", do="act", values=[3], go=True)
    while not (state["my_turn"] and state["step"] == 2):
        state = page.next("state")
    assert state["actions"][0] is None  # the policy moved last
    assert len(state["actions"][1]) == 1
    assert sum(state["observation"][0::2]) == 1  # own discs
    assert sum(state["observation"][1::2]) == 1  # those of the policy, which answered
    assert page.paused()["step"] == 2  # and waits again


def test_an_illegal_action_of_a_person_is_told_and_not_taken(page: Client) -> None:
    page.ask("game", do="open", game="Othello-v0", envs=1)
    page.ask("person", do="person", agent="player_0", waits=True)
    page.paused()
    page.ask("state", do="reset", seed=0)
    page.connection.send(json.dumps({"do": "play"}))
    with pytest.raises(AssertionError, match="Othello-v0: pass is illegal now, so nothing was done"):
        page.ask("never", do="act", values=[64], go=True)
    assert page.paused()["step"] == 0


def test_the_keys_of_a_person_reach_the_game(page: Client) -> None:
    game = page.ask("game", do="open", game="SimpleSpread-v0", envs=1, config={"N": 1})
    part = game["groups"]["agent"]["controls"][0]
    page.ask("person", do="person", agent="agent_0", waits=False)
    page.paused()
    page.ask("state", do="reset", seed=0)
    page.connection.send(json.dumps({"do": "act", "values": [part["keys"]["ArrowRight"]]}))
    for _ in range(3):
        state = page.ask("state", do="step")
    assert state["actions"][0] == [part["keys"]["ArrowRight"]]
    assert state["observation"][0] > 0.5  # its velocity along x


def test_presses_on_a_board_are_moves(page: Client) -> None:
    page.ask("game", do="open", game="TicTacToe-v0", envs=1)
    page.ask("person", do="person", agent="player_0", waits=True)
    page.paused()
    page.ask("state", do="reset", seed=0)
    page.connection.send(json.dumps({"do": "play"}))
    assert page.ask("state", do="press", x=0.01, y=0.01)["step"] == 0  # beside the board
    assert page.ask("state", do="press", x=0.5, y=0.53)["step"] == 1
    page.connection.send(json.dumps({"do": "press", "x": "left"}))
    while True:
        message = page.connection.recv(timeout=60)
        if isinstance(message, str) and (news := json.loads(message))["kind"] == "error":
            assert news["text"] == "x must be a number, not 'left'."
            return


def test_a_wall_of_64_and_another_env_is_looked_at(page: Client) -> None:
    page.ask("game", do="open", game="CartPole-v1", envs=64)
    page.paused()
    first = page.ask("state", do="look", env=0)
    other = page.ask("state", do="look", env=63)
    assert other["seed"] == first["seed"] + 63
    assert other["observation"] != first["observation"]


def test_trained_agents_play(page: Client) -> None:
    page.next("state")
    assert "trained" in page.ask("game", do="open", game="CartPole-v1", envs=1)["players"]
    assert page.ask("players", do="player", group="agent", player="trained")["players"] == {"agent": "trained"}
    page.paused()
    page.ask("state", do="reset", seed=3)
    for _ in range(60):
        state = page.ask("state", do="step")
    assert state["step"] == 60  # random play falls over after 20


def test_a_game_that_cannot_be_searched_opens_all_the_same() -> None:
    with Viewer("TicTacToe-v0", player="search").running() as url:
        client = Client(url)
        try:
            assert client.next("game")["players"]
            client.connection.send(json.dumps({"do": "open", "game": "CartPole-v1", "envs": 1}))
            told = []
            while not told or told[-1]["kind"] != "game":
                message = client.connection.recv(timeout=60)
                told += [] if isinstance(message, bytes) else [json.loads(message)]
            errors = [message["text"] for message in told if message["kind"] == "error"]
            assert errors == [
                "there is no policy 'search'; there are: in turn, random, still, trained. Random agents play."
            ]
            assert told[-1]["id"] == "CartPole-v1"
        finally:
            client.close()


# ---- who plays ----


@pytest.mark.parametrize("env_id", registry.ids())
def test_every_game_has_controls_whose_values_are_actions(env_id: str) -> None:
    env = registry.get(env_id)
    cfg = env.Config()
    lay = layout(env, cfg)
    for group, parts in controls.of_layout(env, cfg, lay).items():
        space = lay.action_spaces[group]
        choices: list[list[float]] = [
            [p.low, p.high, *([] if p.still is None else [p.still]), *p.keys.values()] for p in parts
        ]
        for k, values in enumerate(choices):
            for value in values:
                chosen = [values[0] for values in choices]
                chosen[k] = value
                action = controls.action(space, parts, chosen)
                shaped: Any = action[0] if isinstance(space, spaces.Discrete) else action.reshape(space.shape)
                assert space.contains(shaped), (group, value, action)
        if isinstance(space, spaces.Discrete):  # every action can be chosen
            assert np.prod([part.high + 1 for part in parts]) == space.n


def test_names_of_actions_say_which_arrow_is_theirs() -> None:
    assert controls.way("push to the left") == "ArrowLeft"
    assert controls.way("up (+y)") == "ArrowUp"
    assert controls.way("row + 1") == "ArrowDown"
    assert controls.way("pick up the passenger") is None
    assert controls.way("left or right, by the cell") is None


def test_values_of_a_person_are_checked() -> None:
    env = registry.get("Pendulum-v1")
    space = layout(env, env.Config()).action_spaces["agent"]
    parts = controls.controls(env, env.Config(), "agent", space)
    for wrong, error in (
        ([5.0], ValueError),
        ([float("nan")], ValueError),
        (["1"], TypeError),
        ([0.0, 0.0], ValueError),
    ):
        with pytest.raises(error):
            controls.action(space, parts, wrong)


def test_policies_play_their_group_only() -> None:
    game = live.Live("SimpleTag-v0", 3, {"adversary": "still"}, num_adversaries=2)
    try:
        seen = []
        for _ in range(8):
            game.step()
            seen.append(np.array(game.simulator.arrays["action"][..., 0]))
        assert not np.array(seen)[:, :, :2].any()
        assert np.array(seen)[:, :, 2:].any()
        with pytest.raises(ValueError, match="no group"):
            game.set_player("tagger", "random")
    finally:
        game.close()


@pytest.mark.parametrize(("name", "config"), [("ConnectFour-v0", {}), ("Othello-v0", {"size": 4})])
def test_a_search_beats_somebody_who_takes_the_first_legal_move(name: str, config: dict[str, int]) -> None:
    """With a network that comes with the package, and without one."""
    pytest.importorskip("torch")
    game = live.Live(name, players={"player": "search"}, **config)
    try:
        game.play("player_0")
        while not game.over:
            if game.my_turn:
                game.choose(game.legal()[:1])
            game.step()
        assert game.array("final_return", 0).tolist() == [-1.0, 1.0]
    finally:
        game.close()


def test_a_search_does_not_think_while_a_person_does(monkeypatch: pytest.MonkeyPatch) -> None:
    searching = pytest.importorskip("gpuzoo.tools.searching")
    asked: list[int] = []

    def nobody(envs: Any) -> Any:
        return lambda: np.full(1, asked.append(int(envs.arrays["elapsed_steps"][0])) or 2)

    monkeypatch.setattr(searching, "searching", nobody)
    game = live.Live("TicTacToe-v0", players={"player": "search"})
    try:
        game.play("player_0")
        game.choose([0])
        game.step()
        game.step()
        assert asked == [1]
    finally:
        game.close()


def test_only_games_of_two_who_move_in_turn_are_searched() -> None:
    for name, can in (("Chess-v0", True), ("Game2048-v0", False), ("SimpleTag-v0", False)):
        game = live.Live(name)
        try:
            assert ("search" in game.kinds()) == can
            if not can:
                with pytest.raises(ValueError, match="there is no policy 'search'"):
                    game.set_player(next(iter(game.players)), "search")
        finally:
            game.close()


def test_taking_actions_in_turn_respects_masks() -> None:
    game = live.Live("ConnectFour-v0", 2, {"player": "in turn"})
    game.envs.simulator.debug = True  # an illegal action raises
    try:
        for _ in range(60):
            game.step()
    finally:
        game.close()


def test_a_policy_of_ones_own_is_named_on_the_command_line() -> None:
    assert players.imported("operator:add") is operator.add
    for name in ("math:nothing", "no_such_module:f", "math", "math:pi"):
        with pytest.raises(ValueError, match="policy"):
            players.imported(name)


def test_the_command_refuses_in_a_sentence() -> None:

    for words in (["view", "CartPol"], ["view", "CartPole-v1", "--policy", "best"], ["view", "-c", "x=1"]):
        result = CliRunner().invoke(cli.app, words)
        assert result.exit_code == 2
        assert len(result.stderr.strip().splitlines()) == 1


# ---- in a browser ----


@pytest.mark.skipif(chromium.PROGRAM is None, reason="needs Chromium: apt install chromium")
def test_the_page_in_a_browser(url: str, tmp_path: Any) -> None:
    with chromium.opened(url, tmp_path / "profile") as page:
        page.size(1300, 900)
        page.wait("document.querySelectorAll('#games button').length > 50")
        page.wait("document.querySelector('#clock').textContent.includes('step')")
        moving = "document.querySelector('#picture').toDataURL()"
        first = page.value(moving)
        page.wait(f"{moving} !== {json.dumps(first)}")

        page.value(
            "const f = document.querySelector('#filter'); f.value = 'connectfour'; f.dispatchEvent(new Event('input'))"
        )
        assert page.value("document.querySelectorAll('#games button').length") == 1
        page.value("document.querySelector('#games button').click()")
        page.wait("document.querySelector('#title').textContent === 'ConnectFour-v0'")
        page.value(
            "const p = document.querySelector('#person'); p.value = 'player_0'; p.dispatchEvent(new Event('change'))"
        )
        page.wait("document.querySelector('#clock').textContent.includes('your move')")
        page.value("document.querySelector('#reset').click()")
        page.wait("document.querySelector('#clock').textContent.startsWith('step 0')")
        page.key("4")
        page.wait("/^step 2 .*your move/.test(document.querySelector('#clock').textContent)")
        place = "document.querySelector('#picture').getBoundingClientRect()"
        x, y = page.value(f"(box => [box.left + 0.1 * box.width, box.top + box.height / 2])({place})")
        page.click(x, y)
        page.wait("/^step 4 .*your move/.test(document.querySelector('#clock').textContent)")

        page.value(
            "const g = document.querySelector('#filter'); g.value = 'tictactoe'; g.dispatchEvent(new Event('input'))"
        )
        page.value("document.querySelector('#games button').click()")
        page.wait("document.querySelector('#title').textContent === 'TicTacToe-v0'")
        page.value(
            "const q = document.querySelector('#person'); q.value = 'player_0'; q.dispatchEvent(new Event('change'))"
        )
        page.wait("document.querySelector('#clock').textContent.includes('your move')")
        page.value("document.querySelector('#reset').click()")
        page.wait("document.querySelector('#clock').textContent.startsWith('step 0')")
        assert page.value("document.querySelectorAll('#pad button').length") == 0  # cells are pressed
        page.click(*page.value(f"(box => [box.left + box.width / 2, box.top + 0.53 * box.height])({place})"))
        page.wait("/^step 2 .*your move/.test(document.querySelector('#clock').textContent)")

        pick = "(e => {{ e.value = {}; e.dispatchEvent(new Event({})) }})(document.querySelector({}))"
        buttons = "[...document.querySelectorAll('#pad button:not([hidden])')].filter(b => !b.disabled)"
        name = "TexasHoldemNoLimit-v0"
        page.value(pick.format(json.dumps(name), "'input'", "'#filter'"))
        page.value(
            f"[...document.querySelectorAll('#games button')].find(b => b.innerText.startsWith('{name}')).click()"
        )
        page.wait(f"document.querySelector('#title').textContent === {json.dumps(name)}")
        page.value(pick.format("'player_0'", "'change'", "'#person'"))
        page.wait("document.querySelector('#clock').textContent.includes('your move')")
        shown = page.wait(f"{buttons}.map(b => b.firstChild.textContent)")
        assert 1 <= len({*shown}) == len(shown) < 30
        assert all(re.match("fold|check|raise|all in", text) for text in shown), shown
        before = page.value("document.querySelector('#clock').textContent")
        page.value(f"{buttons}[0].click()")
        page.wait(f"document.querySelector('#clock').textContent !== {json.dumps(before)}")

        # on a board, what has no place at the moment has a button
        board = {"name": "", "labels": ["a 0", "a 1", "a 2"], "keys": {" ": 2}, "low": 0, "high": 2, "still": None,
                 "held": True, "whole": True, "board": True}  # fmt: skip
        shown = page.value(
            "import('./pad.js').then(({ Pad }) => { const [place, hint, picture] = ['div', 'p', 'img'].map("
            "(name) => document.createElement(name)); const pad = new Pad(place, hint, picture, () => {}); "
            f"pad.play([{json.dumps(board)}]); return [[1], [], [0, 1]].map((buttons) => {{ "
            "pad.state({ buttons, mask: [1, 1, 1], my_turn: true }); "
            "return [...place.querySelectorAll('button')].map((b) => b.firstChild.textContent); }); })"
        )
        assert shown == [["a 1", "a 2"], ["a 2"], ["a 0", "a 1", "a 2"]]

        page.size(390, 844)
        assert page.value("document.documentElement.scrollWidth") <= 390
        assert page.value("document.querySelector('#problem').hidden")
        assert not page.problems
