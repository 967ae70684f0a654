"""Evaluate the objective once: call it, measure the time, check what it returned."""

import contextlib
import copy
import math
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabolas.execution.base import MIN_COST_SECONDS, Ended, Job, Objective, Reported
from fabolas.execution.checkpoints import damage, manifest_path, remove, write_manifest
from fabolas.execution.context import PARAMETER, Publish, Reporter, TrialContext, wants_context
from fabolas.plain_values import LossRangeError, safe_repr
from fabolas.trials import Outcome


def evaluate(
    objective: Objective,
    data: Any,
    job: Job,
    clock: Callable[[], float] = time.perf_counter,
    publish: Publish = lambda reported: None,
) -> Ended:
    """Call the objective and return the outcome. The cost is the time inside the objective.

    A training whose checkpoint is lost or damaged starts from scratch. So does one that raises an exception before its
    first report: what it cannot continue from is a damaged checkpoint too.

    Args:
        objective: See ``_call``.
        data: The user's data.
        job: The trial.
        clock: Seconds from any origin.
        publish: Called with every report of the training.
    """
    curve, notice = job.curve, ""
    if curve is None or not curve.checkpoint:
        return _call(objective, data, job, clock, publish)
    directory, wanted = Path(curve.checkpoint), curve.resume_from
    scratch = replace(job, curve=replace(curve, resume_from=None))
    if wanted is not None and (problem := damage(directory, wanted)):
        job, notice = scratch, f"trial {job.id} starts from scratch: {problem}"
    if job is scratch or wanted is None:
        remove(directory)
    manifest_path(directory).unlink(missing_ok=True)  # from now on the objective may change the checkpoint
    ended = _call(objective, data, job, clock, publish)
    if ended.status == "failed" and not ended.reports and job is not scratch and wanted is not None:
        last = (ended.error or "").strip().splitlines()[-1:]
        notice = (
            f"trial {job.id} starts from scratch: it could not continue from its checkpoint ({''.join(last)})"
        )
        remove(directory)
        again = _call(objective, data, scratch, clock, publish)
        ended, job = replace(again, cost=again.cost + ended.cost), scratch
    if ended.status == "complete":
        reached = ended.reports[-1].value if ended.stopped else job.fidelity[curve.name]
        write_manifest(directory, reached)
    # An objective that reports values from before its checkpoint has started from scratch by itself.
    by_itself = wanted is not None and bool(ended.reports) and ended.reports[0].value <= wanted
    return replace(ended, restarted=bool(notice) or by_itself, notice=notice)


def _call(objective: Objective, data: Any, job: Job, clock: Callable[[], float], publish: Publish) -> Ended:
    """Call the objective once.

    The objective gets a copy of the configuration, so that it cannot change the record. If the objective forks,
    only the original process returns from here; the child ends.

    Args:
        objective: Called as ``objective(config, size=...)``, with ``data=`` unless ``data`` is None, and with
            ``trial=`` if it has such a parameter.
        data: The user's data.
        job: The trial.
        clock: Seconds from any origin.
        publish: Called with every report of the training.
    """
    arguments: dict[str, Any] = dict(job.fidelity)
    if data is not None:
        arguments["data"] = data
    config = {name: _copy(value) for name, value in job.config.items()}
    process = os.getpid()
    start = clock()
    reporter = Reporter(job, lambda: clock() - start, publish)
    try:
        if wants_context(objective, tuple(job.fidelity)):
            arguments[PARAMETER] = TrialContext.of(job, reporter)
        returned = objective(config, **arguments)
        _exit_if_forked(process)
    except BaseException as error:
        cost = max(clock() - start, MIN_COST_SECONDS)
        _exit_if_forked(process, error)
        if isinstance(error, KeyboardInterrupt):  # the engine decides what Ctrl-C means
            raise
        # Leave out the frame of this function.
        inside = error.__traceback__ and error.__traceback__.tb_next
        reason = "".join(traceback.format_exception(error.with_traceback(inside)))
        return Ended(job.id, "failed", cost=cost, error=reason, reports=_in_range(job, reporter))
    cost = max(clock() - start, MIN_COST_SECONDS)
    return replace(
        _outcome(job, returned, cost), reports=_in_range(job, reporter), stopped=_stopped(job, reporter)
    )


def _in_range(job: Job, reporter: Reporter) -> tuple[Reported, ...]:
    """The reports within the range of the fidelity."""
    low = -math.inf if job.curve is None else job.curve.fidelity.low
    return tuple(reported for reported in reporter.reports if reported.value >= low)


def _stopped(job: Job, reporter: Reporter) -> bool:
    """Whether the training followed the advice to stop, below what it was asked for."""
    if job.curve is None or not reporter.stopped or not _in_range(job, reporter):
        return False
    return reporter.reports[-1].value < job.fidelity[job.curve.name]


def _outcome(job: Job, returned: Any, cost: float) -> Ended:
    """The outcome of what the objective returned."""
    try:
        outcome = returned if isinstance(returned, Outcome) else Outcome(returned)
    except LossRangeError as error:
        return Ended(job.id, "failed", cost=cost, error=f"the objective returned too large a number: {error}")
    except (Exception, SystemExit):  # noqa: BLE001 - the returned object can be anything and raise anything
        reason = f"the objective must return a finite number or an Outcome, got {safe_repr(returned, 100)}"
        return Ended(job.id, "failed", cost=cost, error=reason)
    return Ended(job.id, "complete", outcome.loss, outcome.cost or cost, outcome.info)


def _copy(value: Any) -> Any:
    """A deep copy; the value itself if it cannot be copied, for example an open file."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - the value is the user's, and its copy can raise anything
        return value


def _exit_if_forked(parent: int, error: BaseException | None = None) -> None:
    """Exit if this process is a child that the objective forked. Otherwise two processes would continue the study.

    Args:
        parent: The id of the process that called the objective.
        error: What the objective raised in this process; None if it returned.
    """
    if os.getpid() == parent:
        return
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        code = 1
        with contextlib.suppress(Exception):
            traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code & 0xFF)  # without the cleanup of the parent: its files and locks belong to the parent
