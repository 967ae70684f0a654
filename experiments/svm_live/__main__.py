"""Figure 3 of the paper: an SVM tuned live on MNIST, covertype or vehicle, without a grid.

    python -m experiments.svm_live run --dataset mnist --data DIR --rows 5000 --time-budget 20 --seeds 3
    python -m experiments.svm_live summary --dataset mnist --rows 5000 --time-budget 20 --seeds 3
    python -m experiments.svm_live figures --dataset mnist --rows 5000 --time-budget 20 --seeds 3

Validation and test rows are a fifth and two fifths of the training rows unless given, at most 10,000. Without options
the scale is that of the paper: 50,000 training rows, ten seeds; a run then lasts a day. Finished runs are kept, so a
stopped comparison continues where it was.
"""

import sys

from experiments.live import command
from experiments.live.search import COMPARED
from experiments.svm_live.problem import Setting


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = command.parser("svm_live", __doc__ or "", COMPARED, 86_400.0, (0.01, 0.005))
    parser.add_argument("--dataset", choices=["mnist", "covtype", "vehicle"], default="mnist")
    parser.add_argument("--rows", type=int, default=50_000, help="training rows")
    parser.add_argument("--valid", type=int, help="validation rows")
    parser.add_argument("--test", type=int, help="test rows")
    options = parser.parse_args(arguments)
    valid = options.valid or min(options.rows // 5, 10_000)
    test = options.test or min(2 * options.rows // 5, 10_000)
    setting = Setting(options.dataset, options.rows, valid, test, options.data)
    return command.main(options, setting, f"SVM on {options.dataset}, {options.rows} rows")


if __name__ == "__main__":
    sys.exit(main())
