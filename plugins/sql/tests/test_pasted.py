"""What people who come from Flink paste is read without Spark, and planned by it."""

from pathlib import Path

import pytest
from streamcore_sql import Session, parse
from streamcore_sql.statements import CreateTable, CreateView, Explain, needs_spark

STATEMENTS = parse((Path(__file__).parent / "pasted.sql").read_text())
DEFINITIONS = [each for each in STATEMENTS if not needs_spark(each)]
QUERIES = [each for each in STATEMENTS if needs_spark(each)]
LINES = [f"line {each.place.line}" for each in QUERIES]


def with_tables(session):
    for each in DEFINITIONS:
        session.run_statement(each)
    return session


@pytest.fixture(scope="module")
def session():
    return with_tables(Session())


@pytest.fixture(scope="module")
def planning(spark):
    return with_tables(Session(spark))


def test_there_are_many():
    assert len(QUERIES) > 80
    assert {type(each) for each in DEFINITIONS} == {CreateTable, CreateView}


@pytest.mark.parametrize("query", QUERIES, ids=LINES)
def test_a_pasted_query_is_read_without_spark(session, query):
    session.look_at(query)


@pytest.mark.parametrize("query", QUERIES, ids=LINES)
def test_a_pasted_query_is_planned(planning, query):
    if isinstance(query, Explain):
        query = query.statement
    assert planning.prepare(query).text()
