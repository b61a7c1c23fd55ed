import pytest
from streamcore_sql import SqlError, parse
from streamcore_sql.render import create_table
from streamcore_sql.variables import fill, read_env_file


def test_variables_are_filled_in_everywhere_but_in_comments():
    source = fill(
        "-- ${NO}\nSELECT ${N} /* ${NO} */ FROM `${T}` WHERE a = '--${V}' -- ${NO}",
        {"N": "1", "T": "t", "V": "x"},
    )
    assert source.text == ("-- ${NO}\nSELECT 1 /* ${NO} */ FROM `t` WHERE a = '--x' -- ${NO}")


def test_a_value_cannot_end_the_text_or_name_it_is_in():
    source = fill("SELECT '${A}', `${B}`", {"A": "it's", "B": "a`b"})
    assert source.text == "SELECT 'it''s', `a``b`"


def test_a_doubled_dollar_keeps_the_braces():
    assert fill("SELECT '$${A}'", {}).text == "SELECT '${A}'"


def test_all_undefined_variables_are_told_at_once_with_their_places():
    with pytest.raises(SqlError) as caught:
        fill("SELECT '${HOTS}',\n '${secret_values.pw}'", {"HOST": "h"}, {})
    assert str(caught.value) == (
        "line 1, column 9: variable 'HOTS' is not defined\n"
        "    SELECT '${HOTS}',\n"
        "            ^^^^^^^\n"
        "Did you mean 'HOST'?\n"
        "\n"
        "line 2, column 3: variable 'secret_values.pw' is not defined\n"
        "     '${secret_values.pw}'\n"
        "      ^^^^^^^^^^^^^^^^^^^\n"
        "Define it with --secrets FILE, a file of NAME=VALUE lines, or in the environment as "
        "SECRET_VALUES_PW."
    )


def test_a_name_that_no_shell_can_export_has_a_second_spelling():
    given = {"A_B_C": "1", "PATH": "/bin", "SECRET_VALUES_PW": "hunter2"}
    source = fill("SELECT '${a.b-c}', '${secret_values.pw}'", given)
    assert source.text == "SELECT '1', 'hunter2'"
    assert source.mask("login hunter2 failed") == "login *** failed"
    assert fill("'${a.b-c}'", {**given, "a.b-c": "2"}).text == "'2'"
    assert fill("'${secret_values.pw}'", given, {"pw": "given"}).text == "'given'"
    with pytest.raises(SqlError, match="variable 'path' is not defined"):
        fill("SELECT '${path}'", given)


def test_places_are_those_of_the_script_as_written():
    source = fill("SELECT '${A}'; ${B} FOO", {"A": "x" * 99 + "\n\n", "B": ""})
    with pytest.raises(SqlError) as caught:
        parse(source)
    assert (caught.value.line, caught.value.column) == (1, 21)
    assert "'${A}'" in str(caught.value)


def test_a_secret_is_never_shown_by_errors_or_show_create_table():
    secrets = {"pw": "hunter2"}
    source = fill("CREATE TABLE t WITH ('topic' = '${secret_values.pw}')", {}, secrets)
    table = parse(source)[0]
    assert table.options[0].value == "hunter2"
    assert table.options[0].secret
    assert "'topic' = '***'" in create_table(table, mask=True)
    assert "hunter2" not in table.place.text
    assert source.mask("login hunter2 failed") == "login *** failed"
    with pytest.raises(SqlError) as caught:
        parse(fill("CREATE TABLE ${secret_values.pw} ${secret_values.pw}", {}, secrets))
    assert "hunter2" not in str(caught.value)
    assert "found '***'" in str(caught.value)


def test_a_plain_variable_is_quoted_by_its_value():
    with pytest.raises(SqlError, match="found 'abc'"):
        parse(fill("CREATE TABLE t ${X}", {"X": "abc"}))


def test_an_env_file_is_read_and_its_mistakes_are_told(tmp_path):
    file = tmp_path / ".env"
    file.write_text("# hosts\nexport HOST=h:1\nNAME = 'a b'\nEMPTY=\nQ=\"x\"\n")
    assert read_env_file(file) == {"HOST": "h:1", "NAME": "a b", "EMPTY": "", "Q": "x"}
    file.write_text("HOST h\n")
    with pytest.raises(SqlError, match=r"\.env, line 1: expected NAME=value"):
        read_env_file(file)
