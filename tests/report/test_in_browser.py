"""The report in Chromium: figures, table, themes, widths, print, and nothing that runs from the file of the user."""

import json
from pathlib import Path

import pytest

import fabolas
from fabolas.plots.labels import short_name
from fabolas.report import write_report
from fabolas.report.content import FIGURE_NAMES
from tests.helpers.browser import DESKTOP, PHONE, Browser
from tests.helpers.study_files import (
    HOSTILE_NAME,
    write_empty_study,
    write_failed_study,
    write_hostile_study,
    write_study,
)
from tests.helpers.waiting import wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def report(folder: Path) -> Path:
    """The report of a search with a model, with failures."""
    study = fabolas.load(write_study(folder / "svm.db", 16, strategy="fabolas"))
    assert study.history.failed.any()
    return write_report(study, folder / "svm.html")


def overflow(browser: Browser) -> int:
    """How many pixels the page is wider than the window."""
    wide: int = browser.run("return document.documentElement.scrollWidth - innerWidth")
    return wide


@pytest.mark.slow
def test_all_figures_are_drawn_and_the_console_is_silent(browser: Browser, report: Path) -> None:
    browser.open(report)
    drawn = browser.run(
        "return Object.fromEntries([...document.querySelectorAll('.plot')].map(p => "
        "[p.dataset.figure, p.querySelectorAll('.main-svg').length || p.querySelector('.reason')?.innerText]))"
    )
    assert set(drawn) == set(FIGURE_NAMES)
    assert all(isinstance(each, int) for each in drawn.values()), drawn
    assert browser.console() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    buttons = browser.run("return [...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
    assert any("Download" in title for title in buttons)
    assert not [title for title in buttons if "Share" in title or "Cloud" in title]


@pytest.mark.slow
def test_there_is_a_figure_over_each_fidelity(browser: Browser, report: Path) -> None:
    browser.open(report)
    shown = (
        "const place = document.querySelector('#curves .plot');"
        "place.panel = { ...place.panel, more: arguments[0] ? [place.panel.text] : [] };"
        "dispatchEvent(new Event('afterprint'));"
        "return [...document.querySelectorAll('#curves .plot')].map(p => p.querySelectorAll('.main-svg').length)"
    )
    alone = browser.run(shown, False)
    assert len(alone) == 1
    assert browser.run(shown, True) == browser.run(shown, True) == 2 * alone
    assert overflow(browser) <= 0
    assert browser.run(shown, False) == alone
    assert browser.console() == []


@pytest.mark.slow
def test_the_table_sorts_up_down_and_back(browser: Browser, report: Path) -> None:
    browser.open(report)
    study = fabolas.load(report.with_suffix(".db"))
    newest_first = [f"#{trial.id}" for trial in reversed(study.trials)]
    ids = "#trials-table tbody .open-row"
    assert browser.texts(ids) == newest_first
    losses = sorted((trial.loss, f"#{trial.id}") for trial in study.trials if trial.loss is not None)
    failed = {f"#{trial.id}" for trial in study.trials if trial.loss is None}
    browser.click("[data-focus='sort loss']")
    up = browser.texts(ids)
    assert up[: len(losses)] == [name for _, name in losses]
    assert set(up[len(losses) :]) == failed  # without a loss: last, in both directions
    browser.click("[data-focus='sort loss']")
    down = browser.texts(ids)
    assert down[: len(losses)] == [name for _, name in reversed(losses)]
    assert set(down[len(losses) :]) == failed
    assert browser.run("return document.querySelector('th[aria-sort]').ariaSort") == "descending"
    browser.click("[data-focus='sort loss']")
    assert browser.texts(ids) == newest_first


@pytest.mark.slow
def test_the_table_filters_by_text_by_condition_and_by_status(browser: Browser, report: Path) -> None:
    browser.open(report)
    trials = fabolas.load(report.with_suffix(".db")).trials
    search, ids = "#trials-table input", "#trials-table tbody .open-row"
    browser.type(search, "size>=500 kernel=rbf")
    wanted = {f"#{t.id}" for t in trials if t.fidelity["size"] >= 500 and t.config["kernel"] == "rbf"}
    assert set(browser.texts(ids)) == wanted
    assert browser.text("#trials-table output") == f"{len(wanted)} of {len(trials)} trials"
    browser.type(search, "matrix too LARGE")
    assert set(browser.texts(ids)) == {f"#{t.id}" for t in trials if t.status == "failed"}
    browser.type(search, "")
    browser.run(
        "const s = document.querySelector('#trials-table select'); s.value = 'failed';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert set(browser.texts(ids)) == {f"#{t.id}" for t in trials if t.status == "failed"}
    browser.type(search, "no such thing")
    assert browser.text("#trials-table tbody") == "No trial matches the filter."


@pytest.mark.slow
def test_a_click_opens_the_traceback_of_a_failure(browser: Browser, report: Path) -> None:
    browser.open(report)
    failed = next(t for t in fabolas.load(report.with_suffix(".db")).trials if t.status == "failed")
    row = f"[data-focus='row {failed.id}']"
    browser.click(row)
    assert browser.text("tr.detail pre").strip() == (failed.error or "").strip()
    assert repr(failed.config["C"]) in browser.text("tr.detail dl")
    browser.click(row)
    assert browser.texts("tr.detail") == []


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_it_follows_the_theme_and_the_width_of_the_reader(
    browser: Browser, report: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    browser.show_as(size)
    browser.open(report)
    pictures = []
    for theme, paper, ink in (
        ("light", "rgb(255, 255, 255)", "#1c2530"),
        ("dark", "rgb(20, 24, 31)", "#e8ebf0"),
    ):
        browser.show_as(size, theme)  # type: ignore[arg-type]
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == paper
        colour = "return document.querySelector('#curves .plot').layout.font.color"
        wait_until(lambda colour=colour, ink=ink: browser.run(colour) == ink)  # type: ignore[misc]
        assert overflow(browser) <= 0
        widths = browser.run(
            "return [...document.querySelectorAll('.plot .main-svg')].map(s => s.getBoundingClientRect().right)"
        )
        assert max(widths) <= size[0]
        cut = browser.run(
            "return [...document.querySelectorAll('.plot .annotation')].filter(a => "
            "a.getBoundingClientRect().right > innerWidth).map(a => a.textContent)"
        )
        assert cut == []
        pictures.append(browser.screenshot(tmp_path / f"{theme}.png", whole=False))
    assert pictures[0] != pictures[1]
    assert browser.console() == []


@pytest.mark.slow
def test_it_prints_light_and_complete(browser: Browser, report: Path) -> None:
    browser.show_as(DESKTOP, "dark")
    browser.open(report)
    browser.run(
        "addEventListener('beforeprint', () => { window.printed = ["
        "document.querySelector('#curves .plot').layout.font.color, "
        "document.querySelector('#curves .main-svg').getBoundingClientRect().width] })"
    )
    assert browser.pdf().startswith(b"%PDF")
    assert browser.run("return window.printed") == ["#1c2530", 900]
    assert browser.run("return document.querySelector('#curves .plot').layout.font.color") == "#e8ebf0"


@pytest.mark.slow
def test_on_paper_the_table_fits_and_says_what_is_left_out(browser: Browser, report: Path) -> None:
    browser.open(report)
    width = 700  # CSS pixels, about A4 without its margins
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    name = "a_very_long_hyperparameter_name_of_a_pipeline__classifier__C"
    keys = [("id", "number"), ("status", "text"), ("loss", "number"), ("cost", "seconds")]
    keys += [(f"{name}{i}", "number") for i in range(3)]
    table = {
        "columns": [{"key": key, "title": key, "kind": kind} for key, kind in keys],
        "rows": [[i, "complete", 0.04008, 0.0000709, 0.0001, 1184.2, 0.0002642] for i in range(1030)],
    }
    fill = (
        "const place = document.getElementById('trials-table');"
        "new fabolasTable(place).update(JSON.parse(arguments[0]))"
    )
    try:
        browser.run(fill, json.dumps(table))
        right = "return document.querySelector('#trials-table table').getBoundingClientRect().right"
        assert browser.run(right) <= width
        assert browser.text("#trials-table .print-only") == "Not printed: 1,005 more trials."
        assert browser.texts("#trials-table tbody tr:first-child td") == [
            "#0", "complete", "0.04008", "70.9 µs", "10⁻⁴", "1,184", "2.642×10⁻⁴",
        ]  # fmt: skip
        table["rows"] = table["rows"][:1]
        browser.run(fill, json.dumps(table))
        assert browser.run("return document.querySelector('#trials-table output').textContent") == "1 trial"
        assert browser.text("#trials-table .print-only") == ""
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        browser.show_as(DESKTOP)


@pytest.mark.slow
def test_markup_of_the_user_is_shown_as_text(browser: Browser, folder: Path) -> None:
    path = write_hostile_study(folder / "hostile.db", n=14, strategy="fabolas")
    browser.open(write_report(fabolas.load(path), folder / "hostile.html"))
    assert browser.driver.title == "hostile · fabolas"
    assert browser.console() == []
    assert HOSTILE_NAME in browser.text("#record")
    assert HOSTILE_NAME in browser.text("#best-config")
    assert short_name(HOSTILE_NAME) in browser.text("#trials-table thead")
    assert (
        browser.run(
            "return [...document.querySelectorAll('#trials-table thead button')].map(b => b.title)"
        ).count(HOSTILE_NAME)
        == 1
    )
    assert short_name(HOSTILE_NAME, 32) in browser.text("#slices .plot")
    assert browser.run("return document.querySelectorAll('.plot img, main img, main script').length") == 0
    for button in browser.run("return [...document.querySelectorAll('.open-row')].map(b => b.dataset.focus)"):
        browser.click(f"[data-focus='{button}']")
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    assert browser.driver.title == "hostile · fabolas"


@pytest.mark.slow
def test_without_an_answer_it_says_why_in_every_place(browser: Browser, folder: Path) -> None:
    browser.open(write_report(fabolas.load(write_empty_study(folder / "empty.db")), folder / "empty.html"))
    assert browser.text("#answer") == "There is no answer yet: no trial has ended."
    assert all(browser.texts(".plot .reason"))
    assert len(browser.texts(".plot .reason")) == len(FIGURE_NAMES)
    browser.open(write_report(fabolas.load(write_failed_study(folder / "failed.db")), folder / "failed.html"))
    assert "all 3 trials failed" in browser.text("#answer")
    assert len(browser.texts("#trials-table tbody tr.row")) == 3
    assert browser.console() == []


@pytest.mark.slow
def test_a_table_of_3000_trials_sorts_and_filters_at_once(browser: Browser, report: Path) -> None:
    browser.open(report)
    rows = [[i, "complete", (i * 7919) % 3001 / 3001, 1.0, None] for i in range(3000)]
    keys = (("id", "number"), ("status", "text"), ("loss", "number"), ("cost", "seconds"), ("error", "error"))
    columns = [{"key": key, "title": key, "kind": kind} for key, kind in keys]
    spent = browser.run(
        "const place = document.createElement('div'); place.id = 'many'; document.body.append(place);"
        "const table = new fabolasTable(place); const start = performance.now();"
        "table.update(JSON.parse(arguments[0])); table.sortBy('loss'); table.search.value = 'loss>0.5';"
        "table.restart(); return performance.now() - start",
        json.dumps({"columns": columns, "rows": rows}),
    )
    assert browser.text("#many output") == f"{sum(row[2] > 0.5 for row in rows):,} of 3,000 trials"
    lowest = sorted(row[2] for row in rows if row[2] > 0.5)
    shown = browser.texts("#many tbody tr td:nth-child(3)")
    assert [float(text) for text in shown] == [pytest.approx(each, abs=1e-4) for each in lowest[: len(shown)]]
    browser.click("#many .more")
    assert len(browser.texts("#many tbody tr")) == len(shown) + 100
    assert spent < 2000  # milliseconds, on a busy machine
