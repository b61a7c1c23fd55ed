"""Every type an option may have, read from text and shown as text."""

from datetime import timedelta
from enum import Enum

import pytest
from streamcore import ByteSize
from streamcore.values import (
    is_link_local,
    parse,
    parse_duration,
    parse_list,
    parse_size,
    show,
    show_duration,
    show_size,
)

DAY, HOUR, MINUTE, SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000


@pytest.mark.parametrize(
    ("units", "micros"),
    [
        ("d day days", DAY),
        ("h hour hours", HOUR),
        ("m min minute minutes", MINUTE),
        ("s sec secs second seconds", SECOND),
        ("ms milli millis millisecond milliseconds", 1000),
        ("µs μs micro micros microsecond microseconds", 1),
    ],
)
def test_every_duration_unit_is_read_with_and_without_a_blank(units, micros):
    for unit in units.split():
        for text in (f"7{unit}", f"7 {unit}", f" 7  {unit.upper()} "):
            assert parse_duration(text) == timedelta(microseconds=7 * micros), text


def test_nanoseconds_are_rounded_to_what_a_timedelta_keeps():
    assert parse_duration("2000 ns") == parse_duration("2000nanoseconds")
    assert parse_duration("2000 nanos") == timedelta(microseconds=2)


def test_a_bare_number_counts_milliseconds():
    assert parse_duration("1500") == timedelta(seconds=1.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT5M", timedelta(minutes=5)),
        ("pt5m", timedelta(minutes=5)),
        ("P1D", timedelta(days=1)),
        ("P2DT3H4M", timedelta(days=2, hours=3, minutes=4)),
        ("PT20.345S", timedelta(seconds=20.345)),
        ("PT0S", timedelta(0)),
    ],
)
def test_iso_durations_are_read(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-1 s",
        "1.5 s",
        "5 fortnights",
        "P",
        "PT",
        "PT-5M",
        "-PT5M",
        "P1W",
        "1 s 2",
        "٣ s",
    ],
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises((ValueError, KeyError)):
        parse_duration(text)


@pytest.mark.parametrize("text", ["1 d", "36 h", "5 min", "90 s", "1500 ms", "7 µs", "0 s"])
def test_durations_are_shown_as_they_are_written(text):
    assert show_duration(parse_duration(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024", 1024),
        ("10b", 10),
        ("3 bytes", 3),
        ("64 kb", 65_536),
        ("2 KiBiBytes", 2048),
        ("5mb", 5 * 1024**2),
        ("1 g", 1024**3),
        ("2 tebibytes", 2 * 1024**4),
    ],
)
def test_sizes_are_powers_of_1024(text, expected):
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "big", "-1", "1.5 kb", "1 pb"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises((ValueError, KeyError)):
        parse_size(text)


@pytest.mark.parametrize("text", ["64 kb", "5 mb", "1 gb", "2 tb", "1000", "0"])
def test_sizes_are_shown_as_they_are_written(text):
    assert show_size(parse_size(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("   ", ()),
        ("a", ("a",)),
        ("a;b", ("a", "b")),
        ("a; b ", ("a", "b")),
        ("a;;b", ("a", "", "b")),
        ("a;b;", ("a", "b")),
        (";a", ("a",)),
        ("two words;b", ("two words", "b")),
        ("'a;b';c", ("a;b", "c")),
        ('"a;b" ; c', ("a;b", "c")),
        ("'it''s';x", ("it's", "x")),
        ('"say ""hi""";x', ('say "hi"', "x")),
        ("'';x", ("", "x")),
        ("[a, b]", ("a", "b")),
        ('["a;b", "c"]', ("a;b", "c")),
        ("[1, 2]", ("1", "2")),
        ("[]", ()),
        ("['a', 'b, c']", ("a", "b, c")),
    ],
)
def test_lists_are_split_at_semicolons_outside_of_quotes(text, expected):
    assert parse_list(text) == expected


@pytest.mark.parametrize("text", ["'a", "a'b", "'a'b;c", 'a;"b', "'a' 'b'", '[["nested"]]'])
def test_a_quote_out_of_place_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the caller words the message
        parse_list(text)


def test_truth_and_numbers_allow_no_surprises():
    assert (parse(bool, " TRUE "), parse(bool, "False")) == (True, False)
    assert (parse(int, " -7 "), parse(float, "1e3"), parse(float, ".5")) == (-7, 1000.0, 0.5)
    for hint, text in [
        (bool, "yes"),
        (bool, "1"),
        (int, "1_000"),
        (int, "1.0"),
        (int, "٣"),
        (float, "nan"),
        (float, "inf"),
        (int, "9" * 5000),
    ]:
        with pytest.raises((ValueError, KeyError)):
            parse(hint, text)


class Mode(Enum):
    EARLIEST = "earliest-offset"
    EXCEPT_KEY = "EXCEPT_KEY"


def test_enum_values_are_matched_whatever_their_case_but_not_by_member_name():
    assert parse(Mode, "Earliest-Offset") is Mode.EARLIEST
    assert parse(Mode, "except_key") is Mode.EXCEPT_KEY
    with pytest.raises(KeyError):
        parse(Mode, "earliest_offset")


def test_values_are_shown_as_a_user_would_write_them():
    assert show(bool, True) == "true"
    assert show(Mode, Mode.EARLIEST) == "earliest-offset"
    assert show(tuple[str, ...], ("a", "b")) == "a;b"
    assert show(ByteSize, ByteSize(5 * 1024**2)) == "5 mb"
    assert show(timedelta, timedelta(minutes=5)) == "5 min"


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:169.254.1.1", "2852039166"]
)
def test_link_local_hosts_are_known_however_they_are_written(host):
    assert is_link_local(host)


@pytest.mark.parametrize(
    "host", ["", "127.0.0.1", "10.0.0.1", "::1", "registry.example", "x" * 300]
)
def test_other_hosts_are_not_link_local(host):
    assert not is_link_local(host)
