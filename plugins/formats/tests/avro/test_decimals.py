"""Few decimals and many have the same bytes, and are read alike."""

from decimal import Decimal, localcontext
from unittest import mock

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from streamcore_formats.avro import decimals

EDGES = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, -32768, 10**18 - 1, -(10**18) + 1]


def whole(digits):
    edges = [*EDGES, 10**digits - 1, -(10**digits) + 1]
    fit = [number for number in edges if abs(number) < 10**digits]
    return st.sampled_from(fit) | st.integers(-(10**digits) + 1, 10**digits - 1)


@given(st.data(), st.sampled_from([5, 18, 19, 38]), st.booleans())
def test_few_decimals_have_the_bytes_of_many(data, digits, sliced):
    numbers = data.draw(st.lists(st.none() | whole(digits), max_size=5))
    values = [None if number is None else Decimal(number) for number in numbers]
    column = pa.array([Decimal(1), *values] if sliced else values, pa.decimal128(digits, 0))
    column = column.slice(1) if sliced else column
    few = decimals.to_twos_complement(column)
    with mock.patch.object(decimals, "FEW", -1):
        assert decimals.to_twos_complement(column).equals(few)
    read = [None if v is None else int.from_bytes(v, "big", signed=True) for v in few.to_pylist()]
    assert read == numbers


@given(st.lists(st.none() | st.binary(max_size=16), max_size=5), st.sampled_from([5, 18, 19, 38]))
def test_few_bytes_are_the_decimals_of_many(values, digits):
    column, kind = pa.array(values, pa.binary()), pa.decimal128(digits, 2)
    few = decimals.from_twos_complement(column, 2, kind)
    with mock.patch.object(decimals, "FEW", -1):
        many = decimals.from_twos_complement(column, 2, kind)
    assert few == many
    numbers = [None if v is None else int.from_bytes(v, "big", signed=True) for v in values]
    fits = all(number is None or abs(number) < 10**digits for number in numbers)
    if few is not None:
        with localcontext(prec=38):
            read = [None if v is None else int(v.scaleb(2)) for v in few.to_pylist()]
        assert read == numbers
    elif b"" not in values:
        assert not fits
