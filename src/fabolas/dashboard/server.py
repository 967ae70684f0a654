"""Runs the live page on 127.0.0.1, with low priority, until Ctrl-C or until the run that started it ends."""

import contextlib
import os
import socket
import sys
import threading
import time
from pathlib import Path

import uvicorn

from fabolas.dashboard.app import Lifetime, make_app

HOST = "127.0.0.1"
_FAREWELL_SECONDS = 4.0  # in which open pages fetch the last state of a run that has ended
_NICENESS = 15  # a run on the same processor comes first
_SESSION_NICENESS = 5  # less, so that a page opens also on a machine with many busy sessions
_AUTOGROUP = Path("/proc/self/autogroup")  # priority of the session of this process, on Linux


def serve(path: Path, listening: socket.socket, *, while_stdin_is_open: bool = False) -> None:
    """Answer requests until Ctrl-C.

    Args:
        path: The file of a study, or a directory.
        listening: A socket that is bound to 127.0.0.1.
        while_stdin_is_open: Whether to end when standard input is closed, which is when the process that started
            this one has ended.
    """
    lower_priority()
    lifetime = Lifetime()
    settings = uvicorn.Config(
        make_app(path, lifetime),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = _Server(settings, lifetime)
    if while_stdin_is_open:
        _end_with_stdin(lifetime, server)
    server.run(sockets=[listening])


def lower_priority() -> None:
    """Let other processes go first, as far as the system allows.

    Linux shares processors between sessions first (autogroups), and niceness counts only within one. A process that
    has a session of its own, as the page of ``fabolas run --dashboard`` has, also lowers the priority of the session.
    """
    with contextlib.suppress(OSError, AttributeError):  # not allowed, or Windows, which has no os.nice
        os.nice(_NICENESS)
        if os.getsid(0) == os.getpid() and _AUTOGROUP.exists():
            _AUTOGROUP.write_text(str(_SESSION_NICENESS))


class _Server(uvicorn.Server):
    """A server that tells open pages when it ends."""

    def __init__(self, config: uvicorn.Config, lifetime: Lifetime) -> None:
        super().__init__(config)
        self._lifetime = lifetime

    def handle_exit(self, sig: int, frame: object) -> None:
        self._lifetime.ending = True
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def _end_with_stdin(lifetime: Lifetime, server: uvicorn.Server) -> None:
    def wait() -> None:
        while sys.stdin.buffer.read(1024):
            pass
        pages, lifetime.ending = lifetime.pages, True
        if pages:
            time.sleep(_FAREWELL_SECONDS)
        server.should_exit = True

    threading.Thread(target=wait, daemon=True).start()


def bind(port: int | None, default: int) -> socket.socket:
    """Return a socket on 127.0.0.1 with this port; without one with the default port, or a free one if it is used.

    Raises:
        OSError: If the port cannot be used.
    """
    if port is not None:
        return _bind(port)
    try:
        return _bind(default)
    except OSError:
        return _bind(0)


def _bind(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((HOST, port))
        found.listen()  # from now on a browser can connect, and waits until the server answers
    except OSError:
        found.close()
        raise
    return found
