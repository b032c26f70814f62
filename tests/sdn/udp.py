"""Numbered UDP packets: `udp.py send ADDRESS PORT INTERVAL_S` and `udp.py receive PORT`.

Both print `number monotonic_ns` for each packet when they are told to end (SIGTERM); the clock is the machine's, so that
their lines compare.
"""

import signal
import socket
import struct
import sys
import time

ended = False


def end(*_):
    global ended
    ended = True


signal.signal(signal.SIGTERM, end)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
seen = []
if sys.argv[1] == "send":
    target, interval, number = (sys.argv[2], int(sys.argv[3])), float(sys.argv[4]), 0
    due = time.monotonic()
    while not ended:
        number += 1
        seen.append((number, time.monotonic_ns()))
        try:
            sock.sendto(struct.pack("!Q", number), target)
        except OSError:
            pass  # no neighbour for now: counted as lost
        due += interval
        time.sleep(max(0, due - time.monotonic()))
else:
    # Else packets are lost here where the machine is busy with something else; 33: SO_RCVBUFFORCE, which Python does not name.
    sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
    sock.bind(("0.0.0.0", int(sys.argv[2])))
    sock.settimeout(0.1)
    while not ended:
        try:
            data = sock.recv(64)
        except TimeoutError:
            continue
        seen.append((struct.unpack("!Q", data)[0], time.monotonic_ns()))
for number, at in seen:
    print(number, at)
