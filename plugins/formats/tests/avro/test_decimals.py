"""Few decimals and many have the same bytes."""

from decimal import Decimal
from unittest import mock

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from streamcore_formats.avro import decimals

EDGES = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, -32768, 10**38 - 1, -(10**38) + 1]
WHOLE = st.sampled_from(EDGES) | st.integers(-(10**38) + 1, 10**38 - 1)


@given(st.lists(st.none() | WHOLE, max_size=5), st.booleans())
def test_few_decimals_have_the_bytes_of_many(numbers, sliced):
    values = [None if number is None else Decimal(number) for number in numbers]
    column = pa.array([Decimal(1), *values] if sliced else values, pa.decimal128(38, 0))
    column = column.slice(1) if sliced else column
    few = decimals.to_twos_complement(column)
    with mock.patch.object(decimals, "FEW", -1):
        assert decimals.to_twos_complement(column).equals(few)
    read = [None if v is None else int.from_bytes(v, "big", signed=True) for v in few.to_pylist()]
    assert read == numbers
