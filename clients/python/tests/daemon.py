"""A real hintd in a folder of its own, and nodes that report to it."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc

from hintd_client._generated.hadoop.yarn import yarn_protos_pb2 as yarn
from hintd_client._generated.hintd.v1 import feed_pb2, feed_pb2_grpc
from hintd_client.client import OPTIONS

REPOSITORY = Path(__file__).resolve().parents[3]


def program() -> Path | None:
    """HINTD_PROGRAMS's hintd, or the one that cargo built last."""
    folders = [os.environ.get("HINTD_PROGRAMS", ""), REPOSITORY / "target/release", REPOSITORY / "target/debug"]
    found = [Path(folder) / "hintd" for folder in folders if folder and (Path(folder) / "hintd").exists()]
    return found[0] if found else None


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Daemon:
    """Starts stopped; `start`, `kill` and `stop` as often as you like on the same journal and port."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hintd-python-")
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        folder = Path(self._folder.name)
        self._config = folder / "hintd.toml"
        self._config.write_text(
            f'[listen]\ngrpc = "{self.address}"\nadmin_socket = "{folder}/admin.sock"\nmetrics = ""\n'
            f'[store]\npath = "{folder}/journal.redb"\n[policy]\ndefault = "spread"\n'
            # Nodes report once; a machine may be as busy as it likes.
            '[model]\nstale_after = "10m"\nlost_after = "20m"\n'
            '[queues."*"]\nmode = "on"\n[placer]\nguard = false\n'
        )

    def start(self) -> None:
        found = program()
        assert found is not None
        with open(Path(self._folder.name) / "log", "ab") as log:
            self._process = subprocess.Popen([found, "--config", self._config], stderr=log)
        with grpc.insecure_channel(self.address, options=OPTIONS) as channel:
            grpc.channel_ready_future(channel).result(timeout=60)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=20)

    def close(self) -> None:
        self.stop()
        self._folder.cleanup()


class Nodes:
    """A heartbeat stream with `count` nodes of 8 GB and 8 vcores in racks of two."""

    def __init__(self, daemon: Daemon, count: int) -> None:
        self.hosts = [f"node-{number}" for number in range(count)]
        self._items: queue.Queue[feed_pb2.HeartbeatItem | None] = queue.Queue()
        self._number = 0
        self._beats = 0
        self._acknowledged = 0
        self._changed = threading.Condition()
        self._channel = grpc.insecure_channel(daemon.address)
        self._acks = feed_pb2_grpc.FeedStub(self._channel).Heartbeats(iter(self._items.get, None))
        threading.Thread(target=self._listen, daemon=True).start()
        self._send(hello=feed_pb2.FeedHello(source="test", used_means=feed_pb2.USED_MEANS_ALLOCATED))
        for number, host in enumerate(self.hosts):
            total = yarn.ResourceProto(memory=8192, virtual_cores=8)
            self._send(register=feed_pb2.RegisterNode(host=host, port=45454, rack=f"/rack{number // 2}", total=total))
        self.beat()

    def beat(self) -> None:
        """One heartbeat of every node, looked at when this returns."""
        self._beats += 1
        for host in self.hosts:
            used = yarn.ResourceProto(memory=0, virtual_cores=0)
            self._send(heartbeat=feed_pb2.NodeHeartbeat(host=host, response_id=self._beats, used=used))
        self._wait()

    def gone(self, host: str) -> None:
        """The node left for good."""
        self.hosts.remove(host)
        self._send(gone=feed_pb2.NodeGone(host=host))
        self._wait()

    def close(self) -> None:
        self._items.put(None)
        self._channel.close()

    def _send(self, **item: object) -> None:
        self._number += 1
        self._items.put(feed_pb2.HeartbeatItem(number=self._number, **item))  # type: ignore[arg-type]

    def _wait(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._acknowledged >= self._number, timeout=30)
        time.sleep(0.3)  # the next published model has it, a few ms later where the machine does not halt

    def _listen(self) -> None:
        try:
            acks: Iterator[feed_pb2.FeedAck] = self._acks
            for ack in acks:
                assert not ack.refused, ack
                with self._changed:
                    self._acknowledged = ack.through
                    self._changed.notify_all()
        except grpc.RpcError:
            pass  # closed, or the daemon was killed
