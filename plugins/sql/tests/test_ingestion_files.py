"""Job files before anything runs: what they mean, and what is said about mistakes in them."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pyarrow as pa
import pytest
from ruamel.yaml import YAML
from streamcore.cli import main
from streamcore.registry import installed, load
from streamcore.spark.carrier import JSON_OPTION
from streamcore_sql import Session, SqlError, parse, preflight
from streamcore_sql.ingestion import partitioning
from streamcore_sql.ingestion.errors import Problems
from streamcore_sql.ingestion.json_schema import job_schema
from streamcore_sql.ingestion.planning import prepare_job
from streamcore_sql.ingestion.reading import read_job
from streamcore_sql.ingestion.routing import TableId
from streamcore_sql.ingestion.row_sql import KIND
from streamcore_sql.ingestion.shapes import Seen
from streamcore_sql.ingestion.sinks import TYPES, plan_sink
from streamcore_sql.monitoring.scrubbing import SECRETS
from streamcore_sql.statements import Option

JOB = r"""
source:
  type: kafka
  name: Shop
  topic: shop
  properties.bootstrap.servers: localhost:9092
  scan.startup.mode: earliest-offset
  value.format: debezium-json
  tables:
    - name: shop.orders
      columns: id BIGINT, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED
    - name: shop.items
      columns: id BIGINT, sku STRING
      primary-keys: id
sink:
  type: upsert-kafka
  properties.bootstrap.servers: localhost:9092
route:
  - source-table: shop.(\.*)
    sink-table: ods.$1
"""


def planned(text, **variables):
    def no_spark():
        raise AssertionError("nothing here needs Spark")

    session = Session(name="job", variables=variables, secrets={"pw": "hunter2"}, dry=True)
    return prepare_job(session, text, "job.yaml", no_spark, dry=True)


def refusal(text, **variables):
    with pytest.raises(SqlError) as caught:
        planned(text, **variables)
    return str(caught.value)


def changed(old, new):
    assert old in JOB
    return JOB.replace(old, new)


# --- what files mean -----------------------------------------------------------------------------


def test_the_seeds_job_is_read_as_it_is_and_its_source_has_a_working_alternative():
    text = """
source:
  type: mysql
  name: MySQL Source
  hostname: ${mysql.hostname}
  port: ${mysql.port}
  username: ${mysql.username}
  password: ${mysql.password}
  tables: ${mysql.source.table}
  server-id: 8601-8604

sink:
  type: upsert-kafka
  name: Upsert Kafka Sink
  properties.bootstrap.servers: ${upsert.kafka.bootstraps.server}
  aliyun.kafka.accessKeyId: ${upsert.kafka.aliyun.ak}
  aliyun.kafka.accessKeySecret: ${upsert.kafka.aliyun.sk}
  aliyun.kafka.instanceId: ${upsert.kafka.aliyun.instanceid}
  aliyun.kafka.endpoint: ${upsert.kafka.aliyun.endpoint}
  aliyun.kafka.regionId: ${upsert.kafka.aliyun.regionid}

route:
  - source-table: ${mysql.source.table}
    sink-table: ${upsert.kafka.topic}
"""
    given = {
        "mysql.hostname": "db",
        "mysql.port": "3306",
        "mysql.username": "u",
        "mysql.password": "hunter2",
        "mysql.source.table": "shop.orders",
        "upsert.kafka.bootstraps.server": "localhost:9092",
        "upsert.kafka.aliyun.ak": "LTAI5tabcdefgh",
        "upsert.kafka.aliyun.sk": "hunter2hunter2",
        "upsert.kafka.aliyun.instanceid": "alikafka_post-cn-abc",
        "upsert.kafka.aliyun.endpoint": "alikafka.aliyuncs.com",
        "upsert.kafka.aliyun.regionid": "cn-hangzhou",
        "upsert.kafka.topic": "orders",
    }
    told = refusal(text, **given)
    assert told == (
        "job.yaml, line 3, column 9: source: type: no connector called 'mysql'\n"
        "      type: mysql\n"
        "            ^^^^^\n"
        "A package that reads the database itself would be called 'streamcore-mysql'; none is "
        "installed.\n"
        "Let Debezium, Canal, Maxwell or OGG write its changes to Kafka, and read those:\n"
        "\n"
        "source:\n"
        "  type: kafka\n"
        "  topic: shop\n"
        "  properties.bootstrap.servers: localhost:9092\n"
        "  scan.startup.mode: earliest-offset\n"
        "  value.format: debezium-json"
    )
    instead = told[told.index("source:\n") :]
    ours = instead + text[text.index("\n\nsink:") :]
    found = planned(ours, **given)
    assert found.text().endswith("route[1]: shop.orders -> orders")
    assert [note for note in found.notes if note.startswith("sink: 'aliyun.kafka.*' options")]


def test_a_dry_run_prints_sql_that_parses_and_where_each_table_goes():
    secret = "sink:\n  properties.ssl.keystore.password: ${secret_values.pw}\n"
    secret += "  properties.security.protocol: SSL\n"
    secret += "  properties.ssl.keystore.location: /none.p12\n"
    text = planned(changed("sink:\n", secret)).text()
    assert "hunter2" not in text
    assert "'properties.ssl.keystore.password' = '***'" in text
    sql, _, routing = text.partition("\n\n")
    statements = parse(sql)
    assert len(statements) == 5
    assert routing.splitlines() == [
        "-- one query reads 'kafka' and writes 'upsert-kafka'",
        "-- source table | sink table | topic      | changed by",
        "-- -------------+------------+------------+-----------",
        "-- shop.orders  | ods.orders | ods.orders |",
        "-- shop.items   | ods.items  | ods.items  |",
        "-- (2 rows)",
        r"-- route[1]: shop.(\.*) -> ods.$1",
    ]


def test_a_dry_run_prints_a_script_and_says_all_else_beside_it(tmp_path, capsys):
    file = tmp_path / "job.yaml"
    file.write_text(JOB + "pipeline:\n  operator.uid.prefix: x\n")
    assert main(["run", str(file), "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert len(parse(shown.out)) == 5
    assert "-- shop.items   | ods.items " in shown.out
    note, *rest = shown.err.splitlines()
    assert note == (
        "note: job.yaml, line 22, column 3: pipeline: operator.uid.prefix: no effect: Spark finds "
        "state by the query's own name"
    )
    assert not rest


def sql_of(text):
    """The statements of a dry run, which this front end itself takes, and their text."""
    sql = planned(text).text().partition("\n\n")[0]
    statements = parse(sql)
    preflight.check(statements, Session(dry=True))
    return sql, statements


SINKS = {
    "kafka": """
  type: kafka
  partition.strategy: hash-by-key
  sink.add-tableId-to-header-enabled: true
  sink.custom-header: a:b
  debezium-json.include-schema.enabled: false
  sink.delivery-guarantee: exactly-once""",
    "canal": "\n  type: kafka\n  topic: all\n  value.format: canal-json\n  key.format: csv",
    "upsert": "\n  type: upsert-kafka\n  sink.delivery-guarantee: exactly-once",
}


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", ["debezium-json", "canal-json", "maxwell-json", "ogg-json"])
def test_the_sql_of_a_dry_run_is_taken_by_streamcore_itself(source, sink):
    text = changed("value.format: debezium-json", f"value.format: {source}")
    sql, statements = sql_of(text.replace("\n  type: upsert-kafka", SINKS[sink]))
    assert len(statements) == 5
    assert ("-- but for 'sink.custom-header'" in sql) is (sink == "kafka")
    prefixes = re.findall("'sink.transactional-id-prefix' = '(.*)'", sql)
    names = ["streamcore-job-ods.orders", "streamcore-job-ods.items"]
    assert prefixes == ([] if sink == "canal" else names)


def test_the_sql_of_a_dry_run_tells_tables_apart():
    text = changed("- name: shop.items", "- name: shop.public.items")
    text = (
        text.replace("shop.(\\.*)", "shop.\\.*")
        .replace("ods.$1", "<>")
        .replace("sink-table: <>", "sink-table: <>\n    replace-symbol: <>")
    )
    sql, _ = sql_of(text)
    assert "WHERE __schema_name__ = 'shop' AND __table_name__ = 'orders';" in sql
    assert (
        "WHERE __namespace_name__ = 'shop' AND __schema_name__ = 'public' AND "
        "__table_name__ = 'items';"
    ) in sql
    avro = changed(
        "value.format: debezium-json",
        "value.format: debezium-avro-confluent\n"
        "  value.debezium-avro-confluent.url: http://localhost:8081",
    )
    assert "WHERE __table = 'shop.orders';" in sql_of(avro)[0]
    topics = changed("topic: shop", "topic: shop.orders;shop.items")
    topics = topics.replace("debezium-json", "json").replace("type: upsert-kafka", "type: kafka")
    for old in (", PRIMARY KEY (id) NOT ENFORCED", "      primary-keys: id\n"):
        topics = topics.replace(old, "")
    assert re.findall("'topic' = '(shop.*)'", sql_of(topics)[0]) == ["shop.orders", "shop.items"]


def test_a_key_that_only_messages_tell_is_not_left_out_of_sql():
    sql, statements = sql_of(changed("      primary-keys: id\n", ""))
    assert "-- 'shop.items': its primary key is taken from its messages" in sql
    assert len(statements) == 3


PATTERNS = r"""
  - source-table: db_(\d+).t_(\.*)
    sink-table: all_$1.$2
  - source-table: x.(a|b)
    sink-table: $1
"""


def ways(found):
    rows = found.text().partition("\n\n")[2].splitlines()[3:]
    return [
        tuple(part.strip("- ") for part in row.split(" | ")[:2]) for row in rows if " | " in row
    ]


def test_a_dry_run_shows_the_way_of_sample_names():
    text = JOB[: JOB.index("  tables:")] + JOB[JOB.index("sink:") :].rstrip() + PATTERNS
    found = planned(text)
    assert "-- no statements: declare columns in 'source.tables' to see some\n" in found.text()
    assert ways(found) == [("shop.any", "ods.any"), ("db_1.t_any", "all_1.any")]
    session, given = Session(name="job", dry=True), {"dry": True, "samples": ["x.b", "y.z"]}
    found = prepare_job(session, text, "job.yaml", lambda: None, **given)
    assert ways(found) == [("x.b", "b"), ("y.z", "y.z")]


@pytest.mark.parametrize(
    ("mode", "sinks"), [("ALL_MATCH", ["ods.orders", "copy"]), ("first_match", ["ods.orders"])]
)
def test_the_route_mode_says_how_many_ways_a_table_goes(mode, sinks):
    text = JOB + "  - source-table: shop.orders\n    sink-table: copy\n"
    found = ways(planned(text + f"pipeline:\n  route-mode: {mode}\n"))
    assert found == [*(("shop.orders", sink) for sink in sinks), ("shop.items", "ods.items")]


@pytest.mark.parametrize(
    ("key", "names", "refused"),
    [
        ("exclude", "alter.column", {"alter.column.type"}),
        ("exclude", "[drop, add.column]", {"drop.column", "drop.table", "add.column"}),
        ("include", "column", {"create.table", "drop.table", "truncate.table"}),
        (
            "include",
            "[alter.column.type, table]",
            {"add.column", "drop.column", "rename.column"},
        ),
    ],
)
def test_schema_changes_are_named_in_full_or_by_a_part(key, names, refused):
    text = changed("sink:\n", f"sink:\n  {key}.schema.changes: {names}\n")
    assert {each.value for each in planned(text).job.sink.refused} == refused


def places(strategy, keys):
    """The partitions of three rows: two with a place, one of a table without partition-keys."""
    text = changed("type: upsert-kafka", f"type: kafka\n  partition.strategy: {strategy}")
    text += f"transform:\n  - source-table: shop.orders\n    {keys}\n"
    job = read_job(text, "job.yaml", {}, {}, problems := Problems())
    sink = plan_sink(job, "job", problems)
    problems.raise_any()
    path = str(sink.options.get("sink.partitioner", "")).rpartition(".")[2]
    if not path:
        return None
    rows = pa.RecordBatch.from_pydict(
        {"place": ["eu", "eu", None] if "-keys" in keys else [None] * 3}
    )
    return getattr(partitioning, path)().assign(
        rows, [b"1", b"2", b"3"], SimpleNamespace(partitions=4)
    )


def test_tables_without_partition_keys_go_where_the_strategy_says():
    assert places("all-to-zero", "filter: id > 0") == [0, 0, 0]
    assert places("hash-by-key", "filter: id > 0") is None
    assert places("all-to-zero", "partition-keys: amount") == [2, 2, 0]
    assert places("hash-by-key", "partition-keys: amount") == [2, 2, None]


KINESIS = "type: kinesis\n  stream.arn: arn:aws:kinesis:eu-west-1:000000000000:stream/s"


@pytest.mark.parametrize("key", ["format", "value.format"])
@pytest.mark.parametrize("sink", ["type: kafka", KINESIS])
def test_a_format_has_two_keys(sink, key):
    text = changed("type: upsert-kafka", f"{sink}\n  {key}: canal-json")
    if sink == KINESIS:
        text = text.replace("localhost:9092\nroute", "x\nroute")
        text = text.replace("  properties.bootstrap.servers: x\n", "  aws.region: eu-west-1\n")
    assert planned(text).sink.envelope == "canal-json"


@pytest.mark.parametrize(
    "sink",
    ["kafka\n  value.format: Canal-JSON\n  key.format: CSV", "upsert-kafka\n  key.format: JSON"],
)
def test_formats_are_written_in_any_case(validator, sink):
    text = changed("type: upsert-kafka", f"type: {sink}")
    assert planned(text).sink.envelope in ("canal-json", "upsert")
    assert not list(validator.iter_errors(loaded(text)))


def test_partition_keys_are_refused_where_a_partitioner_is_named():
    text = changed("type: upsert-kafka", "type: kafka\n  sink.partitioner: fixed")
    text += "transform:\n  - source-table: shop.orders\n    partition-keys: id\n"
    assert refusal(text) == (
        "job.yaml, line 24, column 21: partition-keys: 'sink.partitioner' says where rows go\n"
        "        partition-keys: id\n                        ^^\nLeave one of them out."
    )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "GMT-08:00", "+05:30"])
def test_a_time_zone_is_a_name_or_an_offset(zone):
    found = planned(f"{JOB}pipeline:\n  local-time-zone: {zone}\n")
    assert found.session.settings.spark == {"spark.sql.session.timeZone": zone}


def test_options_may_be_nested_or_listed_and_mean_the_same_flat():
    nested = changed(
        "  properties.bootstrap.servers: localhost:9092\n  scan",
        "  properties:\n    bootstrap.servers: localhost:9092\n    group.id: g\n  scan",
    ).replace("topic: shop\n", "topic: [shop, more]\n")
    options = planned(nested).job.source.options
    assert options["properties.bootstrap.servers"] == "localhost:9092"
    assert options["properties.group.id"] == "g"
    assert options["topic"] == "shop;more"


def test_anchors_and_merges_are_read():
    text = changed(
        "source:\n",
        "source:\n  <<: &servers\n    properties.bootstrap.servers: localhost:9092\n",
    ).replace("  properties.bootstrap.servers: localhost:9092\nroute", "  <<: *servers\nroute")
    assert planned(text).job.sink.options == {"properties.bootstrap.servers": "localhost:9092"}


def test_values_cannot_add_keys_and_a_doubled_dollar_stays():
    text = changed("name: Shop", "name: ${evil} $${kept}")
    job = read_job(text, "job.yaml", {"evil": "x\n  topic: other"}, {}, Problems())
    assert job.source.name == "x\n  topic: other ${kept}"
    assert job.source.options["topic"] == "shop"


# --- mistakes -------------------------------------------------------------------------------------


def test_every_undefined_variable_is_told_at_once():
    text = changed("topic: shop", "topic: ${TOPIK}").replace("9092\nroute", "${p.o-rt}\nroute")
    assert refusal(text, TOPIC="x") == (
        "job.yaml, line 5, column 10: variable 'TOPIK' is not defined\n"
        "      topic: ${TOPIK}\n"
        "             ^^^^^^^^\n"
        "Did you mean 'TOPIC'?\n"
        "\n"
        "job.yaml, line 17, column 43: variable 'p.o-rt' is not defined\n"
        "      properties.bootstrap.servers: localhost:${p.o-rt}\n"
        "                                              ^^^^^^^^^\n"
        "Define it with --var NAME=VALUE, with --env-file FILE or in the environment as P_O_RT."
    )
    secret = changed("name: Shop", "name: ${A B}").replace("ods.$1", "${secret_values.kafka-sk}")
    assert re.findall("variable '(.*)' is not defined|^(Define it .*)", refusal(secret), re.M) == [
        ("A B", ""),
        (
            "",
            "Define it with --var NAME=VALUE, with --env-file FILE or in the environment as A_B.",
        ),
        ("secret_values.kafka-sk", ""),
        (
            "",
            "Define it with --secrets FILE, a file of NAME=VALUE lines, or in the environment as "
            "SECRET_VALUES_KAFKA_SK.",
        ),
    ]


def test_beside_an_undefined_variable_all_else_is_told_but_nothing_about_its_value():
    text = changed("id BIGINT, sku STRING", "${NO_COLUMNS}").replace("ods.$1", "${NO_SINK}")
    text += "    replace-symbol: <>\n    sink-tabel: x\npipelin:\n  parallelism: 2\n"
    text += "pipeline:\n  parallelism: ${NO_NUMBER}\n  local-time-zone: Berlin\n"
    told = re.findall(r"^job.yaml, line \d+, column \d+: (.*)", refusal(text), re.M)
    assert told == [
        "variable 'NO_COLUMNS' is not defined",
        "variable 'NO_SINK' is not defined",
        "route[1]: unknown key 'sink-tabel'",
        "unknown section 'pipelin'",
        "variable 'NO_NUMBER' is not defined",
        "pipeline: local-time-zone: 'Berlin' is not a time zone such as 'UTC' or 'Europe/Berlin'",
    ]


def test_a_name_counts_before_its_exported_spelling_and_options_before_the_environment(
    tmp_path, capsys, monkeypatch
):
    job, files = tmp_path / "job.yaml", [tmp_path / "a.env", tmp_path / "b.env"]
    job.write_text(changed("topic: shop", "topic: ${kafka.source-topic}"))
    files[0].write_text("kafka.source-topic=second")
    files[1].write_text("KAFKA_SOURCE_TOPIC=fifth")
    monkeypatch.setenv("kafka.source-topic", "third")
    monkeypatch.setenv("KAFKA_SOURCE_TOPIC", "sixth")
    given = [
        ("--var", "kafka.source-topic=first"),
        ("--env-file", str(files[0])),
        ("--var", "KAFKA_SOURCE_TOPIC=fourth"),
        ("--env-file", str(files[1])),
    ]
    found = []
    for without in ((), given[:1], given[:2], given[:2], given[:3], given):
        if len(found) == 3:
            monkeypatch.delenv("kafka.source-topic")
        options = [word for pair in given if pair not in without for word in pair]
        assert main(["run", str(job), "--dry-run", *options]) == 0
        found += set(re.findall("'topic' = '(.*)'", capsys.readouterr().out)) - {
            "ods.orders",
            "ods.items",
        }
    assert found == ["first", "second", "third", "fourth", "fifth", "sixth"]


def test_a_secret_of_the_environment_is_filled_in_and_hidden(monkeypatch):
    monkeypatch.setenv("SECRET_VALUES_KAFKA_AK", "swordfish-9")
    text = changed("sink:\n", "sink:\n  aliyun.kafka.accessKeyId: ${secret_values.kafka-ak}\n")
    found = planned(text)
    assert found.job.sink.options["aliyun.kafka.accessKeyId"] == "swordfish-9"
    assert "'aliyun.kafka.accessKeyId' = '***'" in found.text()
    assert SECRETS.scrub("login swordfish-9 failed") == "login *** failed"


MISTAKES = {
    "an empty type": (
        "type: upsert-kafka",
        "type: ''",
        "line 16, column 3: sink: 'type' is empty (the connector to write with)\n"
        "      type: ''\n      ^^^^",
    ),
    "an unknown section": (
        "route:",
        "rout:",
        "line 18, column 1: unknown section 'rout'\n    rout:\n    ^^^^\nDid you mean 'route'?",
    ),
    "an unknown key of a route": (
        "source-table: shop.(",
        "source-tabel: shop.(",
        "line 19, column 5: route[1]: unknown key 'source-tabel'\n"
        "      - source-tabel: shop.(\\.*)\n        ^^^^^^^^^^^^\nDid you mean 'source-table'?",
    ),
    "an unknown option of the source": (
        "  topic: shop",
        "  topik: shop\n  topic: shop",
        "line 5, column 3: source: topik: unknown option; did you mean 'topic'?\n"
        "      topik: shop\n      ^^^^^",
    ),
    "an unknown option of the sink": (
        "sink:\n",
        "sink:\n  sink.delivery-garantee: exactly-once\n",
        "line 16, column 3: sink: sink.delivery-garantee: unknown option; did you mean "
        "'sink.delivery-guarantee'?\n      sink.delivery-garantee: exactly-once\n"
        "      ^^^^^^^^^^^^^^^^^^^^^^",
    ),
    "a key of the file misspelt": (
        "sink:\n",
        "sink:\n  sink.custom-headers: a:1\n",
        "line 16, column 3: sink: sink.custom-headers: unknown option\n"
        "      sink.custom-headers: a:1\n      ^^^^^^^^^^^^^^^^^^^\n"
        "Did you mean 'sink.custom-header'?",
    ),
    "a list for a text": (
        "    sink-table: ods.$1",
        "    sink-table: [a, b]",
        "line 20, column 5: route[1]: sink-table: expected a text, found a list\n"
        "        sink-table: [a, b]\n        ^^^^^^^^^^",
    ),
    "a text for a list": (
        "route:\n  - source-table: shop.(\\.*)\n    sink-table: ods.$1",
        "route: everything",
        "line 18, column 1: route: expected a list, found a text\n    route: everything\n"
        "    ^^^^^\nStart each entry with '- '.",
    ),
    "two sinks": (
        "sink:\n  type: upsert-kafka\n",
        "sink:\n  - type: upsert-kafka\n  - type: kafka\nsank:\n",
        "line 15, column 1: sink: a job has one sink, found a list of 2\n    sink:\n    ^^^^\n"
        "Write a job file for each sink.",
    ),
    "a section twice": (
        "route:",
        "sink:\n  type: kafka\nroute:",
        "line 18, column 1: 'sink' is written twice\n    sink:\n    ^^^^",
    ),
    "a route for no table": (
        "shop.(\\.*)",
        "shp.(\\.*)",
        "line 19, column 19: route[1]: source-table: 'shp.(\\.*)' matches no table\n"
        "      - source-table: shp.(\\.*)\n                      ^^^^^^^^^\n"
        "'source.tables' names shop.orders, shop.items.",
    ),
    "a zone that does not exist": (
        "route:",
        "pipeline:\n  local-time-zone: Europe/Berlim\nroute:",
        "line 19, column 20: pipeline: local-time-zone: 'Europe/Berlim' is not a time zone such as "
        "'UTC' or 'Europe/Berlin'\n      local-time-zone: Europe/Berlim\n"
        "                       ^^^^^^^^^^^^^",
    ),
    "options of a function": (
        "route:",
        "pipeline:\n  user-defined-function:\n    - name: f\n      classpath: m.f\n"
        "      options: {a: 1}\nroute:",
        "line 22, column 7: pipeline: user-defined-function[1]: options: a Python function is "
        "given none\n          options: {a: 1}\n          ^^^^^^^\n"
        "Pass them as arguments where expressions call it.",
    ),
    "a change that does not exist": (
        "sink:\n",
        "sink:\n  exclude.schema.changes: alter.colum\n",
        "line 16, column 27: sink: exclude.schema.changes: 'alter.colum' is no change of a schema; "
        "there are add.column, alter.column.type, create.table, drop.column, drop.table, "
        "rename.column, truncate.table\n      exclude.schema.changes: alter.colum\n"
        "                              ^^^^^^^^^^^",
    ),
    "a table that no pattern of the source has": (
        "    - name: shop.items\n      columns: id BIGINT, sku STRING\n      primary-keys: id\n",
        "    - shop.item_\\.*\ntransform:\n  - source-table: shp.item_1\n    filter: id > 0\n",
        "line 14, column 19: transform[1]: source-table: 'shp.item_1' matches no table\n"
        "      - source-table: shp.item_1\n                      ^^^^^^^^^^\n"
        "'source.tables' names shop.orders, shop.item_\\.*.",
    ),
    "a group that captures nothing": (
        "ods.$1",
        "ods.$2",
        "line 20, column 17: route[1]: sink-table: '$2' captures nothing\n"
        "        sink-table: ods.$2\n                    ^^^^^^\n"
        "'source-table' has 1 group in parentheses.",
    ),
    "a pattern that is none": (
        "shop.(\\.*)",
        "shop.(\\.*",
        "line 19, column 19: route[1]: source-table: 'shop.(\\.*' is not a regular expression: "
        "missing ), unterminated subpattern\n      - source-table: shop.(\\.*\n"
        "                      ^^^^^^^^^\n"
        "A dot separates the parts of a name; the dot of a pattern is written '\\.'.",
    ),
    "a type that does not exist": (
        "id BIGINT, amount",
        "id BIGNT, amount",
        "line 11, column 19: source: tables[1]: columns: no type called 'BIGNT'\n"
        "          columns: id BIGNT, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED\n"
        "                      ^^^^^\nDid you mean 'BIGINT'?",
    ),
    "a behaviour that does not exist": (
        "route:",
        "pipeline:\n  schema.change.behavior: evlove\nroute:",
        "line 19, column 27: pipeline: schema.change.behavior: 'evlove' is not one of exception, "
        "evolve, try_evolve, lenient, ignore\n      schema.change.behavior: evlove\n"
        "                              ^^^^^^\nDid you mean 'evolve'?",
    ),
    "code in a file": (
        "route:",
        "pipeline:\n  user-defined-function:\n    - name: f\n      classpath: m.f\n"
        "      python-code: import os\nroute:",
        "line 22, column 7: pipeline: user-defined-function[1]: python-code: a job file holds no "
        "code\n          python-code: import os\n          ^^^^^^^^^^^\n"
        "Put the function into an importable module and name it in 'classpath'.",
    ),
    "a tag": (
        "name: Shop",
        "name: !!python/object/apply:os.system [ls]",
        "line 4, column 9: the tag '!!python/object/apply:os.system' is not read: a job file holds "
        "texts only\n      name: !!python/object/apply:os.system [ls]\n"
        "            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nLeave it out.",
    ),
    "a star without quotes": (
        "route:",
        "transform:\n  - source-table: shop.orders\n    projection: *, id\nroute:",
        "line 20, column 18: not YAML: expected alphabetic or numeric character, but found ','\n"
        "        projection: *, id\n                     ^\n"
        "A text that starts with '*' needs quotes, or a backslash as in: projection: \\*, id",
    ),
    "a sink that takes no tables": (
        "type: upsert-kafka",
        "type: print",
        "line 16, column 9: sink: type: 'print' takes no rows of many tables\n      type: print\n"
        "            ^^^^^\nChoose one of upsert-kafka, kafka, kinesis, or write a job in SQL.",
    ),
    "a topic for a sink of many": (
        "sink:\n",
        "sink:\n  topic: all\n",
        "line 16, column 3: sink: topic: each table has a topic of its own\n      topic: all\n"
        "      ^^^^^\nName the topics with 'route'.",
    ),
    "a symbol beside groups": (
        "sink-table: ods.$1",
        "sink-table: <>.$1\n    replace-symbol: <>",
        "line 20, column 17: route[1]: sink-table: '$1' beside 'replace-symbol'\n"
        "        sink-table: <>.$1\n                    ^^^^^\n"
        "Use groups or a symbol, not both.",
    ),
    "one topic and several": (
        "type: upsert-kafka",
        "type: kafka\n  topic: all\n  sink.tableId-to-topic.mapping: ods.items:x",
        "line 18, column 3: sink: sink.tableId-to-topic.mapping: 'topic' takes the rows of every "
        "table\n      sink.tableId-to-topic.mapping: ods.items:x\n"
        "      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\nLeave one of them out.",
    ),
    "a topic for no table": (
        "type: upsert-kafka",
        "type: kafka\n  sink.tableId-to-topic.mapping: shop.items:x;ods.items:y",
        "line 17, column 34: sink: sink.tableId-to-topic.mapping: no table is called 'shop.items' "
        "at the sink\n      sink.tableId-to-topic.mapping: shop.items:x;ods.items:y\n"
        "                                     ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "There are ods.items, ods.orders.",
    ),
    "a character of no text": (
        "name: Shop",
        "name: Sh\x07p",
        "line 4, column 11: not YAML: the character U+0007 is not allowed\n"
        "      name: Sh p\n              ^\nLeave it out.",
    ),
    "a format that tells no table": (
        "value.format: debezium-json\n  tables:\n    - name: shop.orders\n      columns: id "
        "BIGINT, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED\n    - name: shop.items\n"
        "      columns: id BIGINT, sku STRING\n      primary-keys: id",
        "value.format: json\n  tables: shop.orders",
        "line 9, column 11: source: tables: 'shop.orders' needs 'columns'\n"
        "      tables: shop.orders\n              ^^^^^^^^^^^\nFormat 'json' does not tell them. "
        "Write columns: id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_place(mistake):
    old, new, told = MISTAKES[mistake]
    paragraphs = refusal(changed(old, new)).split("\n\n")
    assert f"job.yaml, {told}" in paragraphs


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file():
    text = changed("topic: shop", "topik: shop").replace("ods.$1", "ods.$3")
    told = refusal(text.replace("localhost:9092\nroute", "localhost:9092\n  lingr: 1\nrout"))
    places = re.findall(r"^job.yaml, line (\d+)", told, re.MULTILINE)
    assert places == ["2", "5", "18", "19"], told
    told = refusal(text + "\nx: 1\n")
    places = re.findall(r"^job.yaml, line (\d+)", told, re.MULTILINE)
    assert places == ["2", "5", "20", "22"], told
    told = refusal(changed("topic: shop", "topik: shop").replace("shop.(", "shp.("))
    assert re.findall(r"^job.yaml, line (\d+)", told, re.MULTILINE) == ["2", "5", "19"]


def test_what_follows_from_a_mistake_is_not_told_as_another_one():
    text = changed("value.format: debezium-json", "value.format: json").replace("STRING", "STRINK")
    told = refusal(text.replace("  topic", "  topik: x\n  topic"))
    assert re.findall(r"^job.yaml, line (\d+)", told, re.MULTILINE) == ["5", "14"], told


def test_tables_told_by_their_topic_are_the_topics_of_the_source():
    text = changed("value.format: debezium-json", "value.format: json")
    for old in (", PRIMARY KEY (id) NOT ENFORCED", "      primary-keys: id\n", "upsert-"):
        text = text.replace(old, "")
    assert refusal(text) == (
        "job.yaml, line 5, column 10: source: topic: no table is called 'shop'\n"
        "      topic: shop\n"
        "             ^^^^\n"
        "Format 'json' does not tell the table of a row, its topic does: declare 'shop' in "
        "'tables', or leave the topic out.\n"
        "\n"
        "job.yaml, line 9, column 3: source: tables: 'shop.orders' is no topic of this source\n"
        "      tables:\n"
        "      ^^^^^^\n"
        "Format 'json' does not tell the table of a row, its topic does: there are shop.\n"
        "\n"
        "job.yaml, line 9, column 3: source: tables: 'shop.items' is no topic of this source\n"
        "      tables:\n"
        "      ^^^^^^\n"
        "Format 'json' does not tell the table of a row, its topic does: there are shop."
    )
    found = planned(text.replace("topic: shop", "topic: shop.orders; shop.items"))
    assert not found.source.is_open
    assert planned(text.replace("topic: shop", r"topic-pattern: shop\..*")).source.is_open


def test_a_table_without_a_key_is_refused_where_one_is_needed():
    text = """
source:
  type: datagen
  tables:
    - name: shop.orders
      columns: id BIGINT
sink:
  type: upsert-kafka
  properties.bootstrap.servers: localhost:9092
"""
    assert refusal(text) == (
        "job.yaml, line 5, column 7: table 'shop.orders' has no primary key, and 'upsert-kafka' "
        "needs one; set 'primary-keys' in a transform, or declare it in 'source.tables'\n"
        "        - name: shop.orders\n          ^^^^^^^^^^^^^^^^^"
    )
    assert planned(text.replace("upsert-", "")).source.typed


def test_the_sample_before_the_start_begins_like_the_job_and_leaves_dead_letters_alone():
    text = changed("earliest-offset", "latest-offset").replace(
        "  tables:",
        "  scan.deser.failure-handler: dead-letter\n  scan.deser.failure-topic: dead\n  tables:",
    )
    source, asked = planned(text).source, {}

    class Reader:
        def __getattr__(self, name):
            return lambda *given, **options: (asked.update(options), self)[1]

        columns = (KIND,)

    source.sample(SimpleNamespace(read=Reader()))
    options = json.loads(asked[JSON_OPTION])["options"]
    told = {key: text for key, text in options.items() if key.startswith("scan.")}
    assert told == {
        "scan.startup.mode": "latest-offset",
        "scan.bounded.mode": "latest-offset",
        "scan.deser.failure-handler": "skip",
    }


def test_the_name_that_is_asked_for_wins_over_that_of_the_file():
    text = JOB + "pipeline:\n  name: told\n"
    assert planned(text).launch.name == "told.tables"
    session = Session(dry=True)
    session.settings.put(Option("pipeline.name", "asked"))
    found = prepare_job(session, text, "job.yaml", lambda: None, dry=True)
    assert found.launch.name == "asked.tables"


@pytest.mark.parametrize("behavior", ["exception", "ignore", "lenient"])
def test_columns_declared_for_a_pattern_are_known_after_a_restart(tmp_path, behavior):
    text = changed("- name: shop.items", r"- name: shop.item_\.*")
    text += f"pipeline:\n  schema.change.behavior: {behavior}\n"
    table = TableId.of("shop.item_1")

    def start():
        session = Session(name="job", checkpoint=str(tmp_path), dry=True)
        return prepare_job(session, text, "job.yaml", lambda: None, dry=True)

    seen = [Seen(table, frozenset({"iid", "ssku"}), ("id",))]
    for _ in range(2):
        job = start()
        assert job._shapes.learn(seen, job._writer._known(seen)) == []
        assert job._shapes.known[table].columns == job.job.source.declared(table).columns
        job._shapes.save(["topic"], 0)


def test_exactly_once_is_refused_where_topics_could_be_forgotten():
    text = changed("sink:\n", "sink:\n  sink.delivery-guarantee: exactly-once\n")
    session = Session(name="job", checkpoint="hdfs://none/checkpoint", dry=True)
    assert prepare_job(session, text, "job.yaml", lambda: None, dry=True).sink.exactly_once
    open_ended = text.replace("- name: shop.items", "- shop.x\\.*\n    - name: shop.items")
    with pytest.raises(SqlError) as caught:
        prepare_job(session, open_ended, "job.yaml", lambda: None, dry=True)
    assert str(caught.value) == (
        "job.yaml, line 17, column 28: sink: sink.delivery-guarantee: 'exactly-once' needs a "
        "checkpoint in a local folder\n      sink.delivery-guarantee: exactly-once\n"
        "                               ^^^^^^^^^^^^\n"
        "Keep it in one, or name every table in full in 'source.tables'."
    )


def test_secrets_are_never_quoted():
    told = refusal(changed("sink:\n", "sink:\n  properties.sasl.password: hunter2\n  x: ${y}\n"))
    assert "hunter2" not in told
    twice = "  properties.sasl.password: hunter2\n  properties.sasl.password: hunter3\n"
    told = refusal(changed("sink:\n", "sink:\n" + twice))
    assert "hunter" not in told
    assert "'properties.sasl.password' is written twice" in told
    twice = "  url: http://me:hunter2@host\n  url: http://me:hunter3@host\n"
    told = refusal(changed("sink:\n", "sink:\n" + twice))
    assert "hunter" not in told


BOMBS = {
    "depth": "[" * 10_000,
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
    ),
    "many aliases": "a: &a x\nb: [" + ", ".join(["*a"] * 200) + "]",
    "size": "a: " + "x" * 2_000_000,
    "a self": "&a [*a]",
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.timeout(60)
def test_hostile_files_are_refused_quickly(bomb):
    told = refusal(BOMBS[bomb])
    assert len(told) < 1000


def test_the_command_says_it_once_ends_with_2_and_leaves_nothing_behind(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path / "state"))
    file = tmp_path / "job.yaml"
    file.write_text(changed("ods.$1", "ods.$2"))
    assert main(["run", str(file)]) == 2
    shown = capsys.readouterr()
    assert "job.yaml, line 20, column 17: route[1]: sink-table" in shown.err + shown.out
    assert not (tmp_path / "state").exists()


# --- the published schema -------------------------------------------------------------------


@pytest.fixture(scope="module")
def validator():
    schema = job_schema(installed())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def loaded(text):
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text)))


def test_the_schema_accepts_what_runs(validator):
    assert not list(validator.iter_errors(loaded(JOB)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("type: upsert-kafka", "type: ${KIND}"),
        ("sink:\n", "sink:\n  value.format: ${FORMAT}\n  key.format: ${FORMAT}\n"),
        ("  scan.startup.mode: ", "  scan:\n    startup:\n      mode: "),
        ("  scan.startup.mode: ", "  scan.startup:\n    mode: "),
        ("  scan.startup", "  properties: {group.id: g}\n  scan.startup"),
        ("  scan.startup", "  debezium-json: {schema-include: true}\n  scan.startup"),
        ("  scan.startup", "  value: {debezium-json: {schema-include: true}}\n  scan.startup"),
    ],
)
def test_the_schema_accepts_variables_and_nested_options(validator, old, new):
    assert not list(validator.iter_errors(loaded(changed(old, new))))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("route:", "rout:", "$"),
        ("  topic: shop", "  tabels: shop.x\n  topic: shop", "$.source"),
        ("  topic: shop", "  scna:\n    startup.mode: x\n  topic: shop", "$.source"),
        ("sink:\n", "sink:\n  value.format: jsn\n", "$.sink['value.format']"),
        ("sink:\n", "sink:\n  sink.delivery-garantee: x\n", "$.sink"),
        ("earliest-offset", "erliest-offset", "$.source['scan.startup.mode']"),
        ("type: upsert-kafka", "type: print", "$.sink.type"),
        ("    sink-table: ods.$1", "", "$.route[0]"),
    ],
)
def test_the_schema_refuses_what_does_not(validator, old, new, path):
    errors = list(validator.iter_errors(loaded(changed(old, new))))
    assert path in [error.json_path for error in errors]


@pytest.mark.parametrize(
    ("rest", "fits"),
    [
        ("pipeline: {parallelism: 4}", True),
        ("pipeline: {parallelism: '04'}", True),
        ("pipeline: {parallelism: '${N}'}", True),
        ("pipeline: {parallelism: 0}", False),
        ("pipeline: {parallelism: '0'}", False),
        ("pipeline: {parallelism: -1}", False),
        ("pipeline: {parallelism: many}", False),
        ("pipeline: {route-mode: first_match, schema.change.behavior: Try_Evolve}", True),
        ("pipeline: {route-mode: first}", False),
        ("pipeline: {user-defined-function: [{name: f, classpath: m.f}]}", True),
        ("pipeline: {user-defined-function: [{name: f, classpath: m.f, options: {}}]}", False),
        ("pipeline: {model: []}", False),
        ("pipeline:", False),
        ("transform: [{source-table: a, converter-after-transform: Soft_Delete}]", True),
        ("transform: [{source-table: a, converter-after-transform: '${CONVERTER}'}]", True),
        ("transform: [{source-table: a, converter-after-transform: HARD_DELETE}]", False),
        ("transform: [{projection: a}]", False),
    ],
)
def test_the_schema_and_the_reader_agree(validator, rest, fits):
    values = {"N": "2", "CONVERTER": "SOFT_DELETE"}
    read_job(JOB + rest + "\n", "job.yaml", values, {}, problems := Problems())
    assert bool(problems) is not fits
    assert bool(list(validator.iter_errors(loaded(JOB + rest)))) is not fits


REPOSITORY = Path(__file__).parents[3]
JOBS = list(REPOSITORY.glob("examples/**/*.yaml"))
SEED = """
source: {type: datagen, tables: [{name: t, columns: id BIGINT}]}
sink:
  type: upsert-kafka
  name: upsert-kafka Sink
  properties.bootstrap.servers: localhost:9092
  # ApsaraMQ for Kafka
  aliyun.kafka.accessKeyId: ${secret_values.kafka-ak}
  aliyun.kafka.accessKeySecret: ${secret_values.kafka-sk}
  aliyun.kafka.instanceId: ${instancd-id}
  aliyun.kafka.endpoint: ${endpoint}
  aliyun.kafka.regionId: ${region-id}
"""


def test_the_schema_accepts_every_example_and_the_seeds_sink(tmp_path, monkeypatch):
    info = tmp_path / "streamcore_ticker-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: streamcore-ticker\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[streamcore]\nticker = streamcore_ticker\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples" / "streamcore-ticker"))
    validator = jsonschema.Draft202012Validator(job_schema(load()))
    assert {path.name for path in JOBS} == {"shop.yaml", "prices.yaml"}
    for text in [SEED, *(path.read_text(encoding="utf-8") for path in JOBS)]:
        assert not list(validator.iter_errors(loaded(text)))


DOCUMENT = REPOSITORY / "docs" / "ingestion.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_documented_job_is_one(validator, text):
    problems = Problems()
    assert read_job(text, "job.yaml", {}, {}, problems).sink.type in TYPES
    assert not problems
    assert not list(validator.iter_errors(loaded(text)))


def test_every_key_of_a_file_is_documented():
    text = DOCUMENT.read_text(encoding="utf-8")
    schema = job_schema(installed())["properties"]
    rules = [schema[key]["items"]["properties"] for key in ("route", "transform")]
    silent = ("without effect", "For people")
    for name, facts in [(n, f) for each in rules for n, f in each.items()]:
        if not any(
            word in str(facts.get("description")).lower() for word in map(str.lower, silent)
        ):
            assert name in text, name
    for name, facts in schema["pipeline"]["properties"].items():
        assert "without effect" in str(facts.get("description")) or f"`{name}`" in text, name


def test_the_command_prints_the_schema(capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "streamcore ingestion job"
