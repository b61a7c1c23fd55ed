"""Requirements on core: the quick way agrees with the library, and the rest goes to the library."""

import pytest
from packaging.specifiers import SpecifierSet
from streamcore.versions import admits, unmet

WISHES = [">=0.1,<0.2", ">=0.1.0", "<1", "==0.1", "!=0.1.3", ">0.1, <=0.3", "==0.1.0"]
VERSIONS = ["0.1", "0.1.0", "0.1.3", "0.2", "0.2.0", "0.10", "1", "1.0.0"]


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_quick_answer_is_the_librarys(wish, version):
    assert admits(wish, version) == SpecifierSet(wish).contains(version)


@pytest.mark.parametrize(
    ("wish", "version", "fits"),
    [
        ("~=0.1.2", "0.1.9", True),
        ("~=0.1.2", "0.2", False),
        ("==0.1.*", "0.1.7", True),
        (">=0.1,<0.2", "0.1.1.dev3", True),
        (">=0.2", "0.2.0rc1", False),
        ("what is this", "1", True),
    ],
)
def test_everything_else_is_asked_of_the_library(wish, version, fits):
    assert admits(wish, version) is fits


def test_only_unconditional_requirements_on_core_count():
    requires = [
        "streamcore-kafka>=9",
        "streamcore[testing]>=9; extra == 'test'",
        "Streamcore[spark] >=0.1,<0.2",
        "streamcore (>=0.1)",
    ]
    assert unmet(requires, "streamcore", "0.1.5") == ""
    assert unmet(requires, "streamcore", "0.3") == "Streamcore>=0.1,<0.2"


def test_a_requirement_with_a_marker_counts_where_the_marker_holds():
    requires = ['streamcore (>=2,<3) ; python_version >= "3.11"']
    assert unmet(requires, "streamcore", "0.1") == "streamcore>=2,<3"
    assert unmet(['streamcore>=2; python_version < "3"'], "streamcore", "0.1") == ""
    assert unmet(["streamcore>=2; what is this"], "streamcore", "0.1") == ""
