"""User text that is shown says what it says: nothing interprets it."""

import html
import io
import traceback
from html.parser import HTMLParser

import pytest
from rich.console import Console

from fabolas.display import (
    error_summary,
    make_console,
    rich_text,
    safe_csv_cell,
    safe_html,
    safe_lines,
    safe_matplotlib,
    safe_plotly,
    safe_text,
)
from tests.helpers.hostile import HOSTILE


@pytest.mark.parametrize("text", HOSTILE)
def test_safe_text_is_one_printable_line_that_keeps_the_printable_characters(text: str) -> None:
    safe = safe_text(text)
    assert all(c.isprintable() or c.isspace() for c in safe)
    assert len(safe.splitlines()) <= 1
    visible = iter(safe)
    assert all(c in visible for c in text if c.isprintable())  # in the same order


def test_escapes_and_invisible_characters_become_visible() -> None:
    assert safe_text("a\x1b]0;title\x07b\u202ec\x9bd\ne\udcff") == r"a\x1b]0;title\x07b\u202ec\x9bd\ne\udcff"
    assert safe_text(r"(?u)\b[a-zA-Z]+\b") == r"(?u)\b[a-zA-Z]+\b"
    assert safe_text("größe 大きさ\u3000") == "größe 大きさ\u3000"
    assert safe_lines("a\tb\r\n\x1bc\n") == "a\tb\n\\x1bc\n"


@pytest.mark.parametrize("text", HOSTILE)
def test_rich_shows_user_text_as_it_is(text: str) -> None:
    for console in (Console(file=io.StringIO(), width=1000), make_console(file=io.StringIO(), width=1000)):
        with console.capture() as captured:
            console.print(rich_text(text), soft_wrap=True, end="")
        assert captured.get() == safe_text(text)
    with (console := make_console(file=io.StringIO(), width=1000)).capture() as captured:
        console.print(safe_text(text), soft_wrap=True, end="")
    assert captured.get() == safe_text(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_html_has_no_tag_and_no_attribute_from_user_text(text: str) -> None:
    tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.append(tag)
            assert len(list(attrs)) == 1  # type: ignore[call-overload]

    Reader().feed(f'<p title="{safe_html(text)}">{safe_html(text)}</p>')
    assert tags == ["p"]
    assert html.unescape(safe_html(text)) == safe_text(text)


@pytest.mark.parametrize("value", [-1.5, 3, None, True, "-1.5", "+3", "-1e-05", ".5", "abc", "a=b", ""])
def test_numbers_and_harmless_text_stay_as_they_are_in_csv(value: object) -> None:
    assert safe_csv_cell(value) == value


@pytest.mark.parametrize(
    "value",
    ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "=", "\uff1d1", "-1.5e", "--1"],
)
def test_formulas_become_text_in_csv(value: str) -> None:
    assert safe_csv_cell(value) == "'" + safe_lines(value)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - it is the one raised above
        return caught


def formatted(error: BaseException) -> str:
    return "".join(traceback.format_exception(raised(error)))


def test_the_summary_of_a_traceback_is_the_exception_and_the_first_line_of_its_message() -> None:
    noted = ValueError("x")
    noted.add_note("a note")
    chained = RuntimeError("outer")
    chained.__cause__ = raised(KeyError("inner"))
    for error, summary in (
        (ValueError("bad value"), "ValueError: bad value"),
        (ValueError("first\nsecond"), "ValueError: first"),
        (ValueError("\nAll the 5 fits failed.\nmore"), "ValueError: All the 5 fits failed."),
        (noted, "ValueError: x"),
        (chained, "RuntimeError: outer"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ):
        assert error_summary(formatted(error)) == summary
    assert error_summary("killed after 3 s\nlimit: 2 s\n") == "limit: 2 s"
    assert error_summary(None) == error_summary(" \n") == ""


def test_the_summary_of_an_exception_group_names_the_group_and_its_exceptions() -> None:
    inner = ExceptionGroup("inner", [raised(KeyError("k")), OSError(2, "gone")])  # type: ignore[list-item]
    group = ExceptionGroup("several", [raised(ValueError("a\nb")), inner])  # type: ignore[list-item]
    assert error_summary(formatted(group)) == (
        "ExceptionGroup: several (2 sub-exceptions): ValueError: a; ExceptionGroup: inner (2 sub-exceptions); "
        "KeyError: 'k'; FileNotFoundError: [Errno 2] gone"
    )
    many = ExceptionGroup("many", [ValueError(i) for i in range(9)])
    many.__cause__ = raised(KeyError("cause"))
    assert error_summary(formatted(many)) == (
        "ExceptionGroup: many (9 sub-exceptions): ValueError: 0; ValueError: 1; ValueError: 2; ValueError: 3; ..."
    )


class TestFigures:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_plotly_gets_no_tags_no_tex_and_the_same_text(self, text: str) -> None:
        safe = safe_plotly(text)
        assert not set(safe) & set("<>$\n\x1b")
        assert html.unescape(safe) == safe_text(text)

    def test_matplotlib_gets_no_tex(self) -> None:
        assert safe_matplotlib("a$b$\n") == "a\\$b\\$\\n"
