"""Answers the requests of the live page. It only reads, and only for pages that this server has sent itself."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from fabolas.dashboard.pages import directory_page, directory_sections, study_page, study_sections
from fabolas.dashboard.watched import Watched, WatchedDirectory, WatchedStudy
from fabolas.plots import plotly_js
from fabolas.report.content import FIGURE_NAMES
from fabolas.report.document import SCRIPTS, STYLE_ATTRIBUTES, dark_colours, static

HOSTS = ["127.0.0.1", "localhost"]  # with any port: it may be forwarded, by ssh for example
HEADERS = {
    # No inline script and no inline style sheet: Plotly writes its rules into the empty style sheet plotly.css.
    "content-security-policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self'; {STYLE_ATTRIBUTES}; connect-src 'self'; "
        "img-src data: blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_POLL_SECONDS = 1.0  # between two looks at the files
_TICK_SECONDS = 5.0  # between two updates of what runs now


class Lifetime:
    """What the server and the open pages have to know of each other.

    Attributes:
        ending: Whether the server is about to end; open pages are told.
        pages: Number of open pages.
    """

    def __init__(self) -> None:
        self.ending = False
        self.pages = 0


def make_app(path: Path, lifetime: Lifetime) -> Starlette:
    """Return the application for the file of a study, or for a directory."""
    routes: list[BaseRoute] = [Route("/static/{name}", _static)]
    if path.is_dir():
        directory = WatchedDirectory(path)
        routes += [
            Route("/", _html(lambda request: directory_page(directory))),
            *_directory_routes(directory, lifetime),
            Mount("/study/{file}", routes=_study_routes(lambda r: _found(directory, r), "../../", lifetime)),
        ]
    else:
        watched = WatchedStudy(path)
        routes += _study_routes(lambda request: watched, "./", lifetime)
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(_SafeHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False),
        ],
    )


def _found(directory: WatchedDirectory, request: Request) -> WatchedStudy:
    """Return the study that a path names. Only names in the directory are looked up, never a path from outside."""
    study = directory.studies().get(request.path_params["file"])
    if study is None:
        raise HTTPException(404, "there is no such study in the directory")
    return study


def _study_routes(find: Callable[[Request], WatchedStudy], root: str, lifetime: Lifetime) -> list[Route]:
    def figure(request: Request) -> str:
        name = request.path_params["name"]
        if name not in FIGURE_NAMES:
            raise HTTPException(404, "there is no such figure")
        return find(request).figure(name)

    return [
        Route("/", _html(lambda request: study_page(find(request), root, in_directory=root != "./"))),
        Route("/sections", _json(lambda request: json.dumps(study_sections(find(request))))),
        Route("/figures/{name}", _json(figure)),
        Route("/trials", _json(lambda request: find(request).trials())),
        Route("/events", _events(find, lifetime)),
    ]


def _directory_routes(directory: WatchedDirectory, lifetime: Lifetime) -> list[Route]:
    return [
        Route("/sections", _json(lambda request: json.dumps(directory_sections(directory)))),
        Route("/figures/comparison", _json(lambda request: directory.comparison())),
        Route("/events", _events(lambda request: directory, lifetime)),
    ]


def _html(content: Callable[[Request], str]) -> Any:
    async def answer(request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(content, request))

    return answer


def _json(content: Callable[[Request], str]) -> Any:
    async def answer(request: Request) -> Response:
        try:
            text = await run_in_threadpool(content, request)
        except ValueError as error:  # the file cannot be read; the page shows the same as its answer
            text, status = json.dumps({"error": str(error)}), 503
        else:
            status = 200
        return Response(text, status, media_type="application/json")

    return answer


def _events(find: Callable[[Request], Watched], lifetime: Lifetime) -> Any:
    async def answer(request: Request) -> Response:
        watched = await run_in_threadpool(find, request)
        return StreamingResponse(_counted(watched, lifetime), media_type="text/event-stream")

    return answer


async def _counted(watched: Watched, lifetime: Lifetime) -> AsyncIterator[str]:
    lifetime.pages += 1
    try:
        async for event in _stream(watched, lifetime):
            yield event
    finally:
        lifetime.pages -= 1


async def _stream(watched: Watched, lifetime: Lifetime) -> AsyncIterator[str]:
    """Yield server-sent events: "version" when the files have changed, "tick" while a study runs, "end" at the end."""
    seen, ticked = None, 0.0
    while True:
        ending = lifetime.ending
        version = await run_in_threadpool(watched.version)
        if version != seen:
            seen, ticked = version, 0.0
            yield _event("version", version)
        elif ticked >= _TICK_SECONDS:
            ticked = 0.0
            yield _event("tick", "running") if await run_in_threadpool(lambda: watched.running) else ": \n\n"
        if ending:
            yield _event("end", version)
            return
        waited = 0.0
        while waited < _POLL_SECONDS and not lifetime.ending:
            await asyncio.sleep(0.2)
            waited, ticked = waited + 0.2, ticked + 0.2


def _event(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {data}\n\n"


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name in SCRIPTS:
        return Response(static(name), media_type="text/javascript")
    if name == "plotly.js":
        return Response(
            plotly_js(), media_type="text/javascript", headers={"cache-control": "private, max-age=3600"}
        )
    if name == "page.css":
        return Response(static(name), media_type="text/css")
    if name == "plotly.css":
        return Response("", media_type="text/css")
    if name == "colours.json":
        return Response(dark_colours(), media_type="application/json")
    raise HTTPException(404, "there is no such file")


class _SafeHeaders:
    """Adds the headers that every answer has."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self._app(scope, receive, send_with_headers)
