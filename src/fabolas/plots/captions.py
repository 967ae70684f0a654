"""How to read each figure of a study, in one sentence that fits what the figure shows of this study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from fabolas.direction import loss_or_value
from fabolas.plots.figure import ReadableStudy
from fabolas.strategies import SurrogateStrategy

# Strategies whose models do not see the fidelities. `Model.sees_fidelities` says the same, but needs a fitted model; a
# page shows the sentences before its figures are computed.
_ON_ALL_THE_DATA = ("ei", "es")


@dataclass(frozen=True)
class Kind:
    """What the sentences depend on.

    Attributes:
        what: "loss" or "value".
        fidelities: Whether the study has fidelities.
        model: Whether its strategy has a model.
        curves: Whether that model predicts curves over the fidelities.
        answer: Whether there may be an answer: a strategy without a model has none before a trial at the target.
    """

    what: str
    fidelities: bool
    model: bool
    curves: bool
    answer: bool

    @classmethod
    def of(cls, study: ReadableStudy) -> Kind:
        """The kind of a study."""
        try:
            strategy = study.strategy
        except ValueError:  # a file of a strategy that is not one of fabolas
            strategy = None
        what, fidelities = loss_or_value(study.direction), study.space.n_fidelities > 0
        curves = isinstance(strategy, SurrogateStrategy) and strategy.name not in _ON_ALL_THE_DATA
        model = isinstance(strategy, SurrogateStrategy)
        answer = model or bool(study.trajectory)
        return cls(what, fidelities=fidelities, model=model, curves=curves, answer=answer)

    @property
    def there(self) -> str:
        """Where losses are compared, as the end of a sentence."""
        return " at the target" if self.fidelities else ""


def _of_study(text: Callable[[Kind], str]) -> Callable[[ReadableStudy], str]:
    @wraps(text)
    def caption(study: ReadableStudy) -> str:
        return text(Kind.of(study)).replace(" %", "\u00a0%")  # no line ends before the sign

    return caption


@_of_study
def history(kind: Kind) -> str:
    """Of the answer over time."""
    diamond = f"each diamond is a measurement{kind.there}"
    if not kind.model:
        return f"The line is the best {kind.what} measured{kind.there} until that time, and {diamond}."
    dotted = f" (dotted and pale: not measured{kind.there})" if kind.fidelities else ""
    return (
        f"The line is the predicted {kind.what} of the best configuration known at that time, and the band its 95 % "
        f"interval{dotted}; {diamond}."
    )


@_of_study
def curves(kind: Kind) -> str:
    """Of learning curves."""
    if not kind.curves:
        return f"Each point is a trial; the height is its {kind.what}, and the target is on the right."
    return (
        "Each point is a trial; each line is the curve that the model predicts for one configuration, up to the "
        "target on the right, and its trials have its colour. A band holds 50 % of the probability, the pale one of "
        "the answer 95 %."
    )


@_of_study
def cost(kind: Kind) -> str:
    """Of what a trial costs."""
    if not kind.curves:
        return "Each point is a trial; the height is its time, and the target is on the right."
    return (
        "Each point is a trial; the line is the time that the model predicts for the answer, and the bands hold 50 % "
        "and 95 % of the measurements that it expects."
    )


@_of_study
def time(kind: Kind) -> str:
    """Of where the time went."""
    return (
        "Each bar is the time spent on the trials of its row, divided by what they were for; overhead is the time "
        "spent on choosing them."
    )


@_of_study
def importance(kind: Kind) -> str:
    """Of what matters."""
    return (
        f"A bar is the share of the differences between configurations{kind.there} that one hyperparameter explains: "
        "the strong colour alone, the pale one together with others. The thin line is the uncertainty of the whole bar."
    )


@_of_study
def slices(kind: Kind) -> str:
    """Of each hyperparameter."""
    return (
        f"A line is the predicted {kind.what}{kind.there} if one hyperparameter of the answer (the star) is changed, "
        f"with its 95 % band; grey points are measurements{kind.there}, and the orange shade below shows where the "
        "optimum probably is."
    )


@_of_study
def contours(kind: Kind) -> str:
    """Of pairs of hyperparameters."""
    points = "each point is a trial" + (f" (strong:{kind.there})" if kind.fidelities else "")
    return (
        f"Lines connect configurations with equal predicted {kind.what}{kind.there}; the orange shade shows where the "
        f"optimum probably is, the star is the answer, and {points}."
    )


@_of_study
def parallel(kind: Kind) -> str:
    """Of all trials at once."""
    orange = ", and the orange one is the answer" if kind.answer else ""
    return (
        "Each line from top to bottom is a trial and crosses each row at its value; the stronger its colour the better "
        f"the trial{orange}."
    )


@_of_study
def trials(kind: Kind) -> str:
    """Of the table."""
    return "Each row is a trial, the last one first."


@_of_study
def calibration(kind: Kind) -> str:
    """Of the test of the model."""
    return (
        "Each point is a trial as the model predicts it from the trials before it; believe the model if the points "
        "(hollow: initial design) are near the diagonal, and if the coverage stays in the grey band."
    )
