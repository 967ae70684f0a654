"""Forward what a worker process prints to ``sys.stdout`` and ``sys.stderr`` of this process, line by line.

A live display, a notebook or a test may have replaced these streams. A worker that wrote to the terminal directly
would overwrite the display.
"""

import subprocess
import sys
import threading
from typing import IO, Literal

_MAX_LINE_BYTES = 65_536  # a longer line is forwarded in pieces
# How long to wait for the last lines. A process that left the worker's session can keep the pipe open for ever.
_LAST_LINES_SECONDS = 1.0
_write_lock = threading.Lock()


class OutputForwarder:
    """Forwards the output of a process, with one thread for each of its two streams.

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
