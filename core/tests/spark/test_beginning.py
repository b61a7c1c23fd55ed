"""Every task begins alike: it says whose words are its own, and spares the collector."""

from __future__ import annotations

import gc
import itertools
import pickle

import pytest
from pyspark import TaskContext, cloudpickle
from streamcore import Table
from streamcore.spark import beginning


class Reader:
    def read(self, start, end):
        return list(range(start, end))


@pytest.fixture
def reader(monkeypatch):
    monkeypatch.setattr(beginning, "_tasks", itertools.count(1))
    made = Reader()
    beginning.beginning(made, Table(()), "read")
    yield made
    gc.unfreeze()


def test_a_worker_keeps_what_it_has_loaded_by_its_second_task_out_of_collections(
    reader, monkeypatch
):
    monkeypatch.setattr(TaskContext, "get", lambda: object())
    frozen = []
    for _ in range(4):
        assert reader.read(1, 3) == [1, 2]
        frozen.append(gc.get_freeze_count())
    assert frozen[0] == 0
    assert frozen[1] > 10_000
    assert frozen[1] >= frozen[2] >= frozen[3]


def test_what_is_no_worker_collects_as_before(reader):
    for _ in range(3):
        assert reader.read(1, 3) == [1, 2]
    assert gc.get_freeze_count() == 0


def test_a_worker_counts_its_tasks_whichever_readers_they_are_of(reader, monkeypatch):
    monkeypatch.setattr(TaskContext, "get", lambda: object())
    for _ in range(2):  # each task unpickles a reader of its own
        shipped = pickle.loads(cloudpickle.dumps(reader))
        assert shipped.read(0, 2) == [0, 1]
    assert gc.get_freeze_count() > 10_000
