"""A predicted number beside its standard deviation, as text: the digits are those that the deviation justifies."""

import math

MAX_DIGITS = 12  # of a value; a double has 15, and further ones are rounding errors
_LEAST_DIGITS = 4  # of a value below `_LARGE`
_LARGE = 999.95  # from here on, numbers have separators and no needless decimals
_LARGEST = 1e15  # from here on, numbers have an exponent


def plus_minus(value: float, std: float) -> str:
    """Return a value ± its standard deviation: 0.105 ± 0.0011, 0.9999645 ± 2.5e-06, 1,500,120,000 ± 920,000."""
    text = f"{std:.2g}"
    if std >= 99.5 and _is_plain(value, std):
        text = fixed(std, justified_decimals(value, std))
    return f"{beside(value, std)} ± {text}"


def beside(value: float, std: float) -> str:
    """Return a value with the digits of one that has this standard deviation; with four digits if it is not known.

    A measured value is written like this next to a predicted one, so that both can be compared.
    """
    if not (0 < std < math.inf and math.isfinite(value)):
        return f"{value:,.0f}" if _LARGE <= abs(value) < _LARGEST else f"{value:.{_LEAST_DIGITS}g}"
    if max(abs(value), std) >= _LARGE and _is_plain(value, std):
        return fixed(value, justified_decimals(value, std))
    return f"{value:.{justified_digits(value, std)}g}"


def justified_decimals(value: float, std: float) -> int:
    """Return the place of the second digit of a standard deviation above zero; negative before the decimal point.

    A value has at most `MAX_DIGITS` digits.
    """
    justified = 1 - math.floor(math.log10(std))
    return justified if value == 0 else min(justified, MAX_DIGITS - 1 - math.floor(math.log10(abs(value))))


def justified_digits(value: float, std: float) -> int:
    """Return how many digits a value needs, at least four: up to the second one of a standard deviation above zero."""
    before = math.floor(math.log10(abs(value))) if value else 0
    return max(1 + justified_decimals(value, std) + before, _LEAST_DIGITS)


def fixed(value: float, decimals: int) -> str:
    """Return a number with this many decimals; a negative number of them rounds before the decimal point."""
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def _is_plain(value: float, std: float) -> bool:
    return max(abs(value), std) < _LARGEST
