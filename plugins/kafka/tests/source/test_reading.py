"""Kafka topics read through Spark on a real broker, as a batch and as a stream."""

from __future__ import annotations


def test_a_batch_reads_every_record_of_every_partition(read, produce, kafka_topic, people, rows_of):
    topic = kafka_topic(partitions=3)
    for partition in range(3):
        produce(topic, people(5, partition * 5), partition)
    assert sorted(read(topic)) == rows_of(15)


def test_a_stream_goes_on_where_it_stopped(stream, produce, kafka_topic, people, rows_of):
    topic = kafka_topic(partitions=2)
    produce(topic, people(3), 0)
    assert stream(topic).rows == rows_of(3)
    produce(topic, people(2, 3), 1)
    assert stream(topic).rows == rows_of(2, 3)
    assert stream(topic).rows == []
