"""Every Python block of the documentation runs, with nothing but the page itself, and every link leads somewhere."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas.budget import Budget, seconds_of
from fabolas.sklearn import FabolasSearchCV, prepare
from fabolas.strategies import Strategy
from tests.helpers.marks import slow

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = "<!-- not run -->"  # on the line before a block that needs what a test has not

_NEEDS = (
    r"<!-- needs: (?P<needs>[\w ]+) -->"  # libraries; a block is left out where one of them is not installed
)
_BLOCK = re.compile(
    rf"^(?P<skip>{NOT_RUN}\n+)?(?:{_NEEDS}\n+)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)\s]*)?\)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """The page's blocks that run, each with the line it begins on."""
    text = page.read_text(encoding="utf-8")
    found = [match for match in _BLOCK.finditer(text) if not match["skip"] and not lacking(match)]
    return [(text.count("\n", 0, match.start("code")), match["code"]) for match in found]


def lacking(block: re.Match[str]) -> list[str]:
    """The libraries that a block needs and that are not installed."""
    return [name for name in (block["needs"] or "").split() if find_spec(name) is None]


def skip_if_lacking(page: Path) -> None:
    """Skip the test if the first block of the page needs a library that is not installed."""
    first = _BLOCK.search(page.read_text(encoding="utf-8"))
    if first is not None and lacking(first):
        pytest.skip(f"{page.name} needs {', '.join(lacking(first))}")


def run(page: Path, namespace: dict[str, Any]) -> dict[str, Any]:
    """All of the page's blocks, one after the other in one namespace."""
    for line, code in blocks(page):
        # As many empty lines before: a traceback then shows the line of the page.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)
    return namespace


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Small budgets, no progress line, and files that go where they do no harm."""
    minimize: Callable[..., fabolas.Result] = fabolas.minimize

    def small(*args: Any, **kwargs: Any) -> fabolas.Result:
        if kwargs.get("time_budget") is not None:
            # In proportion, so that a page that resumes with twice the budget still has something to do.
            kwargs["time_budget"] = min(seconds_of(kwargs["time_budget"]) / 80, 0.5)
        return minimize(*args, **{**kwargs, "progress": False})

    budget: Callable[..., Budget] = prepare._budget

    def short(time_budget: Any, n_iter: Any) -> Budget:
        return budget(None if time_budget is None else min(seconds_of(time_budget) / 80, 0.5), n_iter)

    fit: Callable[..., FabolasSearchCV] = FabolasSearchCV.fit

    def few(self: FabolasSearchCV, X: Any, y: Any, **params: Any) -> FabolasSearchCV:
        # One candidate is always run on all the rows, however short the budget.
        rows = slice(None) if params else slice(3_000)
        return fit(self, X[rows], y[rows], **params)

    monkeypatch.setattr(FabolasSearchCV, "fit", few)
    monkeypatch.setattr(fabolas, "minimize", small)
    monkeypatch.setattr(fabolas, "maximize", partial(small, direction="maximize"))
    monkeypatch.setattr(prepare, "_budget", short)
    monkeypatch.chdir(tmp_path)


WITH_BLOCKS = [page for page in PAGES if any(not m["skip"] for m in _BLOCK.finditer(page.read_text("utf-8")))]


# The budgets of the pages are cut to half a second, which may not hold a training on all the data.
@pytest.mark.filterwarnings("ignore:(an|the) evaluation at the target .*is predicted")
@pytest.mark.parametrize(
    "name",
    [slow(name)[0] if name.startswith(("docs/howto", "docs/api")) else name for name in names(WITH_BLOCKS)],
)
def test_every_block_of_the_page_runs_after_those_before_it(name: str) -> None:
    skip_if_lacking(ROOT / name)
    namespace: dict[str, Any] = {"__name__": "page"}
    run(ROOT / name, namespace)
    assert len(namespace) > 1


@pytest.mark.parametrize("name", names(WITH_BLOCKS))
def test_the_first_block_of_the_page_is_one_that_a_reader_can_run(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert not page[: page.index("```python")].rstrip().endswith(NOT_RUN)


def is_a_script(page: Path) -> bool:
    """Whether the first block that runs starts only as a file of its own; the others run in the test above."""
    first = next(match for match in _BLOCK.finditer(page.read_text("utf-8")) if not match["skip"])
    return bool(lacking(first)) or '__name__ == "__main__"' in first["code"]


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("name", names([page for page in WITH_BLOCKS if is_a_script(page)]))
def test_the_first_block_of_a_page_that_starts_processes_runs_as_a_file(name: str, tmp_path: Path) -> None:
    skip_if_lacking(ROOT / name)
    (_, code), *_ = blocks(ROOT / name)
    short = re.sub(r'time_budget="[^"]*"', "time_budget=0.2", code)
    file = tmp_path / "pasted.py"
    file.write_text(re.sub(r"(num_samples|max_trials|n_trials|n_iter)=\d+", r"\1=2", short))
    ended = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr


def test_the_readme_has_one_command_to_install_before_its_first_block() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    before = page[page.index("## Install") : page.index("```python")]
    assert re.findall(r"^    (.*)$", before, re.MULTILINE) == ['pip install ".[sklearn]"']
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "scikit-learn" in " ".join(extras["sklearn"])


@pytest.mark.parametrize("name", names(PAGES))
def test_no_page_says_to_install_a_release_that_does_not_exist(name: str) -> None:
    assert not re.search(r"pip install [\"']?fabolas", (ROOT / name).read_text(encoding="utf-8"))


def test_pages_are_found_and_only_marked_blocks_are_left_out(tmp_path: Path) -> None:
    assert "docs/get-started.md" in names([page for page in PAGES if blocks(page)])
    page = tmp_path / "page.md"
    page.write_text(f"Text\n\n```python\na = 1\n```\n\n{NOT_RUN}\n```python\nb = 2\n```\n\n```\nc = 3\n```\n")
    assert blocks(page) == [(3, "a = 1\n")]


@pytest.mark.parametrize("name", names(PAGES))
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    missing = [link for link in _LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not missing


@cache
def sources() -> list[Path]:
    """All Python files of the project."""
    return [
        path for part in ("src", "tests", "experiments", "benchmarks") for path in (ROOT / part).rglob("*.py")
    ]


EXAMPLES = {"strategies/promote.py", "problem.py"}  # files that the reader writes


@pytest.mark.parametrize("name", names(PAGES))
def test_every_source_file_that_a_page_names_exists(name: str) -> None:
    files = [f"/{path.relative_to(ROOT)}" for path in sources()]
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / name).read_text("utf-8"))) - EXAMPLES
    assert not [path for path in named if not any(file.endswith(f"/{path}") for file in files)]


def test_the_strategy_of_the_page_on_extending_keeps_the_contract() -> None:
    page = run(ROOT / "docs" / "developing" / "extending.md", {"__name__": "page"})
    space = fabolas.Space({"x": fabolas.Float(0.0, 1.0), "kind": ["a", "b"]}, {"size": (10, 1000)})
    assert isinstance(page["Promote"](space), Strategy)

    def suggested(storage: str | None) -> list[bytes]:
        """Twelve suggestions, in one study or each in a study that was reopened for it."""
        asked: list[bytes] = []
        for _ in range(12 if storage else 1):
            with fabolas.Study(space, strategy=page["Promote"](space), storage=storage, seed=1) as study:
                for _ in range(1 if storage else 12):
                    s = study.ask()
                    assert np.array_equal(space.snap(s.point[None])[0], s.point)
                    study.tell(s, s.config["x"] + 1 / s.fidelity["size"], cost=1.0)
                    asked.append(s.point.tobytes())
                if len(asked) == 12:
                    best = study.incumbent()
                    assert best is not None
                    assert best.verified
        return asked

    assert suggested(None) == suggested("promote.db")
