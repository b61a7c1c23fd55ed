"""CREATE TABLE ... AS SELECT: the columns that the query gives."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import types as T  # noqa: N812 - as every Spark program writes it
from streamcore.spark.types import sql_type

from ..cursor import Cursor
from ..errors import SqlError
from ..source import NOWHERE, Source
from ..statements import CreateTable, PhysicalColumn
from ..typename import parse_type


def table_as(statement: CreateTable, result: T.StructType) -> CreateTable:
    """The table without its query; columns declared beside it come first and stay as they are."""
    declared = {column.name for column in statement.columns}
    columns = [
        PhysicalColumn(field.name, parse_type(Cursor(Source(_type(field, statement)))))
        for field in result.fields
        if field.name not in declared
    ]
    names = [field.name for field in result.fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        trouble = f"the query gives column '{twice[0]}' twice"
        raise SqlError(trouble, statement.place, "Name one of them with AS.")
    return replace(
        statement,
        columns=(*statement.columns, *columns),
        query=None,
        if_not_exists=False,
        place=NOWHERE,
    )


def _type(field: T.StructField, statement: CreateTable) -> str:
    try:
        return sql_type(field.dataType)
    except TypeError as error:
        trouble = f"column '{field.name}': {error}"
        raise SqlError(trouble, statement.place, "Convert it with CAST.") from error
