"""``load``: a study from its file, to look at and not to continue."""

from functools import cached_property
from pathlib import Path

from fabolas.display import safe_text
from fabolas.storage.option_values import ForeignOptionError, decode
from fabolas.storage.reader import StudyFile, read
from fabolas.storage.schema import warn_of_lost_log
from fabolas.strategies import NAMES, Strategy, make
from fabolas.strategies.maximized import directed
from fabolas.study.view import StudyView
from fabolas.trials import Incumbent


def load(path: str | Path) -> "LoadedStudy":
    """Open the file of a study to read it, even while another process runs it. Nothing is written.

        study = fabolas.load("svm.db")
        study.best_config, study.predict({"C": 10.0, "gamma": 0.1}, {"size": 5_000}), study.to_frame()

    Raises:
        ValueError: If the file does not exist, is not a study, has another schema, or is damaged.

    Warns:
        RuntimeWarning: If the last trials may be missing, because the file is without its log.
    """
    file = read(path)
    if file.lost_its_log:
        warn_of_lost_log(file.path)
    return LoadedStudy(file)


class LoadedStudy(StudyView):
    """A study as its file was at one moment. It has no ask and tell; ``fabolas.Study`` continues a file.

    The space comes from the file too. Choices that Python can write as a literal (text, numbers, None, tuples, ...)
    come back as they were. Other choices, functions and classes for example, come back as their text. Conditions
    and forbidden clauses of ConfigSpace come back too; those of your own types are not checked.

    Attributes:
        file: All that the file contains.
    """

    def __init__(self, file: StudyFile) -> None:
        super().__init__(file.space, file)
        self.file = file

    @cached_property
    def strategy(self) -> Strategy:
        """The study's strategy with its state.

        Raises:
            ValueError: If it is not one of fabolas, has an option that is not of fabolas, for example your own basis,
                or was saved by another version.
        """
        file = self.file
        if file.strategy not in NAMES:
            raise ValueError(
                f"the strategy {file.strategy!r} of {safe_text(file.path)} is not one of {', '.join(NAMES)}; only it "
                "can compute the answer, so open the study with it: fabolas.Study(..., storage=...)"
            )
        try:
            made = make(file.strategy, self.space, **decode(file.options))
            strategy = directed(made, file.direction)
            if file.state is not None:
                strategy.restore(file.state)
        except ForeignOptionError as error:
            raise ValueError(
                f"the strategy {file.strategy!r} of {safe_text(file.path)} has an option that is not part of fabolas: "
                f"{error}: fabolas.Study(..., storage=...)"
            ) from error
        except Exception as error:
            raise ValueError(
                f"the strategy {file.strategy!r} of {safe_text(file.path)} was saved by another version of fabolas, "
                f"or is damaged ({error!r}); use that version"
            ) from error
        return strategy

    def incumbent(self) -> Incumbent | None:
        """The answer of the study; after a run that verifies its answer, its ``verified_incumbent``."""
        budget = self.file.run_budget
        ended = self.file.lock_owner is None
        return self.verified_incumbent() if ended and budget and budget.verify else super().incumbent()

    def __repr__(self) -> str:
        return f"<LoadedStudy {self.file.path.name}: {len(self.trials)} trials, seed {self.seed}>"
