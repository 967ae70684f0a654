import io
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fabolas import Float, Incumbent, Space, Study
from fabolas.budget import Budget
from fabolas.progress import Running, Sizes, Snapshot, duration, line, reporting
from fabolas.progress.screen import screen
from fabolas.progress.text import bars

INCUMBENT = Incumbent({"C": 29.4823, "gamma": 0.0208, "kernel": "rbf"}, 0.03125, 0.0041, True, (1,))
FULL = Snapshot(
    elapsed=65.0,
    trials=23,
    failed=2,
    incumbent=INCUMBENT,
    fidelity={"size": 1250, "epochs": 0.5},
    thinking_share=0.09,
    lost=1,
    at_target=3,
    running=tuple(Running(23 + i, {"size": 1250, "epochs": 3}, 5.1, 4.2) for i in range(6)),
    sizes=(
        Sizes("size", 128, 20_000, (9, 4, 3, 1, 0, 0, 2, 4)),
        Sizes("epochs", 1, 20, (1, 0, 0, 0, 0, 0, 0, 22)),
    ),
    failure=(7, "ValueError: " + "a reason that is rather long " * 5),
)


class Clock:
    """Tells the time it was set to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def drawn(news: Snapshot, budget: Budget, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(screen(news, budget))
    return [row.rstrip() for row in captured.get().splitlines()]


def shown(terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100, highlight=False, _environ={})
    clock = Clock()
    with reporting(True, Budget(1800.0, 100), clock, console) as report:
        for trial in range(1, 24):
            clock.now = 10.0 * trial
            report(Snapshot(clock.now, trial, 2, INCUMBENT, {"size": 1250}, 0.09))
    return stream.getvalue()


def test_the_progress_line_says_time_trials_incumbent_size_and_thinking() -> None:
    assert line(FULL, Budget(1800.0, 100)) == (
        "1m05s / 30m00s | 23 / 100 trials (2 failed) | best 0.03125 ± 0.0041 | "
        "size 1,250, epochs 0.5 | 9% thinking"
    )
    assert line(Snapshot(), Budget(trials=5)) == "0.0s | 0 / 5 trials | no answer yet"
    assert [duration(s) for s in (0.04, 9.5, 59.4, 60, 3599.9, 7380)] == [
        "0.0s",
        "9.5s",
        "59s",
        "1m00s",
        "1h00m",
        "2h03m",
    ]


def test_the_screen_has_a_row_for_each_fact() -> None:
    rows = drawn(FULL, Budget(1800.0, 100), width=80)
    assert re.fullmatch(r"fabolas   ━+[╸ ]+1m05s / 30m00s, 28m55s left", rows[0])
    assert rows[1:] == [
        "trials    23 of 100 (2 failed, 1 lost), 9% of the time thinking",
        "best      0.03125 ± 0.0041, run at the target",
        "          C = 29.48, gamma = 0.0208, kernel = rbf",
        "size      128 █▄▃▂··▃▄ 20,000  3 at the target",
        "epochs    1 ▁······█ 20",
        "running   #23 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          #24 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          #25 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          #26 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          and 2 more",
        "failure   #7 ValueError: a reason that is rather long a reason that is ra…",
    ]
    assert drawn(replace(FULL, notice="waiting"), Budget(1800.0), 80)[-1] == "note      waiting"


@pytest.mark.parametrize("width", [48, 60, 80, 120, 200])
def test_the_screen_fits_any_width_without_wrapping(width: int) -> None:
    rows = drawn(FULL, Budget(1800.0, 100), width)
    assert len(rows) == 12
    assert max(map(len, rows)) <= width - 6  # room for the terminal's ^C, which must not begin a new line
    assert "1m05s / 30m00s, 28m55s left" in rows[0]


def test_the_bar_is_full_when_the_first_limit_is_reached() -> None:
    def share(news: Snapshot, budget: Budget) -> float:
        row = drawn(news, budget, 80)[0]  # without colours only what is done is drawn
        return row.count("━") / (74 - len("fabolas     ") - len(row.split("━")[-1].lstrip("╸ ")))

    little, much = (share(replace(FULL, elapsed=s), Budget(1800.0)) for s in (180.0, 1620.0))
    assert (little, much) == pytest.approx((0.1, 0.9), abs=0.03)
    assert share(FULL, Budget(1800.0, 23)) == share(FULL, Budget(60.0)) == 1.0
    assert share(Snapshot(), Budget(trials=5)) == 0


def test_a_run_without_news_or_time_limit_has_an_honest_screen() -> None:
    rows = drawn(Snapshot(), Budget(trials=5), 60)
    assert rows[0].endswith("0.0s")
    assert rows[1:] == ["trials    0 of 5", "best      no answer yet"]
    unverified = replace(FULL, incumbent=replace(INCUMBENT, verified=False), elapsed=1801.0)
    rows = drawn(unverified, Budget(1800.0), 80)
    assert rows[0].endswith("30m01s / 30m00s, time is up")
    assert rows[2] == "best      0.03125 ± 0.0041, not yet run at the target"


def test_bars_rise_with_the_counts_and_a_dot_is_none() -> None:
    assert bars(Sizes("size", 1, 2, (0, 1, 2, 4, 8))) == "1 ·▂▃▅█ 2"  # eighths of the most, at least one
    assert bars(Sizes("share", 0.125, 1.0, (0, 0))) == "0.125 ·· 1"


def test_a_snapshot_counts_what_the_record_says() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"size": (10, 1000)})
    with Study(space, strategy="random", seed=0, overhead=1.0, clock=lambda: 0.0) as study:
        for loss in (0.5, None, 0.25):
            s = study.ask()
            if loss is None:
                study.fail(s, "Traceback\n  somewhere\nOSError: disk full\n", cost=3.0)
            else:
                study.tell(s, loss, cost=3.0)
        study.lose(study.ask(), "interrupted")
        waiting = study.ask()
        news = Snapshot.of(
            space, study.history, study.running, {}, elapsed=1.0, thinking=study.thinking, incumbent=None
        )
    assert (news.trials, news.failed, news.lost, news.at_target) == (4, 1, 1, 2)
    assert news.sizes == (Sizes("size", 10, 1000, (0, 0, 0, 0, 0, 0, 0, 4)),)
    assert news.running == (Running(waiting.id, {"size": 1000}, None),)
    assert news.failure == (1, "OSError: disk full")
    assert news.thinking_share == pytest.approx(5 / 14, rel=1e-3)
    empty = Snapshot.of(space, type(study.history)(), (), {}, elapsed=0.0, thinking=0.0, incumbent=None)
    assert empty == Snapshot(sizes=(Sizes("size", 10, 1000, (0,) * 8),))


def test_off_a_terminal_progress_is_a_few_whole_lines_and_the_last_is_among_them() -> None:
    lines = shown(terminal=False).splitlines()
    assert 3 <= len(lines) <= 10
    assert all(text.endswith("9% thinking") for text in lines)
    assert lines[-1].startswith("3m50s / 30m00s | 23 / 100 trials")


def test_on_a_terminal_progress_is_one_screen_that_ends_with_the_last_news() -> None:
    output = shown(terminal=True)
    assert output.count("\n") < 3 * 4  # drawn over itself, not below
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output).rstrip().splitlines()[-4:]
    assert "3m50s / 30m00s" in last[0]
    assert last[1].startswith("trials    23 of 100 (2 failed)")


def test_while_an_evaluation_runs_its_seconds_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Snapshot] = []
    clock = Clock()

    def note(news: Snapshot, budget: Budget) -> str:
        seen.append(news)
        return "screen"

    monkeypatch.setattr("fabolas.progress.screen.screen", note)
    console = Console(file=io.StringIO(), force_terminal=True, _environ={})
    with reporting(True, Budget(1800.0), clock, console) as report:
        clock.now = 10.0
        report(Snapshot(10.0, running=(Running(3, {"size": 5}),)))
        clock.now = 14.0
        report(Snapshot(14.0, running=(Running(3, {"size": 5}), Running(4, {"size": 5}, seconds=0.5))))
        report.notice("waiting for what is running")
        clock.now = 15.5
        for _ in range(200):  # the display asks four times a second
            if seen and seen[-1].elapsed == 15.5:
                break
            time.sleep(0.05)
    assert seen[-1].elapsed == 15.5
    assert [trial.seconds for trial in seen[-1].running] == [
        5.5,
        2.0,
    ]  # the second was first heard of half a second late
    assert seen[-1].notice == "waiting for what is running"


NOTEBOOK = """
import time, fabolas
def objective(config, size):
    time.sleep(0.15)
    return config["x"] + 1 / size
result = fabolas.minimize(objective, {"x": fabolas.Float(0.0, 1.0)}, {"size": (10, 1000)},
                          max_trials=12, strategy="random", seed=0)
"""


@pytest.mark.slow
def test_in_a_notebook_progress_is_one_output_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    spec = tmp_path / "kernels" / "here"
    spec.mkdir(parents=True)
    command = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (spec / "kernel.json").write_text(f'{{"argv": {command}, "display_name": "here", "language": "python"}}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    messages: list[str] = []

    class Watched(nbclient.NotebookClient):  # type: ignore[misc]
        def process_message(self, message: dict[str, Any], *args: Any) -> Any:
            messages.append(message["msg_type"])
            return super().process_message(message, *args)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    Watched(notebook, timeout=120, kernel_name="here").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data"
    assert messages.count("update_display_data") >= 3
    assert "trials    12 of 12" in output.data["text/plain"]
    assert "<pre" in output.data["text/html"]
    assert "12 of 12" in output.data["text/html"]
