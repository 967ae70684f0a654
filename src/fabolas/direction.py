"""Whether the numbers of an objective are minimised or maximised, and what they are called."""

from typing import Literal, get_args

Direction = Literal["minimize", "maximize"]


def loss_or_value(direction: Direction) -> str:
    """What a number of the user is called: "loss" if it is minimised, else "value"."""
    return "loss" if direction == "minimize" else "value"


def check_direction(direction: str) -> Direction:
    """Return the direction.

    Raises:
        ValueError: If it is neither "minimize" nor "maximize".
    """
    for known in get_args(Direction):
        if direction == known:
            return known  # type: ignore[no-any-return]
    raise ValueError(f"direction must be 'minimize' or 'maximize', got {direction!r}")
