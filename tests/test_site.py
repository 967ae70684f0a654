"""The documentation site: no page is too long; every public name is in the API reference, with an example."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fabolas
from tests.helpers.browser import PHONE, Browser
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does. `make test` has built it already, and says where."""
    if "BUILT_SITE" in os.environ:
        return Path(os.environ["BUILT_SITE"])
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(built)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr
    return built


@pytest.mark.slow
def test_no_page_of_the_site_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    loaded = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?https?:|<link[^>]*stylesheet[^>]*https?:")
    assert len(pages) > 50
    assert not [page.name for page in pages if loaded.search(page.read_text("utf-8"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["index.html", "howto/optuna.html"])
def test_search_works_in_a_page_that_was_opened_from_a_folder(
    site: Path, browser: Browser, page: str
) -> None:
    browser.driver.get((site / page).as_uri())
    browser.run("document.querySelector('input.md-search__input').focus()")
    browser.type("input.md-search__input", "FabolasSearchCV")
    browser.run("document.querySelector('input.md-search__input').dispatchEvent(new Event('keyup'))")
    links = "return [...document.querySelectorAll('.md-search-result__link')].map(e => e.pathname)"
    assert str(site / "api" / "sklearn.html") in wait_until(lambda: browser.run(links))
    assert not browser.console()


@pytest.mark.slow
def test_pages_with_signatures_tables_and_notebooks_are_not_wider_than_a_phone(
    site: Path, browser: Browser
) -> None:
    browser.show_as(PHONE)
    wide = []
    for page in sorted(
        page for part in ("api", "method", "tutorials") for page in (site / part).glob("*.html")
    ):
        browser.driver.get(page.as_uri())
        if browser.run("return document.documentElement.scrollWidth") > PHONE[0]:
            wide.append(page.name)
    assert not wide
