"""Records packed by a producer library come out one by one; everything else stays as it is."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamcore_kinesis.aggregation import MAGIC, pack, unpack


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
