"""A study: what was suggested, what came of it, and the answer. ``Study`` continues it, ``load`` only reads it."""

from fabolas.study.loaded import LoadedStudy, load
from fabolas.study.study import Study
from fabolas.study.view import StudyView

__all__ = ["LoadedStudy", "Study", "StudyView", "load"]
