"""Descriptions as Markdown: the tables of READMEs, of the reference, and of `describe`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .description import Description, MetadataFacts, OptionFacts


def page(facts: Description, level: int = 1) -> str:
    """All about one plugin, with headings that start at this level."""
    mark = "#" * level
    parts = [f"{mark} {facts.kind} `{facts.identifier}`", facts.description]
    if facts.distribution:
        parts.append(f"`pip install {facts.distribution}`")
    if facts.capabilities:
        parts.append(capabilities(facts))
    parts += [f"{mark}# Example", f"```sql\n{facts.example}\n```"]
    if facts.options:
        parts += [f"{mark}# Options", option_table(facts.options)]
    if facts.metadata:
        parts += [f"{mark}# Metadata columns", metadata_table(facts.metadata)]
    return "\n\n".join(parts) + "\n"


def section(facts: Description) -> str:
    """What a README holds about one plugin: its options and metadata columns."""
    parts = [option_table(facts.options) if facts.options else "It has no options."]
    if facts.metadata:
        parts += ["Metadata columns:", metadata_table(facts.metadata)]
    return "\n\n".join(parts)


def capabilities(facts: Description) -> str:
    """What the plugin can do, as one line."""
    words = []
    for what, able in facts.capabilities.items():
        if isinstance(able, bool):
            words.append(f"{what}: {'yes' if able else 'no'}")
        else:
            words.append(f"{what}: {able}")
    return " · ".join(words)


def option_table(options: Iterable[OptionFacts]) -> str:
    """One row for each option."""
    rows = [
        (f"`{each.key}`", each.type, _default(each), _escaped(explained(each))) for each in options
    ]
    return table(("Option", "Type", "Default", "Meaning"), rows)


def metadata_table(keys: Iterable[MetadataFacts]) -> str:
    """One row for each metadata column."""
    rows = [
        (
            f"`{each.key}`",
            f"`{_unquoted(each.type)}`",
            "R/W" if each.writable else "R",
            _escaped(each.description),
        )
        for each in keys
    ]
    return table(("Key", "Type", "Access", "Meaning"), rows)


def explained(each: OptionFacts) -> str:
    """An option's doc sentence, and what else there is to know about it."""
    parts = [each.description]
    if each.values:
        parts.append(f"One of {', '.join(f'`{value}`' for value in each.values)}.")
    if each.synonyms:
        parts.append(f"Also written {', '.join(f'`{key}`' for key in each.synonyms)}.")
    if each.fallback:
        parts.append(f"If absent, {', then '.join(f'`{key}`' for key in each.fallback)} is read.")
    if each.deprecated:
        parts.append(f"Was {', '.join(f'`{key}`' for key in each.deprecated)}.")
    return " ".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def _default(each: OptionFacts) -> str:
    if each.required:
        return "*required*"
    return f"`{_escaped(each.default)}`" if each.default else ""


def _unquoted(text: str) -> str:
    """A type without the backticks around its field names, which Markdown would take as its own."""
    return text.replace("`", "")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
