"""The report is one file: complete, closed to the network, safely written."""

import base64
import gzip
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

import fabolas
from fabolas.plots import FIGURES, CannotDraw
from fabolas.plots.model import model_of
from fabolas.report import report_html, write_report
from fabolas.report.content import FIGURE_NAMES, DrawnFigure, panel
from fabolas.strategies.random import Random
from tests.helpers.problems import SIZE, SPACE, bowl, evaluate, minimize
from tests.helpers.study_files import write_empty_study, write_failed_study, write_hostile_study, write_study
from tests.plots.cases import case


def unpacked(page: str, name: str) -> str:
    """The compressed text of a report."""
    found = re.search(rf'<script type="application/octet-stream" id="packed-{name}">([^<]*)</script>', page)
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1])).decode()


def report_of(path: Path) -> str:
    return report_html(fabolas.load(path), now=0.0)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_of(write_study(tmp_path_factory.mktemp("report") / "svm.db", 30))


def test_it_starts_with_the_answer_then_figures_trials_and_record(page: str, tmp_path: Path) -> None:
    places = [page.index(f'id="{name}"') for name in ("answer", *FIGURE_NAMES, "trials", "record")]
    assert places == sorted(places)
    assert page.index("The best configuration has a measured loss of") < page.index('id="history"')
    for name in FIGURES:
        assert f"<h2>{FIGURES[name].title}</h2>" in page
    assert '<p id="how-history" class="how">The line is the best loss measured at the target' in page


def test_every_figure_is_drawn_or_has_a_reason(page: str) -> None:
    data = json.loads(unpacked(page, "data"))
    assert list(data["figures"]) == list(FIGURE_NAMES)
    for panel_ in data["figures"].values():
        assert (panel_["figure"] is None) != (panel_["reason"] is None)
    assert data["figures"]["history"]["figure"]["data"]
    assert "no model" in data["figures"]["slices"]["reason"]  # a random search has none
    assert len(data["trials"]["rows"]) == 30


def test_there_is_a_figure_over_each_fidelity() -> None:
    study = case("two fidelities")
    for name in ("curves", "cost"):
        made = json.loads(panel(study, name).as_json())
        titles = [each["layout"]["xaxis"]["title"]["text"] for each in (made["figure"], *made["more"])]
        assert titles == ["size", "epochs"]
    made = json.loads(panel(study, "time").as_json())
    titles = [each["layout"]["yaxis"]["title"]["text"] for each in (made["figure"], *made["more"])]
    assert titles == ["size", "epochs"]
    assert panel(study, "history").more == ()


def test_it_needs_no_network_and_is_smaller_than_6_megabytes(page: str) -> None:
    assert len(page.encode()) < 6e6
    assert not re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', page)
    assert "default-src &#x27;none&#x27;" in page
    assert "unsafe-eval" not in page


def test_no_button_of_a_figure_sends_it_to_another_server(page: str) -> None:
    config = re.search(r"const CONFIG = \{(.*?)\};", page, re.DOTALL)
    assert config is not None
    assert "showSendToCloud: false" in config[1]
    assert '"sendChartToCloud"' in config[1]
    figure = json.loads(unpacked(page, "data"))["figures"]["history"]["figure"]
    assert figure["layout"]["modebar"]["remove"] == ["sendChartToCloud"]


def test_the_policy_allows_the_scripts_of_the_report_and_no_other(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    allowed = re.search(r"script-src ([^;]*)", policy[1].replace("&#x27;", "'"))
    assert allowed is not None
    own = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(own) == 1
    scripts = [*own, unpacked(page, "plotly")]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert allowed[1].split() == [f"'sha256-{each}'" for each in hashes]


def test_the_configuration_is_python_code_ready_to_copy(page: str, tmp_path: Path) -> None:
    import html

    code = re.search(r'<code id="best-config">(.*?)</code>', page, re.DOTALL)
    assert code is not None
    text = html.unescape(re.sub(r"</?span[^>]*>", "", code[1]))
    config = eval(text, {"__builtins__": {}})
    assert re.fullmatch(r"\{\n(    '\w+': .*,\n)+\}", text)
    assert config == fabolas.load(write_study(tmp_path / "same.db", 30)).best_config


@pytest.mark.parametrize("write", [write_empty_study, write_failed_study, lambda path: write_study(path, 1)])
def test_it_works_without_an_answer_and_with_one_trial(write: Callable[[Path], Path], tmp_path: Path) -> None:
    page = report_of(write(tmp_path / "run.db"))
    assert page.endswith("</html>")
    assert json.loads(unpacked(page, "data"))["figures"]["history"]


def test_the_same_study_at_the_same_time_has_the_same_report(page: str, tmp_path: Path) -> None:
    path = write_study(tmp_path / "svm.db", 12)
    assert report_of(path) == report_of(path)


def test_markup_of_the_user_is_text(tmp_path: Path) -> None:
    page = report_of(write_hostile_study(tmp_path / "run.db"))
    assert "<script>document" not in page
    assert "<img" not in page
    assert page.count("<script") == 3


def test_the_record_has_space_seed_conditions_and_versions(tmp_path: Path) -> None:
    space = ConfigurationSpace()
    kind, depth = Categorical("kind", ["tree", "linear"]), Float("depth", (1.0, 9.0))
    space.add(kind, depth, EqualsCondition(depth, kind, "tree"))
    write_study(
        tmp_path / "run.db", 3, run=lambda config, size: 0.5 + len(config) / size, space=space, seed=4321
    )
    page = report_of(tmp_path / "run.db")
    for text in (
        "depth if kind",
        "tree&#x27;, &#x27;linear",
        "1 to 9",
        "4321",
        f"fabolas {fabolas.__version__}",
    ):
        assert text in page


def test_a_file_whose_clauses_forbid_everything_has_a_report(tmp_path: Path) -> None:
    path = write_study(tmp_path / "run.db", 12, strategy="fabolas", effort=0.0)
    space = fabolas.load(path).space.describe()
    name = space["parameters"][0]["name"]
    rule = {"kind": "comparison", "text": f"{name} >= 0", "name": name, "op": ">=", "coordinate": 0.0}
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        text = json.dumps({**space, "forbidden": [rule]})
        connection.execute("UPDATE study SET value = ? WHERE key = 'space'", (text,))
    page = report_of(path)
    assert f"forbidden: {name} &gt;= 0" in page
    study = fabolas.load(path)
    with pytest.raises(CannotDraw, match="forbidden clauses of the space allow none"):
        _ = model_of(study).optimum


class Mine(Random):
    name = "mine"


def test_a_study_with_a_strategy_of_the_user_has_a_report(tmp_path: Path) -> None:
    strategy = Mine(fabolas.Space(SPACE, SIZE))
    with fabolas.Study(SPACE, SIZE, strategy=strategy, seed=0, storage=tmp_path / "run.db") as study:
        for _ in range(4):
            evaluate(study, study.ask())
    data = json.loads(unpacked(report_of(tmp_path / "run.db"), "data"))
    assert len(data["trials"]["rows"]) == 4


def test_a_figure_that_raises_another_error_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(study: Any) -> None:
        raise ValueError("a bug")

    study = fabolas.load(write_study(tmp_path / "run.db", 3))
    monkeypatch.setattr(
        "fabolas.report.content.FIGURES", {"history": fabolas.plots.Figure("", "", broken, broken)}
    )  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a bug"):
        panel(study, "history")


def test_a_panel_has_a_figure_or_a_reason() -> None:
    with pytest.raises(ValueError, match="either a figure or a reason"):
        DrawnFigure("history", None)


def test_a_result_writes_its_report_and_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    assert minimize(bowl, max_trials=5).report(path) == path
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_report_never_replaces_a_database(tmp_path: Path) -> None:
    path = write_study(tmp_path / "run.db", 3)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="must not replace a database"):
        write_report(fabolas.load(path), path)
    assert path.read_bytes() == before
