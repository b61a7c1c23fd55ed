"""What the README shows is what there is: its pipeline runs, its plugin is the one in examples."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_plugin_is_the_one_in_examples():
    example = (ROOT / "examples/streamcore-lines/streamcore_lines.py").read_text()
    assert example in blocks("python")
    assert len(example.splitlines()) <= 30


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", README))
def test_every_link_leads_somewhere(target):
    assert (ROOT / target).exists()


def test_every_package_is_listed_and_nothing_else():
    listed = set(re.findall(r"^\| \[`(streamcore[\w-]*)`\]", README, re.MULTILINE))
    members = [ROOT / "core", *(ROOT / "plugins").iterdir()]
    named = {
        re.search(r'^name = "(.+)"', (member / "pyproject.toml").read_text(), re.MULTILINE)[1]
        for member in members
        if (member / "pyproject.toml").exists()
    }
    assert listed == named


def test_the_pipeline_runs_as_it_stands(kafka, spark, tmp_path):
    from confluent_kafka import Consumer, Producer
    from streamcore_sql import Session

    script = blocks("sql")[0].replace("localhost:9092", kafka.bootstrap_servers)
    for topic in ("orders", "large-orders"):
        kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for n in range(10):
        producer.produce("orders", json.dumps({"id": n, "item": "tea", "amount": n * 25}).encode())
    producer.flush()
    session = Session(spark, name="readme", checkpoint=str(tmp_path), once=True)
    session.execute(script).wait(120)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "check",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["large-orders"])
    found = []
    while len(found) < 5:
        message = consumer.poll(30)
        assert message is not None, f"only {found} arrived"
        found.append(json.loads(message.value(), parse_float=Decimal))
    consumer.close()
    assert sorted(row["id"] for row in found) == [5, 6, 7, 8, 9]
    assert {row["item"] for row in found} == {"TEA"}
