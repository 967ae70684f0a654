"""Find and kill the processes that a worker process started, also those that left its session.

Every worker has a random token in its environment variable ``FABOLAS_WORKER``, and its descendants inherit it.
Linux shows the environment of each process in /proc. On other systems only the worker's process group is killed.
"""

import contextlib
import os
import signal
from pathlib import Path

VARIABLE = "FABOLAS_WORKER"
_MAX_SCANS = 5  # a process can fork while /proc is scanned

# The same in the shell: the guard of a worker runs it when this process was killed. $0 is the token.
KILL_MARKED_IN_SHELL = (
    'for p in /proc/[0-9]*; do grep -qs "$0" "$p/environ" && kill -KILL "${p#/proc/}"; done 2>/dev/null'
)


def kill_marked(token: str) -> None:
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
