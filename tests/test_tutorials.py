"""The tutorials are notebooks: they run, and print what their stored outputs say."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.ipynb"))


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell printed."""
    return [
        "".join(output["text"] for output in cell["outputs"] if output["output_type"] == "stream")
        for cell in notebook.cells
        if cell["cell_type"] == "code"
    ]


def displayed(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """The formats of what each cell shows: tables, images, text."""
    return [
        sorted(kind for output in cell["outputs"] for kind in output.get("data", {}))
        for cell in notebook.cells
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_shows_a_figure_and_has_a_title_of_its_own(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert ["image/png", "text/plain"] in displayed(notebook)
    assert notebook.cells[0]["source"].startswith("# Tutorial: ")


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_prints_what_it_shows(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    shown, formats = printed(notebook), displayed(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(notebook) == shown
    assert displayed(notebook) == formats
    assert any(shown)
