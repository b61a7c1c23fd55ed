"""The figures of a job between two streams: by shard, in time instead of records."""

import time

from streamcore.testing.services.kinesis.address import ACCOUNT
from streamcore_sql import Session

SETTLED = 2.5
"""Seconds after which records lie behind the margin that a batch keeps to the service's clock."""


def test_shards_tell_their_lag_in_time_and_both_ends_count(
    spark, kinesis, kinesis_stream, tmp_path
):
    first, second = kinesis_stream(2), kinesis_stream()
    kwargs = kinesis.client_kwargs
    values = [b'{"id":%d}' % n for n in range(20)]
    put = [{"Data": each, "PartitionKey": str(n)} for n, each in enumerate(values)]
    kinesis.client(direct=True).put_records(StreamName=first, Records=put)
    time.sleep(SETTLED)
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    for name, stream in (("ticks", first), ("copies", second)):
        arn = f"arn:aws:kinesis:{kwargs['region_name']}:{ACCOUNT}:stream/{stream}"
        session.execute(
            f"CREATE TABLE {name} (id BIGINT) WITH ('connector' = 'kinesis', 'format' = 'json', "
            f"'stream.arn' = '{arn}', 'source.init.position' = 'TRIM_HORIZON', "
            f"'aws.region' = '{kwargs['region_name']}', "
            f"'aws.endpoint' = '{kwargs['endpoint_url']}', "
            f"'aws.credentials.basic.accesskeyid' = '{kwargs['aws_access_key_id']}', "
            f"'aws.credentials.basic.secretkey' = '{kwargs['aws_secret_access_key']}')"
        )
    job = session.execute("INSERT INTO copies SELECT id FROM ticks")
    job.monitor.sample(now=True)
    source, sink = job.metrics().source("ticks"), job.metrics().sink("copies")
    assert source["numRecordsIn"] == sink["numRecordsOut"] == 20
    assert source["numBytesIn"] == sink["numBytesOut"] == len(b"".join(values))
    assert source["currentEmitEventTimeLag"] >= source["currentFetchEventTimeLag"] > 0
    assert sink["currentSendTime"] > 0
    assert {lag.rows for lag in source.lags} == {None}
    assert len([lag for lag in source.lags if lag.place.startswith("shardId-")]) == 2
    assert 0 <= source["lagSeconds"] < 600
    assert "pendingRecords" not in source
