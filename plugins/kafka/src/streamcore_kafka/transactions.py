"""Exactly once: one transaction per task and batch, which carries a marker of what it wrote.

A task starts a fresh producer under the id `<prefix>-<task>`, which ends whatever a predecessor
left open, and only then reads the markers. What is already there is compared and skipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from zlib import crc32

from streamcore import StreamcoreError
from streamcore.failpoints import reach
from streamcore.spark.task import Task

from .client import KafkaError, KafkaException, Producer, explain, patience, patiently
from .hearing import LOG
from .keystores import Settings, text
from .markers import Marker, Markers
from .messages import Messages
from .sender import Sender, Undelivered
from .tickets import (
    Ticket,
    TransactionRefused,
    brought_up,
    check,
    check_same_rows,
    is_repeated,
    too_long,
)

_PATIENCE = "delivery.timeout.ms"
_FENCED = {
    "_FENCED",
    "PRODUCER_FENCED",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_PRODUCER_ID_MAPPING",
    "_FATAL",
}


class Transaction:
    """Writes the rows of one task once, however often the task or the batch is repeated."""

    def __init__(
        self,
        properties: Settings,
        ticket: Ticket,
        task: Task,
        count: Callable[[], int] | None = None,
    ) -> None:
        """`count` tells how many rows were taken in, where messages are not one for each."""
        self._properties, self._ticket, self._task = properties, ticket, task
        self._count = count
        self._ours = ticket.marker(task)
        self._markers = Markers(properties, ticket.prefix, ticket.place)
        self._repeated = is_repeated(self._ours, ticket.before)
        if ticket.tasks and task.partition >= ticket.tasks:
            raise TransactionRefused(
                f"task {task.partition} writes, but 'sink.parallelism' is {ticket.tasks}; "
                "repartition the rows to that number, or remove the option"
            )

    def write(self, batches: Iterable[Messages]) -> Sender | None:
        """Write everything and commit; None if there was nothing to write."""
        rows = _peek(batches)
        if rows is None and not self._repeated:
            return None
        began = time.monotonic()
        sender = self._sender()
        try:
            self._write(sender, rows or iter(()))
        except BaseException as error:
            self._abort(sender)
            if cause := _cause(error):
                known = self._explained(cause, time.monotonic() - began)
                if known or isinstance(error, KafkaException):
                    raise known or explain(error, self._properties) from None
            raise
        return sender

    def _sender(self) -> Sender:
        ticket = self._ticket
        given = [text(self._properties.get(key)) for key in ("message.timeout.ms", _PATIENCE)]
        patient = next(filter(None, given), "120000")
        return Sender(
            self._properties,
            **{
                "transactional.id": f"{ticket.prefix}-{self._task.partition}",
                "transaction.timeout.ms": ticket.timeout,
                "message.timeout.ms": min(int(patient), ticket.timeout),
            },
        )

    def _write(self, sender: Sender, rows: Iterator[Messages]) -> None:
        producer, task = sender.producer, self._task.partition
        reach("init")
        self._markers.open(task)
        self._connect(producer)
        self._retried(producer.init_transactions)
        last = self._markers.of_batch()
        self._ticket = brought_up(self._ours, self._ticket, last)
        self._repeated = is_repeated(self._ours, self._ticket.before)
        check(self._ours, self._ticket, last)
        there = self._markers.of_task(task)
        if there is not None and self._is_done(there):
            sender.rows, sender.repeated = there.rows, True
            return
        matches = there is not None and self._is_same_batch(there)
        reach("begin")
        producer.begin_transaction()
        checksum = 0
        for messages in rows:
            checksum = (checksum + fingerprint(messages)) % 2**64
            if matches:
                sender.rows += len(messages.values)
            else:
                sender.send(messages)
            reach("produce")
        self._ours = replace(self._ours, rows=sender.rows, checksum=checksum)
        if self._count is not None:  # what was merged depends on the clock; what came in does not
            self._ours = replace(self._ours, rows=self._count(), checksum=0)
        if there is not None and matches:
            check_same_rows(self._ours, there, task)
            sender.repeated = True
        elif self._repeated and not self._ours.tasks:
            self._wait_for_the_others(sender)
        sender.flush()
        self._commit(sender)

    def _connect(self, producer: Producer) -> None:
        """Have a broker's own connection up, not only the first one: initialising without it waits.

        The first answer comes through the address given, the second through the broker's own.
        """
        for _ in range(2):
            patiently(
                producer,
                self._properties,
                lambda seconds: producer.list_topics(self._ticket.place, seconds),
            )

    def _commit(self, sender: Sender) -> None:
        producer, task = sender.producer, self._task.partition
        reach("marker")
        self._markers.put(producer, task, self._ours)
        reach("commit")
        self._retried(producer.commit_transaction)
        reach("committed")
        self._settle(task)

    def _settle(self, task: int) -> None:
        """Let the broker finish: a next transaction that comes too early waits much longer."""
        for wait in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
            last = self._markers.of_batch()
            if last and last.same_run(self._ours) and self._markers.of_task(task) == self._ours:
                return
            time.sleep(wait)

    def _is_same_batch(self, there: Marker) -> bool:
        ours = self._ours
        return bool(ours.query) and (there.query, there.batch) == (ours.query, ours.batch)

    def _is_done(self, there: Marker) -> bool:
        """Whether what this task would write is there, so that its rows need not be looked at."""
        ours = self._ours
        if there.write == ours.write:
            return True
        if self._is_same_batch(there) and there.same_run(ours):
            raise TransactionRefused(
                f"batch {ours.batch} was written twice with 'sink.transactional-id-prefix' "
                f"'{self._ticket.prefix}'; give every sink a prefix of its own"
            )
        # With a declared number of tasks, rows are not compared: they may differ (uuid(), rand()).
        return self._is_same_batch(there) and ours.tasks > 0

    def _wait_for_the_others(self, sender: Sender) -> None:
        """Hold back until tasks that committed in an earlier run were seen with the same rows.

        Without this, a repetition with rows dealt out anew would be noticed too late.
        """
        end = time.monotonic() + self._ticket.timeout / 2000
        theirs = self._markers.of_all_tasks()
        while True:
            theirs = {task: marker for task, marker in theirs.items() if self._is_unseen(marker)}
            if not theirs:
                return
            if time.monotonic() > end:
                raise TransactionRefused(
                    f"task {min(theirs)} had written its part of batch {self._ours.batch} in an "
                    "earlier run and has not been seen with the same rows in this one; run the "
                    "query with the parallelism it had, until the batch is done"
                )
            sender.producer.poll(0.2)
            again = {task: self._markers.of_task(task) for task in theirs}
            theirs = {task: marker for task, marker in again.items() if marker is not None}

    def _is_unseen(self, marker: Marker) -> bool:
        return self._is_same_batch(marker) and not marker.same_run(self._ours)

    def _retried(self, call: object) -> None:
        """Call with a timeout until it does not ask to be called again."""
        assert callable(call)
        end = time.monotonic() + max(60.0, patience(self._properties))
        while True:
            try:
                call(10.0)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > end:
                    raise

    def _abort(self, sender: Sender) -> None:
        sender.discard()
        try:
            sender.producer.abort_transaction(10.0)
        except (KafkaException, SystemError) as error:  # the next initialisation does it then
            LOG.info("transaction not aborted: %s", error)

    def _explained(self, error: KafkaError, seconds: float) -> StreamcoreError | None:
        ticket = self._ticket
        transaction = f"transaction '{ticket.prefix}-{self._task.partition}'"
        if error.name() == "INVALID_TRANSACTION_TIMEOUT":
            return too_long(ticket.timeout, None)
        if error.name() not in _FENCED:
            return None
        if seconds * 1000 >= ticket.timeout:
            return TransactionRefused(
                f"{transaction} was open for {seconds:.0f} s and the broker gave it up after "
                f"'properties.transaction.timeout.ms' ({ticket.timeout} ms); raise that, or write "
                "smaller batches. Its rows will be written when the batch is repeated"
            )
        return TransactionRefused(
            f"{transaction} was taken over by a newer writer: another attempt of this task, "
            "or another query with the same 'sink.transactional-id-prefix'"
        )


def _cause(error: BaseException) -> KafkaError | None:
    if isinstance(error, Undelivered):
        return error.error
    return error.args[0] if isinstance(error, KafkaException) else None


def fingerprint(messages: Messages) -> int:
    """A number that tells these rows from others, whatever their order."""
    total = sum(map(crc32, filter(None, messages.values))) + len(messages.values)
    if messages.keys is not None:
        total += 31 * sum(map(crc32, filter(None, messages.keys)))
    return total


def _peek(batches: Iterable[Messages]) -> Iterator[Messages] | None:
    iterator = iter(batches)
    first = next(iterator, None)
    if first is None:
        return None

    def both() -> Iterator[Messages]:
        yield first
        yield from iterator

    return both()
