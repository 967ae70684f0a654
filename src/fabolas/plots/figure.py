"""What a figure is: a pure function that computes a frozen record from a study, and one that draws the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from fabolas.direction import Direction
    from fabolas.space import Space
    from fabolas.strategies import Strategy
    from fabolas.trials import History, Incumbent, Trial

Theme = Literal["light", "dark"]


class CannotDraw(ValueError):  # noqa: N818 - it is no error of the caller, but an answer in a sentence
    """A figure that this study cannot have; its text is a sentence for the user that says why."""


class ReadableStudy(Protocol):
    """The part of a study that the figures read; ``Study``, ``Result`` and what ``load`` returns have it."""

    @property
    def space(self) -> Space: ...

    @property
    def strategy(self) -> Strategy: ...

    @property
    def direction(self) -> Direction: ...

    @property
    def sign(self) -> float: ...

    @property
    def history(self) -> History: ...

    @property
    def trials(self) -> tuple[Trial, ...]: ...

    @property
    def trajectory(self) -> tuple[tuple[float, Incumbent], ...]: ...

    @property
    def overhead(self) -> float: ...

    @property
    def elapsed(self) -> float: ...

    def incumbent(self) -> Incumbent | None: ...


class Draw(Protocol):
    """Draws a record with Plotly."""

    def __call__(self, record: Any, theme: Theme = "light") -> go.Figure: ...


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes:
        title: What it shows, in a few words.
        how_to_read: The study -> one sentence that explains this study's figure to a first-time reader.
        compute: The study, and options by name -> the frozen record of all numbers and texts in the figure. It raises
            CannotDraw if the study cannot have this figure.
        draw: The record and a theme, "light" or "dark" -> the figure of Plotly. Its background is transparent. Texts
            from the user are escaped.
    """

    title: str
    how_to_read: Callable[[ReadableStudy], str]
    compute: Callable[..., Any]
    draw: Draw
