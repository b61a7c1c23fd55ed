"""Sparks are told to map the archive of classes where there is one."""

from __future__ import annotations

import pytest
from streamcore.testing.services import spark_classes
from streamcore.testing.services.spark_classes import ARCHIVE, QUICK


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """A cache that is empty, and how often a Spark was run to fill it."""
    runs = []

    def fill(target, scratch):
        runs.append(target)
        (target / ARCHIVE).write_bytes(b"classes")

    monkeypatch.setenv("STREAMCORE_CACHE", str(tmp_path))
    monkeypatch.setattr(spark_classes, "_fill", fill)
    return runs


def test_without_an_archive_a_spark_only_starts_quickly(recorded):
    assert spark_classes.options() == QUICK
    assert recorded == []


def test_an_archive_is_recorded_once_and_mapped_from_then_on(recorded, tmp_path):
    options = spark_classes.options(record=True)
    (archive,) = tmp_path.glob(f"*/{ARCHIVE}")
    assert f"-XX:SharedArchiveFile={archive} " in options
    assert spark_classes.options() == spark_classes.options(record=True) == options
    assert len(recorded) == 1
