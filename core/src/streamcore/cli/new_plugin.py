"""`streamcore new-plugin`: a package to start from, whose own tests pass at once."""

from __future__ import annotations

import keyword
import re
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import click

from ..claims import OWNERS, is_identifier
from ..registry import KINDS
from .output import formats, print_json
from .status import OK

PREFIX = "streamcore-"


@click.command("new-plugin")
@click.argument("name")
@click.option("--kind", required=True, type=click.Choice(sorted(KINDS)), help="What it will be.")
@click.option(
    "--dir",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("."),
    help="Where to put the package's folder.",
    show_default="here",
)
@formats()
def command(name: str, kind: str, parent: Path, output: str) -> int:
    """Write a package called NAME with a plugin of one kind, its hook and its tests."""
    identifier = name.lower().removeprefix(PREFIX)
    _must_be_free(identifier, kind)
    folder = parent / f"{PREFIX}{identifier}"
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"'{folder}' exists and is not empty; choose another name or --dir.")
    written = write(folder, identifier, kind)
    if output == "json":
        print_json({"folder": str(folder), "files": [str(path) for path in written]})
        return OK
    click.echo(f"Wrote {folder}:")
    for path in written:
        click.echo(f"  {path.relative_to(folder)}")
    click.echo(f"\nTry it:\n  cd {folder}\n  pip install -e '.[test]'\n  pytest")
    click.echo(f"  streamcore describe {kind} {identifier}")
    return OK


def write(folder: Path, identifier: str, kind: str) -> list[Path]:
    """Fill the templates of one kind into a folder, and return the files."""
    major, minor, *_ = version("streamcore").split(".")
    templates = files(__package__) / "templates"
    sources = [*_files(templates / "any"), *_files(templates / kind)]
    words = {
        "identifier": identifier,
        "distribution": PREFIX + identifier,
        "module": (PREFIX + identifier).replace("-", "_"),
        "Class": _class_name(identifier, [source.read_text("utf-8") for source in sources]),
        "kind": kind,
        "core": f"streamcore>={major}.{minor},<{major}.{int(minor) + 1}",
    }
    names = [s.name.removesuffix(".tmpl").replace("MODULE", words["module"]) for s in sources]
    modules = [name[:-3] for name in names if name.endswith(".py") and name[:5] != "test_"]
    words["modules"] = ", ".join(f'"{module}"' for module in modules)
    written = []
    for name, source in zip(names, sources, strict=True):
        path = folder / ("tests" if name.startswith("test_") else "") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(source.read_text(encoding="utf-8")).substitute(words), "utf-8")
        written.append(path)
    return written


def _class_name(identifier: str, texts: list[str]) -> str:
    """The identifier in camel case, unless that means something else in what is written."""
    name = "".join(word.capitalize() for word in identifier.split("-"))
    taken = keyword.iskeyword(name) or any(re.search(rf"\b{name}\b", text) for text in texts)
    return f"{name}Plugin" if taken else name


def _files(folder: Traversable) -> list[Traversable]:
    return sorted((each for each in folder.iterdir()), key=lambda each: each.name)


def _must_be_free(identifier: str, kind: str) -> None:
    if not is_identifier(identifier):
        raise click.UsageError(
            f"'{identifier}' is not lower-case ASCII words joined by '-', such as 'by-tenant'."
        )
    if owner := OWNERS.get((kind, identifier)):
        raise click.UsageError(f"{kind} '{identifier}' belongs to {owner}; choose another name.")
