"""The report: one HTML file that contains all it needs, and that a browser opens without a network."""

import base64
import gzip
import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from fabolas.plots import plotly_js
from fabolas.plots.theme import DARK_COLOURS
from fabolas.report.content import DrawnFigure, overview, panels, trials_table
from fabolas.report.markup import Markup, tag
from fabolas.report.readable import ReportableStudy
from fabolas.report.sections import body, sections
from fabolas.storage import SQLITE_MAGIC

SCRIPTS = ("table.js", "page.js")
_EMPTY_STYLE = "/* Plotly */"
# Plotly writes bold text as an attribute "style". Style sheets and scripts need a hash, or come from the server.
STYLE_ATTRIBUTES = "style-src-attr 'unsafe-inline'"
# Plotly adds its rules to the style sheet with this id, if there is one.
PLOTLY_STYLE_ID = "plotly.js-style-global"


def write_report(study: ReportableStudy, path: str | Path, title: str | None = None) -> Path:
    """Write the report of a study to a file, and return its path. An existing report is replaced.

    Args:
        study: The study.
        path: The file to write, for example "report.html".
        title: Name of the study; None takes the name of its file.

    Raises:
        ImportError: If plotly is not installed.
        ValueError: If the path is a database, for example the study itself.
        OSError: If the file cannot be written.
    """
    path = Path(path).expanduser()
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC:
                raise ValueError(
                    f"a report must not replace a database, got {path}, which is one and was left as it is; choose "
                    "another file, such as report.html"
                )
    text = report_html(study, time.time(), title)
    target = path.resolve()  # replace the file that a symbolic link points to, not the link
    draft = target.with_name(f"{target.name}-{secrets.token_hex(4)}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)  # at once, so that there is always one complete report
    finally:
        draft.unlink(missing_ok=True)
    return path


def report_html(study: ReportableStudy, now: float, title: str | None = None) -> str:
    """Return the report of a study as text of HTML.

    Args:
        study: The study.
        now: The time in seconds since the epoch.
        title: Name of the study; None takes the name of its file.
    """
    page = overview(study, now, title)
    script, style, plotly = "\n".join(map(static, SCRIPTS)), static("page.css"), plotly_js()
    policy = (
        "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hash(style)} {_hash(_EMPTY_STYLE)}; {STYLE_ATTRIBUTES}; "
        f"script-src {_hash(script)} {_hash(plotly)}"
    )
    return "<!doctype html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            *head(page.title),
            tag("style", Markup(style)),
            tag("style", Markup(_EMPTY_STYLE), id=PLOTLY_STYLE_ID),
            *unused_styles(),
        ),
        tag(
            "body",
            body(sections(page, live=False)),
            _packed("data", _data(panels(study), json.dumps(trials_table(study)))),
            _packed_plotly(),
            tag("script", Markup(script)),
            data_mode="report",
        ),
        lang="en",
    )


def head(title: str) -> tuple[Markup, ...]:
    """Return what the heads of all pages have in common."""
    return (
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("link", rel="icon", href="data:,"),  # none; without it the browser asks for /favicon.ico
        tag("title", f"{title} · fabolas"),
    )


@cache
def unused_styles() -> tuple[Markup, ...]:
    """Return empty elements with the ids of style sheets that Plotly has for maps.

    Plotly adds such a sheet if no element has its id. It would be an inline style, which the policy forbids.
    """
    ids = dict.fromkeys(re.findall(r'getElementById\("([0-9a-f]{64})"\)', plotly_js()))
    return tuple(tag("meta", id=each) for each in ids)


@cache
def static(name: str) -> str:
    """Return the text of a file in ``static``."""
    return (files("fabolas.report") / "static" / name).read_text("utf-8")


def dark_colours() -> str:
    """Return the colours of light figures and those of dark ones as text of JSON."""
    return json.dumps(dict(DARK_COLOURS))


def _data(drawn: Iterable[DrawnFigure], table: str) -> str:
    figures = ",".join(f"{json.dumps(each.name)}:{each.as_json()}" for each in drawn)
    return f'{{"dark":{dark_colours()},"figures":{{{figures}}},"trials":{table}}}'


def _packed(name: str, text: str) -> Markup:
    """Return an element with compressed text. Its alphabet is that of base64, so nothing in it is interpreted."""
    packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()
    return tag("script", Markup(packed), type="application/octet-stream", id=f"packed-{name}")


@cache
def _packed_plotly() -> Markup:
    return _packed("plotly", plotly_js())


def _hash(text: str) -> str:
    """Return how a Content-Security-Policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
