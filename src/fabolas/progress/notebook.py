"""One output of a notebook's cell that changes in place, with IPython alone.

Rich's own live display needs ipywidgets there; without it, it shows a warning, and nothing before the end.
"""

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rich.console import Console, RenderableType

_WIDTH = 88
_STYLE = "font-family: monospace; line-height: 1.25; margin: 0"


class Display:
    """Appears when it is made and shows what ``render`` gives whenever it is updated."""

    def __init__(self, render: Callable[[], RenderableType]) -> None:
        display = import_module("IPython.display").display  # only where a notebook runs, so it is there

        self._render = render
        self._handle: Any = display(self._bundle(), raw=True, display_id=True)

    def update(self) -> None:
        """Replace what is shown."""
        self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        """The screen as text, and as HTML for those who show it; neither is the cell's or the log's output."""
        console = Console(
            file=io.StringIO(),
            record=True,
            width=_WIDTH,
            force_terminal=True,
            force_jupyter=False,
            highlight=False,
        )
        console.print(self._render())
        page = console.export_html(
            inline_styles=True, code_format=f'<pre style="{_STYLE}">{{code}}</pre>', clear=False
        )
        return {"text/plain": console.export_text(), "text/html": page}
