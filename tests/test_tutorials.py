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


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_prints_what_it_shows(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    shown = printed(notebook)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert printed(notebook) == shown
    assert any(shown)
