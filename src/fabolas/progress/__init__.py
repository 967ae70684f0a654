"""How a run is going: a live screen on a terminal or in a notebook, now and then a line anywhere else.

``Snapshot`` holds the facts, ``screen`` and ``text`` say how they look, ``live`` where they appear and when.
"""

from fabolas.progress.live import Report, reporting
from fabolas.progress.snapshot import Running, Sizes, Snapshot
from fabolas.progress.text import duration, line

__all__ = ["Report", "Running", "Sizes", "Snapshot", "duration", "line", "reporting"]
