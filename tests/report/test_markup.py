"""Text of the user never becomes markup."""

from html.parser import HTMLParser

import pytest

from fabolas.display import safe_lines, safe_text
from fabolas.report.markup import Markup, join, lines, tag
from tests.helpers.hostile import HOSTILE


class Parsed(HTMLParser):
    """What a browser would read."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_a_browser_reads_text_and_attributes_as_they_were(text: str) -> None:
    page = Parsed(tag("p", text, title=text))
    assert page.tags == [("p", {"title": safe_text(text)})]
    assert page.text == safe_text(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_lines_keep_new_lines_and_nothing_else(text: str) -> None:
    assert Parsed(lines(text)).text == safe_lines(text)
    assert Parsed(lines(text)).tags == []


def test_markup_is_kept_and_text_beside_it_is_escaped() -> None:
    assert join(tag("b", "x"), "<i>") == "<b>x</b>&lt;i&gt;"
    assert isinstance(join("a"), Markup)


def test_attributes_are_left_out_without_a_value_and_bare_when_true() -> None:
    assert tag("div", hidden=True, id=None, title=False, data_name="a", class_="b") == (
        '<div hidden data-name="a" class="b"></div>'
    )
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
