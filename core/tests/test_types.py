"""SQL types, Arrow types and Spark types say the same thing."""

import pyarrow as pa
import pytest
from streamcore.spark.types import arrow_output, spark_schema, sql_type, table_of
from streamcore.table import Column, Table
from streamcore.types import TypeTextError, arrow_field, sql_text

CASES = {
    "STRING": pa.string(),
    "CHAR(3)": pa.string(),
    "VARCHAR(20)": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTES": pa.binary(),
    "DECIMAL(10, 2)": pa.decimal128(10, 2),
    "DATE": pa.date32(),
    "TIME(0)": pa.time32("s"),
    "TIME(3)": pa.time32("ms"),
    "TIMESTAMP(0)": pa.timestamp("s"),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(9)": pa.timestamp("ns"),
    "TIMESTAMP_LTZ(3)": pa.timestamp("ms", "UTC"),
    "INTERVAL DAY TO SECOND": pa.duration("us"),
    "INTERVAL YEAR TO MONTH": pa.int32(),
    "ARRAY<INT>": pa.list_(pa.field("element", pa.int32())),
    "MAP<STRING, BYTES>": pa.map_(pa.string(), pa.binary()),
    "MULTISET<STRING>": pa.map_(pa.string(), pa.int32()),
    "ROW<`a` INT, `b c` ARRAY<STRING NOT NULL>>": pa.struct(
        [("a", pa.int32()), ("b c", pa.list_(pa.field("element", pa.string(), nullable=False)))]
    ),
}


@pytest.mark.parametrize(("text", "arrow"), CASES.items())
def test_sql_text_and_arrow_type_give_each_other(text, arrow):
    field = arrow_field("x", text)
    assert field.type == arrow
    assert sql_text(field) == text


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("integer", "INT"),
        ("double precision", "DOUBLE"),
        ("numeric", "DECIMAL(10, 0)"),
        ("timestamp", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("ROW(a INT 'a comment', b STRING)", "ROW<`a` INT, `b` STRING>"),
        ("VARBINARY(8)", "VARBINARY(8)"),
        ("time", "TIME(0)"),
        ("TIME(2)", "TIME(2)"),
        ("TIMESTAMP(4) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(4)"),
        ("ARRAY<TIMESTAMP(8)>", "ARRAY<TIMESTAMP(8)>"),
    ],
)
def test_other_spellings_mean_the_same(written, canonical):
    assert sql_text(arrow_field("x", written)) == canonical


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("INTT", "'INTT': type 'INTT' is not supported"),
        ("DECIMAL(39, 2)", "'DECIMAL(39, 2)': precision is 1 to 38, scale 0 to precision"),
        ("TIMESTAMP(12)", "'TIMESTAMP(12)': precision is 0 to 9"),
        ("MAP<STRING>", "'MAP<STRING>': expected ',', found '>'"),
        ("ROW<a INT", "'ROW<a INT': expected '>', found ''"),
        ("INT INT", "'INT INT': did not expect 'INT'"),
        (
            "TIMESTAMP WITH TIME ZONE",
            "'TIMESTAMP WITH TIME ZONE': write TIMESTAMP_LTZ; a zone per value is not kept",
        ),
    ],
)
def test_a_wrong_type_says_what_is_wrong(text, complaint):
    with pytest.raises(TypeTextError) as caught:
        arrow_field("x", text)
    assert str(caught.value) == complaint


@pytest.mark.parametrize("text", CASES)
def test_every_type_has_a_spark_type_and_an_arrow_schema_spark_accepts(text):
    column = Column("x", text)
    (field,) = spark_schema([column])
    assert field.nullable
    assert arrow_output([column]).names == ["x"]
    assert arrow_field("x", sql_type(field.dataType)) is not None


def test_a_table_survives_its_trip_as_plain_json():
    table = Table(
        (Column("a", "INT", nullable=False), Column("t", "TIMESTAMP(3)", metadata="timestamp")),
        "t",
        ("a",),
    )
    assert Table.from_json(table.to_json()) == table


def test_field_metadata_carries_what_spark_types_cannot_say():
    from pyspark.sql.types import LongType, StructType, TimestampNTZType
    from streamcore.spark.types import carried

    at = Column("at", "TIMESTAMP(3)", metadata="timestamp", virtual=True)
    schema = StructType()
    schema.add("id", LongType(), False, carried(Column("id", "BIGINT", nullable=False), 0))
    schema.add("at", TimestampNTZType(), True, carried(at))
    table = table_of(schema)
    assert table.columns == (Column("id", "BIGINT", nullable=False), at)
    assert table.primary_key == ("id",)
