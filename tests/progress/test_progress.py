import io
import re
import sys
import time
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import fabolas
from fabolas import Float, Incumbent, Space, Study
from fabolas.budget import Budget
from fabolas.display import safe_text
from fabolas.progress import FidelityCounts, RunningTrial, Snapshot, duration, line, show_progress
from fabolas.progress.notebook import NotebookOutput
from fabolas.progress.screen import screen, state_table
from fabolas.progress.text import bars
from tests.helpers.clock import Clock
from tests.helpers.hostile import HOSTILE

INCUMBENT = Incumbent({"C": 29.4823, "gamma": 0.0208, "kernel": "rbf"}, 0.03125, 0.0041, True, (1,))
FULL = Snapshot(
    elapsed=65.0,
    trials=23,
    failed=2,
    incumbent=INCUMBENT,
    fidelity={"size": 1250, "epochs": 0.5},
    overhead_share=0.09,
    abandoned=1,
    at_target=3,
    running=tuple(RunningTrial(23 + i, {"size": 1250, "epochs": 3}, 5.1, 4.2) for i in range(6)),
    fidelity_counts=(
        FidelityCounts("size", 128, 20_000, (9, 4, 3, 1, 0, 0, 2, 4)),
        FidelityCounts("epochs", 1, 20, (1, 0, 0, 0, 0, 0, 0, 22)),
    ),
    failure=(7, "ValueError: " + "a reason that is rather long " * 5),
)


def drawn(snapshot: Snapshot, budget: Budget, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(screen(snapshot, budget))
    return [row.rstrip() for row in captured.get().splitlines()]


def shown(terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100, highlight=False, _environ={})
    clock = Clock()
    with show_progress(True, Budget(1800.0, 100), clock, console) as display:
        for trial in range(1, 24):
            clock.now = 10.0 * trial
            display.update(Snapshot(clock.now, trial, 2, INCUMBENT, {"size": 1250}, 0.09))
    return stream.getvalue()


def test_the_progress_line_says_time_trials_incumbent_size_and_overhead() -> None:
    assert line(FULL, Budget(1800.0, 100)) == (
        "1m05s / 30m00s | 23 / 100 trials (2 failed) | best 0.03125 ± 0.0041 | "
        "last trial: size 1,250, epochs 0.5 | 9% overhead"
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
        "trials    23 of 100 (2 failed, 1 abandoned)",
        "overhead  9% of the time, for choosing trials",
        "best      0.03125 ± 0.0041, verified at the target",
        "          C = 29.48, gamma = 0.0208, kernel = rbf",
        "size      128 █▄▃▂··▃▄ 20,000  3 at the target",
        "epochs    1 ▁······█ 20",
        "running   #23 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          #24 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          #25 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          #26 size 1,250, epochs 3, for 4.2s of about 5.1s",
        "          and 2 more",
        "failed    #7 ValueError: a reason that is rather long a reason that is ra…",
    ]
    assert drawn(replace(FULL, notice="waiting"), Budget(1800.0), 80)[-1] == "note      waiting"


@pytest.mark.parametrize("width", [48, 60, 80, 120, 200])
def test_the_screen_fits_any_width_without_wrapping(width: int) -> None:
    rows = drawn(FULL, Budget(1800.0, 100), width)
    assert len(rows) == 13
    assert (
        max(map(len, rows)) <= width - 6
    )  # room for the ^C of the terminal, which must not start a new line
    assert "1m05s / 30m00s, 28m55s left" in rows[0]


def test_the_bar_is_full_when_the_first_limit_is_reached() -> None:
    def share(snapshot: Snapshot, budget: Budget) -> float:
        row = drawn(snapshot, budget, 80)[0]  # without colours only the completed part is drawn
        return row.count("━") / (74 - len("fabolas     ") - len(row.split("━")[-1].lstrip("╸ ")))

    little, much = (share(replace(FULL, elapsed=s), Budget(1800.0)) for s in (180.0, 1620.0))
    assert (little, much) == pytest.approx((0.1, 0.9), abs=0.03)
    assert share(FULL, Budget(1800.0, 23)) == share(FULL, Budget(60.0)) == 1.0
    assert share(Snapshot(), Budget(trials=5)) == 0


def test_a_run_without_trials_or_time_limit_has_an_honest_screen() -> None:
    rows = drawn(Snapshot(), Budget(trials=5), 60)
    assert rows[0].endswith("0.0s")
    assert rows[1:] == ["trials    0 of 5", "best      no answer yet"]
    unverified = replace(FULL, incumbent=replace(INCUMBENT, verified=False), elapsed=1801.0)
    rows = drawn(unverified, Budget(1800.0), 80)
    assert rows[0].endswith("30m01s / 30m00s, time is up")
    assert rows[3] == "best      0.03125 ± 0.0041, not verified at the target"


def test_a_bar_is_higher_for_more_trials_and_a_dot_means_none() -> None:
    assert (
        bars(FidelityCounts("size", 1, 2, (0, 1, 2, 4, 8))) == "1 ·▂▃▅█ 2"
    )  # in eighths of the largest count, at least one eighth
    assert bars(FidelityCounts("share", 0.125, 1.0, (0, 0))) == "0.125 ·· 1"


def test_a_snapshot_counts_the_trials_of_the_study() -> None:
    space = Space({"x": Float(0.0, 1.0)}, {"size": (10, 1000)})
    with Study(space, strategy="random", seed=0, overhead=1.0, clock=lambda: 0.0) as study:
        for loss in (0.5, None, 0.25):
            s = study.ask()
            if loss is None:
                study.fail(s, "Traceback\n  somewhere\nOSError: disk full\n", cost=3.0)
            else:
                study.tell(s, loss, cost=3.0)
        study.abandon(study.ask(), "interrupted")
        waiting = study.ask()
        snapshot = Snapshot.of(
            space,
            study.history,
            study.running,
            {},
            elapsed=1.0,
            study_elapsed=20.0,
            overhead=study.overhead,
            incumbent=None,
        )
    assert (snapshot.trials, snapshot.failed, snapshot.abandoned, snapshot.at_target) == (4, 1, 1, 2)
    assert snapshot.fidelity_counts == (FidelityCounts("size", 10, 1000, (0, 0, 0, 0, 0, 0, 0, 4)),)
    assert snapshot.running == (RunningTrial(waiting.id, {"size": 1000}, None),)
    assert snapshot.failure == (1, "OSError: disk full")
    assert snapshot.overhead_share == pytest.approx(5 / 20, rel=1e-3)  # of the elapsed time
    empty = Snapshot.of(
        space, type(study.history)(), (), {}, elapsed=0.0, study_elapsed=0.0, overhead=0.0, incumbent=None
    )
    assert empty == Snapshot(fidelity_counts=(FidelityCounts("size", 10, 1000, (0,) * 8),))


def test_without_a_terminal_progress_is_a_few_lines_and_the_last_one_is_the_final_state() -> None:
    lines = shown(terminal=False).splitlines()
    assert 3 <= len(lines) <= 10
    assert all(text.endswith("9% overhead") for text in lines)
    assert lines[-1].startswith("3m50s / 30m00s | 23 / 100 trials")


def test_on_a_terminal_progress_is_one_screen_that_ends_with_the_last_snapshot() -> None:
    output = shown(terminal=True)
    assert output.count("\n") < 3 * 4  # each update overwrites the one before
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output).rstrip().splitlines()[-5:]
    assert "3m50s / 30m00s" in last[0]
    assert last[1].startswith("trials    23 of 100 (2 failed)")


def test_the_time_of_a_running_trial_goes_on_between_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Snapshot] = []
    clock = Clock()

    def note(snapshot: Snapshot, budget: Budget) -> str:
        seen.append(snapshot)
        return "screen"

    monkeypatch.setattr("fabolas.progress.screen.screen", note)
    console = Console(file=io.StringIO(), force_terminal=True, _environ={})
    with show_progress(True, Budget(1800.0), clock, console) as display:
        clock.now = 10.0
        display.update(Snapshot(10.0, running=(RunningTrial(3, {"size": 5}),)))
        clock.now = 14.0
        display.update(
            Snapshot(14.0, running=(RunningTrial(3, {"size": 5}), RunningTrial(4, {"size": 5}, seconds=0.5)))
        )
        display.notice("waiting for the running trials")
        clock.now = 15.5
        for _ in range(200):  # the display asks four times a second
            if seen and seen[-1].elapsed == 15.5:
                break
            time.sleep(0.05)
    assert seen[-1].elapsed == 15.5
    assert [trial.seconds for trial in seen[-1].running] == [
        5.5,
        2.0,
    ]  # the second one had been running for 0.5 s at its first update
    assert seen[-1].notice == "waiting for the running trials"


def hostile_snapshot(text: str) -> Snapshot:
    """User text everywhere: names, choices, fidelities, the error and a notice."""
    return Snapshot(
        trials=3,
        failed=1,
        incumbent=Incumbent({text: 1.0, "choice": text, "list": [text]}, 0.5, 0.1, True, (1,)),
        fidelity={text: 7},
        running=(RunningTrial(4, {text: 7}),),
        fidelity_counts=(FidelityCounts(text, 1, 10, (1, 2)),),
        failure=(2, f"ValueError: {text}"),
        notice=f"note {text}",
    )


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("terminal", [True, False])
def test_user_text_is_shown_as_it_is_in_a_terminal_and_in_a_log(terminal: bool, text: str) -> None:
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=terminal, color_system=None, width=3000, highlight=False, _environ={}
    )
    with show_progress(True, Budget(trials=9), lambda: 0.0, console) as display:
        display.update(hostile_snapshot(text))
        if terminal:
            display.notice(f"note {text}")
    output = re.sub(r"\x1b\[\??[0-9;]*[A-KhlmJ]", "", stream.getvalue())  # what rich itself uses
    assert all(c.isprintable() or c in " \n\r" or c >= "\xa0" for c in output)
    assert "Traceback" not in output
    assert f"{safe_text(text)} 7" in output
    if terminal:
        assert f"choice = {safe_text(text)}, list = " in output
        assert f"failed    #2 ValueError: {safe_text(text)}" in output
        assert f"note      note {safe_text(text)}" in output


@pytest.mark.parametrize("text", HOSTILE)
def test_user_text_is_shown_as_it_is_in_a_notebook(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contents: list[dict[str, str]] = []
    module = types.ModuleType("IPython.display")
    module.display = lambda content, **_: contents.append(content)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    NotebookOutput(lambda: state_table(hostile_snapshot(text), wrap=True))
    (content,) = contents
    tags = set(re.findall(r"<\s*(/?\w+)", content["text/html"]))
    assert tags <= {"pre", "/pre", "span", "/span"}
    assert not re.search(r"<[^>]*(href|on\w+|src)=", content["text/html"])
    plain = content["text/plain"].replace("\n", "").replace(" ", "")
    assert safe_text(f"ValueError: {text}").replace(" ", "").replace("\u3000", "") in plain
    assert "\x1b" not in content["text/plain"] + content["text/html"]


def test_a_fresh_budget_counts_only_the_trials_of_this_run() -> None:
    snapshot = replace(FULL, trials=18, trials_before=12)
    assert "| 6 / 6 trials after 12 earlier ones (2 failed) |" in line(snapshot, Budget(trials=6))
    rows = drawn(snapshot, Budget(trials=6), 80)
    assert rows[1] == "trials    6 of 6 after 12 earlier ones (2 failed, 1 abandoned)"
    assert "━" in rows[0]
    assert " ╸" not in drawn(replace(snapshot, trials=15), Budget(trials=6), 80)[0]


def test_the_run_itself_shows_the_trials_of_its_fresh_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n, fresh in ((12, False), (6, True)):
        fabolas.minimize(
            lambda config: config["x"],
            {"x": Float(0.0, 1.0)},
            max_trials=n,
            strategy="random",
            storage=tmp_path / "run.db",
            fresh_budget=fresh,
        )
    last = capsys.readouterr().err.splitlines()[-1]
    assert "| 6 / 6 trials after 12 earlier ones |" in last


def test_a_negative_duration_is_shown_as_zero() -> None:
    assert duration(-999_993.5) == "0.0s"


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
