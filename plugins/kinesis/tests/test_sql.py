"""Kinesis tables in SQL: created, written and read through Spark, by both connectors."""

import json
import time

import pytest
from streamcore.testing.services.kinesis.address import ACCOUNT
from streamcore_kinesis.aggregation import pack
from streamcore_sql import Session

SETTLED = 2.5
"""Seconds after which records lie behind the margin that a batch keeps to the service's clock."""


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    yield session
    session.stop()


@pytest.fixture
def where(kinesis):
    """What follows WITH for a table on a stream, by either connector, read from its beginning."""

    def clause(connector, stream, **more):
        kwargs = kinesis.client_kwargs
        region = kwargs["region_name"]
        address = {
            "kinesis": {
                "stream.arn": f"arn:aws:kinesis:{region}:{ACCOUNT}:stream/{stream}",
                "source.init.position": "TRIM_HORIZON",
            },
            "kinesis-legacy": {"stream": stream, "scan.stream.initpos": "TRIM_HORIZON"},
        }[connector]
        options = {
            "connector": connector,
            "aws.region": region,
            "aws.endpoint": kwargs["endpoint_url"],
            "aws.credentials.basic.accesskeyid": kwargs["aws_access_key_id"],
            "aws.credentials.basic.secretkey": kwargs["aws_secret_access_key"],
            **address,
            **more,
        }
        return "(" + ", ".join(f"'{key}' = '{value}'" for key, value in options.items()) + ")"

    return clause


def records(kinesis, stream):
    """Every record of a stream, as another client sees it."""
    client = kinesis.client(direct=True)
    found = []
    for shard in client.list_shards(StreamName=stream)["Shards"]:
        iterator = client.get_shard_iterator(
            StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while iterator is not None:
            answer = client.get_records(ShardIterator=iterator)
            found += [(shard["ShardId"], record) for record in answer["Records"]]
            iterator = answer["NextShardIterator"]
            if not answer["Records"]:
                break
    return found


COLUMNS = "code STRING, quantity INT, price DOUBLE"


def test_rows_go_from_stream_to_stream_to_stream(session, kinesis, kinesis_stream, where):
    first, second, third, fourth = (kinesis_stream(shards=2) for _ in range(4))
    orders = [{"code": f"c{n % 4}", "quantity": n, "price": n / 4} for n in range(40)]
    lines = [json.dumps(row).encode() for row in orders]
    plain = [
        {"Data": data, "PartitionKey": row["code"]}
        for row, data in zip(orders[:30], lines[:30], strict=True)
    ]
    packed = pack([("c0", data) for data in lines[30:]])  # as producer libraries do
    kinesis.client().put_records(
        StreamName=first, Records=[*plain, {"Data": packed, "PartitionKey": "c0"}]
    )
    time.sleep(SETTLED)
    session.execute(
        f"""
        CREATE TABLE orders ({COLUMNS},
          arrived TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
          shard STRING METADATA FROM 'shard-id' VIRTUAL,
          sequence STRING METADATA FROM 'sequence-number' VIRTUAL,
          place BIGINT METADATA FROM 'sub-sequence-number' VIRTUAL,
          written_as STRING METADATA FROM 'partition-key' VIRTUAL,
          total AS quantity * price,
          WATERMARK FOR arrived AS arrived - INTERVAL '5' SECOND
        ) WITH {where("kinesis", first, format="json")};
        CREATE TABLE large ({COLUMNS}, told STRING) PARTITIONED BY (code, quantity)
        WITH {where("kinesis-legacy", second, format="csv")};
        CREATE TABLE copied ({COLUMNS}, told STRING, k STRING) PARTITIONED BY (quantity)
        WITH {where("kinesis-legacy", third, format="json")};
        CREATE TABLE larger ({COLUMNS}, told STRING, k STRING)
        WITH {where("kinesis", fourth, format="csv")};
        """
    )
    told = "CONCAT_WS(' ', shard, sequence, place, written_as, arrived > TIMESTAMP '2020-01-01')"
    for insert in (
        f"INSERT INTO large SELECT code, quantity, price, {told} FROM orders WHERE total > 26",
        "INSERT INTO copied SELECT *, CONCAT(code, '|', quantity) AS k FROM large",
        "INSERT INTO larger SELECT * FROM copied WHERE quantity > 20",
    ):
        assert session.execute(insert).wait(200)
        time.sleep(SETTLED)

    put = {record["Data"]: (shard, record) for shard, record in records(kinesis, first)}
    for _, record in records(kinesis, second):
        code, quantity, price, told = record["Data"].decode().split(",")
        n = int(quantity)
        assert record["PartitionKey"] == f"{code}|{n}"
        assert float(price) == n / 4
        origin, original = put[lines[n] if n < 30 else packed]
        key, place = (orders[n]["code"], 0) if n < 30 else ("c0", n - 30)
        assert told.strip('"') == f"{origin} {original['SequenceNumber']} {place} {key} true"
    assert [quantities(kinesis, stream, 1) for stream in (second, fourth)] == [
        list(range(11, 40)),
        list(range(21, 40)),
    ]
    copied = [record for _, record in records(kinesis, third)]
    assert sorted(int(r["PartitionKey"]) for r in copied) == list(range(11, 40))
    assert all(json.loads(r["Data"])["quantity"] == int(r["PartitionKey"]) for r in copied)


def test_static_partition_values_stand_in_their_place(session, kinesis, kinesis_stream, where):
    stream = kinesis_stream(shards=1)
    session.execute(
        "CREATE TABLE days (id BIGINT, day STRING, n INT, size DOUBLE) "
        f"PARTITIONED BY (n, day, size) WITH {where('kinesis', stream, format='json')}"
    )
    insert = "INSERT INTO days PARTITION (day = 'monday') SELECT 1, 7, 1.5E10"
    assert session.execute(insert).wait(200)
    ((_, record),) = records(kinesis, stream)
    assert record["PartitionKey"] == "7|monday|1.5E10"


@pytest.mark.parametrize("connector", ["kinesis", "kinesis-legacy"])
def test_no_statement_shows_a_key_or_an_external_id(session, where, connector):
    role = {
        "aws.credentials.provider": "ASSUME_ROLE",
        "aws.credentials.role.arn": "arn:aws:iam::123456789012:role/reader",
        "aws.credentials.role.sessionName": "us",
        "aws.credentials.role.externalId": "canary-outside",
        "aws.credentials.role.provider": "BASIC",
        "aws.credentials.role.provider.basic.accesskeyid": "canary-id",
        "aws.credentials.role.provider.basic.secretkey": "canary-secret",
    }
    name = f"{connector}_secrets".replace("-", "_")
    clause = where(connector, "orders", format="json", **role)
    clause = ", ".join(part for part in clause.split(", ") if "credentials.basic" not in part)
    session.execute(f"CREATE TABLE {name} ({COLUMNS}) WITH {clause}")
    for statement in (f"SHOW CREATE TABLE {name}", f"DESCRIBE {name}"):
        shown = str(session.execute(statement))
        assert "canary" not in shown
    assert "'aws.credentials.role.sessionName' = 'us'" in str(
        session.execute(f"SHOW CREATE TABLE {name}")
    )


def quantities(kinesis, stream, at):
    return sorted(
        int(record["Data"].decode().split(",")[at]) for _, record in records(kinesis, stream)
    )
