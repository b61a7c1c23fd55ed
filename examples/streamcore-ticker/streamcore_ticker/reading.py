"""The side of the ticker that Spark calls: plain data source classes that yield Arrow batches."""

import math

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from streamcore.spark.types import arrow_output


class Ticks(InputPartition):
    """What one task reads: all ticks from `start` up to, but not including, `stop`."""

    def __init__(self, start, stop):
        super().__init__(None)
        self.start, self.stop = start, stop


def batch(ticker, table, ticks):
    """The rows of some ticks, in the columns that the query wants."""
    pairs = [(tick, symbol) for tick in range(ticks.start, ticks.stop) for symbol in ticker.symbols]
    made = {
        "symbol": [symbol for _, symbol in pairs],
        "price": [price(ticker.seed, tick, symbol) for tick, symbol in pairs],
        "tick": [tick for tick, _ in pairs],
        "table": [f"market.{symbol}" for _, symbol in pairs],
    }
    schema = arrow_output(table.output)
    names = [column.metadata or column.name for column in table.output]
    empty = [None] * len(pairs)
    return pa.record_batch(
        [
            pa.array(made.get(name, empty)).cast(field.type)
            for name, field in zip(names, schema, strict=True)
        ],
        schema=schema,
    )


def price(seed, tick, symbol):
    """A price that is a function of its arguments alone, so that a replay gives the same rows."""
    return round(100 + 10 * math.sin(seed + tick / 10 + len(symbol)), 4)


class TickerReader(DataSourceReader):
    """A batch read: all ticks, in two tasks."""

    def __init__(self, ticker, table):
        self.ticker, self.table = ticker, table

    def partitions(self):
        middle = self.ticker.ticks // 2
        return [Ticks(0, middle), Ticks(middle, self.ticker.ticks)]

    def read(self, partition):
        yield batch(self.ticker, self.table, partition)


class TickerStreamReader(DataSourceStreamReader):
    """A streaming read: some ticks per micro-batch, until there are no more."""

    def __init__(self, ticker, table):
        self.ticker, self.table = ticker, table

    def initialOffset(self):
        return {"tick": 0}

    def latestOffset(self, start, limit):
        return {"tick": min(start["tick"] + self.ticker.per_batch, self.ticker.ticks)}

    def partitions(self, start, end):
        return [Ticks(start["tick"], end["tick"])]

    def read(self, partition):
        yield batch(self.ticker, self.table, partition)
