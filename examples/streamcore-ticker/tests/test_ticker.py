from itertools import pairwise

from streamcore.table import Column, Table
from streamcore.testing import ConnectorContract
from streamcore_ticker import Ticker


class TestTicker(ConnectorContract):
    plugin = Ticker(ticks=7, per_batch=3, symbols=("ACME", "INIT"))
    columns = {"symbol": "STRING", "price": "DOUBLE"}


TABLE = Table(
    (
        Column("symbol", "STRING"),
        Column("price", "DECIMAL(10, 2)"),
        Column("nr", "BIGINT", metadata="tick", virtual=True),
    )
)


def rows(reader, partitions):
    return [row for each in partitions for made in reader.read(each) for row in made.to_pylist()]


def test_a_batch_read_covers_every_tick_once():
    reader = TestTicker.plugin.reader(TABLE)
    found = rows(reader, reader.partitions())
    assert [(row["nr"], row["symbol"]) for row in found] == [
        (nr, symbol) for nr in range(7) for symbol in ("ACME", "INIT")
    ]
    assert str(found[0]["price"]) == "90.41"


def test_a_stream_read_gives_the_same_rows_and_a_replay_too():
    batch_reader = TestTicker.plugin.reader(TABLE)
    reader = TestTicker.plugin.stream_reader(TABLE)
    offsets = [reader.initialOffset()]
    while offsets[-1]["tick"] < 7:
        offsets.append(reader.latestOffset(offsets[-1], None))
    assert [offset["tick"] for offset in offsets] == [0, 3, 6, 7]
    planned = [part for pair in pairwise(offsets) for part in reader.partitions(*pair)]
    once = rows(reader, planned)
    assert once == rows(batch_reader, batch_reader.partitions())
    assert once == rows(TestTicker.plugin.stream_reader(TABLE), planned)


def test_only_the_wanted_columns_are_made():
    reader = TestTicker.plugin.reader(TABLE.reading(["nr"]))
    assert rows(reader, reader.partitions()[:1])[0] == {"nr": 0}
