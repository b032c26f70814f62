"""A UDP relay that holds what comes from some for a while: delay_proxy.py LISTEN_PORT TARGET_PORT [ADDRESS ...]. Each line on standard
input is a delay in milliseconds for these addresses, in force from then on. It runs on the target's machine and answers from its
own port, as the target would from its."""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import sys
import time

MOST_CLIENTS = 256


def main(listen: int, target: int, slow: set[str]) -> None:
    selector, order = selectors.DefaultSelector(), itertools.count()
    front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    front.bind(("0.0.0.0", listen))
    selector.register(front, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    clients: dict[tuple[str, int], socket.socket] = {}
    owners: dict[socket.socket, tuple[str, int]] = {}
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    delay = 0.0
    while True:
        left = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        for key, _ in selector.select(left):
            if key.fileobj is sys.stdin:
                line = sys.stdin.readline()
                if not line:
                    return
                delay = float(line) / 1e3
                print(line.strip(), flush=True)
            elif key.fileobj is front:
                data, client = front.recvfrom(2048)
                if client not in clients and len(clients) < MOST_CLIENTS:
                    clients[client] = back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    back.connect(("127.0.0.1", target))
                    owners[back] = client
                    selector.register(back, selectors.EVENT_READ)
                if client in clients:
                    held = delay if client[0] in slow else 0.0
                    heapq.heappush(waiting, (time.monotonic() + held, next(order), clients[client], data))
            else:
                try:
                    front.sendto(key.fileobj.recv(2048), owners[key.fileobj])
                except OSError:
                    pass  # nobody listens there, now
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, back, data = heapq.heappop(waiting)
            try:
                back.send(data)
            except OSError:
                pass  # the same


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), set(sys.argv[3:]))
