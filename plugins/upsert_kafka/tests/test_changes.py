"""A topic with keys is a table: values upsert, tombstones delete, the latest row counts."""

import dataclasses
import time

import pytest
from streamcore import Column, OptionError, RecordError, Table
from streamcore.checks import check_table

KIND = Column("_row_kind", "STRING", metadata="row-kind", virtual=True)
COUNTS = Table(
    (Column("region", "STRING", nullable=False), Column("views", "BIGINT"), KIND),
    "counts",
    ("region",),
)
LATELY = int(time.time() * 1000) - 600_000  # what is older is soon deleted


def row(region, views, kind="+I"):
    return {"region": region, "views": views, "_row_kind": kind}


def test_upserts_are_values_deletes_are_tombstones_and_the_past_is_left_out(upsert_table):
    counts = upsert_table(partitions=1)
    counts.write(
        [row("eu", 1), row("us", 1), row("eu", 1, "-U"), row("eu", 2, "+U"), row("us", 1, "-D")]
    )
    assert counts.messages() == [
        ({"region": "eu"}, {"region": "eu", "views": 1}),
        ({"region": "us"}, {"region": "us", "views": 1}),
        ({"region": "eu"}, {"region": "eu", "views": 2}),
        ({"region": "us"}, None),
    ]


def test_what_was_written_is_read_back_as_upserts_and_deletes(upsert_table):
    counts = upsert_table(partitions=1)
    counts.write([row("eu", 1), row("us", 1), row("eu", 2, "+U"), row("us", 1, "-D")])
    assert counts.changes() == [
        row("eu", 1, "+U"),
        row("us", 1, "+U"),
        row("eu", 2, "+U"),
        row("us", None, "-D"),
    ]


def test_a_batch_read_gives_the_latest_row_of_every_key(upsert_table):
    counts = upsert_table(partitions=3)
    counts.write([row(f"r{n % 10}", n) for n in range(100)], [row("r3", 93, "-D")])
    found = sorted(counts.snapshot(), key=lambda r: r["region"])
    assert found == [row(f"r{n}", 90 + n) for n in range(10) if n != 3]
    assert sorted(r["views"] for r in counts.snapshot(["views"])) == [
        90 + n for n in range(10) if n != 3
    ]


def test_a_key_of_two_topics_is_in_a_snapshot_once_as_it_was_written_last(
    upsert_table, kafka_topic, kafka
):
    from confluent_kafka import Producer

    one, other = sorted((kafka_topic(2), kafka_topic(1)))
    counts = upsert_table(1)
    counts.options["topic"] = f"{one};{other}"
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for topic, region, views, at in (
        (one, "eu", 1, 2000),
        (other, "eu", 2, 1000),
        (one, "us", 3, 1000),
        (other, "us", None, 2000),
        (one, "asia", 5, 9000),
        (one, "asia", 4, 1000),
    ):
        key = f'{{"region": "{region}"}}'
        value = None if views is None else f'{{"region": "{region}", "views": {views}}}'
        producer.produce(topic, value, key, timestamp=LATELY + at)
    producer.flush()
    found = sorted(counts.snapshot(), key=lambda each: each["region"])
    assert found == [row("asia", 4), row("eu", 1)]
    assert sorted(each["views"] for each in counts.snapshot(["views"])) == [1, 4]


def test_a_key_deleted_and_inserted_again_is_there(upsert_table):
    counts = upsert_table(partitions=1)
    counts.write([row("eu", 1), row("eu", 1, "-D"), row("eu", 5)])
    assert counts.snapshot() == [row("eu", 5)]


def test_without_key_columns_in_the_value_rows_are_the_same(upsert_table):
    table = Table(
        (Column("k_id", "INT", nullable=False), Column("id", "STRING"), KIND), "t", ("k_id",)
    )
    options = {"key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"}
    both = upsert_table(1, table, **options)
    rows = [{"k_id": 1, "id": "one", "_row_kind": "+I"}, {"k_id": 1, "id": None, "_row_kind": "-D"}]
    both.write(rows)
    assert both.messages() == [({"id": 1}, {"id": "one"}), ({"id": 1}, None)]
    assert both.changes() == [{"k_id": 1, "id": "one", "_row_kind": "+U"}, rows[1]]


def test_a_key_of_two_columns_is_written_read_and_deleted(upsert_table):
    table = Table(
        (
            Column("k_b", "STRING", nullable=False),
            Column("v", "STRING"),
            Column("k_a", "INT", nullable=False),
            KIND,
        ),
        "t",
        ("k_a", "k_b"),
    )
    options = {"key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"}
    both = upsert_table(2, table, **options)
    rows = [
        {"k_b": b, "v": v, "k_a": a, "_row_kind": kind}
        for a, b, v, kind in (
            (1, "x", "one", "+I"),
            (1, "y", "two", "+I"),
            (2, "x", "three", "+I"),
            (1, "x", "four", "+U"),
            (2, "x", None, "-D"),
        )
    ]
    both.write(rows)
    assert both.messages().count(({"a": 1, "b": "y"}, {"v": "two"})) == 1
    found = sorted(both.snapshot(), key=lambda each: each["k_b"])
    assert [(each["k_a"], each["k_b"], each["v"]) for each in found] == [
        (1, "x", "four"),
        (1, "y", "two"),
    ]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"mode": "specific-offsets", "specific-offsets": "partition:0,offset:2"}, [("eu", 2)]),
        ({"mode": "specific-offsets", "specific-offsets": "partition:0,offset:0"}, []),
        ({"mode": "timestamp", "timestamp-millis": str(LATELY + 3000)}, [("eu", 2)]),
        ({"mode": "timestamp", "timestamp-millis": str(LATELY)}, []),
        ({"mode": "latest-offset"}, [("eu", 3), ("us", 1)]),
    ],
)
def test_a_bounded_read_gives_the_table_as_it_was_there(upsert_table, kafka, bounds, expected):
    from confluent_kafka import Producer

    counts = upsert_table(1, **{f"scan.bounded.{key}": value for key, value in bounds.items()})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for at, (region, views) in enumerate((("eu", 1), ("eu", 2), ("us", 1), ("eu", 3)), start=1):
        value = f'{{"region": "{region}", "views": {views}}}'
        key = f'{{"region": "{region}"}}'
        producer.produce(counts.topic, value, key, timestamp=LATELY + at * 1000)
    producer.flush()
    found = sorted((each["region"], each["views"]) for each in counts.snapshot())
    assert found == expected


def test_a_delete_needs_no_values_where_columns_are_not_null(upsert_table):
    table = dataclasses.replace(
        COUNTS,
        columns=(COUNTS.columns[0], Column("views", "BIGINT", nullable=False), KIND),
    )
    counts = upsert_table(1, table)
    counts.write([row("eu", 1), row("eu", None, "-D")])
    assert counts.messages()[-1] == ({"region": "eu"}, None)
    with pytest.raises(RecordError, match="column 'views' is NOT NULL but its value is null"):
        counts.write([row("eu", None)])


def test_the_buffer_keeps_the_latest_row_of_each_key(upsert_table):
    counts = upsert_table(
        1, **{"sink.buffer-flush.max-rows": "100", "sink.buffer-flush.interval": "1 h"}
    )
    counts.write(*[[row(f"r{n}", turn) for n in range(20)] for turn in range(10)])
    found = counts.messages()
    assert len(found) == 20
    assert {value["views"] for _, value in found} == {9}


def test_the_buffer_is_emptied_when_it_has_enough_keys(upsert_table):
    counts = upsert_table(
        1, **{"sink.buffer-flush.max-rows": "2", "sink.buffer-flush.interval": "1 h"}
    )
    counts.write([row("a", 1), row("a", 2), row("b", 1), row("a", 3), row("a", 3, "-D")])
    found = [(key["region"], value and value["views"]) for key, value in counts.messages()]
    assert found == [("a", 2), ("b", 1), ("a", None)]


def test_rows_of_a_null_key_are_handled_by_the_failure_policy(upsert_table, kafka):
    from confluent_kafka import Producer

    counts = upsert_table(1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(counts.topic, b'{"region": "eu", "views": 1}')
    producer.produce(counts.topic, b'{"region": "us", "views": 2}', b'{"region": "us"}')
    producer.flush()
    with pytest.raises(RecordError, match="partition 0 offset 0: the key is null"):
        counts.changes()
    counts.options["scan.deser.failure-handler"] = "skip"
    assert counts.changes() == [row("us", 2, "+U")]


def test_null_keys_and_keys_that_are_ignored_are_counted(upsert_table, kafka, monkeypatch):
    from confluent_kafka import Producer

    told = []
    monkeypatch.setattr(
        "streamcore_kafka.reading.report", lambda table, side, counts, *_: told.append(counts)
    )
    counts = upsert_table(1, **{"key.json.ignore-parse-errors": "true"})
    counts.options |= {
        "scan.deser.failure-handler": "skip",
        "value.fields-include": "EXCEPT_KEY",
    }
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for key, value in (
        (None, b'{"views": 1}'),
        (b"garbage", b'{"views": 2}'),
        (b"garbage", None),
        (b'{"region": "us"}', b'{"views": 4}'),
    ):
        producer.produce(counts.topic, value, key)
    producer.flush()
    assert counts.changes() == [row("us", 4, "+U")]
    assert (told[0]["skipped"], told[0]["ignored"]) == (1, 2)


def test_partitions_are_those_of_the_java_client(upsert_table):
    counts = upsert_table(partitions=8)
    counts.write([row(f"key-{n}", n) for n in range(50)])
    seen = {}
    table = dataclasses.replace(
        COUNTS, columns=(*COUNTS.columns, Column("p", "INT", metadata="partition", virtual=True))
    )
    counts.table = table
    for found in counts.changes():
        seen[found["region"]] = found["p"]
    assert seen == {name: java_partition(f'{{"region":"{name}"}}'.encode(), 8) for name in seen}
    assert len(seen) == 50


def java_partition(key, count):
    """The Java client's murmur2, written down independently of ours."""
    m, seed = 0x5BD1E995, 0x9747B28C
    length = len(key)
    h = (seed ^ length) & 0xFFFFFFFF
    for at in range(0, length - length % 4, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & 0xFFFFFFFF
        k = (k ^ k >> 24) * m & 0xFFFFFFFF
        h = (h * m & 0xFFFFFFFF) ^ k
    tail = key[length - length % 4 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & 0xFFFFFFFF
    h = (h ^ h >> 13) * m & 0xFFFFFFFF
    h ^= h >> 15
    return (h & 0x7FFFFFFF) % count


@pytest.mark.parametrize(
    ("table", "writing", "expected"),
    [
        (
            Table((Column("a", "INT"),), "t"),
            False,
            "PRIMARY KEY: required: it is the key of the messages, and says which row one updates "
            "or deletes; declare PRIMARY KEY (columns) NOT ENFORCED",
        ),
        (
            Table(
                (Column("a", "INT"), Column("x", "INT", metadata="value.source.table")), "t", ("a",)
            ),
            False,
            "x: metadata key 'value.source.table' does not exist",
        ),
        (
            Table((Column("a", "INT"), Column("n", "BIGINT", metadata="batch")), "t", ("a",)),
            False,
            "n: metadata key 'batch' does not exist",
        ),
        (
            Table((Column("a", "ARRAY<INT>"), Column("b", "INT")), "t", ("a",)),
            False,
            "PRIMARY KEY: column 'a' is ARRAY<INT>, and keys of that type cannot be compared; "
            "choose columns of simple types",
        ),
    ],
)
def test_a_table_that_cannot_be_is_explained(upsert_table, table, writing, expected):
    with pytest.raises(OptionError) as caught:
        check_table(upsert_table().connector, table, writing=writing)
    assert expected in str(caught.value)
