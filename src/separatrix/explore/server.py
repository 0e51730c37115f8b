"""The page and its WebSocket, on this machine alone.

    http://127.0.0.1:PORT/TOKEN/        the page; every file and the socket lie below the token

The token is random, so that no other page or program can guess the address; requests without it, from another origin or under
another host name (a name that was made to point here) are refused before anything is read.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from threading import Thread
from typing import TYPE_CHECKING, Any

from separatrix.explore.answering import Conversation, guarded
from separatrix.explore.desk import BUDGET, Desk
from separatrix.explore.plane_table import PlaneTable

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send
    from starlette.websockets import WebSocket

HOST = "127.0.0.1"
NEEDED = "The explorer needs Starlette and uvicorn: pip install 'separatrix[explore]'."
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_FILES = ("index.html", "explorer.js", "explorer.css")


class OnlyWithToken:
    """Refuses what does not come from the page: a wrong host, origin or token."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}".encode() for name in (HOST, "localhost")}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer 403."""
        if scope["type"] == "lifespan" or self._allowed(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the answer is 403
        else:
            text = b"This address needs the token that 'separatrix explore' printed, and is for this machine only.\n"
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": text})

    def _allowed(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        if headers.get(b"host") not in self.hosts or (origin is not None and origin not in self.origins):
            return False
        if scope["type"] == "websocket" and origin is None:  # browsers always send it
            return False
        first = scope["path"].lstrip("/").split("/")[0]
        return secrets.compare_digest(first.encode(), self.token.encode())


def make_app(token: str, port: int, table: PlaneTable | None = None) -> Starlette:
    """The application: three files and a socket."""
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.responses import Response
        from starlette.routing import Route, WebSocketRoute
    except ImportError as error:
        raise ImportError(NEEDED) from error
    static = files("separatrix.explore") / "static"
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        f"connect-src 'self' ws://{HOST}:{port} ws://localhost:{port}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
    }

    async def serve_file(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        if name not in _FILES:
            return Response("There is no such file.\n", 404, headers, "text/plain")
        return Response((static / name).read_bytes(), 200, headers, _TYPES[name.rsplit(".", 1)[1]])

    async def converse(page: WebSocket) -> None:
        await _converse(page, table)

    routes = [
        Route("/{token}/", serve_file),
        WebSocketRoute("/{token}/socket", converse),
        Route("/{token}/{name}", serve_file),
    ]
    return Starlette(routes=routes, middleware=[Middleware(OnlyWithToken, token=token, port=port)])


async def _converse(page: WebSocket, table: PlaneTable | None) -> None:
    """Read messages in their order, work on the newest, send answers as they come, until the page goes away."""
    from starlette.websockets import WebSocketDisconnect

    await page.accept()
    answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    conversation, desk = Conversation(table), Desk(answers.put_nowait)

    async def send() -> None:
        while True:
            await page.send_text(json.dumps(await answers.get(), separators=(",", ":")))

    sending = asyncio.create_task(send())
    try:
        while True:
            _receive(await page.receive_text(), conversation, desk, answers.put_nowait)
    except WebSocketDisconnect:
        pass
    finally:
        sending.cancel()
        desk.close()


def _receive(text: str, conversation: Conversation, desk: Desk, send: Callable[[dict[str, Any]], None]) -> None:
    try:
        message = json.loads(text)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        send({"error": "A message must be a JSON object."})
        return
    state = None

    def read() -> dict[str, Any]:
        nonlocal state
        state = conversation.read(message)
        return {}

    refused = guarded(message, read)
    if "error" in refused:
        send(refused)
        return
    kind = message.get("kind")
    late = guarded(
        message, lambda: {"error": f"The fit took longer than {BUDGET:g} s and was stopped: use fewer points."}
    )
    # Fits of a panel replace each other; questions of other kinds each have their answer.
    key = (kind, message.get("panel", 0)) if kind in ("fit", "probe", "film") else (kind, message.get("id"))
    desk.submit(key, lambda: guarded(message, lambda: conversation.work(message, state)), late)


def serve(
    table: PlaneTable | None = None,
    *,
    port: int = 0,
    token: str | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Run the explorer until it is interrupted.

    Parameters
    ----------
    table : PlaneTable, optional
        What the page opens with.
    port : int, default=0
        A free one if 0.
    token : str, optional
        The secret part of the address; a random one by default.
    ready : callable, optional
        Called with the address once the port is taken.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError(NEEDED) from error
    secret = secrets.token_urlsafe(24) if token is None else token
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with listening:
        listening.bind((HOST, port))
        listening.listen()
        port = int(listening.getsockname()[1])
        options: dict[str, Any] = {"log_level": "warning", "ws_max_size": 2**25, "timeout_graceful_shutdown": 1}
        options["ws_per_message_deflate"] = False  # to compress takes longer than to hand over within a machine
        sys.setswitchinterval(0.001)  # messages are read while a fit runs
        config = uvicorn.Config(make_app(secret, port, table), **options)
        Thread(target=import_module, args=("numba",), daemon=True).start()  # compiled loops are there by the first drag
        if ready is not None:
            ready(f"http://{HOST}:{port}/{secret}/")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit warns of is in its status, which the page shows
            uvicorn.Server(config).run(sockets=[listening])
