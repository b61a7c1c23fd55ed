"""Flink's functions in Spark's words, where the two differ; every other name is the same in both.

`NAME` holds for any number of arguments, `NAME/2` for two. `{0}` is the first argument, `{all}`
all of them; `{filter}` is where a FILTER clause belongs.
"""

from __future__ import annotations

_LITERAL_SEPARATOR = r"concat('\\Q', {1}, '\\E')"
_NTZ = "CAST({} AS TIMESTAMP_NTZ)"

TEMPLATES: dict[str, str] = {
    # texts
    "CHARACTER_LENGTH/1": "char_length({0})",
    "LTRIM/2": "trim(LEADING {1} FROM {0})",
    "RTRIM/2": "trim(TRAILING {1} FROM {0})",
    "TRIM/2": "trim(BOTH {0} FROM {1})",
    "POSITION/2": "position({0} IN {1})",
    "OVERLAY/3": "overlay({0} PLACING {1} FROM {2})",
    "OVERLAY/4": "overlay({0} PLACING {1} FROM {2} FOR {3})",
    "REGEXP/2": "({0} RLIKE {1})",
    "REGEXP_EXTRACT/2": "CASE WHEN {0} RLIKE {1} THEN regexp_extract({0}, {1}, 0) END",
    "REGEXP_EXTRACT/3": "CASE WHEN {0} RLIKE {1} THEN regexp_extract({0}, {1}, {2}) END",
    "SPLIT_INDEX/3": f"get(split({{0}}, {_LITERAL_SEPARATOR}), {{2}})",
    "SPLIT/2": f"split({{0}}, {_LITERAL_SEPARATOR})",
    "STR_TO_MAP/1": "str_to_map({0}, ',', '=')",
    "FROM_BASE64/1": "CAST(unbase64({0}) AS STRING)",
    "TO_BASE64/1": "base64({0})",
    "SHA1/1": "sha1({0})",
    "SHA224/1": "sha2({0}, 224)",
    "SHA256/1": "sha2({0}, 256)",
    "SHA384/1": "sha2({0}, 384)",
    "SHA512/1": "sha2({0}, 512)",
    "IS_ALPHA/1": r"coalesce({0} RLIKE '^\\p{{L}}+$', false)",
    "IS_DIGIT/1": r"coalesce({0} RLIKE '^\\p{{Nd}}+$', false)",
    "IS_DECIMAL/1": "coalesce(try_cast({0} AS DOUBLE) IS NOT NULL, false)",
    # numbers
    "TRUNCATE/1": "(sign({0}) * floor(abs({0})))",
    "TRUNCATE/2": "(sign({0}) * floor(abs({0}), {1}))",
    "RAND_INTEGER/1": "CAST(floor(rand() * {0}) AS INT)",
    "RAND_INTEGER/2": "CAST(floor(rand({0}) * {1}) AS INT)",
    # points in time
    "PROCTIME/0": "current_timestamp()",
    "CURRENT_ROW_TIMESTAMP/0": "current_timestamp()",
    "LOCALTIMESTAMP/0": "localtimestamp()",
    "LOCALTIME/0": "current_time()",
    "TO_TIMESTAMP/1": "try_cast({0} AS TIMESTAMP_NTZ)",
    "TO_TIMESTAMP/2": _NTZ.format("try_to_timestamp({0}, {1})"),
    "TO_DATE/1": "CAST(try_to_timestamp({0}) AS DATE)",
    "TO_DATE/2": "CAST(try_to_timestamp({0}, {1}) AS DATE)",
    "WEEK/1": "weekofyear({0})",
    "CONVERT_TZ/3": (
        "date_format(convert_timezone({1}, {2}, CAST({0} AS TIMESTAMP_NTZ)), 'yyyy-MM-dd HH:mm:ss')"
    ),
    # values and collections
    "ROW": "struct({all})",
    "ARRAY": "array({all})",
    "MAP": "map({all})",
    "ELEMENT/1": "try_element_at({0}, 1)",
    "ARRAY_CONCAT": "concat({all})",
    "ARRAY_REVERSE/1": "reverse({0})",
    "ARRAY_SORT/1": "sort_array({0})",
    "ARRAY_SORT/2": "sort_array({0}, {1})",
    "ARRAY_SLICE/2": "slice({0}, {1}, size({0}))",
    "ARRAY_SLICE/3": "slice({0}, {1}, greatest({2} - {1} + 1, 0))",
    "MAP_UNION": "map_concat({all})",
    # aggregates
    "FIRST_VALUE/1": "first({0}, true){filter}",
    "LAST_VALUE/1": "last({0}, true){filter}",
    "LISTAGG/1": "listagg({0}, ','){filter}",
    "LISTAGG/2": "listagg({0}, {1}){filter}",
    "STRING_AGG/1": "listagg({0}, ','){filter}",
    "STRING_AGG/2": "listagg({0}, {1}){filter}",
}

_AGGREGATES = """
COUNT SUM AVG MIN MAX STDDEV STDDEV_POP STDDEV_SAMP VARIANCE VAR_POP VAR_SAMP LISTAGG STRING_AGG
FIRST_VALUE LAST_VALUE ARRAY_AGG APPROX_COUNT_DISTINCT PERCENTILE ANY_VALUE COLLECT_LIST COLLECT_SET
MAX_BY MIN_BY BOOL_AND BOOL_OR EVERY FIRST LAST COUNT_IF APPROX_PERCENTILE MEDIAN MODE
HLL_SKETCH_AGG CORR COVAR_POP COVAR_SAMP COLLECT
"""
_INTEGRAL = """
COUNT CHAR_LENGTH CHARACTER_LENGTH LENGTH OCTET_LENGTH UNIX_TIMESTAMP POSITION INSTR LOCATE ASCII
CARDINALITY YEAR QUARTER MONTH WEEK DAYOFYEAR DAYOFMONTH DAYOFWEEK HOUR MINUTE SECOND EXTRACT
TIMESTAMPDIFF RAND_INTEGER ARRAY_POSITION
"""
AGGREGATES = frozenset(_AGGREGATES.split())
INTEGRAL = frozenset(_INTEGRAL.split())  # what answers a whole number, whatever it is asked

REFUSED = {
    "CURRENT_WATERMARK": "Spark applies the watermark by itself; late rows are dropped.",
    "SOURCE_WATERMARK": "Write WATERMARK FOR column AS column - INTERVAL '5' SECOND.",
    "COLLECT": "Write ARRAY_AGG(x), or COUNT(*) ... GROUP BY x for the number of each value.",
    "JSON_ARRAYAGG": "Write TO_JSON(COLLECT_LIST(x)).",
    "JSON_OBJECTAGG": "Write TO_JSON(MAP_FROM_ARRAYS(COLLECT_LIST(k), COLLECT_LIST(v))).",
    "JSON_ARRAY": "Write TO_JSON(ARRAY[...]) for values of one type.",
    "JSON_STRING": "Write TO_JSON(x) for a row, an array or a map.",
}
