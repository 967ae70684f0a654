"""The wheel: what is in it, and that it runs where nothing else is installed."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEMO_DATA = "fabolas/demo/mnist.npz"
MAX_CODE_BYTES = 520_000  # of the wheel, without the data of the demo (docs/decisions/wheel.md)


# The demo with few of its rows: most of its time is a training on all of them.
SHORT_DEMO = """
import sys
from fabolas.cli import main
from fabolas.demo import data
all_rows = data.digits()
data.digits = lambda: data.Digits(**{name: rows[:1000] for name, rows in vars(all_rows).items()})
sys.exit(main(["demo", "--time-budget", "1s"]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(dist), str(ROOT))
    (built,) = dist.glob("*.whl")
    return built


def run(*command: str, cwd: Path | None = None) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=900, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.slow
@pytest.mark.first
def test_the_wheel_is_small_without_the_data_of_the_demo_and_passes_twine(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.compress_size for entry in archive.infolist()}
    assert wheel.stat().st_size - sizes[DEMO_DATA] < MAX_CODE_BYTES
    assert "fabolas/py.typed" in sizes
    assert not [name for name in sizes if not name.startswith("fabolas")]
    assert max((size, name) for name, size in sizes.items() if name != DEMO_DATA)[0] < 60_000
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", str(wheel))


@pytest.mark.slow
@pytest.mark.first
def test_the_wheel_installs_in_a_clean_environment_and_runs_the_demo(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # it would hide what is installed
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = str(environment / "bin" / "python")
    # Without compiling the libraries, most of which the demo does not import.
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--prefer-binary", "--no-compile", f"{wheel}[sklearn]")
    assert "demo" in run(str(environment / "bin" / "fabolas"), "--help", cwd=tmp_path)
    shown = run(python, "-c", SHORT_DEMO, cwd=tmp_path)
    assert "gamma" in shown
    assert "The answer" in shown
    where = run(python, "-c", "import fabolas; print(fabolas.__file__)", cwd=tmp_path)
    assert where.startswith(str(environment))


def test_nothing_but_the_demo_reads_its_data() -> None:
    code = (
        "import sys, fabolas, fabolas.api, fabolas.cli, fabolas.study;"
        "print(any('demo' in name for name in sys.modules if name.startswith('fabolas')))"
    )
    assert run(sys.executable, "-c", code).strip() == "False"
    named = [p for p in (ROOT / "src").rglob("*.py") if "mnist.npz" in p.read_text("utf-8")]
    assert [p.name for p in named] == ["data.py"]
