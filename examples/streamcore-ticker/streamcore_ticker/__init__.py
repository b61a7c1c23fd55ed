"""Prices that move by themselves: a complete third-party connector."""

from streamcore import Connector, MetadataKey, at_least, hookimpl, option


class Ticker(Connector):
    """Makes up prices: one row per symbol and tick, the same ones for the same seed."""

    identifier = "ticker"
    example_columns = ("symbol STRING", "price DOUBLE", "tick BIGINT METADATA VIRTUAL")

    symbols: tuple[str, ...] = option("symbols", "What is traded.", default=("ACME", "INIT"))
    ticks: int = option(
        "ticks", "How many ticks there are to read.", default=100, check=at_least(1)
    )
    per_batch: int = option(
        "ticks-per-batch", "How many ticks a micro-batch covers.", default=10, check=at_least(1)
    )
    seed: int = option("seed", "Where the prices start from.", default=1)

    def problems(self):
        yield from super().problems()
        if not self.symbols:
            yield "symbols: name one at least"

    def metadata(self):
        return {
            "tick": MetadataKey("BIGINT NOT NULL", "The number of the tick."),
            "table": MetadataKey("STRING NOT NULL", "What a YAML job takes for the row's table."),
        }

    def bounded(self):
        return True

    def reader(self, table):
        from .reading import TickerReader  # imports pyspark, which listing plugins must not

        return TickerReader(self, table)

    def stream_reader(self, table):
        from .reading import TickerStreamReader

        return TickerStreamReader(self, table)


@hookimpl
def register_connectors():
    return [Ticker]
