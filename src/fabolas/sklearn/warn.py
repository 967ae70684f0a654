"""Warnings that point at the user's line."""

import sys
import warnings

_OURS = ("fabolas", "sklearn", "joblib", "contextlib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the first line on the stack that is neither ours nor scikit-learn's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
