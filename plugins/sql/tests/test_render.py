import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamcore_sql import parse
from streamcore_sql.cursor import SqlText
from streamcore_sql.render import create_table, create_view
from streamcore_sql.statements import (
    ComputedColumn,
    CreateTable,
    CreateView,
    Distribution,
    Like,
    LikeRule,
    MetadataColumn,
    Name,
    Option,
    PhysicalColumn,
    PrimaryKey,
    Watermark,
)
from streamcore_sql.typename import Field, TypeName

text = st.text(max_size=12)
words = st.text(string.ascii_letters + "_", min_size=1, max_size=8)
labels = st.one_of(words, st.text(min_size=1, max_size=6))
names = st.lists(labels, min_size=1, max_size=3).map(lambda parts: Name(tuple(parts)))
expressions = st.sampled_from(
    ["a + 1", "PROCTIME()", "CAST(a AS INT)", "CONCAT('a,b', ')')", "a - INTERVAL '5' SECOND"]
).map(SqlText)
comments = st.none() | text
flat = st.one_of(
    st.sampled_from(
        ["STRING", "BYTES", "INT", "DOUBLE", "DATE", "VARIANT", "INTERVAL DAY TO HOUR"]
    ).map(TypeName),
    st.builds(lambda p, s: TypeName("DECIMAL", (p + s, s)), st.integers(1, 19), st.integers(0, 19)),
    st.builds(
        lambda name, p: TypeName(name, (p,)),
        st.sampled_from(["TIME", "TIMESTAMP", "TIMESTAMP_LTZ"]),
        st.integers(0, 9),
    ),
)


def maybe_not_null(types):
    return st.builds(
        lambda t, null: TypeName(t.name, t.args, t.items, t.fields, null), types, st.booleans()
    )


def nested(inner):
    return st.one_of(
        st.builds(lambda t: TypeName("ARRAY", items=(t,)), inner),
        st.builds(lambda t: TypeName("MULTISET", items=(t,)), inner),
        st.builds(lambda k, v: TypeName("MAP", items=(k, v)), inner, inner),
        st.lists(st.builds(Field, labels, inner, comments), max_size=3).map(
            lambda fields: TypeName("ROW", fields=tuple(fields))
        ),
    ).flatmap(lambda t: maybe_not_null(st.just(t)))


types = st.recursive(maybe_not_null(flat), nested, max_leaves=5)
features = st.sampled_from(["OPTIONS", "WATERMARKS", "METADATA", "GENERATED"])


@st.composite
def tables(draw):
    columns = []
    for name in draw(st.lists(labels, min_size=1, max_size=5, unique_by=str.lower)):
        columns.append(
            draw(
                st.one_of(
                    st.builds(PhysicalColumn, st.just(name), types, comments),
                    st.builds(
                        MetadataColumn, st.just(name), types, labels, st.booleans(), comments
                    ),
                    st.builds(ComputedColumn, st.just(name), expressions, comments),
                )
            )
        )
    known = st.sampled_from([Name((column.name,)) for column in columns])
    some = st.lists(known, max_size=2).map(tuple)
    physical = [Name((c.name,)) for c in columns if isinstance(c, PhysicalColumn)]
    key = st.builds(PrimaryKey, st.just(tuple(physical)), st.none() | labels)
    like = st.builds(
        Like,
        names,
        st.lists(st.builds(LikeRule, st.sampled_from(["INCLUDING", "OVERWRITING"]), features)).map(
            tuple
        ),
    )
    return CreateTable(
        draw(names),
        tuple(columns),
        draw(st.none() | st.builds(Watermark, known, expressions)),
        draw(key) if physical and draw(st.booleans()) else None,
        draw(comments),
        draw(st.none() | st.builds(Distribution, some, st.just(None), st.integers(1, 99))),
        draw(some),
        tuple(draw(st.lists(st.builds(Option, text, text), max_size=3, unique_by=lambda o: o.key))),
        draw(st.none() | like),
        None,
        draw(st.booleans()),
        draw(st.booleans()),
    )


@settings(deadline=None, max_examples=200)
@given(tables())
def test_what_is_rendered_reads_back_as_it_was(table):
    assert parse(create_table(table)) == [table]


@given(names, st.lists(names.map(lambda n: Name(n.parts[:1])), max_size=2), comments)
def test_a_rendered_view_reads_back_as_it_was(name, columns, comment):
    view = CreateView(name, SqlText("SELECT a FROM b"), tuple(columns), comment)
    assert parse(create_view(view)) == [view]


def test_show_create_table_looks_like_this():
    table = parse(
        "CREATE TEMPORARY TABLE t (a INT NOT NULL COMMENT 'x', m STRING METADATA FROM 'k' VIRTUAL,"
        "p AS PROCTIME(), WATERMARK FOR a AS a, PRIMARY KEY(a) NOT ENFORCED) COMMENT 'it''s' "
        "PARTITIONED BY (a) WITH ('connector'='kafka', 'properties.ssl.key.password'='hunter2')"
    )[0]
    assert create_table(table, mask=True) == (
        "CREATE TEMPORARY TABLE `t` (\n"
        "  `a` INT NOT NULL COMMENT 'x',\n"
        "  `m` STRING METADATA FROM 'k' VIRTUAL,\n"
        "  `p` AS PROCTIME(),\n"
        "  WATERMARK FOR `a` AS a,\n"
        "  PRIMARY KEY (`a`) NOT ENFORCED\n"
        ")\n"
        "COMMENT 'it''s'\n"
        "PARTITIONED BY (`a`)\n"
        "WITH (\n"
        "  'connector' = 'kafka',\n"
        "  'properties.ssl.key.password' = '***'\n"
        ")"
    )
    assert "hunter2" in create_table(table)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("properties.ssl.keystore.key", "hunter2", "***"),
        ("avro-confluent.http-headers", "hunter2", "***"),
        ("auth-params", "hunter2", "***"),
        ("avro-confluent.url", "http://me:hunter2@host:1", "http://***@host:1"),
        ("aws.endpoint", "https://me:hunter2@host", "https://***@host"),
        ("aws.credentials.provider", "AUTO", "AUTO"),
    ],
)
def test_show_create_table_masks_what_core_calls_sensitive(key, value, shown):
    table = CreateTable(Name(("t",)), options=(Option(key, value),))
    assert f"'{key}' = '{shown}'" in create_table(table, mask=True)
    assert f"'{key}' = '{value}'" in create_table(table)


def test_what_came_from_a_secret_variable_is_masked_whatever_its_key():
    option = Option("topic", "t", secret=True)
    assert "'topic' = '***'" in create_table(
        CreateTable(Name(("t",)), options=(option,)), mask=True
    )
