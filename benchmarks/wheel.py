"""What the bytes of the wheel are, and what they would be without docstrings and comments.

make dist && python -m benchmarks.wheel dist/*.whl
"""

import ast
import sys
import zipfile
import zlib
from pathlib import Path

from rich.console import Console
from rich.table import Table

DEMO_DATA = "fabolas/demo/mnist.npz"


def deflated(text: str) -> int:
    """Bytes of a text in a wheel."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return len(packer.compress(text.encode()) + packer.flush())


def bare(source: str) -> str:
    """The code without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def parts(path: Path) -> dict[str, int]:
    """Name of a part -> its bytes in the wheel."""
    with zipfile.ZipFile(path) as wheel:
        entries = wheel.infolist()
        sources = [wheel.read(e).decode() for e in entries if e.filename.endswith(".py")]
        code = sum(e.compress_size for e in entries if e.filename.endswith(".py"))
        data = wheel.getinfo(DEMO_DATA).compress_size
    everything = path.stat().st_size - data
    without = sum(deflated(bare(source)) for source in sources)
    return {
        "the wheel without the data of the demo": everything,
        "  Python sources": code,
        "  the rest: list of files, headers, README, JavaScript, CSS": everything - code,
        "the same without docstrings and comments": everything - code + without,
        "data of the demo": data,
    }


def main() -> None:
    table = Table("part", "kB")
    for name, size in parts(Path(sys.argv[1])).items():
        table.add_row(name, f"{size / 1000:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
