"""GP priors for tests: a `SurrogatePrior` over d hyperparameters and f fidelities, without a Space."""

from typing import Any

import numpy as np

from fabolas.model_spec import Columns, ModelSpec, SurrogatePrior


def surrogate_prior(
    n_choices: tuple[int, ...], n_fidelities: int = 1, *, smallest: float = 0.01, **parts: Any
) -> SurrogatePrior:
    """The priors of the default ModelSpec with other parts; sizes go from `smallest` times the target up to it."""

    def relative_size(u: np.ndarray) -> np.ndarray:
        size: np.ndarray = smallest ** (1.0 - u)
        return size

    return SurrogatePrior(
        ModelSpec(**parts), Columns(n_choices, n_fidelities, (relative_size,) * n_fidelities)
    )
