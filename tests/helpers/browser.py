"""Chromium for tests: opens pages, reads their console, switches theme and width, takes screenshots."""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.helpers.waiting import wait_until

DESKTOP, PHONE = (1280, 900), (375, 812)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


def missing() -> str | None:
    """Why there is no browser; None if there is one."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not found; apt-get install chromium chromium-driver" if lacking else None


class Browser:
    """One page of a running Chromium."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, address: str | Path) -> None:
        """Open a page, and wait until it has drawn what is in view."""
        self.console()  # what earlier pages said
        self.driver.get(address.as_uri() if isinstance(address, Path) else address)
        wait_until(lambda: self.run("return document.body.dataset.ready") == "true")

    def run(self, script: str, *arguments: Any) -> Any:
        """The result of JavaScript in the page."""
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        """The visible text of the first element."""
        found: str = self.run("return document.querySelector(arguments[0]).innerText", selector)
        return found

    def texts(self, selector: str) -> list[str]:
        """The visible texts of all such elements."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector
        )
        return found

    def click(self, selector: str) -> None:
        """Click the first such element."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector: str, text: str) -> None:
        """Replace the text of an input."""
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input'))",
            selector,
            text,
        )

    def console(self) -> list[str]:
        """Warnings and errors since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def show_as(self, size: tuple[int, int], theme: Literal["light", "dark"] = "light") -> None:
        """Change the width of the page and the theme that the user prefers."""
        phone = size[0] < 600
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 2 if phone else 1, "mobile": phone},
        )
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": phone})
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def screenshot(self, path: Path, *, whole: bool = True) -> bytes:
        """Write a PNG of the whole page, or of what is in view, and return it."""
        if whole:
            self.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": whole})
        data = base64.b64decode(taken["data"])
        path.write_bytes(data)
        return data

    def pdf(self) -> bytes:
        """The page as it is printed."""
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        return base64.b64decode(printed["data"])


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with a new profile in this directory."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
