"""An entry as the text a catalog keeps: as it was written, variables and secrets not filled in."""

from __future__ import annotations

from dataclasses import replace

from .catalog import Entry
from .lexer import Kind, name_literal, text_literal, text_value, tokens
from .render import create_table, create_view
from .source import NOWHERE, Source
from .statements import CreateFunction, CreateTable, CreateView, Option


def kept_text(entry: Entry) -> str:
    """The user's own words, or new ones when the entry was changed since it was written."""
    if entry.place is not NOWHERE:
        return entry.place.text
    if isinstance(entry, CreateTable):
        options = tuple(replace(o, value=written_value(o)) for o in entry.options)
        return create_table(replace(entry, options=options))
    if isinstance(entry, CreateView):
        return create_view(entry)
    return _create_function(entry)


def written_value(option: Option) -> str:
    """An option's value as it was written, such as `${secret_values.password}`."""
    if option.place is NOWHERE:
        return option.value.replace("${", "$${")
    written = Source(option.place.text)
    texts = [token for token in tokens(written) if token.kind is Kind.STRING]
    return text_value(written.text[texts[-1].start : texts[-1].end])


def _create_function(entry: CreateFunction) -> str:
    name = ".".join(map(name_literal, entry.name.parts))
    return f"CREATE FUNCTION {name} AS {text_literal(entry.target)} LANGUAGE PYTHON"
