"""Following an attempt over restarts of the daemon."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import grpc

from . import retry
from ._generated.hintd.v1 import common_pb2, placement_pb2, placement_pb2_grpc
from .errors import OutOfTime, Refused
from .messages import Attempt

# A process that was killed leaves CANCELLED, INTERNAL or UNKNOWN behind, by how its connection broke.
BROKEN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


class Following:
    """Iterate for advice (`FollowMessage`), `tell` what happened to tasks, `close` from any thread.

    A stream that breaks is opened again after the last number seen, for at most `patience` seconds at a time. A
    message with `gap` says that advice was lost: ask for hints again. Events that were on their way when a stream
    broke may be lost; the daemon learns of containers from heartbeats, too.
    """

    def __init__(
        self,
        stub: placement_pb2_grpc.PlacementStub,
        attempt: Attempt,
        shown: tuple[str, bytes],
        after: int,
        patience: float,
    ) -> None:
        self._stub = stub
        self._attempt = attempt
        # Token and nonce: one of the two.
        self._shown = shown
        self._patience = patience
        # The last number seen: what to give `Client.follow` later.
        self.last = after
        self._events: deque[common_pb2.TaskEvent] = deque()
        self._changed = threading.Condition()
        self._call: Any = None
        self._closed = False

    def __enter__(self) -> Following:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tell(self, events: Sequence[common_pb2.TaskEvent]) -> None:
        """Queues events for the daemon; they leave while somebody iterates."""
        with self._changed:
            self._events.extend(events)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the stream; an iteration under way ends."""
        with self._changed:
            self._closed = True
            call = self._call
            self._changed.notify_all()
        if call is not None:
            call.cancel()

    def __iter__(self) -> Iterator[placement_pb2.FollowMessage]:
        """Raises `Refused`, as for another attempt's token, and `OutOfTime` when the daemon stays away."""
        pause = retry.FIRST_PAUSE
        away_since: float | None = None
        while not self._closed:
            ended = threading.Event()
            tried = time.monotonic()
            call = self._stub.Follow(self._requests(ended))
            with self._changed:
                self._call = call
            try:
                for message in call:
                    pause, away_since = retry.FIRST_PAUSE, None
                    self.last = message.number
                    yield message
                return  # the attempt is done
            except grpc.RpcError as error:
                if self._closed:
                    return
                if error.code() not in BROKEN:
                    raise Refused.of(error) from error
                if call.initial_metadata():
                    # It stood, maybe for hours without a word: patience counts from now.
                    pause, away_since, tried = retry.FIRST_PAUSE, None, time.monotonic()
                away_since = tried if away_since is None else away_since
                wait = retry.jittered(max(pause, retry.asked_for(error)))
                if time.monotonic() + wait > away_since + self._patience:
                    raise OutOfTime(time.monotonic() - away_since, error.details() or "unavailable") from error
            finally:
                with self._changed:
                    ended.set()
                    self._changed.notify_all()
            time.sleep(wait)
            pause = min(pause * 2, retry.LONGEST_PAUSE)

    def _requests(self, ended: threading.Event) -> Iterator[placement_pb2.FollowRequest]:
        """One stream's way up; grpcio draws from it on a thread of its own."""
        start = placement_pb2.FollowStart(
            application_id=self._attempt.application_id,
            attempt=self._attempt.number,
            token=self._shown[0],
            nonce=self._shown[1],
            resume_after=self.last,
        )
        yield placement_pb2.FollowRequest(start=start)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or self._closed or ended.is_set())
                if ended.is_set() or (self._closed and not self._events):
                    return
                events = list(self._events)
                self._events.clear()
            yield placement_pb2.FollowRequest(events=events)
