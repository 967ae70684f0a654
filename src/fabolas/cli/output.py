"""Standard output: for people on a terminal, for programs and files without trailing blanks."""

from rich.console import Console, RenderableType


def show(content: RenderableType) -> None:
    """Print on standard output."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    # Rich fills its tables with blanks to their full width.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))
