"""An edited query is compared with its checkpoint before it starts."""

import json

import pytest
from streamcore_sql import Session
from streamcore_sql.checkpoints import CannotResume, Checkpoint
from streamcore_sql.fingerprint import Fingerprint, differences, fingerprint
from streamcore_sql.planner.queries import QueryPlan, QueryReader

TABLES = """
CREATE TABLE views (user_id BIGINT, region STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'views', 'format' = 'json',
      'properties.bootstrap.servers' = 'h:1', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE users (id BIGINT, region STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'users', 'format' = 'json',
      'properties.bootstrap.servers' = 'h:1', 'scan.startup.mode' = 'earliest-offset');
"""


@pytest.fixture
def taken():
    """The fingerprint of a query, planned without Spark."""
    session = Session()
    session.execute(TABLES)

    def take(sql, before=""):
        if before:
            session.execute(before)
        (statement,) = session.parse(sql)
        found = QueryReader(session.catalog).read(statement.query)
        plan = QueryPlan(statement.query, found.rewritten, None, found.scans, found.rewritten.mode)
        return fingerprint(plan)

    return take


def reasons(before, now):
    return list(differences(before, now))


def test_other_columns_and_filters_can_go_on(taken):
    before = taken("SELECT user_id FROM views")
    now = taken("SELECT region, UPPER(region) AS r FROM views WHERE user_id > 3")
    assert reasons(before, now) == []


def test_startup_mode_and_servers_can_change(taken):
    before = taken("SELECT user_id FROM views")
    change = """ALTER TABLE views SET ('scan.startup.mode' = 'latest-offset',
      'properties.bootstrap.servers' = 'i:2')"""
    assert reasons(before, taken("SELECT user_id FROM views", change)) == []


def test_another_topic_cannot_go_on(taken):
    before = taken("SELECT user_id FROM views")
    now = taken("SELECT user_id FROM views", "ALTER TABLE views SET ('topic' = 'clicks')")
    assert reasons(before, now) == ["'views' read topic 'views', and now reads 'clicks'"]


def test_another_source_cannot_go_on(taken):
    before = taken("SELECT user_id FROM views")
    now = taken("SELECT user_id FROM views UNION ALL SELECT id FROM users")
    assert reasons(before, now) == ["it read 'views', and now reads 'views', 'users'"]


def test_a_filter_around_an_aggregate_can_change_but_its_keys_cannot(taken):
    query = "SELECT region, COUNT(*) AS n FROM views WHERE user_id > {} GROUP BY region"
    before = taken(query.format(1))
    assert before.state
    assert reasons(before, taken(query.format(2))) == []
    (reason,) = reasons(before, taken("SELECT COUNT(*) FROM views GROUP BY region, user_id"))
    assert "by region" in reason
    assert "by region, user_id" in reason


def test_another_aggregate_or_window_cannot_go_on(taken):
    window = """SELECT window_start, {} FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(ts),
      INTERVAL '{}' MINUTE)) GROUP BY window_start, window_end"""
    before = taken(window.format("COUNT(*)", 1))
    assert reasons(before, taken(window.format("COUNT(*)", 1))) == []
    assert reasons(before, taken(window.format("SUM(user_id)", 1)))
    assert reasons(before, taken(window.format("COUNT(*)", 5)))


def test_the_type_of_a_column_in_state_cannot_change(taken):
    query = "SELECT region, COUNT(*) AS n FROM views GROUP BY region"
    before = taken(query)
    now = taken(query, "ALTER TABLE views MODIFY region BIGINT")
    assert reasons(before, now) == ["column 'views.region' was STRING, and is now BIGINT"]


LAST = """SELECT {} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY ts DESC) AS rn
  FROM views) WHERE rn = 1"""
JOINED = "SELECT {} FROM views AS v JOIN users AS u ON v.user_id = u.id WHERE v.region <> '{}'"
VERSIONED = """SELECT {} FROM views AS v JOIN users FOR SYSTEM_TIME AS OF v.ts AS u
  ON v.user_id = u.id WHERE v.ts <> '{}'"""
WITHIN = "SELECT user_id FROM views WHERE region <> '{1}' AND user_id IN (SELECT {0} FROM users)"


@pytest.mark.parametrize(
    ("query", "columns", "others"),
    [
        ("SELECT DISTINCT {} FROM views WHERE ts > TIMESTAMP '{}'", "region", "region, user_id"),
        ("SELECT DISTINCT {} FROM views WHERE region > '{}'", "user_id", "*"),
        (
            "SELECT {0} FROM views WHERE user_id > '{1}' UNION SELECT {0} FROM users",
            "ts",
            "ts, region",
        ),
        (LAST, "user_id", "user_id, region"),
        (LAST, "user_id", "*"),
        (JOINED, "v.user_id", "v.user_id, u.region"),
        (JOINED, "v.user_id", "u.*"),
        (VERSIONED, "v.user_id", "v.user_id, u.region"),
        (WITHIN, "id", "CAST(region AS BIGINT)"),
        (WITHIN.replace(" IN ", " NOT IN "), "id", "CAST(region AS BIGINT)"),
    ],
)
def test_other_columns_in_rows_that_are_kept_cannot_go_on(taken, query, columns, others):
    before = taken(query.format(columns, "2024-01-01 00:00:00"))
    assert reasons(before, taken(query.format(columns, "2025-01-01 00:00:00"))) == []
    (reason,) = reasons(before, taken(query.format(others, "2024-01-01 00:00:00")))
    assert reason.startswith("its state was kept for ")


def test_a_row_that_must_be_there_or_must_not_cannot_be_turned_around(taken):
    query = "SELECT user_id FROM views WHERE user_id IN (SELECT id FROM users)"
    before = taken(query)
    assert reasons(before, taken(query.replace(" IN ", " NOT IN "))) == [
        "its state was kept for user_id IN id of user_id, and is now needed for "
        "NOT user_id IN id of user_id"
    ]


def test_other_columns_beside_a_table_that_does_not_grow_can_go_on(taken):
    query = """SELECT {} FROM views AS v
      JOIN users /*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */ AS u ON v.user_id = u.id"""
    before = taken(query.format("v.user_id"))
    assert reasons(before, taken(query.format("v.user_id, u.region"))) == []


LATEST = """DROP TABLE IF EXISTS people; CREATE TABLE people (id {id}, city STRING, name STRING,
  PRIMARY KEY ({key}) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'people',
  'key.format' = 'json', 'value.format' = 'json', 'properties.bootstrap.servers' = 'h:1',
  'changelog.normalize' = '{normalize}')"""


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        (
            {"key": "city"},
            [
                "its state was kept for the latest id, name of 'people' by id, "
                "and is now needed for the latest id, name, city of 'people' by city"
            ],
        ),
        ({"id": "BIGINT"}, ["column 'people.id' was INT, and is now BIGINT"]),
        (
            {"normalize": "false"},
            [
                "its state was kept for the latest id, name of 'people' by id, "
                "and is now needed for nothing"
            ],
        ),
    ],
)
def test_the_key_of_latest_rows_in_state_cannot_change(taken, changed, expected):
    table = {"id": "INT", "key": "id", "normalize": "true"}
    query = "SELECT id, name FROM people"
    before = taken(query, LATEST.format(**table))
    assert reasons(before, taken(query, LATEST.format(**table | changed))) == expected


def test_a_checkpoint_that_does_not_fit_names_reasons_and_choices(tmp_path, taken):
    folder = tmp_path / "job"
    before, now = taken("SELECT user_id FROM views"), taken("SELECT id FROM users")
    checkpoint = Checkpoint(str(folder), "job")
    assert checkpoint.check(before) == ""
    checkpoint.begin(before)
    checkpoint.release()
    assert checkpoint.check(now) == "", "no batch was planned yet, so anything may start"
    (folder / "offsets").mkdir()
    (folder / "offsets" / "0").write_text("v1")
    assert "goes on" in checkpoint.check(before)
    kept = sorted(folder.rglob("*"))
    with pytest.raises(CannotResume) as caught:
        checkpoint.check(now)
    text = str(caught.value)
    assert "'users' read topic 'views', and now reads 'users'" in text
    assert "--fresh" in text
    assert "--checkpoint DIR" in text
    assert caught.value.exit_code == 2
    assert sorted(folder.rglob("*")) == kept


def test_two_processes_do_not_share_a_checkpoint(tmp_path, taken):
    first, second = (Checkpoint(str(tmp_path / "job"), "job") for _ in range(2))
    first.begin(taken("SELECT user_id FROM views"))
    with pytest.raises(CannotResume, match="already runs"):
        second.begin(taken("SELECT user_id FROM views"))
    first.release()
    second.begin(taken("SELECT user_id FROM views"))
    second.release()


def test_starting_over_keeps_the_old_checkpoint_aside(tmp_path, taken):
    checkpoint = Checkpoint(str(tmp_path / "job"), "job")
    checkpoint.begin(taken("SELECT user_id FROM views"))
    checkpoint.release()
    (tmp_path / "job" / "offsets").mkdir()
    checkpoint.begin(taken("SELECT id FROM users"), fresh=True)
    checkpoint.release()
    (aside,) = tmp_path.glob("job.old-*")
    assert (aside / "offsets").exists()
    assert not (tmp_path / "job" / "offsets").exists()
    assert "views" in json.loads((aside / "streamcore.json").read_text())["query"]["query"]


def test_starting_over_leaves_the_checkpoint_of_a_job_that_runs_alone(tmp_path, taken):
    running, other = (Checkpoint(str(tmp_path / "job"), "job") for _ in range(2))
    running.begin(taken("SELECT user_id FROM views"))
    with pytest.raises(CannotResume, match="already runs"):
        other.begin(taken("SELECT id FROM users"), fresh=True)
    running.release()
    assert [folder.name for folder in tmp_path.iterdir()] == ["job"]
    assert (
        "views" in json.loads((tmp_path / "job" / "streamcore.json").read_text())["query"]["query"]
    )


def test_a_fingerprint_survives_its_file_and_holds_no_options(taken):
    found = taken("SELECT region, COUNT(*) AS n FROM views GROUP BY region")
    text = json.dumps(found.to_json())
    assert Fingerprint.from_json(json.loads(text)) == found
    assert "h:1" not in text
