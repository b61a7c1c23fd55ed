"""Sources hear of the batches they gave, and of nothing else."""

from __future__ import annotations

import queue

from streamcore.spark.finished import Ear, tell, word_for

END = {"offsets": {"orders": {"0": 3, "1": 5}}, "tasks": 2}


def progress(address, end=END):
    return {"sources": [{"endOffset": end, "latestOffset": {"offsets": {}, "group": address}}]}


def test_a_source_hears_the_word_for_its_end():
    heard = queue.Queue()
    ear = Ear(heard.put)
    tell(progress({"tell": ear.address}))
    assert heard.get(timeout=30) == word_for(END)
    assert word_for(END) == word_for({"offsets": {"orders": {"1": 5, "0": 3}}})
    assert word_for(END) != word_for({"offsets": {"orders": {"1": 5, "0": 4}}})


def test_a_source_does_not_listen_to_strangers():
    heard = queue.Queue()
    ear = Ear(heard.put)
    port, _, token = ear.address.partition("/")
    tell(progress({"tell": f"{port}/{token[::-1]}x"}))
    tell(progress({"tell": ear.address}, {"offsets": "after"}))
    assert heard.get(timeout=30) == word_for({"offsets": "after"})
    assert heard.empty()


def test_sources_that_do_not_ask_are_left_alone():
    for address in ({}, {"tell": "nowhere/x"}, {"tell": None}, None, "text"):
        tell(progress(address))
    tell({"sources": [{"endOffset": "7", "latestOffset": None}, {}]})
    tell({})
