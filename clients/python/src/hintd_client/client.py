"""The client: hints within the caller's patience, or none; leases given back; attempts followed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import TracebackType

import grpc

from . import retry
from ._generated.hintd.v1 import placement_pb2, placement_pb2_grpc
from .address import target
from .errors import HintdError, OutOfTime
from .following import Following
from .messages import Answer, Attempt, Request
from .secret import Secret

log = logging.getLogger("hintd_client")

OPTIONS = [
    # Answers of 100,000 hints stay below it.
    ("grpc.max_receive_message_length", 64 << 20),
    # Repeats are ours: they know the caller's patience and what the daemon asked for.
    ("grpc.enable_retries", 0),
    # A daemon that is back is found within the patience of a scheduler, not within grpcio's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class Client:
    """A daemon, as applications see it. May be shared by threads; close it, or use it in a `with`."""

    def __init__(self, address: str = "127.0.0.1:8470", secret: bytes | None = None) -> None:
        """`address`: a host, with a port where it is not 8470, or a target of gRPC with its scheme.

        `secret`: 16 bytes or more that make this the same client as another with them; drawn if left out.
        """
        self._secret = Secret(secret)
        self._channel = grpc.insecure_channel(target(address), options=OPTIONS)
        self._placement = placement_pb2_grpc.PlacementStub(self._channel)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection and what runs over it."""
        self._channel.close()

    def request_hints(self, request: Request, patience: float) -> Answer:
        """Asks, and again while the daemon is overloaded or restarts, for at most `patience` seconds.

        Raises `Refused` and `OutOfTime`. Asking again with the same `request` is safe, also after `OutOfTime`.
        """
        end = time.monotonic() + patience
        wire = request.to_wire()
        wire.nonce = self._secret.nonce(request.application_id)

        def call(left: float) -> placement_pb2.RequestHintsResponse:
            wire.deadline_ms = max(int(left * 1000), 1)
            response: placement_pb2.RequestHintsResponse = self._placement.RequestHints(wire, timeout=left)
            return response

        return Answer.of(retry.until(end, call))

    def hints_or_none(self, request: Request, patience: float) -> Answer:
        """As `request_hints`, but never raises for the daemon's sake: no hints, and why, instead.

        Hints are advice; an application that gets none asks YARN as it would without hintd. Refusals are logged as
        warnings, because a request that is refused once is refused always.
        """
        try:
            return self.request_hints(request, patience)
        except OutOfTime as error:
            log.info("no hints for %s: %s", request.application_id, error)
            return Answer.none(request, str(error))
        except HintdError as error:
            log.warning("no hints for %s: %s", request.application_id, error)
            return Answer.none(request, str(error))

    def release(self, attempt: Attempt, token: str = "", leases: Sequence[int] = (), patience: float = 5.0) -> int:
        """Gives leases back (none named: all of the attempt's); returns how many were still held.

        `token` is needed for what another client asked for. Raises `Refused` and `OutOfTime`; a lease that is not given back ends by itself.
        """
        wire = placement_pb2.ReleaseRequest(
            application_id=attempt.application_id, attempt=attempt.number, token=token, lease_ids=leases
        )
        if not token:
            wire.nonce = self._secret.nonce(attempt.application_id)

        def call(left: float) -> int:
            return int(self._placement.Release(wire, timeout=left).released)

        return retry.until(time.monotonic() + patience, call)

    def input_homes(
        self, request: placement_pb2.InputHomesRequest, patience: float = 5.0
    ) -> placement_pb2.InputHomesResponse:
        """Racks to which the attempt's input was sent, and how long its tasks are best waited for there (`patience_ms`).

        Without a token the client's nonce is added. Raises `Refused` and `OutOfTime`; then ask YARN as before.
        """
        wire = placement_pb2.InputHomesRequest()
        wire.CopyFrom(request)
        if not wire.token and not wire.nonce:
            wire.nonce = self._secret.nonce(wire.application_id)

        def call(left: float) -> placement_pb2.InputHomesResponse:
            response: placement_pb2.InputHomesResponse = self._placement.InputHomes(wire, timeout=left)
            return response

        return retry.until(time.monotonic() + patience, call)

    def follow(self, attempt: Attempt, token: str = "", after: int = 0, patience: float = 60.0) -> Following:
        """Follows an attempt: advice down, task events up; see `Following`. `after`: the last number seen before.

        `token` is needed for what another client asked for.
        """
        nonce = b"" if token else self._secret.nonce(attempt.application_id)
        return Following(self._placement, attempt, (token, nonce), after, patience)
