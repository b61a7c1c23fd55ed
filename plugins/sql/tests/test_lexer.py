import pytest
from streamcore_sql.errors import SqlError
from streamcore_sql.lexer import Kind, name_value, text_literal, text_value, tokens
from streamcore_sql.source import Source


def read(text):
    return [
        (token.kind.value, text[token.start : token.end])
        for token in tokens(Source(text))
        if token.kind is not Kind.END
    ]


def test_words_names_texts_numbers_and_symbols_are_told_apart():
    assert read("SELECT `a b`.c, 'x' || 1.5e3 <> .5") == [
        ("word", "SELECT"),
        ("quoted", "`a b`"),
        ("symbol", "."),
        ("word", "c"),
        ("symbol", ","),
        ("string", "'x'"),
        ("symbol", "||"),
        ("number", "1.5e3"),
        ("symbol", "<>"),
        ("number", ".5"),
    ]


def test_comments_are_left_out_and_hints_are_tokens():
    text = "a -- 'not a text\n/* ; ' */ b /*+ OPTIONS('k'='*/') */ c"
    assert read(text) == [
        ("word", "a"),
        ("word", "b"),
        ("hint", "/*+ OPTIONS('k'='*/') */"),
        ("word", "c"),
    ]


def test_a_doubled_quote_is_one_and_a_backslash_is_a_backslash():
    assert text_value("'it''s \\n'") == "it's \\n"
    assert text_value(text_literal("it's \\n")) == "it's \\n"
    assert text_value("U&'\\00e9 \\\\'") == "é \\"
    assert name_value("`a``b`") == "a`b"


def test_names_may_be_written_in_any_script():
    assert read("größe 顧客 _x1$y") == [("word", "größe"), ("word", "顧客"), ("word", "_x1$y")]


def test_closing_angle_brackets_stay_single():
    assert [text for _, text in read("MAP<A, ROW<b C>>")][-2:] == [">", ">"]


def test_lines_and_columns_count_from_one():
    source = Source("a\n  'x\ny' b")
    found = [source.locate(token.start) for token in tokens(source)]
    assert found == [(1, 1), (2, 3), (3, 4), (3, 5)]


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("SELECT 'abc", "this text is never closed"),
        ("SELECT `abc", "this name is never closed"),
        ("SELECT /* abc", "this comment is never closed"),
        ('SELECT "abc"', "double quotes mean nothing here"),
    ],
)
def test_what_is_opened_must_be_closed(text, trouble):
    with pytest.raises(SqlError) as caught:
        read(text)
    assert caught.value.trouble == trouble
    assert (caught.value.line, caught.value.column) == (1, 8)
