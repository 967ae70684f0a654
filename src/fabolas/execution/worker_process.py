"""One worker process: start it, exchange messages with it, kill it together with everything that it started.

A worker is started as ``python -c``, not by ``multiprocessing``. So it does not fork this process with its threads
and locks, and it does not import the user's script again: no ``if __name__ == "__main__"`` is needed.
"""

import contextlib
import os
import pickle
import queue
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing import Pipe
from pathlib import Path
from typing import IO, Any, Literal

from fabolas.execution.base import EventOrReport, Ready

POLL_SECONDS = 0.05  # how long ``receive`` waits for a message
_MAX_MESSAGE_BYTES = 1 << 31  # of a message from a worker
_LAST_MESSAGES_SECONDS = 0.5  # how long to wait for the messages of a process that has ended
_DEATH_SECONDS = 5.0  # how long to wait after SIGKILL; a process that waits for a dead disk can take for ever

# How long to wait for the last lines of output. A process that left the session can keep the pipe open for ever.
_LAST_LINES_SECONDS = 1.0
_MAX_LINE_BYTES = 65_536  # a longer line is forwarded in pieces
_write_lock = threading.Lock()

# Every worker has a random token in this environment variable, and all processes that it starts inherit it. Linux shows
# the environment of each process in /proc, so these processes are found even if they have left the worker's session. On
# other systems only the worker's process group is killed.
_VARIABLE = "FABOLAS_WORKER"
_MAX_SCANS = 5  # a process can fork while /proc is scanned
# ``_kill_marked`` in the shell: the guard of a worker runs it when this process was killed. $0 is the token.
_KILL_MARKED_IN_SHELL = (
    'for p in /proc/[0-9]*; do grep -qs "$0" "$p/environ" && kill -KILL "${p#/proc/}"; done 2>/dev/null'
)

# The shell script that starts a worker. It starts a guard, a second shell in the worker's process group, and then
# executes Python in its own place.
# The guard reads from the lifeline, a pipe whose other end this process holds. When this process ends, even by
# SIGKILL, the read returns, and the guard kills all processes of the worker. The worker cannot do that itself: while
# an objective runs C code, no other thread of the worker may run.
# The guard is not a child of the worker ("( ... & )" makes it an orphan), so an objective that waits for all its
# children does not wait for the guard.
# The script receives the lifeline as standard input. It moves it to the descriptor SPARE, because a shell gives its
# background jobs /dev/null as standard input.
_SHELL = f"""
exec SPARE<&0 </dev/null
( (read line; {_KILL_MARKED_IN_SHELL}; kill -KILL 0) <&SPARE & )
exec SPARE<&-
{_VARIABLE}="${_VARIABLE}:$0"; export {_VARIABLE}
exec "$@"
"""
# Nothing but ``sys`` is imported before ``sys.path`` is set, and the current directory comes last in it. Otherwise
# a file json.py in the current directory would be executed. ``main`` sets the path of this process later.
_BOOT = """
import sys
descriptor, sys.path[:] = int(sys.argv[1]), sys.argv[2:]
from fabolas.execution.worker_main import main
main(descriptor)
"""


class WorkerProcess:
    """A running worker process.

    Args:
        payload: The pickled objective and data.
        environment: The process's environment variables.

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(self, payload: bytes, environment: Mapping[str, str]) -> None:
        self._ready = threading.Event()
        self._token = secrets.token_hex(16)
        self._received: queue.SimpleQueue[EventOrReport | None] = queue.SimpleQueue()
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._pipe_broken = False
        self._pipe_problem = ""  # why no further message was read
        self._process, self._connection, self._lifeline = self._start(environment)
        self._output = OutputForwarder(self._process)
        self._threads = [
            threading.Thread(target=self._receive_all, name="fabolas-receiver", daemon=True),
            threading.Thread(target=self._send_all, name="fabolas-sender", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self.send(pickle.dumps(([str(entry) for entry in sys.path], sys.argv)))
        self.send(payload)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait until it has loaded the objective and its data, or has ended."""
        while not self._ready.wait(POLL_SECONDS) and self._process.poll() is None:
            pass

    def send(self, message: bytes) -> None:
        """Send a message in the background: if the process does not read it, this call does not block."""
        self._to_send.put(message)

    def receive(self) -> EventOrReport | None:
        """The next message; None if there is none for now.

        Raises:
            EOFError: If there will be no further message.
        """
        # Check this first: messages that were sent before the end are still received.
        ended = self._process.poll() is not None
        try:
            message = self._received.get(timeout=_LAST_MESSAGES_SECONDS if ended else POLL_SECONDS)
        except queue.Empty:
            if ended:  # without an end of file, because a child of the process can hold the pipe open
                raise EOFError from None
            return None
        if message is None:
            self._pipe_broken = True
            raise EOFError
        return message

    def kill(self) -> str:
        """Kill the process and the processes that it started. Returns how it ended, as the end of a sentence."""
        broken = self._pipe_broken and not self._ends_within(POLL_SECONDS)
        # Shut down the pipe for the process and for our threads. It is closed below, when no thread uses it.
        with contextlib.suppress(OSError), _second_handle(self._connection) as pipe:
            pipe.shutdown(socket.SHUT_RDWR)
        # A process that does not run the objective exits when its pipe ends. Wait for that, to get its own exit code.
        self._ends_within(POLL_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        _kill_marked(self._token)
        os.close(self._lifeline)
        self._ends_within(_DEATH_SECONDS)
        self._to_send.put(None)
        for thread in self._threads:
            thread.join()
        self._connection.close()
        self._output.finish()
        if broken:
            return f"{self._pipe_problem}, and was killed"
        return _exit_description(self._process.returncode)

    def _start(self, environment: Mapping[str, str]) -> "tuple[subprocess.Popen[bytes], Any, int]":
        ours, theirs = Pipe()
        held, lifeline = os.pipe()
        try:
            number = theirs.fileno()
            shell = _SHELL.replace("SPARE", "3" if number != 3 else "4")
            python = [sys.executable, "-P", "-c", _BOOT, str(number), *_path_with_current_directory_last()]
            # In its own session, Ctrl-C in the terminal does not reach the worker, and the processes that the
            # objective starts can be killed together with it.
            process = subprocess.Popen(
                ["/bin/sh", "-c", shell, self._token, *python],
                stdin=held,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                pass_fds=(number,),
                start_new_session=True,
            )
        except BaseException:
            os.close(lifeline)
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(held)
        return process, ours, lifeline

    def _ends_within(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=seconds)
        return self._process.returncode is not None

    def _send_all(self) -> None:
        with contextlib.suppress(OSError):  # the process has ended; ``receive`` notices that
            while (message := self._to_send.get()) is not None:
                self._connection.send_bytes(message)

    def _receive_all(self) -> None:
        """Queue the messages; None at the end.

        This runs in a thread, because the rest of a message may never come: a worker can die while it sends, and a
        child of it can hold the pipe open.
        """
        try:
            while True:
                message = pickle.loads(self._connection.recv_bytes(_MAX_MESSAGE_BYTES))
                if isinstance(message, Ready):
                    self._ready.set()
                else:
                    self._received.put(message)
        except Exception as error:  # noqa: BLE001 - the objective can write anything to the pipe
            self._pipe_problem = f"closed its connection, or sent something that is not a message ({error!r})"
        self._received.put(None)


def _path_with_current_directory_last() -> list[str]:
    """``sys.path``, with the current directory and relative entries at its end."""
    entries = [str(entry) for entry in sys.path]
    try:
        current = str(Path.cwd())
    except OSError:  # it was deleted
        current = ""
    return sorted(
        entries, key=lambda entry: not Path(entry).is_absolute() or os.path.realpath(entry) == current
    )


def _second_handle(connection: Any) -> socket.socket:
    """A second handle of the socket behind a two-way pipe. The caller closes it."""
    return socket.socket(fileno=os.dup(connection.fileno()))


def _exit_description(code: int | None) -> str:
    if code is None:
        return "could not be killed"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    hint = "; the system may have been out of memory" if -code == signal.SIGKILL else ""
    return f"was killed by signal {-code} ({name}){hint}"


def _kill_marked(token: str) -> None:
    """Kill all processes that have this token in their environment."""
    for _ in range(_MAX_SCANS):
        found = _marked(token.encode())
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _marked(token: bytes) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            if token in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


class OutputForwarder:
    """Forwards what a process prints to ``sys.stdout`` and ``sys.stderr`` of this process, line by line.

    A live display, a notebook or a test may have replaced these streams. A worker that wrote to the terminal directly
    would overwrite the display. Each of the two streams has a thread.

    Args:
        process: Started with pipes as standard output and standard error.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        streams: list[tuple[IO[bytes], Literal["stdout", "stderr"]]] = [
            (process.stdout, "stdout"),
            (process.stderr, "stderr"),
        ]
        self._threads = [
            threading.Thread(target=_forward, args=pair, name=f"fabolas-{pair[1]}", daemon=True)
            for pair in streams
        ]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait for the last lines of a process that has ended."""
        for thread in self._threads:
            thread.join(_LAST_LINES_SECONDS)


def _forward(pipe: IO[bytes], name: Literal["stdout", "stderr"]) -> None:
    with pipe:
        while line := pipe.readline(_MAX_LINE_BYTES):
            _write(line.decode("utf-8", "backslashreplace"), name)


def _write(text: str, name: Literal["stdout", "stderr"]) -> None:
    stream = getattr(sys, name)
    if stream is None:  # a program without a console
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with _write_lock:
        try:
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()
        except (OSError, ValueError):
            # The stream was closed. Go on reading, because the worker would otherwise block on a full pipe.
            return
