"""Makes user text safe to show. Everything that fabolas shows goes through the functions of this module.

User text is text that fabolas did not write: names of hyperparameters, choices, error messages, paths. It may
contain anything. A terminal executes escape sequences, rich interprets ``[...]`` as markup, a browser interprets
HTML, and a spreadsheet interprets cells that start with "=". The functions here prevent that:

- terminal: ``safe_text`` (one line) or ``safe_lines``; with rich, ``rich_text`` and ``make_console``;
- notebook and HTML: ``safe_html``;
- CSV: ``safe_csv_cell``;
- figures: ``safe_plotly`` and ``safe_matplotlib``.
"""

import html
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# First characters that make a spreadsheet read a cell as a formula, also in full width.
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MAX_EXCEPTIONS = 4  # of an exception group, in a summary
_GROUP_SEPARATOR = re.compile(r"\+-(\+-)?--")
_TRACEBACK = "Traceback (most recent call last):"
_GROUP_TRACEBACK = "Exception Group Traceback (most recent call last):"


def counted(n: int, noun: str) -> str:
    """Return a number of things as text: 1 trial, 2 trials."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def safe_text(value: object) -> str:
    r"""Return the value as one line of printable text.

    Characters that are not printable are shown as Python would write them: ESC as ``\x1b``, a new line as ``\n``.
    These are control characters, invisible ones, those that change the direction of writing, and lone surrogates.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def safe_lines(value: object) -> str:
    """Return the value as lines of printable text; new lines and tabs are kept."""
    lines = str(value).replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(safe_text(part) for part in line.split("\t")) for line in lines)


def safe_html(value: object) -> str:
    """Return the value as one line of text that can be put into HTML, also into a quoted attribute."""
    return html.escape(safe_text(value), quote=True)


def safe_csv_cell(value: Any) -> Any:
    """Return the value for a cell of a CSV file.

    Numbers stay numbers, and text that is a number (-1.5) stays as it is. Any other text that a spreadsheet would
    read as a formula gets an apostrophe in front, which a spreadsheet reads as "this is text".
    """
    if not isinstance(value, str):
        return value
    text = safe_lines(value)
    if value.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(value):
        return f"'{text}"
    return text


def safe_plotly(value: object) -> str:
    """Return the value as one line of text for Plotly, in a label, a legend, a table or a hover text.

    Plotly interprets some tags, entities, and ``$...$`` as TeX. Of the entities it knows few by name, so quotation
    marks stay as they are.
    """
    return html.escape(safe_text(value), quote=False).replace("$", "&#36;")


def safe_matplotlib(value: object) -> str:
    r"""Return the value as one line of text for matplotlib, which interprets ``$...$`` as TeX."""
    return safe_text(value).replace("$", r"\$")


def rich_text(value: object, style: str = "") -> "Text":
    """Return one line of text for rich, which does not interpret it as markup."""
    from rich.text import Text

    return Text(safe_text(value), style=style)


def make_console(**options: Any) -> "Console":
    """Return a console of rich that interprets neither markup nor emoji codes in strings."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False, **options)


def error_summary(error: str | None) -> str:
    """Return the one line of an error or traceback that says what happened; not yet safe to show.

    For a traceback this is the type of the last exception and the first line of its message; for an exception group
    it is followed by the summaries of its exceptions. For other text it is the last line.
    """
    lines = (error or "").strip("\n").rstrip().split("\n")
    if lines == [""]:
        return ""
    if _GROUP_SEPARATOR.match(lines[-1].strip()):
        return _group_summary(lines)
    starts = [i for i, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if not starts:
        return lines[-1].strip()
    message = [line for line in lines[starts[-1] + 1 :] if line.strip() and not line.startswith(" ")]
    if not message:
        return lines[-1].strip()
    # The text of the error may start on the line after its type.
    text_is_next = message[0].rstrip().endswith(":") and len(message) > 1
    return f"{message[0].rstrip()} {message[1].strip()}" if text_is_next else message[0].strip()


def _group_summary(lines: list[str]) -> str:
    """Return the summary of an exception group from its traceback, where "|" starts lines and "+---" parts."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if _GROUP_SEPARATOR.match(line.strip()):
            parts.append([])
        else:
            parts[-1].append(re.sub(r"^ *[|+] ", "", line).replace(_GROUP_TRACEBACK, _TRACEBACK))
    group, *exceptions = [error_summary("\n".join(part)) for part in parts if part]
    return (
        f"{group}: {'; '.join(exceptions[:_MAX_EXCEPTIONS] + ['...'] * (len(exceptions) > _MAX_EXCEPTIONS))}"
    )


def _visible(character: str) -> str:
    if character.isprintable() or (
        character.isspace() and character >= "\xa0" and character not in "\u2028\u2029"
    ):
        return character  # spaces of other languages are harmless
    return character.encode("unicode_escape").decode("ascii")
