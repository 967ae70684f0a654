"""The package as a newcomer meets it: its names, its version, and what an import costs."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fabolas

ROOT = Path(__file__).parents[1]


def test_every_public_name_can_be_imported() -> None:
    for name in fabolas.__all__:
        assert getattr(fabolas, name) is not None
    assert dir(fabolas) == sorted(fabolas.__all__)


def test_an_unknown_name_is_answered_by_the_names_there_are() -> None:
    with pytest.raises(AttributeError, match=r"'minimise'; its names are .*minimize"):
        fabolas.minimise  # noqa: B018


def test_importing_loads_none_of_the_heavy_libraries() -> None:
    code = "import sys, fabolas; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "fabolas" in loaded
    assert not {"scipy", "ConfigSpace", "emcee", "cmaes", "sklearn", "pandas", "matplotlib"} & set(loaded)


def test_a_space_made_of_a_dict_needs_neither_scipy_nor_configspace() -> None:
    code = (
        "import sys, fabolas; fabolas.Space({'a': fabolas.Float(0, 1)});"
        "print('scipy' in sys.modules, 'ConfigSpace' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert answer.split() == ["False", "False"]


def test_the_citation_names_the_version_of_the_package() -> None:
    assert f"version: {fabolas.__version__}" in (ROOT / "CITATION.cff").read_text().splitlines()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]


def test_the_extras_are_those_that_messages_and_docs_tell_people_to_install() -> None:
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    install = re.compile(r"pip install [\"'](?:fabolas|\.)\[([\w,]+)\]")
    lists = [found for path in texts for found in install.findall(path.read_text("utf-8"))]
    assert {extra for found in lists for extra in found.split(",")} | {"dev"} == extras


def test_files_have_at_most_450_lines_and_functions_at_most_40() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text("utf-8")
        assert len(source.splitlines()) <= 450, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                assert _body_lines(node) <= 40, f"{node.name} in {path}"


def _body_lines(function: ast.FunctionDef) -> int:
    """Lines of the body, without the docstring."""
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - statements[0].lineno + 1 if statements else 0
