"""Tables on streams of the emulator, and a driver and tasks without Spark around them."""

import json

import pytest
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore.testing.services.kinesis.address import ACCOUNT

TABLE = Table((Column("n", "BIGINT"), Column("key", "STRING")), "t")


@pytest.fixture
def options(kinesis):
    """The options of a table on a stream of the emulator."""

    def make(stream, **extra):
        kwargs = kinesis.client_kwargs
        region = kwargs["region_name"]
        found = {
            "stream.arn": f"arn:aws:kinesis:{region}:{ACCOUNT}:stream/{stream}",
            "aws.region": region,
            "aws.endpoint": kwargs["endpoint_url"],
            "aws.credentials.basic.accesskeyid": kwargs["aws_access_key_id"],
            "aws.credentials.basic.secretkey": kwargs["aws_secret_access_key"],
            "format": "json",
        }
        return found | extra

    return make


class Job:
    """What Spark does with a stream reader: plan a batch, read it, remember its end."""

    def __init__(self, options, table=TABLE, offset=None, connector="kinesis"):
        self.reader = installed().build("connector", connector, options).stream_reader(table)
        self.offset = offset or json.loads(json.dumps(self.reader.initialOffset()))

    def end(self):
        return json.loads(json.dumps(self.reader.latestOffset(self.offset, None)))

    def read(self, start, end):
        rows = []
        for partition in self.reader.partitions(start, end):
            for batch in self.reader.read(partition):
                rows += batch.to_pylist()
        return rows

    def step(self):
        """One micro-batch; None when there was nothing to read."""
        end = self.end()
        if end == self.offset:
            return None
        rows = self.read(self.offset, end)
        self.offset = end
        return rows

    def everything(self):
        """All there is when the read begins, as a query with availableNow reads it."""
        self.reader.prepareForTriggerAvailableNow()
        rows = []
        while (found := self.step()) is not None:
            rows += found
        return rows


@pytest.fixture
def job():
    return Job
