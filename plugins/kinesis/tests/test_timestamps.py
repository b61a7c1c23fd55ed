"""Start timestamps are read in the pattern given, or as seconds since 1970."""

from datetime import UTC, datetime

import pytest
from streamcore_kinesis.timestamps import DEFAULT_PATTERN, parse_timestamp


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        (
            "2016-04-04T19:58:46.480-00:00",
            DEFAULT_PATTERN,
            datetime(2016, 4, 4, 19, 58, 46, 480000),
        ),
        ("2023-04-13T09:18:00.000+02:00", DEFAULT_PATTERN, datetime(2023, 4, 13, 7, 18)),
        ("2023-04-13T09:18:00.000Z", DEFAULT_PATTERN, datetime(2023, 4, 13, 9, 18)),
        ("1459799926.480", DEFAULT_PATTERN, datetime(2016, 4, 4, 19, 58, 46, 480000)),
        ("1459799926", DEFAULT_PATTERN, datetime(2016, 4, 4, 19, 58, 46)),
        ("2016_04_04", "yyyy_MM_dd", datetime(2016, 4, 4)),
        ("04.04.2016 19:58", "dd.MM.yyyy HH:mm", datetime(2016, 4, 4, 19, 58)),
        ("20160404195846", "yyyyMMddHHmmss", datetime(2016, 4, 4, 19, 58, 46)),
        ("2016-04-04 19:58 +0200", "yyyy-MM-dd HH:mm Z", datetime(2016, 4, 4, 17, 58)),
        ("2016-04-04 19:58 GMT", "yyyy-MM-dd HH:mm z", datetime(2016, 4, 4, 19, 58)),
        ("4 o'clock 2016", "H 'o''clock' yyyy", datetime(2016, 1, 1, 4)),
        ("04'2016", "MM''yyyy", datetime(2016, 4, 1)),
    ],
)
def test_good_timestamps(text, pattern, expected):
    assert parse_timestamp(text, pattern) == expected.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("yesterday", DEFAULT_PATTERN),
        ("-1", DEFAULT_PATTERN),
        ("nan", DEFAULT_PATTERN),
        ("2016-13-04T19:58:46.480Z", DEFAULT_PATTERN),
        ("2016-04-04", "InvalidPattern"),
        ("2016-04-04", "yyyy-MM-dd'"),
    ],
)
def test_bad_timestamps(text, pattern):
    with pytest.raises(ValueError):  # noqa: PT011 - the connector words the complaint
        parse_timestamp(text, pattern)
