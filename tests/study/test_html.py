"""What a notebook shows of a study is the answer, and no text of the user becomes markup."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import fabolas
from fabolas import Study
from fabolas.display import safe_text
from tests.helpers.hostile import HOSTILE
from tests.helpers.problems import bowl, minimize

TAGS = {"div", "b", "span", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}


class Page(HTMLParser):
    """The tags and the text of a page; tags must be closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_the_user_is_never_markup(text: str, tmp_path: Path) -> None:
    space = {text: fabolas.Float(0.0, 1.0), "choice": [text]}
    with Study(space, {"size": (10, 1000)}, strategy="random", seed=0, storage=tmp_path / "run.db") as study:
        study.tell(study.ask(), 0.5, cost=1.0)
        study.fail(study.ask(), text or "empty", cost=1.0)
        page = Page(study._repr_html_())
    assert page.tags <= TAGS
    assert page.attributes == {"style"}
    assert safe_text(text) in "".join(page.words)
    assert Page(fabolas.load(tmp_path / "run.db")._repr_html_()).tags == page.tags


def test_it_shows_the_answer_and_the_last_trials(tmp_path: Path) -> None:
    result = minimize(bowl, max_trials=12, storage=tmp_path / "run.db")
    page = Page(result._repr_html_())
    text = " ".join(page.words)
    assert f"{result.predicted_loss:.4g} ± 0" in text
    assert f"{result.best_config['x']:.4g}" in page.words
    assert "verified at the target: measured " in text
    assert "last 10 of 12 trials" in page.words
    assert [word for word in page.words if word.startswith("#")] == [f"#{i}" for i in range(2, 12)]
    loaded = Page(fabolas.load(tmp_path / "run.db")._repr_html_())
    assert "LoadedStudy" in loaded.words
    assert loaded.words[3:] == page.words[3:]


def test_a_study_without_an_answer_says_so() -> None:
    with Study({"x": fabolas.Float(0.0, 1.0)}) as study:
        assert Page(study._repr_html_()).words == ["Study", " ", "no trials yet", "no answer yet"]
