"""The table of trials in Chromium: what it marks, how it writes numbers and names, and what fits."""

import json
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas.report import write_report
from tests.helpers.browser import DESKTOP, PHONE, Browser
from tests.helpers.study_files import write_study
from tests.helpers.waiting import wait_until

pytestmark = pytest.mark.slow
LONG_NAME = "model__classifier__preprocessing__feature_selection__regularisation_strength"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a random search with 29 trials, four more than the table shows at first."""
    path = write_study(tmp_path_factory.mktemp("reports") / "svm.db", 29)
    return write_report(fabolas.load(path), path.with_suffix(".html"))


@pytest.fixture
def page(browser: Browser, report: Path) -> Browser:
    browser.show_as(DESKTOP)
    browser.open(report)
    return browser


def test_the_sticky_cells_do_not_hide_the_lines_between_rows(page: Browser) -> None:
    """Lines of a table with collapsed borders belong to the table, and are behind its sticky cells."""
    assert page.run("return getComputedStyle(document.querySelector('.trials')).borderCollapse") == "separate"


def fill(page: Browser, columns: dict[str, str], rows: list[list[Any]], best: tuple[int, ...] = ()) -> None:
    """Show another table: key of a column -> its kind."""
    keys = [
        (key, key.removeprefix("config_").removeprefix("fidelity_"), kind) for key, kind in columns.items()
    ]
    table = {
        "columns": [{"key": key, "title": title, "kind": kind} for key, title, kind in keys],
        "rows": rows,
        "best": best,
    }
    page.run(
        "window.table = new fabolasTable(document.getElementById('trials-table'));"
        "window.table.update(JSON.parse(arguments[0]))",
        json.dumps(table),
    )


def column(page: Browser, number: int) -> list[str]:
    return page.texts(f"#trials-table tbody tr.row td:nth-child({number})")


COLUMNS = {"id": "number", "status": "text", "loss": "number", "cost": "seconds"}


def test_the_trials_of_the_answer_are_marked(page: Browser, report: Path) -> None:
    best = fabolas.load(report.with_suffix(".db")).incumbent()
    assert best is not None
    assert page.texts("#trials-table tr.best .open-row") == [f"#{id_}" for id_ in reversed(best.trial_ids)]
    mark = "return getComputedStyle(document.querySelector('tr.best td'), '::after').content"
    assert page.run(mark) == '"★"'


def test_a_few_more_rows_need_no_click(page: Browser) -> None:
    assert len(page.texts("#trials-table tbody tr.row")) == 29
    assert page.run("return document.querySelector('.more').hidden")
    fill(page, COLUMNS, [[i, "complete", 0.5, 1.0] for i in range(31)])
    assert len(page.texts("#trials-table tbody tr.row")) == 25
    assert page.text("#trials-table .more") == "Show 6 more"


def test_large_and_similar_losses_can_be_told_apart(page: Browser) -> None:
    losses = [
        12_345_678.9,
        12_346_234.5,
        12_347_111.1,
        12_345_999.9,
        12_360_000.5,
        12_400_100.7,
        15_500_000.3,
    ]
    fill(page, COLUMNS, [[i, "complete", loss, 1.0] for i, loss in enumerate(losses)])
    shown = column(page, 3)
    assert len(set(shown)) == len(losses)
    assert shown[0] == "12,345,680"


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.00408, 0.31234567, 0.9], ["0.004080", "0.312346", "0.900000"]),
        ([0.04008, -0.31234567, 0.0], ["0.04008", "-0.31235", "0.00000"]),
        ([0.0000408, 0.31234567, 0.9], ["4.08×10⁻⁵", "0.3123", "0.9000"]),
        ([12.25, 131.5, 1_000.0], ["12.25", "131.50", "1,000.00"]),
        ([5.735e-4, 3.2e-7, 120.5], ["5.735×10⁻⁴", "3.2×10⁻⁷", "120.5"]),
        ([3.2123e9 + 0.5, 12.25, 0.5], ["3.212×10⁹", "12.25", "0.5000"]),
        ([0.5, 0.5, 0.5], ["0.5000", "0.5000", "0.5000"]),
    ],
)
def test_other_losses_have_four_digits_or_equal_decimals(
    page: Browser, values: list[float], texts: list[str]
) -> None:
    fill(page, COLUMNS, [[i, "complete", value, 1.0] for i, value in enumerate(values)])
    assert column(page, 3) == texts


def test_times_are_written_as_in_the_text_and_have_a_unit_in_the_details(page: Browser) -> None:
    times = [12.895751547000145, 100.2, 3599.7, 13_900.0, 200_000.0, 0.0000709]
    fill(page, COLUMNS, [[i, "complete", 0.25, time] for i, time in enumerate(times)])
    assert column(page, 4) == ["12.9 s", "1 min 40 s", "1 h", "3 h 52 min", "2 d 08 h", "70.9 µs"]
    page.click("[data-focus='row 0']")
    assert "12.9 s" in page.texts("#trials-table tr.detail dd")


def test_the_filter_has_an_example_from_the_study(page: Browser) -> None:
    def example() -> str:
        text: str = page.run("return document.querySelector('#trials-table input').placeholder")
        return text

    assert example().startswith("Filter: loss<0.")
    assert example().split()[-1] in ("kernel=rbf", "kernel=poly")
    page.type("#trials-table input", example().removeprefix("Filter: "))
    assert 0 < len(page.texts("#trials-table tbody tr.row")) < 29
    rows = [[i, "complete", 0.1 * i, 1.0, 100 * i] for i in range(1, 9)]
    fill(page, COLUMNS | {"fidelity_size": "number"}, rows)
    assert example() == "Filter: loss<0.5 size>=500"
    fill(page, COLUMNS | {f"config_{LONG_NAME}": "text"}, [[0, "failed", None, 1.0, "a"]])
    assert example() == "Filter"


def test_a_long_name_is_shortened_and_the_edge_fades_while_columns_continue(page: Browser) -> None:
    fill(page, COLUMNS | {f"config_{LONG_NAME}": "number"}, [[0, "complete", 0.5, 1.0, 0.25]])
    head = "#trials-table th:last-child button"
    assert page.text(head) == "model__…isation_strength"
    assert page.run("return document.querySelector(arguments[0]).title", head) == LONG_NAME
    assert page.run("return document.querySelector(arguments[0]).offsetWidth", head) < 230
    continues = "return document.querySelector('#trials-table .scroll').classList.contains('continues')"
    assert not page.run(continues)
    page.show_as(PHONE)
    wait_until(lambda: page.run(continues))
    page.run("document.querySelector('#trials-table .scroll').scrollLeft = 10000")
    wait_until(lambda: not page.run(continues))


def test_a_long_name_in_the_best_configuration_wraps(page: Browser) -> None:
    page.run("document.querySelector('#best-config .item').append(arguments[0])", 3 * LONG_NAME)
    fits = "const pre = document.querySelector('.code pre'); return pre.scrollWidth <= pre.clientWidth"
    assert page.run(fits)
