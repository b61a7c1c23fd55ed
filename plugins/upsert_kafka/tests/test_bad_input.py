"""What is wrong with a key or a row is said with its place, and nothing of it is written."""

import pytest
from confluent_kafka import Producer
from streamcore import Column, RecordError, Table

NUMBERED = Table(
    (Column("region", "INT", nullable=False), Column("views", "BIGINT")), "n", ("region",)
)


@pytest.fixture
def sent(kafka):
    def send(topic, *messages):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for key, value in messages:
            producer.produce(topic, value, key)
        producer.flush()

    return send


def test_a_key_that_does_not_decode_is_named_by_its_place(upsert_table, sent):
    counts = upsert_table(1)
    good = (b'{"region": "eu"}', b'{"region": "eu", "views": 1}')
    sent(counts.topic, good, (b"not json", b'{"region": "us", "views": 2}'), (b"{", None))
    for read in (counts.changes, counts.snapshot):
        with pytest.raises(RecordError, match="partition 0 offset 1: key: not JSON"):
            read()
    counts.options["scan.deser.failure-handler"] = "skip"
    assert [row["region"] for row in counts.changes()] == ["eu"]


def test_a_primary_key_of_another_type_than_the_topics_is_an_error_of_the_key(upsert_table, sent):
    numbers = upsert_table(1, NUMBERED)
    sent(numbers.topic, (b'{"region": "eu"}', b'{"region": 1, "views": 1}'))
    with pytest.raises(RecordError, match="partition 0 offset 0: .*region"):
        numbers.changes()


def test_a_row_without_its_key_is_refused_and_none_of_its_batch_is_written(upsert_table):
    counts = upsert_table(1)
    rows = [
        {"region": "eu", "views": 1, "_row_kind": "+I"},
        {"region": None, "views": 2, "_row_kind": "+I"},
    ]
    with pytest.raises(RecordError, match="column 'region' is NOT NULL but its value is null"):
        counts.write(rows)
    assert counts.messages() == []


BUFFERED = {"sink.buffer-flush.max-rows": "10", "sink.buffer-flush.interval": "1 h"}


@pytest.mark.parametrize("options", [{}, BUFFERED], ids=["plain", "buffered"])
@pytest.mark.parametrize(("kind", "said"), [("delete", "'delete'"), (None, "NULL")])
def test_a_kind_of_change_that_does_not_exist_is_refused(upsert_table, options, kind, said):
    counts = upsert_table(1, **options)
    with pytest.raises(RecordError, match=f"_row_kind: {said} is not one of"):
        counts.write([{"region": "eu", "views": 1, "_row_kind": kind}])
    assert counts.messages() == []
