"""The figures in Chromium, under a strict policy: they are drawn, hovering shows text as text, labels are inside."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabolas.plots import FIGURES, plotly_js
from tests.helpers.browser import DESKTOP, PHONE, Browser
from tests.plots.cases import case

DRAWN = tuple(name for name in FIGURES if name != "trials")
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"  # no eval, no images
_SCRIPT = """
const figures = JSON.parse(document.getElementById("figures").textContent);
async function show(width) {
  document.body.replaceChildren();
  for (const [name, figure] of Object.entries(figures)) {
    const place = document.createElement("div");
    place.id = name;
    document.body.append(place);
    await Plotly.newPlot(place, figure.data, figure.layout, {responsive: true});
    if (figure.layout.meta) await Plotly.relayout(place, figure.layout.meta[width]);
  }
}
show(location.hash.slice(1) || "wide").then(() => { document.body.dataset.ready = "true"; });
"""


def page(folder: Path, name: str) -> Path:
    """A page with all figures of a study."""
    figures = {
        each: json.loads(FIGURES[each].draw(FIGURES[each].compute(case(name))).to_json()) for each in FIGURES
    }
    data = json.dumps(figures).replace("</", "<\\/")
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    scripts = f'<script>{plotly_js()}</script><script type="application/json" id="figures">{data}</script>'
    file = folder / f"{name}.html"
    file.write_text(
        f"<!doctype html><html><head>{head}{scripts}</head><body><script>{_SCRIPT}</script></body></html>"
    )
    return file


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("figures"), "hostile names")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("figures"), "one fidelity")


def hover(browser: Browser, figure: str, start: str) -> str:
    """What hovering over the last point whose text starts like this shows."""
    found: str = browser.run(
        """
        const place = document.getElementById(arguments[0]);
        window.last = null;
        place.data.forEach((trace, i) => (trace.hovertext || []).forEach((text, j) => {
          if (String(text).startsWith(arguments[1])) window.last = {curveNumber: i, pointNumber: j};
        }));
        Plotly.Fx.hover(place, [window.last], [place.data[window.last.curveNumber].xaxis.replace("x", "xy")
          .replace(/^xy(\\d*)$/, "x$1y$1")]);
        return [...place.querySelectorAll(".hoverlayer text")].map(e => e.textContent).join("\\n");
        """,
        figure,
        start,
    )
    return found


@pytest.mark.slow
def test_all_are_drawn_without_eval_and_without_images(browser: Browser, hostile: Path) -> None:
    browser.open(hostile)
    drawn: dict[str, Any] = browser.run(
        "return Object.fromEntries(arguments[0].map(name => [name, "
        "document.getElementById(name).querySelectorAll('.trace, .contour, .bars, .table').length]))",
        list(FIGURES),
    )
    assert all(drawn.values()), drawn
    assert browser.console() == []
    buttons = browser.run("return [...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
    assert any("Download" in title for title in buttons)
    assert not [title for title in buttons if "Share" in title or "Cloud" in title]  # in a notebook, too


def test_hovering_shows_the_text_of_the_user_as_text(browser: Browser, hostile: Path) -> None:
    browser.open(hostile)
    for figure in ("history", "curves", "cost", "parallel"):  # on one page: it takes seconds to draw
        shown = hover(browser, figure, "<b>Trial ")
        trial = case("hostile names").trials[int(shown.split("loss")[0].removeprefix("Trial "))]
        for name in list(trial.config)[:12]:
            assert name in shown, figure
        assert "<script>alert(1)</script>" in shown, figure
        assert "<b>size</b> $x$" in shown, figure
        assert "Why: " in shown, figure
    assert browser.run("return document.querySelectorAll('body script').length") == 0
    assert browser.console() == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "size"), [("wide", DESKTOP), ("narrow", PHONE)])
def test_labels_are_within_the_figure(
    browser: Browser, usual: Path, width: str, size: tuple[int, int]
) -> None:
    browser.show_as(size)
    browser.open(f"{usual.as_uri()}#{width}")
    outside = browser.run(
        """
        const found = [];
        for (const name of arguments[0]) {
          const box = document.getElementById(name).getBoundingClientRect();
          for (const text of document.querySelectorAll(`#${name} svg text`)) {
            const r = text.getBoundingClientRect();
            if (r.width && (r.left < box.left - 1 || r.right > box.right + 1 || r.bottom > box.bottom + 1))
              found.push([name, text.textContent, r.left - box.left, box.right - r.right, box.bottom - r.bottom]);
          }
        }
        return found;
        """,
        DRAWN,
    )
    assert outside == []
    covered = browser.run(
        """
        const found = [];
        for (const name of ["history", "curves", "cost"]) {
          const place = document.getElementById(name);
          const end = place.getBoundingClientRect().left + place._fullLayout.xaxis._offset
            + place._fullLayout.xaxis._length;
          place.layout.annotations.forEach((annotation, i) => {
            const box = place.querySelectorAll(".annotation")[i].getBoundingClientRect();
            if (annotation.xanchor === "left" && box.left < end - 12) found.push([name, annotation.text]);
          });
        }
        return found;
        """
    )
    assert covered == []  # labels of curves are beside the panel, where they cover nothing
