"""Hypothesis profiles and the fixtures that several rooms use.

The default profile has the same examples in every run; HYPOTHESIS_PROFILE=thorough searches for new ones.
"""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from fabolas.strategies import fabolas2017

if TYPE_CHECKING:
    from tests.helpers.browser import Browser

settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


_WAITED_FOR = {"executor", "chromium_session"}  # fixtures: clusters, and the browser


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first, then the modules that wait for clusters and for the browser, then all others.

    A worker takes tests from the end of another's list. So one worker has all these tests: it starts each cluster and
    the browser once, and while it waits the others compute.
    """
    waiting = set()
    for item in items:
        # Workers that collect different names refuse to run, and then all tests would be run alone.
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: its name holds an address; give this parameter an id")
        fixtures = set(getattr(item, "fixturenames", ()))
        if "chromium_session" in fixtures:
            item.add_marker(pytest.mark.slow)  # already its start is
        if fixtures & _WAITED_FOR:
            waiting.add(item.path)
    items.sort(key=lambda item: (item.get_closest_marker("first") is None, item.path not in waiting))


@pytest.fixture(autouse=True)
def usual_interrupts() -> Iterator[None]:
    """Ctrl-C as in a terminal: where tests run in the background it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def little_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fabolas2017` with smaller approximations: a decision takes a twentieth of the time. It has no option for it."""
    small = {"mcmc_steps": 5, "K": 3, "n_representers": 15, "n_samples": 64, "n_outcomes": 3}
    small |= {"pool_size": 100, "n_screened": 80, "n_estimated": 6, "n_refined": 30}
    monkeypatch.setattr(fabolas2017, "EFFORT", replace(fabolas2017.EFFORT, **small))
    cheap = replace(fabolas2017.ACQUISITION, evaluations_per_dimension=8)
    monkeypatch.setattr(fabolas2017, "ACQUISITION", cheap)


@pytest.fixture(scope="session")
def chromium_session(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Browser]":
    """One Chromium for all tests. Without one they are skipped, but not in CI."""
    from tests.helpers.browser import chromium, missing

    if (reason := missing()) is not None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(chromium_session: "Browser") -> "Browser":
    """The browser with a wide and light page, and an empty console."""
    from tests.helpers.browser import DESKTOP

    chromium_session.driver.get("about:blank")
    chromium_session.show_as(DESKTOP)
    chromium_session.console()
    return chromium_session
