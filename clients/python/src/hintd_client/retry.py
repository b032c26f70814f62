"""Repeating a call that the daemon could not take: with jitter, and never past the caller's patience."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import grpc

from .errors import OutOfTime, Refused, metadata

# Seconds before the first repeat; each further pause is twice as long, up to the longest.
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 1.0

T = TypeVar("T")


def until(end: float, call: Callable[[float], T]) -> T:
    """Calls with the seconds that are left (`time.monotonic` ends at `end`) until an answer comes.

    Only UNAVAILABLE is tried again. Raises `Refused` or `OutOfTime`.
    """
    began = time.monotonic()
    pause = FIRST_PAUSE
    while True:
        try:
            return call(max(end - time.monotonic(), 0.001))
        except grpc.RpcError as error:
            code = error.code()
            if code == grpc.StatusCode.DEADLINE_EXCEEDED:
                raise OutOfTime(time.monotonic() - began, error.details() or "no answer in time") from error
            if code != grpc.StatusCode.UNAVAILABLE:
                raise Refused.of(error) from error
            wait = jittered(max(pause, asked_for(error)))
            if time.monotonic() + wait >= end:
                raise OutOfTime(time.monotonic() - began, error.details() or "unavailable") from error
        time.sleep(wait)
        pause = min(pause * 2, LONGEST_PAUSE)


def asked_for(error: grpc.RpcError) -> float:
    """Seconds that the daemon asked to wait."""
    told = metadata(error).get("retry-after-ms", "")
    return min(int(told) / 1000, LONGEST_PAUSE) if told.isdigit() else 0.0


def jittered(pause: float) -> float:
    """Once to one and a half times as long: clients sent away together do not come back together."""
    return pause * (1 + random.random() / 2)
