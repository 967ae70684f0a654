"""One output of a notebook cell that changes in place; needs only IPython.

Rich has a live display for notebooks, but it needs ipywidgets. Without them it shows a warning, and nothing until
the end of the run.
"""

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rich.console import RenderableType

from fabolas.display import make_console

_WIDTH = 88
_STYLE = "font-family: monospace; line-height: 1.25; margin: 0"


class NotebookOutput:
    """Shows what ``render`` returns, when it is created and at each update."""

    def __init__(self, render: Callable[[], RenderableType]) -> None:
        display = import_module("IPython.display").display  # a notebook always has IPython

        self._render = render
        self._handle: Any = display(self._content(), raw=True, display_id=True)

    def update(self) -> None:
        """Replace what is shown."""
        self._handle.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        """Return the screen as plain text and as HTML; the notebook chooses."""
        console = make_console(
            file=io.StringIO(), record=True, width=_WIDTH, force_terminal=True, force_jupyter=False
        )
        console.print(self._render())
        page = console.export_html(
            inline_styles=True, code_format=f'<pre style="{_STYLE}">{{code}}</pre>', clear=False
        )
        return {"text/plain": console.export_text(), "text/html": page}
