"""What a worker process prints appears where this program's output does, at that moment.

It comes by pipes, line by line, and is written to ``sys.stdout`` and ``sys.stderr`` as they are then: a live
display, a notebook or a test may have replaced them, and would be painted over by a process that writes to the
terminal itself.
"""

import subprocess
import sys
import threading
from typing import IO, Literal

_LONGEST = 65_536  # bytes of a line that is passed on before it has ended
# Seconds for the last lines, where a process that left the worker's session holds the pipe open.
_PATIENCE = 1.0
_writing = threading.Lock()


class Output:
    """Passes on what a process prints, by a thread for each of its two streams.

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
            threading.Thread(target=_pass_on, args=pair, name=f"fabolas-{pair[1]}", daemon=True)
            for pair in streams
        ]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait for what the process printed before it ended."""
        for thread in self._threads:
            thread.join(_PATIENCE)


def _pass_on(pipe: IO[bytes], name: Literal["stdout", "stderr"]) -> None:
    with pipe:
        while line := pipe.readline(_LONGEST):
            _write(line.decode("utf-8", "backslashreplace"), name)


def _write(text: str, name: Literal["stdout", "stderr"]) -> None:
    stream = getattr(sys, name)
    if stream is None:  # a program without a console
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with _writing:
        try:
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()
        except (OSError, ValueError):
            # Nobody reads it any more, or it was closed: no reason to let the worker wait at a full pipe.
            return
