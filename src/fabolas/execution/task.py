"""One evaluation, wherever it runs: the objective called, its time taken, its answer judged."""

import time
import traceback
from collections.abc import Callable
from typing import Any

from fabolas.execution.base import Ended, Job, Objective
from fabolas.history import Outcome, shown

# What a clock too coarse to see an evaluation is taken to have seen; the logarithm of a cost must exist.
RESOLUTION = 1e-6


def evaluate(
    objective: Objective, data: Any, job: Job, clock: Callable[[], float] = time.perf_counter
) -> Ended:
    """Call the objective and say what came of it; the cost is the time in the objective and nothing else.

    Args:
        objective: Called as ``objective(config, size=...)``, and with ``data=`` if there are any.
        data: For the objective; None for none.
        job: What to evaluate.
        clock: Seconds from any origin.
    """
    arguments = job.fidelity if data is None else {**job.fidelity, "data": data}
    start = clock()
    try:
        # A copy: what the objective does to its configuration must not reach the record.
        returned = objective(dict(job.config), **arguments)
    except KeyboardInterrupt:  # Ctrl-C, and whoever runs the trials decides what that means
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the trial's outcome
        cost = max(clock() - start, RESOLUTION)
        # The traceback starts in the objective, not in this function.
        inside = error.__traceback__ and error.__traceback__.tb_next
        reason = "".join(traceback.format_exception(error.with_traceback(inside)))
        return Ended(job.id, "failed", cost=cost, error=reason)
    cost = max(clock() - start, RESOLUTION)
    try:
        outcome = returned if isinstance(returned, Outcome) else Outcome(returned)
    except Exception:  # noqa: BLE001 - what was returned may be anything, and do anything when looked at
        reason = f"the objective must return a finite number or an Outcome, got {shown(returned, 100)}"
        return Ended(job.id, "failed", cost=cost, error=reason)
    return Ended(job.id, "complete", outcome.loss, outcome.cost or cost, outcome.info)
