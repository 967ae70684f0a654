"""Trials in processes of their own, each with a pipe of its own: one that dies takes only its trial with it.

A worker is started as ``python -c``, not by ``multiprocessing``: it neither forks this process with its threads and
locks, nor imports the user's script a second time, so that no ``if __name__ == "__main__"`` is needed.
"""

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any

import cloudpickle

from fabolas.execution.base import Ended, Job, Objective, Started
from fabolas.execution.memory import resident
from fabolas.execution.output import Output
from fabolas.execution.pool import Pool
from fabolas.execution.task import RESOLUTION

_LOADING = 60.0  # seconds that a process may take to load what it needs where trials are limited to fewer
_TICK = 0.05  # seconds between two looks at the clock and the memory; a message is seen at once
# A guard beside the worker, there before Python is, and adopted by the system's first process so that the objective
# never waits for it as for a child of its own: when our end of the lifeline is closed, as it is when we are killed,
# it ends the worker and what that has started. The worker itself may be in the middle of something that lets none
# of its threads run. The lifeline is the shell's standard input; a background job is given another by rule.
_GUARD = """
exec {spare}<&0 </dev/null
( (read line; kill -KILL 0) <&{spare} & )
exec {spare}<&-
exec "$@"
"""
_BOOT = """
import json, sys
number, sys.path[:], sys.argv[:] = json.loads(sys.argv[1])
from fabolas.execution.worker import main
main(number)
"""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def processes(objective: Objective, data: Any, workers: int, memory: int | None = None) -> Pool:
    """A pool of so many worker processes, each of which is given the objective and the data once.

    Raises:
        TypeError: If the objective or the data cannot be pickled.
        ValueError: On a system without POSIX processes.
    """
    if os.name != "posix":
        raise ValueError(
            f"process workers need a POSIX system, this one is {os.name!r}; give an executor=, such as "
            "loky.get_reusable_executor(), or workers=1 without limits"
        )
    payload = pickled(objective, data)
    threads = max(1, _cores() // workers)
    return Pool([ProcessSlot(payload, threads, memory) for _ in range(workers)])


def pickled(objective: Objective, data: Any) -> bytes:
    """Objective and data as bytes, also of functions defined in a script, a notebook or another function.

    Raises:
        TypeError: If that is not possible.
    """
    try:
        return bytes(cloudpickle.dumps((objective, data), protocol=pickle.HIGHEST_PROTOCOL))
    except Exception as error:
        raise TypeError(
            "the objective and its data must be picklable (by cloudpickle) to run in another process, got: "
            f"{type(error).__name__}: {error}; keep locks, open files and connections out of them, "
            "or use workers=1"
        ) from error


class ProcessSlot:
    """One process, started when first needed and again whenever it has died or had to be killed.

    Args:
        payload: The pickled objective and data.
        threads: How many threads numerical libraries may use in it, unless the environment says so already.
        memory: Bytes it may hold; None for no limit.
        loading: Seconds it may take to load the objective and the data, or as long as its first trial may take.
    """

    def __init__(
        self, payload: bytes, threads: int = 1, memory: int | None = None, loading: float = _LOADING
    ) -> None:
        self._payload = payload
        self._memory, self._held = memory, 0  # at most, and before its first trial
        self._loading = loading
        limited = (
            {} if any(name in os.environ for name in _THREADS) else dict.fromkeys(_THREADS, str(threads))
        )
        self._environment = {**os.environ, **limited}
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Any = None
        self._sender: threading.Thread | None = None
        self._output: Output | None = None
        self._lifeline = -1  # a pipe whose other end the worker's guard holds

    def run(self, job: Job, started: Callable[[], None]) -> Ended:
        for attempt in range(2):
            try:
                ended = self._attempt(job, started)
            except (EOFError, OSError) as error:  # it died before it began, and so not of this job
                how = f"could not be started ({error})" if self._process is None else _how(self._kill())
                if attempt:
                    reason = f"the worker process {how} before it could begin with the trial, twice"
                    return Ended(job.id, "failed", error=reason)
            else:
                return ended
        raise AssertionError("unreachable: the second attempt returns")

    def _attempt(self, job: Job, started: Callable[[], None]) -> Ended:
        """Raises OSError or EOFError if the process dies before the objective is called."""
        sent = time.perf_counter()
        if self._process is None:
            self._start()
            self._send(self._payload, pickle.dumps(job))
        else:
            self._send(pickle.dumps(job))
        begin: float | None = None
        while True:
            if self._stopped.is_set():
                self._kill()
                return Ended(job.id, "lost", cost=_since(begin), error="stopped while it was running")
            try:
                message = self._receive()
            except (EOFError, OSError):
                if begin is None:
                    raise
                reason = f"the worker process {_how(self._kill())}"
                return Ended(job.id, "failed", cost=_since(begin), error=reason)
            if isinstance(message, Started):
                begin = time.perf_counter()
                self._held = self._held or self._holds()
                started()
            elif isinstance(message, Ended):
                self._renew()
                return message
            elif reason := self._delay(job, sent) if begin is None else self._excess(job, begin):
                self._kill()
                return Ended(job.id, "failed", cost=_since(begin), error=reason)

    def _send(self, *messages: bytes) -> None:
        """By a thread: a process that does not read them would keep us from looking at the clock."""

        def send(connection: Any) -> None:
            # It has died, or was killed: whoever waits for its answer sees that too.
            with contextlib.suppress(OSError):
                for message in messages:
                    connection.send_bytes(message)

        self._sender = threading.Thread(
            target=send, args=(self._connection,), name="fabolas-sender", daemon=True
        )
        self._sender.start()

    def _receive(self) -> Started | Ended | None:
        """What the process says within a tick; EOFError or OSError if it has died."""
        assert self._process is not None
        # Asked before the pipe: what it said before it died is still to be read.
        dead = self._process.poll() is not None
        if self._connection.poll(_TICK):
            message: Started | Ended = pickle.loads(self._connection.recv_bytes())
            return message
        if dead:  # a child of its own may hold the other end of the pipe open
            raise EOFError
        return None

    def _excess(self, job: Job, begin: float) -> str:
        """What the job has used too much of, in words; nothing if it has not."""
        if job.timeout is not None and time.perf_counter() - begin > job.timeout:
            return f"timed out: not finished after {job.timeout:.4g} s (trial_timeout), so it was killed"
        held = self._holds()
        if self._memory is not None and held > self._memory:
            amounts = f"{held / 1e6:,.0f} MB, more than {self._memory / 1e6:,.0f} MB"
            return f"out of memory: it held {amounts} (trial_memory), so it was killed"
        return ""

    def _delay(self, job: Job, sent: float) -> str:
        """Why the job has not begun in good time, in words; nothing if it may still."""
        limit = max(job.timeout or 0.0, self._loading)
        if job.timeout is None or time.perf_counter() - sent <= limit:
            return ""
        return f"the worker process had not loaded the objective and its data after {limit:.4g} s, so it was killed"

    def _holds(self) -> int:
        """Bytes that the process holds, where they are limited."""
        return 0 if self._memory is None or self._process is None else resident(self._process.pid)

    def _renew(self) -> None:
        """End a process in which trials have left so much behind that the next one would be blamed for it."""
        if self._memory is not None and self._holds() > (self._held + self._memory) / 2:
            self._kill()

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        self._kill()

    def _start(self) -> None:
        ours, theirs = Pipe()
        held, lifeline = os.pipe()
        try:
            # It finds the same modules as we do, and its objective the same command line.
            path = [str(entry) for entry in sys.path]
            number = theirs.fileno()
            arguments = json.dumps([number, path, sys.argv])
            guard = _GUARD.format(spare=3 if number != 3 else 4)
            command = ["sh", "-c", guard, "sh", sys.executable, "-c", _BOOT, arguments]
            # A session of its own: Ctrl-C in the terminal is for us alone, and what the objective starts can be
            # ended together with it.
            self._process = subprocess.Popen(
                command,
                stdin=held,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                pass_fds=(number,),
                start_new_session=True,
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            theirs.close()
            os.close(held)
        self._connection, self._lifeline, self._held = ours, lifeline, 0
        self._output = Output(self._process)

    def _kill(self) -> int:
        """End the process and what it has started; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        # For its reader and our sender the pipe ends here; it is closed when neither uses it any more.
        with contextlib.suppress(OSError), _socket(self._connection) as pipe:
            pipe.shutdown(socket.SHUT_RDWR)
        # It ends by itself when the pipe has ended, or has ended already; the code is then its own.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_TICK)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        os.close(self._lifeline)
        code = process.wait()
        if self._sender is not None:
            self._sender.join()
        self._connection.close()
        if self._output is not None:
            self._output.finish()
        return code


def _socket(connection: Any) -> socket.socket:
    """The socket that a pipe in two directions is; another name for it, to be closed on its own."""
    return socket.socket(fileno=os.dup(connection.fileno()))


def _since(begin: float | None) -> float:
    return 0.0 if begin is None else max(time.perf_counter() - begin, RESOLUTION)


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    hint = "; the system may have been out of memory" if -code == signal.SIGKILL else ""
    return f"was killed by signal {-code} ({name}){hint}"


def _cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
