"""Documents that are made from code are up to date."""

from pathlib import Path

import pytest
from streamcore.description import describe
from streamcore.docs import members, outdated, with_tables
from streamcore.registry import KINDS, installed

ROOT = Path(__file__).parent.parent


def test_generated_documents_are_current():
    stale = [str(path.relative_to(ROOT)) for path in outdated(ROOT, installed())]
    assert stale == [], "run 'make docs' and commit the result"


def test_every_plugin_has_a_table_in_its_packages_readme():
    readmes = "".join((member / "README.md").read_text() for member in members(ROOT))
    for kind, identifier in sorted(installed().active):
        if kind in KINDS:
            assert f"<!-- options:{kind}:{identifier} -->" in readmes


@pytest.fixture
def fixed():
    return describe(installed(), "partitioner", "fixed")


def test_tables_are_put_between_their_markers_and_nothing_else_is_touched(fixed):
    text = "# A\n\n<!-- options:partitioner:fixed -->\nold\n<!-- /options -->\n\nLast words.\n"
    made = with_tables(text, [fixed])
    assert made.startswith(
        "# A\n\n<!-- options:partitioner:fixed -->\n\nIt has no options.\n\n<!--"
    )
    assert made.endswith("<!-- /options -->\n\nLast words.\n")
    assert with_tables(made, [fixed]) == made


def test_a_plugin_without_a_marker_gets_a_section(fixed):
    made = with_tables("# A\n", [fixed])
    assert "## partitioner `fixed`\n\nSends everything one task writes" in made
    assert with_tables(made, [fixed]) == made
