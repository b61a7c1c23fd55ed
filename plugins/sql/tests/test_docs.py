import re
from pathlib import Path

import pytest
from streamcore_sql.cursor import SqlText
from streamcore_sql.rewrite import rewrite_expression

PAGE = Path(__file__).parents[3] / "docs" / "sql-queries.md"
ROWS = re.findall(r"^\| `(.+)` \| `(.+)` \|$", PAGE.read_text().split("## Functions")[1], re.M)


@pytest.mark.parametrize(("flink", "spark"), ROWS)
def test_a_documented_function_is_rewritten_as_documented(flink, spark):
    assert rewrite_expression(SqlText(flink)) == spark.replace("\\|", "|")


def test_the_page_documents_many_functions():
    assert len(ROWS) > 70
