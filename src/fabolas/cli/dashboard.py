"""``fabolas dashboard``: show a study in the browser, live."""

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from fabolas.cli.errors import UserError, as_user_error, message
from fabolas.storage.files import resolve

_DEFAULT_PORT = 8017
_LONGEST_FAREWELL = 20.0  # seconds that a dashboard gets to end after its run
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def dashboard(options: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    _check_installed()
    with as_user_error(ValueError):
        path = resolve(options.study)
    if not path.exists() and not path.parent.is_dir():
        raise UserError(
            f"expected the file of a study or a directory, got {path}, whose directory does not exist"
        )
    from fabolas.dashboard.server import bind, serve

    try:
        listening = bind(options.port, _DEFAULT_PORT)
    except OSError as error:
        raise UserError(
            f"port {options.port} of 127.0.0.1 cannot be used: {error.strerror}; give another one with --port"
        ) from error
    if not options.while_stdin_is_open:
        message(f"dashboard at http://127.0.0.1:{listening.getsockname()[1]}/ (Ctrl-C ends it)")
    serve(path, listening, while_stdin_is_open=options.while_stdin_is_open)
    return 0


@contextmanager
def dashboard_of_run(storage: str | None) -> Iterator[None]:
    """Show the file of a run in the browser while the body runs. The page is served by a process of its own.

    Raises:
        UserError: If there is no file, or the libraries are not installed.
    """
    if storage is None:
        raise UserError("--dashboard shows the file of a run, got no --storage; give one: --storage run.db")
    _check_installed()
    port = _free_port()
    address = f"http://127.0.0.1:{port}/"
    command = [
        sys.executable,
        "-m",
        "fabolas",
        "dashboard",
        storage,
        "--port",
        str(port),
        "--while-stdin-is-open",
    ]
    one_thread = dict.fromkeys(_ONE_THREAD, "1")
    # In a session of its own, so that Ctrl-C ends the run and not the page that shows how it ends.
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=os.environ | one_thread,
        start_new_session=True,
    )
    message(f"dashboard at {address} while the run lasts; `fabolas dashboard {storage}` shows it again")
    assert child.stdin is not None
    try:
        yield
    finally:
        child.stdin.close()  # the child ends, at once or when open pages have fetched the last state
        try:
            child.wait(_LONGEST_FAREWELL)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _free_port() -> int:
    """Return the default port, or a free one if it is used."""
    for port in (_DEFAULT_PORT, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            free: int = found.getsockname()[1]
            return free
    raise UserError("--dashboard needs a free port on 127.0.0.1, and there is none; close other programs")


def _check_installed() -> None:
    lacking = [name for name in ("starlette", "uvicorn", "plotly") if find_spec(name) is None]
    if lacking:
        raise UserError(
            f"the dashboard needs {' and '.join(lacking)}; install it with: pip install 'fabolas[dashboard]'"
        )
