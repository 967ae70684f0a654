"""The live page in Chromium, served by the command: it follows a run without a reload."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fabolas
from fabolas.plots.labels import short_name
from tests.helpers.browser import DESKTOP, PHONE, Browser
from tests.helpers.study_files import HOSTILE_NAME, SIZE, SPACE, write_hostile_study, write_study
from tests.helpers.waiting import wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    write_study(folder / "first.db", 8)
    write_study(folder / "second.db", 5, seed=1)
    write_hostile_study(folder / "hostile<b>.db")
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a dashboard of the folder, in a process of its own."""
    command = [sys.executable, "-m", "fabolas", "dashboard", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+/", server.stderr.readline())
            assert found is not None
            yield found[0]
        finally:
            server.terminate()
            assert server.wait(20) in (0, -15)


@pytest.mark.slow
def test_a_running_study_is_followed_without_a_reload(browser: Browser, address: str, folder: Path) -> None:
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=0, storage=folder / "running.db") as study:
        study.tell(study.ask(), 0.5, cost=1.0)
        browser.open(f"{address}study/running.db/")
        browser.run("window.same = true; scrollTo(0, document.body.scrollHeight)")
        wait_until(lambda: browser.texts("#trials-table .open-row") == ["#0"])
        assert browser.texts("#numbers dd")[0] == "1"
        assert "running" in browser.text("#head")
        suggestion = study.ask_for(study.best_config)
        study.tell(suggestion, 0.25, cost=2.0)
        wait_until(lambda: browser.texts("#trials-table .open-row") == ["#1", "#0"])
        wait_until(lambda: browser.texts("#numbers dd")[0] == "2")
        assert "a measured loss of 0.25 at the target" in browser.text("#answer")
    wait_until(lambda: "not running" in browser.text("#head"))
    assert browser.run("return window.same")
    assert browser.console() == []


@pytest.mark.slow
def test_what_the_user_has_filtered_and_opened_survives_an_update(
    browser: Browser, address: str, folder: Path
) -> None:
    with fabolas.Study(SPACE, SIZE, strategy="random", seed=1, storage=folder / "kept.db") as study:
        study.fail(study.ask(), "first reason")
        study.tell(study.ask(), 0.5, cost=1.0)
        browser.open(f"{address}study/kept.db/")
        browser.run("scrollTo(0, document.body.scrollHeight)")
        wait_until(lambda: len(browser.texts("#trials-table .open-row")) == 2)
        browser.type("#trials-table input", "reason")
        browser.click("[data-focus='row 0']")
        study.fail(study.ask(), "second reason")
        wait_until(lambda: browser.texts("#trials-table .open-row") == ["#2", "#0"])
        assert browser.texts("tr.detail pre") == ["first reason"]


@pytest.mark.slow
def test_a_directory_compares_its_studies(browser: Browser, address: str, tmp_path: Path) -> None:
    for size in (DESKTOP, PHONE):
        browser.show_as(size)
        browser.open(address)
        assert {"first.db", "second.db"} <= set(browser.texts("#studies tbody th"))
        assert len(browser.texts(".plot .main-svg")) >= 1
        assert browser.run("return document.documentElement.scrollWidth - innerWidth") <= 0
        browser.screenshot(tmp_path / "directory.png")
    assert browser.console() == []
    names = browser.run(
        "return document.querySelector('.plot').data.map(trace => trace.name).filter(Boolean)"
    )
    assert {"first.db", "second.db"} <= set(names)


@pytest.mark.slow
def test_markup_of_the_user_is_shown_as_text(browser: Browser, address: str) -> None:
    browser.open(address)
    assert "hostile<b>.db" in browser.text("#studies")
    browser.open(f"{address}study/hostile%3Cb%3E.db/")
    for place in ("#record", "#best-config"):
        assert HOSTILE_NAME in browser.text(place)
    browser.run("scrollTo(0, document.body.scrollHeight)")
    wait_until(lambda: len(browser.texts("#trials-table .open-row")) == 12)
    assert short_name(HOSTILE_NAME) in browser.text("#trials-table thead")
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    assert "hacked" not in browser.driver.title
    assert browser.console() == []


@pytest.mark.slow
def test_when_the_server_ends_the_page_says_so_and_keeps_its_content(
    browser: Browser, tmp_path: Path
) -> None:
    path = write_study(tmp_path / "run.db", 3)
    command = [sys.executable, "-m", "fabolas", "dashboard", str(path), "--while-stdin-is-open", "--port"]
    with subprocess.Popen([*command, str(port := _free_port())], stdin=subprocess.PIPE) as server:
        assert server.stdin is not None
        wait_until(lambda: _answers(port))
        browser.open(f"http://127.0.0.1:{port}/")
        server.stdin.close()
        wait_until(lambda: "have ended" in browser.text("#connection"))
        assert server.wait(30) == 0
    assert browser.texts("#numbers dd")[0].startswith("3")


def _free_port() -> int:
    from fabolas.cli.dashboard import _free_port

    return _free_port()


def _answers(port: int) -> bool:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
