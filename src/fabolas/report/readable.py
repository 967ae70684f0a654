"""What a report needs from a study: the part that figures need, its seed, and predictions."""

from typing import Protocol

from fabolas._types import Array
from fabolas.plots import ReadableStudy
from fabolas.storage.reader import StudyFile
from fabolas.strategies import Prediction


class ReportableStudy(ReadableStudy, Protocol):
    """A study that a report can be written of; ``Study``, ``Result`` and what ``load`` returns are such studies."""

    @property
    def seed(self) -> int:
        """The seed of the study."""
        ...

    @property
    def overhead_share(self) -> float:
        """Overhead as a share of the time that the study has used."""
        ...

    def predict_points(self, points: Array) -> Prediction:
        """Loss and cost of points (m, d + f) of the unit cube."""
        ...


def strategy_problem(study: ReportableStudy) -> str | None:
    """Return why the study has no strategy; None if it has one.

    A strategy that is not one of fabolas cannot be made from a file.
    """
    try:
        study.strategy  # noqa: B018 - a loaded study makes it here
    except ValueError as error:
        return str(error)
    return None


def file_of(study: ReportableStudy) -> StudyFile | None:
    """Return the file that the study was loaded from; None if it was not loaded."""
    file = getattr(study, "file", None)
    return file if isinstance(file, StudyFile) else None
