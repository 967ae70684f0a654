"""``study.plot``: the figures as methods, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabolas.plots.figure import ReadableStudy, Theme
from fabolas.plots.figures import FIGURES

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fabolas.plots.history import Unit


class Plots:
    """The figures of one study, drawn with Plotly: ``study.plot.curves()``.

    Each method raises ``CannotDraw``, with a sentence that says why, if the study cannot have the figure, and
    ``ImportError`` if Plotly is not installed.

    Args:
        study: A ``Study``, a ``Result``, or what ``load`` returned.
    """

    def __init__(self, study: ReadableStudy) -> None:
        self._study = study

    def history(
        self, *, unit: Unit = "seconds", log: bool | None = None, theme: Theme = "light"
    ) -> go.Figure:
        """The answer over time.

        Args:
            unit: "seconds", or "full trainings": the time of one training of the answer at the target.
            log: Whether time is on a logarithmic axis; None for what suits the data.
            theme: "light" or "dark".
        """
        return self._draw("history", theme, unit=unit, log=log)

    def curves(self, *, fidelity: str | None = None, n_rivals: int = 3, theme: Theme = "light") -> go.Figure:
        """Learning curves of the answer and its rivals, out to the target.

        Args:
            fidelity: The fidelity of the horizontal axis; None for the first one.
            n_rivals: How many configurations are shown beside the answer, at most 4.
            theme: "light" or "dark".
        """
        return self._draw("curves", theme, fidelity=fidelity, n_rivals=n_rivals)

    def cost(self, *, fidelity: str | None = None, theme: Theme = "light") -> go.Figure:
        """Seconds of the trials, and of the answer as the model predicts them, over a fidelity."""
        return self._draw("cost", theme, fidelity=fidelity)

    def time(self, *, fidelity: str | None = None, theme: Theme = "light") -> go.Figure:
        """Where the time went, by size and by purpose."""
        return self._draw("time", theme, fidelity=fidelity)

    def importance(self, *, theme: Theme = "light") -> go.Figure:
        """The importance of each hyperparameter at the target, as Sobol indices."""
        return self._draw("importance", theme)

    def slices(self, *, names: tuple[str, ...] | None = None, theme: Theme = "light") -> go.Figure:
        """The predicted loss at the target along each hyperparameter, through the answer."""
        return self._draw("slices", theme, names=names)

    def contours(self, *, names: tuple[str, ...] | None = None, theme: Theme = "light") -> go.Figure:
        """The predicted loss at the target over pairs of hyperparameters, through the answer."""
        return self._draw("contours", theme, names=names)

    def parallel(self, *, theme: Theme = "light") -> go.Figure:
        """All trials as lines, one row for each hyperparameter."""
        return self._draw("parallel", theme)

    def trials(self, *, theme: Theme = "light") -> go.Figure:
        """The trials as a table."""
        return self._draw("trials", theme)

    def calibration(self, *, theme: Theme = "light") -> go.Figure:
        """Predicted against measured, and how often measurements lie within the stated intervals."""
        return self._draw("calibration", theme)

    def _draw(self, name: str, theme: Theme, **options: Any) -> go.Figure:
        return FIGURES[name].draw(FIGURES[name].compute(self._study, **options), theme)
