"""The documentation site: no page is too long; every public name is in the API reference, with an example."""

import re
from pathlib import Path

import pytest

import fabolas

DOCS = Path(__file__).parents[1] / "docs"
API = DOCS / "api"
MAX_LINES, MAX_WORDS = 160, 1500  # of a page; longer ones are split
PAGES = sorted(page for page in API.glob("*.md") if page.name != "index.md")
_REFERENCE = re.compile(r"^::: (\S+)$", re.MULTILINE)


def test_every_public_name_is_in_the_api_reference() -> None:
    listed = {name for page in PAGES for name in _REFERENCE.findall(page.read_text("utf-8"))}
    assert {f"fabolas.{name}" for name in fabolas.__all__ if name != "__version__"} <= listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_name_of_the_api_reference_is_in_an_example_of_its_page(page: Path) -> None:
    text = page.read_text("utf-8")
    examples = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    names = [name.rsplit(".", 1)[1] for name in _REFERENCE.findall(text)]
    missing = [name for name in names if name not in examples]
    assert names
    assert not missing


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_no_page_is_longer_than_a_person_will_read(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count("\n") <= MAX_LINES
    assert len(text.split()) <= MAX_WORDS
