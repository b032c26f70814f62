"""Watches hintd's routes, hands them to the installer, and acknowledges what is in force."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import grpc
from hintd_client import retry
from hintd_client._generated.hintd.v1 import routes_pb2, routes_pb2_grpc

from .install import Installer, Offered, Pair, as_refusals

log = logging.getLogger("hintd_osken.watch")

# An acknowledgement that takes longer is lost; hintd then sends everything anew.
ACKNOWLEDGE_S = 5.0


class Watch(threading.Thread):
    """A stream of routes, opened again whenever it ends."""

    def __init__(self, channel: grpc.Channel, watcher: str, nonce: bytes, installer: Installer, backoff: float) -> None:
        super().__init__(name="watch", daemon=True)
        self._stub = routes_pb2_grpc.RoutesStub(channel)
        self._watcher, self._nonce, self._installer, self._backoff = watcher, nonce, installer, backoff
        self._stopping = threading.Event()
        self._call: Any = None
        self._asked_anew = False

    def stop(self) -> None:
        """Ends it with the next word from hintd; closing the channel ends it at once."""
        self._stopping.set()

    def anew(self) -> None:
        """Ends the stream, so that hintd tells all routes again and tries those that were refused."""
        self._asked_anew = True
        if self._call is not None:
            self._call.cancel()

    def run(self) -> None:
        """Watches for ever."""
        pause, away = retry.FIRST_PAUSE, False
        while not self._stopping.is_set():
            request = routes_pb2.WatchRequest(watcher=self._watcher, flows=True, installs=True, nonce=self._nonce)
            life = self._installer.new_life()
            try:
                self._call = self._stub.Watch(request)
                for update in self._call:
                    if away:
                        log.info("routes are told again")
                    pause, away = retry.FIRST_PAUSE, False
                    self._installer.offer(Offered(life, update, self._acknowledge))
                why = "hintd ended it"
            except grpc.RpcError as error:
                why = f"{error.code().name}: {error.details()}"
            if self._stopping.is_set():
                return
            if self._asked_anew:
                self._asked_anew = False
                continue
            # Once for each time that it is away: it may be for long.
            log.log(logging.DEBUG if away else logging.WARNING, "routes are not told (%s); they are watched anew", why)
            away = True
            self._installer.unheard()
            time.sleep(retry.jittered(pause))
            pause = min(pause * 2, self._backoff)

    def _acknowledge(self, number: int, refused: dict[Pair, str]) -> None:
        request = routes_pb2.AcknowledgeRequest(
            watcher=self._watcher, number=number, refused=as_refusals(refused), nonce=self._nonce
        )
        try:
            self._stub.Acknowledge(request, timeout=ACKNOWLEDGE_S)
        except grpc.RpcError as error:
            log.warning("the acknowledgement of update %d is not taken: %s: %s", number, error.code().name, error.details())
