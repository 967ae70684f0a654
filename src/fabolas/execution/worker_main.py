"""What runs in a worker process: receive the objective once, then run one trial after another."""

import contextlib
import io
import os
import pickle
import queue
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from fabolas.execution.base import Ended, Job, Ready, Reported, Started
from fabolas.execution.evaluate import evaluate


def main(descriptor: int) -> None:
    """Run the jobs that the parent process sends through this file descriptor, until the parent ends."""
    connection: Connection[Any, Any] = Connection(descriptor)
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, messages), daemon=True).start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Python buffers output to a pipe in blocks. Write every line at once: a killed worker loses its buffer.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.path[:], sys.argv[:] = pickle.loads(messages.get())  # those of the parent
    objective, data, failure, sending = None, None, None, threading.Lock()
    try:
        objective, data = pickle.loads(messages.get())
    except BaseException:  # noqa: BLE001 - every exception becomes the reason of the failed trials
        failure = f"the worker process could not load the objective or its data:\n{traceback.format_exc()}"

    def send(message: Ready | Started | Reported | Ended) -> None:
        pickled = pickle.dumps(message)
        try:
            with sending:  # any thread of the objective may report
                connection.send_bytes(pickled)
        except ConnectionError:  # the parent does not want it any more, and says so by closing the pipe
            os._exit(0)

    send(Ready())
    while True:
        job: Job = pickle.loads(messages.get())
        if objective is None:
            ended = Ended(job.id, "failed", error=failure)
        else:
            send(Started(job.id))
            ended = evaluate(objective, data, job, publish=send)
            _flush()
        send(ended)


def _flush() -> None:
    """Write out incomplete lines. Errors are ignored: the objective may have replaced or closed the streams."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _receive(connection: "Connection[Any, Any]", messages: "queue.SimpleQueue[bytes]") -> None:
    """Queue the messages. End this process when the parent has ended."""
    try:
        while True:
            messages.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)
