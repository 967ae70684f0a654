"""What a worker process does: take the objective once, then one trial after another until its parent is gone."""

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

from fabolas.execution.base import Ended, Job, Started
from fabolas.execution.task import evaluate


def main(descriptor: int) -> None:
    """Serve the parent at the other end of this file descriptor."""
    connection: Connection[Any, Any] = Connection(descriptor)
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, messages), daemon=True).start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # To a pipe Python writes in blocks; a worker that is killed must not take what it printed along.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    objective, data, failure = None, None, None
    try:
        objective, data = pickle.loads(messages.get())
    except BaseException:  # noqa: BLE001 - whatever it is, each trial is told
        failure = f"the worker process could not load the objective or its data:\n{traceback.format_exc()}"
    while True:
        job: Job = pickle.loads(messages.get())
        if objective is None:
            ended = Ended(job.id, "failed", error=failure)
        else:
            connection.send_bytes(pickle.dumps(Started(job.id)))
            ended = evaluate(objective, data, job)
            _flush()
        connection.send_bytes(pickle.dumps(ended))


def _flush() -> None:
    """Let go of a line without an end; what the objective has done to its streams is its own affair."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _listen(connection: "Connection[Any, Any]", messages: "queue.SimpleQueue[bytes]") -> None:
    """Pass messages on; end the process when the parent has gone, unless the objective lets no thread run."""
    try:
        while True:
            messages.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)
