"""Every Python block of the documentation runs, page by page, and every link within it leads somewhere."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fabolas
from fabolas.budget import Budget, seconds_of
from fabolas.sklearn import FabolasSearchCV, prepare
from fabolas.strategies import Strategy

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = "<!-- not run -->"  # on the line before a block that needs what a test has not

_BLOCK = re.compile(rf"^(?P<skip>{NOT_RUN}\n+)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)\s]*)?\)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """The page's blocks that run, each with the line it begins on."""
    text = page.read_text(encoding="utf-8")
    found = [match for match in _BLOCK.finditer(text) if not match["skip"]]
    return [(text.count("\n", 0, match.start("code")), match["code"]) for match in found]


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
            kwargs["time_budget"] = min(seconds_of(kwargs["time_budget"]) / 40, 1.0)
        return minimize(*args, **{**kwargs, "progress": False})

    budget: Callable[..., Budget] = prepare._budget

    def short(time_budget: Any, n_iter: Any) -> Budget:
        return budget(None if time_budget is None else min(seconds_of(time_budget) / 40, 1.0), n_iter)

    fit: Callable[..., FabolasSearchCV] = FabolasSearchCV.fit

    def few(self: FabolasSearchCV, X: Any, y: Any, **params: Any) -> FabolasSearchCV:
        # One candidate is always run on all the rows: an SVC on README's 50,000 can take minutes.
        rows = slice(None) if params else slice(3_000)
        return fit(self, X[rows], y[rows], **params)

    monkeypatch.setattr(FabolasSearchCV, "fit", few)
    monkeypatch.setattr(fabolas, "minimize", small)
    monkeypatch.setattr(prepare, "_budget", short)
    monkeypatch.chdir(tmp_path)


def readers_own() -> dict[str, Any]:
    """What README's examples leave to the reader: data, and a function that trains."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(50_000, 2)), rng.normal(size=(200, 2))
    y, y_val = (X.sum(axis=1) > 0).astype(int), (X_val.sum(axis=1) > 0).astype(int)
    data = {"X": X, "y": y, "X_train": X, "y_train": y, "X_val": X_val, "y_val": y_val}
    return {**data, "train": lambda config, size: 0.5}


@pytest.mark.parametrize("name", names([page for page in PAGES if blocks(page)]))
def test_every_block_of_the_page_runs(name: str) -> None:
    namespace = {"__name__": "page", **(readers_own() if name == "README.md" else {})}
    before = set(namespace)
    run(ROOT / name, namespace)
    assert set(namespace) > before


def test_pages_are_found_and_only_marked_blocks_are_left_out(tmp_path: Path) -> None:
    assert "docs/quickstart.md" in names([page for page in PAGES if blocks(page)])
    page = tmp_path / "page.md"
    page.write_text(f"Text\n\n```python\na = 1\n```\n\n{NOT_RUN}\n```python\nb = 2\n```\n\n```\nc = 3\n```\n")
    assert blocks(page) == [(3, "a = 1\n")]


@pytest.mark.parametrize("name", names(PAGES))
def test_every_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    missing = [link for link in _LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not missing


def test_the_strategy_of_the_page_on_extending_keeps_the_contract() -> None:
    page = run(ROOT / "docs" / "extending.md", {"__name__": "page"})
    space = fabolas.Space({"x": fabolas.Float(0.0, 1.0), "kind": ["a", "b"]}, {"size": (10, 1000)})
    assert isinstance(page["Promote"](space), Strategy)

    def suggested(storage: str | None) -> list[bytes]:
        """Twelve suggestions, in one study or each in a study that was reopened for it."""
        asked: list[bytes] = []
        while len(asked) < 12:
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
