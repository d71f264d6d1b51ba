"""The server of `gpuzoo view`: a few files, and a websocket for each open page.

It listens to this machine alone unless told otherwise. A page from elsewhere that a browser shows must not reach it. So
the ``Host`` of every request has to be an address or a name of this server, which DNS rebinding cannot forge, and a
websocket has to come from a page that this server sent (``Origin``). With a token, whoever asks has to know it: the
address that the viewer prints has it, and a cookie keeps it.
"""

from __future__ import annotations

import contextlib
import hmac
import http.cookies
import ipaddress
import re
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any

from gpuzoo.tools.players import Policy

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.sync.server import Server, ServerConnection

TYPES = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip
_MOST_PAGES = 8  #: open at the same time, each with envs of its own
_LONGEST = 1 << 16  #: bytes of a message of a page


def _files() -> dict[str, tuple[str, bytes]]:
    """What can be asked for by GET: path -> type and contents."""
    folder = resources.files("gpuzoo.tools.viewer").joinpath("page")
    found = {f"/{f.name}": (TYPES["." + f.name.rpartition(".")[2]], f.read_bytes()) for f in folder.iterdir()
             if "." + f.name.rpartition(".")[2] in TYPES}  # fmt: skip
    return found | {"/": found["/index.html"]}


def own_host(host: str | None, names: frozenset[str]) -> bool:
    """Whether the ``Host`` of a request is this server: one of its names or, as nobody can rebind those, an address."""
    try:
        name = urllib.parse.urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Viewer:
    """A server that shows games.

    Args:
        first: the game of the first page.
        host: where to listen.
        port: 0 chooses a free one.
        config: parameters of the first game.
        player: who plays at first.
        scripted: policies of one's own by name.
        device: where the envs are.
        token: what a page has to know, letters, digits, ``-`` and ``_``; empty: nothing.

    Attributes:
        url: address of the page, with the token.

    Raises:
        ImportError: websockets is missing.
        OSError: the address cannot be used.
        ValueError: the token has other characters.
    """

    def __init__(
        self, first: str, host: str = "127.0.0.1", port: int = 0, config: Mapping[str, Any] | None = None,
        player: str = "random", scripted: Mapping[str, Policy] | None = None, device: str = "cpu",
        token: str = "",
    ) -> None:  # fmt: skip
        try:
            from websockets.sync.server import serve
        except ImportError:
            raise ImportError("the viewer needs websockets: pip install 'gpuzoo[view]'") from None
        from gpuzoo.render import Canvas

        Canvas(1, 1)  # says so if Pillow is missing
        if not re.fullmatch("[A-Za-z0-9_-]*", token):
            raise ValueError(f"a token has letters, digits, - and _ only, not {token!r}.")
        self._token = token
        self._session = (first, dict(config or {}), player, dict(scripted or {}), device)
        self._files = _files()
        self._names = frozenset({"localhost", host.lower()})
        self._pages = threading.BoundedSemaphore(_MOST_PAGES)
        self._server: Server = serve(
            self._talk,
            host,
            port,
            process_request=self._answer,
            max_size=_LONGEST,
            compression=None,
            server_header=None,
        )
        bound = self._server.socket.getsockname()
        shown = host if ":" not in host else f"[{host}]"
        self._cookie = f"gpuzoo-{bound[1]}"  # browsers share cookies among the ports of a host
        self.url = f"http://{shown}:{bound[1]}/" + (f"?token={token}" if token else "")

    def serve_forever(self) -> None:
        """Answers until `close`, from another thread, or an interrupt."""
        self._server.serve_forever()

    def close(self) -> None:
        """Stops listening. Pages that are open lose their connection."""
        self._server.shutdown()

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Serves in a thread of its own, and yields the address."""
        thread = threading.Thread(target=self.serve_forever, daemon=True)
        thread.start()
        try:
            yield self.url
        finally:
            self.close()
            thread.join()

    def _talk(self, connection: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed

        from gpuzoo.tools.viewer.session import Session

        if not self._pages.acquire(blocking=False):
            connection.close(1013, f"{_MOST_PAGES} pages are open: close one.")
            return
        try:
            Session(connection, *self._session).run()
        except ConnectionClosed:
            pass
        finally:
            self._pages.release()

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """A file or a refusal; None goes on to the websocket."""
        host, origin = request.headers.get("Host"), request.headers.get("Origin")
        if not own_host(host, self._names):
            return self._reply(HTTPStatus.MISDIRECTED_REQUEST, f"This is no name of the viewer: {host!r}.")
        path, _, query = request.path.partition("?")
        told = urllib.parse.parse_qs(query).get("token", [""])[-1]
        if not (self._knows(told) or self._knows(self._kept(request))):
            text = "The token is missing or wrong: open the whole address that gpuzoo view printed."
            return self._reply(HTTPStatus.UNAUTHORIZED, text)
        if path == "/live":
            if origin != f"http://{host}":
                return self._reply(HTTPStatus.FORBIDDEN, "The viewer answers its own page only.")
            return None
        if path not in self._files:
            return self._reply(HTTPStatus.NOT_FOUND, f"There is nothing at {path!r}.")
        kind, body = self._files[path]
        cookie = f"{self._cookie}={told}; HttpOnly; SameSite=Strict; Path=/" if told and self._token else ""
        return self._reply(HTTPStatus.OK, body, kind, f"ws://{host}", cookie)

    def _knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    def _kept(self, request: Request) -> str:
        """The token of a request's cookie."""
        found: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
        with contextlib.suppress(http.cookies.CookieError):
            found.load("; ".join(request.headers.get_all("Cookie")))
        return found[self._cookie].value if self._cookie in found else ""

    @staticmethod
    def _reply(
        status: HTTPStatus,
        body: str | bytes,
        kind: str = "text/plain; charset=utf-8",
        live: str = "'none'",
        cookie: str = "",
    ) -> Response:
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        data = body.encode() if isinstance(body, str) else body
        headers = {
            "Content-Type": kind, "Content-Length": str(len(data)), "Connection": "close", "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
            "Content-Security-Policy": (
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
                f"connect-src {live}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
        } | ({"Set-Cookie": cookie} if cookie else {})  # fmt: skip
        return Response(status.value, status.phrase, Headers(headers), data)
