"""All faults, and one table of what held: ``python -m tests.faults [--only PART ...] [--short] [--seed N]``."""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator

from tests.faults import damage, disk, executors, interrupts, kill, names, objectives
from tests.faults.tally import Tried, table

PARTS: dict[str, Callable[[random.Random, bool, int | None], Iterator[Tried]]] = {
    "objectives": objectives.run,
    "executors": executors.run,
    "interrupts": interrupts.run,
    "kill": kill.run,
    "damage": damage.run,
    "names": names.run,
    "disk": disk.run,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description="Try faults and count what held."
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts; default all"
    )
    parser.add_argument("--short", action="store_true", help="a handful of each")
    parser.add_argument(
        "--count", type=int, help="how many kinds, runs or files of each part; default what `make faults` has"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", file=sys.stderr, flush=True)
    tried: list[Tried] = []
    for part in options.only:
        start, rng = time.monotonic(), random.Random(f"{options.seed} {part}")
        for one in PARTS[part](rng, options.short, options.count):
            tried.append(one)
            if one.problem:
                print(f"failed: {one.what}: {one.problem}", file=sys.stderr, flush=True)
        print(f"{part}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    print(table(tried))
    return int(any(one.problem for one in tried))


if __name__ == "__main__":
    sys.exit(main())
