"""Numbers between text and value by Java's rules, which the wire formats inherit."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from .unreadable import Unreadable, a, shown

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
# None of these goes back: on a million digits and a letter that would take hours.
_DECIMAL = re.compile(r"[+-]?([0-9]++\.?+[0-9]*+|\.[0-9]++)([eE][+-]?+[0-9]++)?+", re.ASCII)
_DOUBLE = re.compile(_DECIMAL.pattern.replace("(", "(?:") + "[dDfF]?", re.ASCII)
_HEX = re.compile(
    r"([+-]?)0[xX]([0-9a-fA-F]*+\.?+[0-9a-fA-F]*+)[pP]([+-]?+[0-9]++)[dDfF]?", re.ASCII
)
_NAMED = re.compile(r"([+-]?)(NaN|Infinity)", re.ASCII)
_LONGEST = 40  # digits of a number worth converting; more cannot fit any integer type

# Wide enough for 38 digits, their rounding, and every exponent a text may carry.
_ROUNDING = Context(prec=80, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)

BOUNDS = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INT": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
}


# --- reading --------------------------------------------------------------------------


def whole(text: str, least: int, most: int, name: str) -> int:
    """An integer in bounds from plain digits; a plus sign is fine, a fraction is not."""
    if not _WHOLE.fullmatch(text):
        raise Unreadable(f"{shown(text)} is not {a(name)}")
    minus = "-" if text[0] == "-" else ""
    digits = text.lstrip("+-0") or "0"  # Python counts leading zeros among the 4,300 it converts
    number = int(minus + digits) if len(digits) < _LONGEST else most + 1
    if not least <= number <= most:
        raise Unreadable(f"{shown(text)} is out of range for {name}")
    return number


def truncated(text: str, least: int, most: int, name: str) -> int:
    """An integer in bounds from a decimal number, its fraction cut off."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        number = Decimal("Infinity")
    if number and (number.adjusted() >= _LONGEST or not number.is_finite()):
        raise Unreadable(f"{shown(text)} is out of range for {name}")
    cut = int(number) if number else 0
    if not least <= cut <= most:
        raise Unreadable(f"{shown(text)} is out of range for {name}")
    return cut


def finite(text: str, name: str) -> float:
    """A JSON number as the nearest double; one too large for the type is an error."""
    number = float(text)
    if math.isinf(number) or (name == "FLOAT" and abs(number) >= FLOAT_LIMIT):
        raise Unreadable(f"{shown(text)} is out of range for {name}")
    return number


FLOAT_LIMIT = float.fromhex("0x1.ffffffp127")
"""The least double that rounds to infinity as a float."""


def double(text: str, name: str) -> float:
    """A number as Java's Double.parseDouble reads it: also NaN, Infinity, `1d` and hex."""
    text = text.strip(_BLANKS)
    if _DOUBLE.fullmatch(text):
        return finite(text.rstrip("dDfF"), name)
    if match := _NAMED.fullmatch(text):
        return float(match[1] + ("nan" if match[2] == "NaN" else "inf"))
    if (match := _HEX.fullmatch(text)) and match[2] not in ("", "."):
        try:
            number = float.fromhex(f"{match[1]}0x{match[2]}p{match[3]}")
        except OverflowError:
            number = math.inf
        if not math.isinf(number) and not (name == "FLOAT" and abs(number) >= FLOAT_LIMIT):
            return number
        raise Unreadable(f"{shown(text)} is out of range for {name}")
    raise Unreadable(f"{shown(text)} is not {a(name)}")


_BLANKS = "".join(map(chr, range(33)))
"""What Java's `trim` takes away: the blank and every control character."""


def trim(text: str) -> str:
    """Java's `trim`, which leaves Unicode's other blanks alone."""
    return text.strip(_BLANKS)


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """A decimal rounded half up to the scale; one with too many digits is an error."""
    name = f"DECIMAL({precision}, {scale})"
    if not _DECIMAL.fullmatch(text):
        raise Unreadable(f"{shown(text)} is not a {name}")
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        number = Decimal("Infinity")
    if not number:
        return Decimal(0)
    if number.is_finite() and number.adjusted() < -scale - 1:
        return Decimal(0)
    if number.is_finite() and number.adjusted() <= precision - scale:
        rounded = number.quantize(Decimal(1).scaleb(-scale), context=_ROUNDING)
        if rounded.adjusted() < precision - scale:
            return rounded
    raise Unreadable(f"{shown(text)} is out of range for {name}")


# --- writing ---------------------------------------------------------------------------


def double_text(number: float) -> str:
    """A double as Java's Double.toString writes it: `1.0E10`, `NaN`, `-0.0`."""
    return java_text(number, repr(number))


def java_text(number: float, shortest: str) -> str:
    """The same for a number whose shortest decimal digits are known, be it float or double."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    if abs(number) < 1e-307 and float(two := f"{number:.1e}") == number:
        shortest = two  # Java has two digits at least, and takes the nearest: 4.9E-324
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent  # where the decimal point falls in the digits
    text = text.rstrip("0") or "0"
    minus = "-" if sign else ""
    if 1e-3 <= abs(number) < 1e7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        whole_part = text[:point].ljust(point, "0")
        return f"{minus}{whole_part}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def decimal_text(number: Decimal) -> str:
    """A decimal without trailing zeros, in scientific notation where Java's BigDecimal uses it."""
    if not number:
        return "0"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    return str(Decimal((sign, tuple(map(int, stripped)), exponent + len(text) - len(stripped))))
