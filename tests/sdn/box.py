"""A middlebox on one port: sends every frame back where it came from; `box.py INTERFACE`. Prints, when it is told to end
(SIGTERM), how many frames it passed and how many of them had a VLAN tag."""

import signal
import socket
import sys

ALL = 0x0003
OUTGOING = 4
ended = False


def end(*_):
    global ended
    ended = True


signal.signal(signal.SIGTERM, end)
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
sock.bind((sys.argv[1], 0))
sock.settimeout(0.1)
AUXDATA, SOL_PACKET = 8, 263
sock.setsockopt(SOL_PACKET, AUXDATA, 1)
passed = tagged = 0
while not ended:
    try:
        # Linux takes tags out of frames and tells them beside: status bit 0x10 of the last 20 bytes says that one was there.
        frame, extra, _, sender = sock.recvmsg(65536, 256)
    except TimeoutError:
        continue
    if sender[2] == OUTGOING:
        continue
    tag = any(level == SOL_PACKET and kind == AUXDATA and int.from_bytes(data[:4], "little") & 0x10
              for level, kind, data in extra)
    passed, tagged = passed + 1, tagged + tag
    sock.send(frame)
print(passed, tagged)
