"""Every figure for every kind of study: it is drawn, or it says in a sentence why it cannot be."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest

import fabolas
from fabolas import Float, Space
from fabolas.plots import FIGURES, CannotDraw, plotly_js
from fabolas.plots.theme import DARK_COLOURS
from fabolas.plots.with_plotly import apply_relayout
from tests.helpers.hostile import HOSTILE
from tests.helpers.views import view_of
from tests.plots.cases import CASES, bowl, case

_MODEL = {"importance", "slices", "contours", "calibration"}
# Which figures a study cannot have. All others must be drawn.
CANNOT = {
    "conditions": {"contours"},
    "choices only": {"contours"},
    "one hyperparameter": {"contours"},
    "no fidelity": {"curves", "cost"},
    "one trial": {"importance", "calibration"},
    "equal losses": {"importance"},
    "only failures": FIGURES.keys() - {"time", "trials"},
    "nothing": set(FIGURES),
    "random": _MODEL,
}


def drawn(study: Any, name: str, theme: Any = "light") -> dict[str, Any]:
    figure: dict[str, Any] = json.loads(FIGURES[name].draw(FIGURES[name].compute(study), theme).to_json())
    return figure


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_figure_is_drawn_or_says_why_not(name):
    sentences = {}
    for figure, definition in FIGURES.items():
        try:
            result = drawn(case(name), figure)
            assert result["data"]
            assert definition.title
            assert definition.how_to_read(case(name)).endswith(".")
        except CannotDraw as reason:
            sentences[figure] = str(reason)
    assert sentences.keys() == CANNOT.get(name, set())
    assert all(re.fullmatch(r"[A-Z].{20,}\.", sentence) for sentence in sentences.values())


@pytest.mark.parametrize("figure", FIGURES)
class TestTheme:
    def test_replacing_colours_makes_a_figure_dark(self, figure):
        text = json.dumps(drawn(case("mixed"), figure), sort_keys=True)
        assert "#1c2530" in text
        swapped = re.sub(
            r"#[0-9a-f]{6}|rgba\([^)]*\)", lambda found: DARK_COLOURS.get(found[0], found[0]), text
        )
        assert json.loads(swapped) == drawn(case("mixed"), figure, "dark")

    def test_all_colours_are_of_the_theme(self, figure):
        used = set(re.findall(r"#[0-9a-f]{6}\b|rgba?\([^)]*\)", json.dumps(drawn(case("mixed"), figure))))
        assert used <= DARK_COLOURS.keys() | {"rgba(0,0,0,0)"}


@pytest.mark.parametrize("figure", FIGURES)
def test_a_strict_page_can_show_it(figure):
    kinds = {trace["type"] for trace in drawn(case("mixed"), figure)["data"]}
    assert kinds <= {"scatter", "bar", "contour", "table"}  # no WebGL, no images


@pytest.mark.parametrize("figure", FIGURES)
def test_text_of_the_user_is_shown_as_text(figure):
    ours = re.compile(r"</?b>|<br>|</span>|<span style=\"color:#[0-9a-f]{6};font-size:12px\">")
    texts = list(_strings(drawn(case("hostile names"), figure)))
    for text in texts:
        assert not re.search(r"[<>]|\$|%\{", ours.sub("", text)), text
    if figure == "trials":
        assert any("&lt;script&gt;alert(1)&lt;/script&gt;" in text for text in texts)


def test_hover_texts_are_no_templates():
    for figure in FIGURES:
        for trace in drawn(case("hostile names"), figure)["data"]:
            assert not trace.keys() & {"hovertemplate", "texttemplate"}


def _strings(value: Any) -> Any:
    if isinstance(value, dict):
        yield from (text for key, each in value.items() if key != "bdata" for text in _strings(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in _strings(each))
    elif isinstance(value, str):
        yield value


class TestHover:
    @pytest.mark.parametrize("figure", ["history", "curves", "cost", "parallel"])
    def test_shows_configuration_sizes_loss_cost_and_why(self, figure):
        study = case("one fidelity")
        texts = [text for text in _strings(drawn(study, figure)) if text.startswith("<b>Trial ")]
        assert texts
        for text in texts:
            trial = study.trials[int(re.match(r"<b>Trial (\d+)</b>", text)[1])]
            lines = text.split("<br>")
            assert lines[1].startswith("loss ")
            assert lines[2] == f"size {trial.fidelity['size']:,}"
            assert lines[3].startswith("C = ")
            assert lines[4].startswith("gamma = ")
            assert lines[5].startswith("Why: ")

    def test_a_long_configuration_is_cut(self):
        text = next(t for t in _strings(drawn(case("20 dimensions"), "curves")) if t.startswith("<b>Trial "))
        assert "and 8 more" in text


@pytest.mark.slow
class TestSize:
    @pytest.mark.slow
    @pytest.mark.parametrize("figure", FIGURES)
    def test_a_figure_of_3000_trials_stays_small(self, figure):
        assert len(json.dumps(drawn(case("3,000 trials"), figure))) < 350_000

    @pytest.mark.parametrize("figure", ["history", "curves", "cost", "parallel", "calibration"])
    def test_a_note_says_that_not_all_trials_are_shown(self, figure):
        note = drawn(case("3,000 trials"), figure)["layout"]["title"]["text"]
        assert re.match(r"[\d,]+ of [\d,]+ trials are shown", note)

    def test_the_best_trial_is_always_shown(self):
        study = case("3,000 trials")
        history = study.history
        there = history.complete & study.space.is_at_target(history.points)
        best = min((t for t, at in zip(study.trials, there, strict=True) if at), key=lambda t: t.loss)
        for figure in ("history", "curves", "cost"):
            assert any(text.startswith(f"<b>Trial {best.id}</b>") for text in _strings(drawn(study, figure)))


class TestPhone:
    @pytest.mark.parametrize("figure", [name for name in FIGURES if name != "trials"])
    def test_the_narrow_layout_has_one_column_and_the_wide_one_restores_the_figure(self, figure):
        plotly = FIGURES[figure].draw(FIGURES[figure].compute(case("mixed")))
        before, meta, before_right = plotly.to_json(), plotly.layout.meta, plotly.layout.margin.r
        apply_relayout(plotly, meta["narrow"])
        domains = [axis.domain for axis in plotly.select_xaxes()]
        assert {tuple(domain) for domain in domains} == {(0.0, 1.0)}
        vertical = sorted(tuple(axis.domain) for axis in plotly.select_yaxes())
        assert all(low >= high for (_, high), (low, _) in pairwise(vertical))
        labels = figure in ("history", "curves", "cost")  # beside the panel, also on a phone
        assert plotly.layout.margin.r == min(before_right, 80 if labels else 26)
        apply_relayout(plotly, meta["wide"])
        assert plotly.to_json() == before

    @pytest.mark.parametrize("figure", ["importance", "parallel"])
    def test_long_names_of_rows_take_less_than_half_of_it(self, figure):
        space = Space(
            {"classifier__forest__max_depth": Float(0.1, 1.0), "C": Float(0.1, 1.0)}, {"size": (10, 100)}
        )
        plotly = FIGURES[figure].draw(FIGURES[figure].compute(view_of(space, 12, bowl)))
        before, meta, left = plotly.to_json(), plotly.layout.meta, plotly.layout.margin.l
        apply_relayout(plotly, meta["narrow"])
        assert plotly.layout.margin.l < 0.4 * 360 < left
        assert "…est__max_depth" in plotly.layout.yaxis.ticktext
        apply_relayout(plotly, meta["wide"])
        assert plotly.to_json() == before


class TestMaximise:
    def test_a_maximised_score_is_the_mirror_image_of_a_minimised_loss(self):
        losses = FIGURES["curves"].compute(case("one fidelity"))
        scores = FIGURES["curves"].compute(case("maximise"))
        assert scores.what == "value"
        assert scores.cloud.values == pytest.approx(1.0 - losses.cloud.values)
        assert all(
            (curve.interval.low <= curve.interval.centre).all()
            and (curve.interval.centre <= curve.interval.high).all()
            for curve in scores.curves
        )

    @pytest.mark.parametrize("figure", ["history", "curves", "slices", "contours"])
    def test_values_have_the_users_sign(self, figure):
        texts = " ".join(_strings(drawn(case("maximise"), figure)))
        assert "value" in texts
        assert not re.search(r"\bloss\b", texts)

    def test_the_answer_is_the_highest_slice(self):
        record = FIGURES["slices"].compute(case("maximise"))
        assert all(record.answer >= s.interval.centre[[0, -1]].min() for s in record.slices)
        assert record.answer == pytest.approx(case("maximise").predicted_loss, rel=1e-6)


class TestStudies:
    def test_a_loaded_file_has_the_figures_of_its_study(self, tmp_path):
        space = fabolas.Space(
            {"x": fabolas.Float(0.0, 1.0), "y": fabolas.Float(0.0, 1.0)}, {"size": (10, 1000)}
        )
        with fabolas.Study(space, storage=tmp_path / "a.db", seed=0, overhead=0.0, effort=0.0) as study:
            for _ in range(14):
                suggestion = study.ask()
                loss = (suggestion.config["x"] - 0.3) ** 2 + 1.0 / suggestion.fidelity["size"]
                study.tell(suggestion, loss, cost=0.01 * suggestion.fidelity["size"])
            mine = FIGURES["curves"].compute(study)
        loaded = FIGURES["curves"].compute(fabolas.load(tmp_path / "a.db"))
        assert [curve.name for curve in loaded.curves] == [curve.name for curve in mine.curves]
        for a, b in zip(loaded.curves, mine.curves, strict=True):
            assert a.interval.centre == pytest.approx(b.interval.centre)
            assert a.interval.high == pytest.approx(b.interval.high)

    def test_the_file_of_an_unknown_strategy_is_drawn_without_a_model(self, tmp_path):
        class Own(fabolas.strategies.random.Random):  # type: ignore[name-defined]
            name = "own"

        space = fabolas.Space({"x": fabolas.Float(0.0, 1.0)}, {"size": (10, 1000)})
        with fabolas.Study(space, strategy=Own(space), storage=tmp_path / "a.db", seed=0) as study:
            for _ in range(3):
                study.tell(study.ask(), 0.5, cost=1.0)
        loaded = fabolas.load(tmp_path / "a.db")
        with pytest.raises(CannotDraw, match="'own'"):
            FIGURES["slices"].compute(loaded)
        assert not FIGURES["curves"].compute(loaded).curves
        assert drawn(loaded, "parallel")["data"]

    def test_a_study_that_goes_on_is_computed_anew(self):
        space = fabolas.Space({"x": fabolas.Float(0.0, 1.0)}, {"size": (10, 1000)})
        with fabolas.Study(space, seed=0, effort=0.0, overhead=0.0) as study:
            study.tell(study.ask(), 0.5, cost=1.0)
            before = len(FIGURES["curves"].compute(study).cloud.values)
            study.tell(study.ask(), 0.4, cost=1.0)
            assert len(FIGURES["curves"].compute(study).cloud.values) == before + 1


class TestAccessor:
    @pytest.mark.parametrize("figure", FIGURES)
    def test_each_figure_is_a_method(self, figure):
        study = case("one fidelity")
        made = getattr(study.plot, figure)(theme="dark")
        assert json.loads(made.to_json()) == drawn(study, figure, "dark")

    def test_options_reach_the_figure(self):
        study = case("two fidelities")
        assert study.plot.curves(fidelity="epochs", n_rivals=1).layout.xaxis.title.text == "epochs"
        assert study.plot.history(unit="full trainings").layout.xaxis.title.text.endswith("full trainings")
        assert study.plot.slices(names=("C",)).layout.xaxis.title.text == "C"

    def test_a_wrong_option_is_refused(self):
        study = case("two fidelities")
        for wrong in (study.plot.curves, study.plot.cost, study.plot.time):
            with pytest.raises(ValueError, match="fidelity must be one of 'size', 'epochs', got 'rows'"):
                wrong(fidelity="rows")
        with pytest.raises(ValueError, match="names must be among C, gamma, got degree"):
            study.plot.slices(names=("degree",))

    def test_the_javascript_of_plotly_is_there_without_a_network(self):
        assert plotly_js().startswith("/**\n* plotly.js v")


def test_hostile_texts_are_in_the_matrix():
    names = " ".join(case("hostile names").space.names)
    assert "<script>" in names
    assert any("$" in text for text in HOSTILE)
