"""Shows the progress of a run: a live screen in a terminal or notebook, otherwise a line from time to time.

``Snapshot`` is the state of a run, ``text`` and ``screen`` turn them into text, ``live`` decides where and when to
show it.
"""

from fabolas.progress.live import ProgressDisplay, show_progress
from fabolas.progress.snapshot import FidelityCounts, RunningTrial, Snapshot
from fabolas.progress.text import duration, line

__all__ = [
    "FidelityCounts",
    "ProgressDisplay",
    "RunningTrial",
    "Snapshot",
    "duration",
    "line",
    "show_progress",
]
