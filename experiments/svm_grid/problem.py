"""A packed table as a benchmark problem: a call gives loss and cost of a configuration on `size` rows.

Between the tabulated cells the surface is continuous: bilinear in (log C, log gamma) and linear in log size,
for the errors and for the logarithm of the seconds. Its lowest value is therefore that of a grid cell. Where
a size has several repetitions, a call draws one of them for the whole surface, so that two calls differ as
two random subsets do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from fabolas import Float

Array = npt.NDArray[np.float64]
HERE = Path(__file__).parent
_EDGE = 1e-6  # how far exp and log may carry a bound of the grid outside it


@dataclass(frozen=True)
class Problem:
    """Validation error and seconds of an SVM; the target is the largest size.

    Attributes:
        name: The table's, with the target and the cost's scale where they are not the table's own.
        log_c: (a,) grid of log C, ascending.
        log_gamma: (b,) grid of log gamma, ascending.
        sizes: (S,) numbers of training rows, ascending.
        repetitions: (S,) how many repetitions each size has.
        valid: (S, R, a, b) validation error; NaN beyond a size's repetitions.
        test: (S, R, a, b) test error.
        log_seconds: (S, R, a, b) log of the seconds of training and validation, scaled.
        meta: what was done to make the table.
    """

    name: str
    log_c: Array
    log_gamma: Array
    sizes: Array
    repetitions: npt.NDArray[np.int64]
    valid: Array = field(repr=False)
    test: Array = field(repr=False)
    log_seconds: Array = field(repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        shape = (len(self.sizes), int(self.repetitions.max()), len(self.log_c), len(self.log_gamma))
        for name in ("valid", "test", "log_seconds"):
            if getattr(self, name).shape != shape:
                raise ValueError(f"expected {name} of shape {shape}, got {getattr(self, name).shape}")
        missing = [
            f"size {size:.0f} lacks {count} of {repeats * shape[2] * shape[3]} cells"
            for size, repeats, values in zip(self.sizes, self.repetitions, self.valid, strict=True)
            if (count := int(np.isnan(values[:repeats]).sum()))
        ]
        if missing:
            raise ValueError(
                f"expected a complete table, got {self.name}: {'; '.join(missing)}. Let the generator finish "
                "and pack again, or choose a smaller target with largest=..."
            )

    @classmethod
    def load(cls, table: str | Path, *, cost_scale: float = 1.0, largest: int | None = None) -> Problem:
        """Read the committed table "mnist" or "covtype", or a packed file.

        Args:
            table: name or path.
            cost_scale: all seconds are multiplied by it; 100 makes trainings of minutes.
            largest: take this tabulated size as the target and leave out what lies above.

        Raises:
            FileNotFoundError: there is no such table.
            ValueError: the table has gaps, or an argument does not fit it.
        """
        path = table if isinstance(table, Path) else HERE / f"{table}.npz"
        if not path.exists():
            known = sorted(p.stem for p in HERE.glob("*.npz"))
            raise FileNotFoundError(
                f"expected a packed table, got {path}, which does not exist; there are {known}, and "
                "experiments.svm_grid.generate makes others"
            )
        if not (np.isfinite(cost_scale) and cost_scale > 0):
            raise ValueError(f"expected a cost_scale > 0, got {cost_scale}")
        with np.load(path) as z:
            sizes = z["sizes"].tolist()
            if largest is not None and largest not in sizes[1:]:
                raise ValueError(f"expected one of {sizes[1:]} as largest, got {largest}")
            keep = slice(len(sizes) if largest is None else sizes.index(largest) + 1)
            seconds = (z["fit_seconds"][keep].astype(float) + z["predict_seconds"][keep]) * cost_scale
            name = (
                path.stem
                + (f"-{largest}" if largest else "")
                + (f"-x{cost_scale:g}" if cost_scale != 1 else "")
            )
            return cls(
                name=name,
                log_c=z["log_c"].astype(float),
                log_gamma=z["log_gamma"].astype(float),
                sizes=z["sizes"][keep].astype(float),
                repetitions=z["repetitions"][keep].astype(np.int64),
                valid=z["valid"][keep].astype(float),
                test=z["test"][keep].astype(float),
                log_seconds=np.log(seconds),
                meta=json.loads(str(z["meta"])),
            )

    @cached_property
    def checksum(self) -> int:
        """Of what was measured: another table has another one."""
        return crc32(self.log_seconds.tobytes(), crc32(self.valid.tobytes()))

    @property
    def space(self) -> dict[str, Float]:
        """C and gamma between the ends of the grid."""
        return {
            "C": Float(float(np.exp(self.log_c[0])), float(np.exp(self.log_c[-1])), log=True),
            "gamma": Float(float(np.exp(self.log_gamma[0])), float(np.exp(self.log_gamma[-1])), log=True),
        }

    @property
    def fidelities(self) -> dict[str, tuple[int, int]]:
        """The size, from the smallest tabulated to the largest."""
        return {"size": (int(self.sizes[0]), int(self.sizes[-1]))}

    @property
    def best(self) -> float:
        """The lowest true loss: validation error on all the rows."""
        return float(self._at_target(self.valid).min())

    @property
    def best_config(self) -> dict[str, float]:
        """The configuration that has it."""
        surface = self._at_target(self.valid)
        i, j = np.unravel_index(int(surface.argmin()), surface.shape)
        return {"C": float(np.exp(self.log_c[i])), "gamma": float(np.exp(self.log_gamma[j]))}

    @property
    def full_cost(self) -> float:
        """Seconds of one training of the best configuration on all the rows: the unit of all prices."""
        return float(np.exp(self._bilinear(self._at_target(self.log_seconds), self.best_config)))

    def __call__(
        self, config: Mapping[str, Any], size: float, rng: np.random.Generator
    ) -> tuple[float, float]:
        """Loss and cost of one training, on a random one of the measured subsets.

        Raises:
            ValueError: the configuration or the size is outside the table.
        """
        lower, share = self._between_sizes(size)
        draw = rng.random()
        values = []
        for table in (self.valid, self.log_seconds):
            low, high = (
                self._bilinear(table[s, int(draw * self.repetitions[s])], config) for s in (lower, lower + 1)
            )
            values.append((1 - share) * low + share * high)
        return values[0], float(np.exp(values[1]))

    def truth(self, config: Mapping[str, Any]) -> float:
        """Validation error on all the rows, without noise."""
        return self._bilinear(self._at_target(self.valid), config)

    def test_error(self, config: Mapping[str, Any]) -> float:
        """Test error on all the rows, without noise."""
        return self._bilinear(self._at_target(self.test), config)

    def _at_target(self, table: Array) -> Array:
        """(a, b) the surface at the largest size, the mean of its repetitions."""
        return np.asarray(table[-1, : self.repetitions[-1]].mean(axis=0))

    def _between_sizes(self, size: float) -> tuple[int, float]:
        """Index of the tabulated size below, and how far `size` is on the way to the next, in log size."""
        if not self.sizes[0] <= size <= self.sizes[-1]:
            raise ValueError(f"expected a size from {self.sizes[0]:.0f} to {self.sizes[-1]:.0f}, got {size}")
        return _locate(np.log(self.sizes), float(np.log(size)))

    def _bilinear(self, surface: Array, config: Mapping[str, Any]) -> float:
        i, s = self._backend("C", self.log_c, config)
        j, t = self._backend("gamma", self.log_gamma, config)
        corners = surface[i : i + 2, j : j + 2]
        return float(np.array([1 - s, s]) @ corners @ np.array([1 - t, t]))

    @staticmethod
    def _backend(name: str, grid: Array, config: Mapping[str, Any]) -> tuple[int, float]:
        value = float(np.log(config[name]))
        if not grid[0] - _EDGE <= value <= grid[-1] + _EDGE:
            raise ValueError(
                f"expected {name} from {np.exp(grid[0]):g} to {np.exp(grid[-1]):g}, got {config[name]}"
            )
        return _locate(grid, value)


def _locate(grid: Array, value: float) -> tuple[int, float]:
    """Index of the interval that holds `value`, and how far inside it is, from 0 to 1."""
    index = int(np.clip(np.searchsorted(grid, value, side="right") - 1, 0, len(grid) - 2))
    share = (value - grid[index]) / (grid[index + 1] - grid[index])
    return index, float(np.clip(share, 0.0, 1.0))
