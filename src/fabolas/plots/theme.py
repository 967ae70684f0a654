"""The colours of all figures, light and dark, and the template that both share.

A drawing names colours by their role. Each role has one colour in each theme. The colours can be told apart with the
usual kinds of colour blindness, and every series also differs in its symbol, its dash or its label.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from fabolas.plots.figure import Theme

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FONT_SIZE: Final = 13

SCALE: Final = tuple(f"scale{i}" for i in range(6))  # roles of a sequential scale, from far to near the best

# Role -> (light, dark).
_COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "paper": ("#ffffff", "#14181f"),  # around marks, so that they stand out from what is behind them
    "ink": ("#1c2530", "#e8ebf0"),
    "muted": ("#5f6b7a", "#9aa6b5"),
    "faint": ("#aab4c0", "#566273"),
    "grid": ("#e6e9ed", "#29313c"),
    "answer": ("#0a5fa8", "#5db3f5"),
    "second": ("#c4500c", "#f2955a"),
    "third": ("#0b8566", "#43c9a3"),
    "fourth": ("#8f479c", "#cd96de"),
    "fifth": ("#957000", "#dbb64e"),
    "bad": ("#c02a2a", "#ff8278"),
    "scale0": ("#d5dde6", "#323c48"),
    "scale1": ("#b3c6da", "#3b5166"),
    "scale2": ("#87abcf", "#456b8c"),
    "scale3": ("#5790c3", "#4f8bbd"),
    "scale4": ("#2772b5", "#67a9df"),
    "scale5": ("#084c8c", "#a4d3fa"),
}
ALPHAS: Final = (0.0, 0.06, 0.1, 0.16, 0.25, 0.45, 0.7)  # the only degrees of transparency in use


def colour(role: str, theme: Theme, alpha: float = 1.0) -> str:
    """The colour of a role, as CSS writes it."""
    solid = _COLOURS[role][get_args(Theme).index(theme)]
    if alpha == 1.0:
        return solid
    if alpha not in ALPHAS:
        raise ValueError(f"alpha must be 1 or one of {ALPHAS}, got {alpha}")
    red, green, blue = (int(solid[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


DARK_COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        colour(role, "light", alpha): colour(role, "dark", alpha)
        for role in _COLOURS
        for alpha in (1.0, *ALPHAS)
    }
)
"""Each colour of a light figure -> the one of the dark figure. Replacing them in its JSON makes it dark."""


def base_layout(theme: Theme) -> dict[str, Any]:
    """What all figures of Plotly have in common."""
    ink, muted = colour("ink", theme), colour("muted", theme)
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": FONT_SIZE, "color": ink},
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": colour("paper", theme),
            "bordercolor": colour("faint", theme),
            "font": {"family": FONT, "size": 12, "color": ink},
            "align": "left",
        },
        "modebar": {
            "bgcolor": "rgba(0,0,0,0)",
            "color": colour("faint", theme),
            "activecolor": muted,
            "remove": ["sendChartToCloud"],  # no button that sends the figure to another server
        },
        "dragmode": "zoom",
        "showlegend": False,
    }


def base_axis(theme: Theme) -> dict[str, Any]:
    """What all axes of Plotly have in common: a light grid, no box."""
    return {
        "gridcolor": colour("grid", theme),
        "gridwidth": 1,
        "zeroline": False,
        "showline": False,
        "ticks": "outside",
        "ticklen": 6,
        "tickcolor": "rgba(0,0,0,0)",
        "tickangle": 0,
        "ticklabeloverflow": "allow",
        "tickfont": {"size": 12, "color": colour("muted", theme)},
        "automargin": True,
    }
