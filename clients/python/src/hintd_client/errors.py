"""What a call can come to instead of an answer."""

from __future__ import annotations

from collections.abc import Iterable

import grpc


class HintdError(Exception):
    """Any call that brought no answer."""


class Refused(HintdError):
    """The daemon said no; asking the same again does not help.

    `code` is gRPC's, `reason` the daemon's stable token (`invalid`, `unknown`, `full`, `id_reused`, `bad_token`, ...),
    `field` the part of the request that is wrong, where there is one.
    """

    def __init__(self, code: grpc.StatusCode, message: str, reason: str, field: str | None) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message
        self.reason = reason
        self.field = field

    @classmethod
    def of(cls, error: grpc.RpcError) -> Refused:
        """From what grpcio raises."""
        told = metadata(error)
        return cls(error.code(), error.details() or "", told.get("hintd-reason", ""), told.get("hintd-field"))


class OutOfTime(HintdError):
    """No answer within the caller's patience: not reachable, overloaded, or slow."""

    def __init__(self, waited: float, last: str) -> None:
        super().__init__(f"no answer in {waited:.2f} s: {last}")
        self.waited = waited
        self.last = last


def metadata(error: grpc.RpcError) -> dict[str, str]:
    """The trailing metadata that is text."""
    trailing: Iterable[tuple[str, str | bytes]] = error.trailing_metadata() or ()
    return {key: value for key, value in trailing if isinstance(value, str)}
