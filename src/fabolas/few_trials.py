"""The size of the trials in the initial design of a run whose time budget has room for few trials.

Such a run has no time to learn how losses and costs change with the size. Fixed costs (boosting rounds, epochs,
preprocessing) often make small subsets nearly as expensive as larger ones. Larger ones then say more about the target
in the same time.
"""

import numpy as np

from fabolas._types import Array

# With room for fewer trials of the smallest size than this, ten configurations would take more than half of the budget.
_FEW_TRIALS = 20
# The next size is this many times as large, as long as each such step costs less than `MAX_GROWTH` times as much.
_SIZE_STEP, MAX_GROWTH = 4.0, 1.5


def size_for_few_trials(sizes: Array, costs: Array, budget: float, max_size: float) -> float | None:
    """The size of the next trial of the design.

    It is 4 times the largest size so far, as long as each step to four times the size cost less than 1.5 times as much.
    If that is more than half of the target's size, it is the target. After a step that cost more, it is the size before
    this step. The cost of a size is the geometric mean of its trials, because they are of different configurations.

    Args:
        sizes: (n,) those of the trials of the design with a known cost.
        costs: (n,) their seconds.
        budget: Seconds of the whole run.
        max_size: That of the target.

    Returns:
        None if the budget has room for many trials, or no cost is known.
    """
    if not len(sizes):
        return None
    levels, level = np.unique(sizes, return_inverse=True)
    if budget >= _FEW_TRIALS * float(costs[level == 0].mean()):
        return None
    log_costs = np.array([np.log(costs[level == i]).mean() for i in range(len(levels))])
    exponents = np.diff(log_costs) / np.diff(np.log(levels))  # the cost grows like size^exponent
    steep = np.flatnonzero(exponents >= np.log(MAX_GROWTH) / np.log(_SIZE_STEP))
    if len(steep):
        return float(levels[steep[0]])
    larger = _SIZE_STEP * float(levels[-1])
    return float(max_size) if larger > max_size / 2.0 else larger
