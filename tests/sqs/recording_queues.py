"""Queues that keep what is sent, for tests of what follows from a commit."""

from collections.abc import Sequence

from pydantic import BaseModel

from hooksaga.adapters.queues import Outgoing, Queue, Queues, Sent


class RecordingQueues(Queues):
    """Takes everything but for the queues named."""

    def __init__(self, *refusing: Queue) -> None:
        super().__init__({})
        self.refusing = refusing
        self.sent: list[tuple[Queue, Outgoing]] = []

    async def send(self, queue: Queue, messages: Sequence[Outgoing]) -> Sent:
        positions = list(range(len(messages)))
        if queue in self.refusing:
            return Sent(failed=positions)
        self.sent += [(queue, message) for message in messages]
        return Sent(positions)

    def taken(self) -> list[tuple[Queue, BaseModel, int]]:
        """What was sent since the last time: queue, body and delay."""
        taken: list[tuple[Queue, BaseModel, int]] = []
        for queue, message in self.sent:
            assert isinstance(message.body, BaseModel)
            taken.append((queue, message.body, message.delay_seconds))
        self.sent = []
        return taken
