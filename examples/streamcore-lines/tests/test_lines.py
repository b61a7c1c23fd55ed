from streamcore.testing import FormatContract, arrow_schema, decode
from streamcore_lines import Lines


class TestLines(FormatContract):
    plugin = Lines()
    types = ("STRING NOT NULL",)
    columns = {"host": "STRING NOT NULL", "path": "STRING NOT NULL"}
    junk = (b"\xff\xfe", b"a|b|c")

    def storable(self, sql_type, value):
        return "|" not in value


def test_another_separator():
    schema = arrow_schema(TestLines.columns)
    assert decode(Lines(separator=";"), schema, [b"h;/p"]) == [("+I", {"host": "h", "path": "/p"})]
