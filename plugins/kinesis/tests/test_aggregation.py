"""Records packed by a producer library come out one by one; everything else stays as it is."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamcore_kinesis.aggregation import MAGIC, pack, unpack
from streamcore_kinesis.positions import END, TRIM, Slice
from streamcore_kinesis.source import _entries


@given(st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=50)), min_size=1, max_size=20))
def test_what_was_packed_comes_out_in_order_with_its_key(records):
    found = unpack(pack(records))
    assert [(record.partition_key, record.data) for record in found] == records
    assert [record.number for record in found] == list(range(len(records)))


@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_plain_records(data):
    assert unpack(data) is None or data.startswith(MAGIC)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-1],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"\x00" + data[1:],
        lambda data: MAGIC,
        lambda data: b"",
    ],
)
def test_a_wrong_magic_or_digest_means_plain(spoil):
    assert unpack(spoil(pack([("k", b"v")]))) is None


def test_a_valid_digest_around_nonsense_means_plain():
    message = b"\xff\xff\xff\xff"
    assert unpack(MAGIC + message + hashlib.md5(message).digest()) is None


def test_the_hash_key_is_the_md5_of_the_partition_key():
    (record,) = unpack(pack([("a", b"x")]))
    assert record.hash_key == int(hashlib.md5(b"a").hexdigest(), 16)


def field(number, value):
    """One field of a protobuf message, as short as the tests need it."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def test_an_explicit_hash_key_outranks_the_partition_key():
    first, last = b"0", str(2**128 - 1).encode()
    bodies = [
        field(1, 0) + field(2, 1) + field(3, b"last"),
        field(1, 0) + field(2, 0) + field(3, b"first"),
        field(1, 0) + field(3, b"by its key") + field(4, b"a tag"),
    ]
    message = field(1, b"a") + field(2, first) + field(2, last)
    message += b"".join(field(3, body) for body in bodies)
    packed = MAGIC + message + hashlib.md5(message).digest()
    by_key = int(hashlib.md5(b"a").hexdigest(), 16)
    assert [sub.hash_key for sub in unpack(packed)] == [2**128 - 1, 0, by_key]
    record = {"Data": packed, "PartitionKey": "any"}
    low, high = Slice("s", TRIM, END, 0, 2**127 - 1), Slice("s", TRIM, END, 2**127, 2**128 - 1)
    found = [[(e[0], e[3]) for e in _entries([record], part, True)] for part in (low, high)]
    assert found == [[(b"first", 1), (b"by its key", 2)], [(b"last", 0)]]
