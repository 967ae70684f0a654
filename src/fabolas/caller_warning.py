"""Warnings that point at the user's line, not at ours."""

import sys
import warnings

_NOT_THE_USER = ("fabolas", "sklearn", "joblib", "contextlib")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the innermost line on the stack that is neither ours nor scikit-learn's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _NOT_THE_USER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
