"""The HTML of the live pages: of one study, and of a directory with several."""

from urllib.parse import quote

from fabolas.dashboard.comparison import HOW_TO_READ, TITLE
from fabolas.dashboard.watched import WatchedDirectory, WatchedStudy
from fabolas.plots.durations import duration
from fabolas.plots.ticks import number
from fabolas.report.answer import plus_minus
from fabolas.report.document import PLOTLY_STYLE_ID, SCRIPTS, head, unused_styles
from fabolas.report.markup import Markup, join, tag
from fabolas.report.sections import body, failed_text, sections
from fabolas.study import LoadedStudy
from fabolas.trials import Incumbent


def study_sections(watched: WatchedStudy) -> dict[str, Markup]:
    """Return the parts of the page of a study; what is wrong, if its file cannot be read."""
    try:
        return sections(watched.overview(), live=True)
    except ValueError as error:
        waiting = f"Waiting for the run to start: {watched.path.name} does not exist yet."
        text = str(error) if watched.path.exists() else waiting
        empty = {name: Markup() for name in ("numbers", "run", "record")}
        return {"head": tag("h1", watched.path.stem), "answer": tag("p", text, class_="lead"), **empty}


def study_page(watched: WatchedStudy, root: str, *, in_directory: bool) -> str:
    """Return the page of a study.

    Args:
        watched: The study.
        root: The way from the page to the root of the server, such as "../../".
        in_directory: Whether to show a link to the page of the directory.
    """
    back = tag("a", "All studies", href=root, class_="back") if in_directory else None
    return _page(watched.path.stem, body(study_sections(watched), back), root)


def directory_sections(watched: WatchedDirectory) -> dict[str, Markup]:
    """Return the parts of the page of a directory."""
    studies = watched.loaded()
    return {"studies": _table(studies) if studies else tag("p", "There is no study in this directory yet.")}


def directory_page(watched: WatchedDirectory) -> str:
    """Return the page of a directory."""
    name = watched.path.name or str(watched.path)
    figure = tag("div", class_="plot", data_figure="comparison", role="img", aria_label=TITLE)
    content = join(
        tag("header", tag("div", tag("h1", name), id="head"), class_="top"),
        tag(
            "main",
            tag("section", directory_sections(watched)["studies"], id="studies", aria_label="Studies"),
            tag("section", tag("h2", TITLE), tag("p", HOW_TO_READ, class_="how"), figure, class_="panel"),
        ),
    )
    return _page(name, content, "./")


def _table(studies: dict[str, LoadedStudy | str]) -> Markup:
    names = ("Study", _predicted(studies), "Verified", "Trials", "Time", "State")
    header = tag("tr", *(tag("th", name, scope="col") for name in names))
    rows = [tag("tr", *_row(name, study)) for name, study in studies.items()]
    table = tag("table", tag("thead", header), tag("tbody", *rows), class_="studies")
    return tag("div", table, class_="scroll", tabindex="0")


def _predicted(studies: dict[str, LoadedStudy | str]) -> str:
    """Return the title of the column with the predictions."""
    directions = {study.direction for study in studies.values() if not isinstance(study, str)}
    if len(directions) == 2:
        return "Predicted loss or value"
    return "Predicted value" if directions == {"maximize"} else "Predicted loss"


def _row(name: str, study: LoadedStudy | str) -> list[Markup]:
    link = tag("th", tag("a", name, href=f"study/{quote(name, safe='')}/"), scope="row")
    if isinstance(study, str):
        return [link, tag("td", study, colspan="5")]
    # The last answer of the trajectory is the one that the run computed; nothing is fitted here.
    answer = study.trajectory[-1][1] if study.trajectory else None
    running = study.file.lock_owner is not None
    state = (
        tag("span", "running", class_="chip live") if running else tag("span", "not running", class_="chip")
    )
    failed = int(study.history.failed.sum())
    trials = number(len(study.trials)) + (f" ({failed_text(failed, len(study.trials))})" if failed else "")
    texts = (
        _prediction(study, answer),
        "" if answer is None else ("yes" if answer.verified else "no"),
        trials,
        duration(study.elapsed) if study.elapsed or not study.trials else "not recorded",
    )
    return [link, *(tag("td", text) for text in texts), tag("td", state)]


def _prediction(study: LoadedStudy, answer: Incumbent | None) -> str:
    if answer is None:  # no run has computed one if all trials were measured elsewhere
        return "not computed" if study.history.complete.any() and not study.elapsed else "none"
    return "too early" if answer.preliminary else plus_minus(answer.loss, answer.std)


def _page(title: str, content: Markup, root: str) -> str:
    static = f"{root}static/"
    return "<!doctype html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            *head(title),
            tag("link", rel="stylesheet", href=f"{static}page.css"),
            tag("link", rel="stylesheet", href=f"{static}plotly.css", id=PLOTLY_STYLE_ID),
            *unused_styles(),
        ),
        tag(
            "body",
            content,
            tag("div", id="connection", role="status", hidden=True),
            *(tag("script", src=f"{static}{name}") for name in ("plotly.js", *SCRIPTS)),
            data_mode="live",
            data_colours=f"{static}colours.json",
        ),
        lang="en",
    )
