"""The parts of the page that are words and numbers, as HTML. The figures and the table are drawn by ``page.js``."""

from collections.abc import Mapping, Sequence

from fabolas.plots import FIGURES
from fabolas.plots.durations import duration
from fabolas.plots.labels import fidelity_text
from fabolas.plots.ticks import number
from fabolas.progress.snapshot import RunningTrial
from fabolas.report.answer import Answer, count, percent
from fabolas.report.content import FIGURE_NAMES, TRIALS, Overview
from fabolas.report.markup import Markup, join, lines, tag
from fabolas.report.progress import RunProgress
from fabolas.report.record import StudyRecord

_MAX_RUNNING = 6  # running trials that are listed


def sections(page: Overview, *, live: bool) -> dict[str, Markup]:
    """Return the parts that change while a study runs: id of the element -> its content.

    Args:
        page: What the page says.
        live: Whether the page is updated while the study runs.
    """
    return {
        "head": _head(page, live=live),
        "answer": _answer(page.answer, running=page.state.running),
        "numbers": _numbers(page),
        "run": _run(page.state),
        "record": _record(page.record),
        **{_caption_id(name): join(text) for name, text in page.captions.items()},
    }


def body(parts: dict[str, Markup], back: Markup | None = None) -> Markup:
    """Return the content of the element ``body``.

    Args:
        parts: What ``sections`` returned.
        back: A link to other pages.
    """
    return join(
        tag("header", back or "", tag("div", parts["head"], id="head"), class_="top"),
        _contents(),
        tag(
            "main",
            tag("section", parts["answer"], id="answer", aria_label="The answer"),
            tag("div", parts["run"], id="run", aria_live="polite"),
            tag("dl", parts["numbers"], id="numbers"),
            *(_figure(name, _caption(parts, name)) for name in FIGURE_NAMES),
            _trials(_caption(parts, TRIALS)),
            tag("section", parts["record"], id="record", class_="panel"),
            tag("noscript", tag("p", "The figures and the table of trials need JavaScript.", class_="note")),
        ),
    )


def _head(page: Overview, *, live: bool) -> Markup:
    title = tag("h1", page.title)
    if page.state.running:
        text = "running" if live else "running when this report was made"
        return join(title, tag("span", text, class_="chip live"))
    return join(title, tag("span", "not running" if live else "report of a search by fabolas", class_="chip"))


def _answer(answer: Answer, *, running: bool) -> Markup:
    if answer.incumbent is None:
        failure = answer.last_failure
        details = (
            join(
                tag("p", answer.last_error()),
                tag(
                    "details",
                    tag("summary", f"Traceback of trial #{failure.id}"),
                    tag("pre", lines(failure.error or ""), class_="traceback", tabindex="0"),
                ),
            )
            if failure is not None
            else ""
        )
        return tag("div", tag("p", answer.why_none(), class_="lead"), details, class_="said")
    if answer.preliminary:
        sentence = tag("p", answer.too_early(), class_="lead")
    else:
        sentence = _prediction(answer)
    cost = tag("p", answer.cost(running=running))
    said = tag("div", sentence, tag("p", answer.verification()), cost, class_="said")
    return join(said, _configuration(answer))


def _prediction(answer: Answer) -> Markup:
    assert answer.incumbent is not None
    if answer.incumbent.verified and answer.incumbent.std == 0.0:  # a strategy without a model measures only
        return tag(
            "p",
            f"The best configuration has a measured {answer.what} of ",
            tag("strong", answer.loss(), class_="loss"),
            f"{answer.where()}.",
            class_="lead",
        )
    verified = (
        tag("strong", "verified", class_="good")
        if answer.measured
        else tag("strong", "not verified", class_="open")
    )
    return tag(
        "p",
        f"The best configuration has a predicted {answer.what} of ",
        tag("strong", answer.loss(), class_="loss"),
        f"{answer.where()}, ",
        verified,
        " there." if answer.target else ".",
        class_="lead",
    )


def _configuration(answer: Answer) -> Markup:
    """Return the configuration as Python code, ready to copy."""
    assert answer.incumbent is not None
    # A line that is too long is broken, but not after its indentation: that is copied, but not shown as text.
    indent = tag("span", lines("    "), class_="indent")
    items = [
        tag("span", indent, lines(f"{name!r}: {value!r},\n"), class_="item")
        for name, value in answer.incumbent.config.items()
    ]
    title = "Best configuration so far" if answer.preliminary else "Best configuration"
    button = tag("button", "Copy", type="button", class_="copy", data_copy="best-config")
    code = tag("pre", tag("code", lines("{\n"), *items, "}", id="best-config"), tabindex="0")
    return tag("div", tag("div", tag("span", title), button, class_="bar"), code, class_="code")


def _numbers(page: Overview) -> Markup:
    answer = page.answer
    shown = [("Trials", number(answer.trials), failed_text(answer.failed, answer.trials))]
    if answer.target:
        shown.append(("At the target", number(page.at_target), ""))
    if answer.elapsed > 0:
        shown.append(("Time", duration(answer.elapsed), ""))
        if answer.full_trainings is not None:
            text, _, unit = count(answer.full_trainings).partition(" ")
            shown.append(("Cost", text, unit))
        shown.append(("Overhead", percent(answer.overhead_share), ""))
    return join(
        *(
            tag("div", tag("dt", name), tag("dd", value, tag("small", f" {more}") if more else ""))
            for name, value, more in shown
        )
    )


def failed_text(failed: int, trials: int) -> str:
    """Return how many of the trials failed, as text; nothing if none did."""
    if not failed:
        return ""
    return "all failed" if 1 < failed == trials else f"{number(failed)} failed"


def _run(state: RunProgress) -> Markup:
    """Return how far the run is, and what the reader should know of it."""
    notes = join(*(tag("p", note, class_="note") for note in state.notes))
    if not state.running:
        return notes
    bar = Markup()
    if state.used_share is not None:
        share = f"{state.used_share:.4f}"
        bar = tag(
            "div",
            tag("progress", percent(state.used_share), value=share, max="1", aria_label="used budget"),
            tag("span", f"{state.used} used"),
            class_="budget",
        )
    return join(notes, bar, _running(state.trials))


def _running(trials: Sequence[RunningTrial] | None) -> Markup:
    if trials is None:
        return Markup()
    if not trials:
        return tag("p", "No trial is running: the next one is being chosen.", class_="running")
    items = [tag("li", _running_trial(trial)) for trial in trials[:_MAX_RUNNING]]
    if len(trials) > _MAX_RUNNING:
        items.append(tag("li", f"and {number(len(trials) - _MAX_RUNNING)} more"))
    return tag("ul", *items, class_="running")


def _running_trial(trial: RunningTrial) -> str:
    expected = f" of about {_whole(trial.predicted)}" if trial.predicted is not None else ""
    where = f"{fidelity_text(trial.fidelity)}, " if trial.fidelity else ""
    return f"Trial #{trial.id} is running: {where}for {_whole(trial.seconds)}{expected}"


def _whole(seconds: float) -> str:
    """Return a time that goes on, without more digits than it needs."""
    return duration(round(seconds) if seconds >= 3 else round(seconds, 1))


def _contents() -> Markup:
    names = [(name, FIGURES[name].title) for name in (*FIGURE_NAMES, TRIALS)]
    links = [tag("a", title, href=f"#{name}") for name, title in names]
    return tag("nav", *links, tag("a", "Record", href="#record"), aria_label="Contents")


def _caption_id(name: str) -> str:
    return f"how-{name}"


def _caption(parts: Mapping[str, Markup], name: str) -> Markup:
    """Return how to read a figure; nothing as long as the study cannot be read."""
    return tag("p", parts.get(_caption_id(name), Markup()), id=_caption_id(name), class_="how")


def _figure(name: str, caption: Markup) -> Markup:
    figure = FIGURES[name]
    return tag(
        "section",
        tag("h2", figure.title),
        caption,
        tag("div", class_="plot", data_figure=name, role="img", aria_label=figure.title),
        id=name,
        class_="panel",
    )


def _trials(caption: Markup) -> Markup:
    figure = FIGURES[TRIALS]
    return tag(
        "section",
        tag("h2", figure.title),
        caption,
        tag("div", id="trials-table"),
        id=TRIALS,
        class_="panel",
    )


def _record(record: StudyRecord) -> Markup:
    head = tag("tr", *(tag("th", name, scope="col") for name in ("Name", "Type", "Values")))
    rows = [
        tag(
            "tr",
            tag("th", row.name, scope="row"),
            *(tag("td", text) for text in (row.kind, row.values)),
        )
        for row in record.axes
    ]
    space = tag("div", tag("table", tag("thead", head), tag("tbody", *rows)), class_="scroll", tabindex="0")
    rules = (
        tag("ul", *(tag("li", rule) for rule in record.rules), class_="rules") if record.rules else Markup()
    )
    facts = [join(tag("dt", name), tag("dd", value)) for name, value in record.facts]
    return join(tag("h2", "Record"), space, rules, tag("dl", *facts, class_="facts"))
