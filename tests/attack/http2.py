"""HTTP/2 and gRPC over a plain socket: enough to be an honest client, and to break every rule on purpose.

Single-threaded: a connection reads only while somebody waits on it. Announces a header table of no bytes, so that no
header depends on an earlier one.
"""

import select
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
MOST_WINDOW = 2**31 - 1
FRAME = 16384
OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS = range(7)
PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE = range(7, 12)
UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = range(12, 17)
STATUS = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
    "UNAUTHENTICATED"
).split()

# RFC 7541, appendix A.
STATIC = (
    ":authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200|:status 204|"
    ":status 206|:status 304|:status 400|:status 404|:status 500|accept-charset|accept-encoding gzip, deflate|"
    "accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|"
    "content-disposition|content-encoding|content-language|content-length|content-location|content-range|content-type|"
    "cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|"
    "last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|"
    "server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate"
).split("|")
STATIC = [tuple(entry.split(" ", 1)) if " " in entry else (entry, "") for entry in STATIC]

# RFC 7541, appendix B: the code is canonical, so lengths suffice; A stands for 5 bits, one letter for each byte.
LENGTHS = (
    "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHF"
    "IBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABCBAABCCCCCKGJIX"
    "PRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRS"
    "VVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWV"
)


def _huffman():
    codes, code, before = {}, 0, 0
    for length, symbol in sorted((ord(letter) - 60, symbol) for symbol, letter in enumerate(LENGTHS)):
        code <<= length - before
        codes[length, code] = symbol
        code, before = code + 1, length
    return codes


HUFFMAN = _huffman()


class Closed(Exception):
    """The peer closed the connection, or it never came about."""


class Late(Exception):
    """Nothing came in time."""


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(values):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", key, value) for key, value in values.items()))


def hpack_int(value, bits, first=0):
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = bytearray([first | most]), value - most
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def hpack(headers):
    """Literals without indexing: what they say and nothing remembered."""
    out = bytearray()
    for name, value in headers:
        out.append(0)
        for part in (name, value):
            part = part.encode() if isinstance(part, str) else part
            out += hpack_int(len(part), 7) + part
    return bytes(out)


def _read_int(data, at, bits):
    most = (1 << bits) - 1
    value, at = data[at] & most, at + 1
    if value < most:
        return value, at
    shift = 0
    while True:
        byte, at = data[at], at + 1
        value += (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _read_text(data, at):
    coded = data[at] & 0x80
    length, at = _read_int(data, at, 7)
    raw, at = data[at : at + length], at + length
    if not coded:
        return raw.decode(errors="replace"), at
    out, code, bits = bytearray(), 0, 0
    for byte in raw:
        for place in range(7, -1, -1):
            code, bits = code << 1 | byte >> place & 1, bits + 1
            symbol = HUFFMAN.get((bits, code))
            if symbol is not None:
                out.append(symbol)
                code = bits = 0
    return out.decode(errors="replace"), at


def read_headers(data):
    """Name and value of each header of a block that refers to no earlier one."""
    headers, at = [], 0
    while at < len(data):
        byte = data[at]
        if byte & 0x80:
            index, at = _read_int(data, at, 7)
            headers.append(STATIC[index - 1])
        elif byte & 0xE0 == 0x20:
            _, at = _read_int(data, at, 5)
        else:
            index, at = _read_int(data, at, 6 if byte & 0x40 else 4)
            name, at = (STATIC[index - 1][0], at) if index else _read_text(data, at)
            value, at = _read_text(data, at)
            headers.append((name, value))
    return headers


class Stream:
    """What came of one call."""

    def __init__(self, window):
        self.headers, self.data, self.bytes = {}, bytearray(), 0
        self.ended, self.reset, self.window = False, None, window

    def status(self):
        """The gRPC status; None while there is none."""
        if "grpc-status" in self.headers:
            return int(self.headers["grpc-status"])
        if self.reset is not None:
            return {7: UNAVAILABLE, 8: CANCELLED, 11: RESOURCE_EXHAUSTED}.get(self.reset, INTERNAL)
        return UNKNOWN if self.ended else None

    def messages(self):
        """Whole messages that came; they are taken out."""
        found = []
        while len(self.data) >= 5:
            length = struct.unpack_from(">I", self.data, 1)[0]
            if len(self.data) < 5 + length:
                break
            found.append(bytes(self.data[5 : 5 + length]))
            del self.data[: 5 + length]
        return found


def grpc_frame(body, length=None, flag=0):
    """A message with its prefix; `length` claims another."""
    return bytes([flag]) + struct.pack(">I", len(body) if length is None else length) + body


def address_of(target):
    """`HOST:PORT`, `[HOST]:PORT` or a path, as a socket's family and address."""
    if target.startswith("/"):
        return socket.AF_UNIX, target
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, int(port))


def dial(target, timeout=10):
    """A connected socket."""
    family, address = address_of(target)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.settimeout(timeout)
    try:
        sock.connect(address)
    except OSError as error:
        sock.close()
        raise Closed(f"{target}: {error}") from error
    if family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Connection:
    """A connection that speaks HTTP/2. `window`: bytes of each answer that are taken unasked; with `greedy` more is
    asked for as it comes, without nothing ever is."""

    def __init__(self, target, window=1 << 20, greedy=True, keep=True, timeout=10):
        self.sock = dial(target, timeout)
        self.target, self.greedy, self.keep = target, greedy, keep
        self.streams, self.next, self.buffer = {}, 1, bytearray()
        self.send_window, self.first_window, self.sent, self.received = 65535, 65535, 0, 0
        self.gone, self.settled, self.most_streams = None, False, None
        self.block = None  # headers that go on in CONTINUATION
        try:
            self.send(PREFACE + settings({1: 0, 2: 0, 4: window}))
            if greedy:
                self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 24)))
        except Closed:
            self.close()
            raise

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Closed(f"while sending: {error}") from error
        self.sent += len(data)

    def headers_for(self, path, timeout_ms=None, more=()):
        headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
        headers += [("content-type", "application/grpc"), ("te", "trailers")]
        if timeout_ms:
            headers.append(("grpc-timeout", f"{timeout_ms}m"))
        return hpack(headers + list(more))

    def open(self, path, timeout_ms=None, more=(), end=False):
        """Begins a call; its stream's number."""
        number, self.next = self.next, self.next + 2
        self.streams[number] = Stream(self.first_window)
        block = self.headers_for(path, timeout_ms, more)
        self.send(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), number, block))
        return number

    def write(self, number, data, end=False, timeout=10):
        """Bytes of a call's body, as windows allow. Late: they did not."""
        until, view, stream = time.monotonic() + timeout, memoryview(data), self.streams[number]
        while len(view) or end:
            room = min(FRAME, stream.window, self.send_window, len(view))
            if room <= 0 and len(view):
                if stream.ended or stream.reset is not None:
                    return
                self.pump(max(0, until - time.monotonic()), must=True)
                continue
            last = end and room == len(view)
            self.send(frame(DATA, END_STREAM if last else 0, number, bytes(view[:room])))
            stream.window -= room
            self.send_window -= room
            view = view[room:]
            if last:
                return

    def pump(self, timeout=0.0, must=False):
        """Takes what is there; waits for the first of it. With `must`, Late where nothing came."""
        waits = select.poll()  # select() takes no more than 1,024 descriptors
        waits.register(self.sock, select.POLLIN)
        ready = waits.poll(max(0, timeout) * 1000)
        if not ready:
            if must:
                raise Late("no answer in time")
            return False
        try:
            data = self.sock.recv(1 << 18)
        except OSError as error:
            raise Closed(f"while reading: {error}") from error
        if not data:
            raise Closed(self.gone or "the peer closed the connection")
        self.received += len(data)
        self.buffer += data
        at = 0
        while len(self.buffer) - at >= 9:
            length = int.from_bytes(self.buffer[at : at + 3], "big")
            if len(self.buffer) - at < 9 + length:
                break
            kind, flags = self.buffer[at + 3], self.buffer[at + 4]
            number = struct.unpack_from(">I", self.buffer, at + 5)[0] & MOST_WINDOW
            self.take(kind, flags, number, bytes(self.buffer[at + 9 : at + 9 + length]))
            at += 9 + length
        del self.buffer[:at]
        return True

    def take(self, kind, flags, number, payload):
        stream = self.streams.get(number)
        if kind == DATA:
            self.take_data(flags, number, stream, payload)
        elif kind in (HEADERS, CONTINUATION):
            self.block = (self.block or b"") + payload
            if flags & END_HEADERS:
                block, self.block = self.block, None
                if stream:
                    stream.headers.update(read_headers(block))
            if stream and kind == HEADERS and flags & END_STREAM:
                stream.ended = True
        elif kind == SETTINGS and not flags & ACK:
            self.take_settings(payload)
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            grown = struct.unpack(">I", payload)[0] & MOST_WINDOW
            if number == 0:
                self.send_window += grown
            elif stream:
                stream.window += grown
        elif kind == RST_STREAM and stream:
            stream.ended, stream.reset = True, struct.unpack(">I", payload)[0]
        elif kind == GOAWAY:
            code = struct.unpack_from(">I", payload, 4)[0]
            self.gone = f"GOAWAY, code {code} {payload[8:].decode(errors='replace')}".strip()

    def take_data(self, flags, number, stream, payload):
        if stream:
            stream.bytes += len(payload)
            if self.keep:
                stream.data += payload
            stream.ended = stream.ended or bool(flags & END_STREAM)
        if self.greedy and payload:
            grown = struct.pack(">I", len(payload))
            more = b"" if stream is None or stream.ended else frame(WINDOW_UPDATE, 0, number, grown)
            self.send(frame(WINDOW_UPDATE, 0, 0, grown) + more)

    def take_settings(self, payload):
        for at in range(0, len(payload), 6):
            key, value = struct.unpack_from(">HI", payload, at)
            if key == 3:
                self.most_streams = value
            elif key == 4:
                for stream in self.streams.values():
                    stream.window += value - self.first_window
                self.first_window = value
        self.settled = True
        self.send(frame(SETTINGS, ACK, 0))

    def settle(self, timeout=5):
        """Waits for the peer's settings."""
        until = time.monotonic() + timeout
        while not self.settled:
            self.pump(until - time.monotonic(), must=True)

    def wait(self, number, timeout, for_message=False):
        """Until the call has ended, or with `for_message` has a message."""
        until, stream = time.monotonic() + timeout, self.streams[number]
        while not stream.ended:
            if for_message and len(stream.data) >= 5:
                if len(stream.data) >= 5 + struct.unpack_from(">I", stream.data, 1)[0]:
                    break
            self.pump(until - time.monotonic(), must=True)
        return stream

    def unary(self, path, body, timeout=10.0, timeout_ms=None, more=()):
        """One call: its status, its answer (None without one) and its headers."""
        number = self.open(path, timeout_ms, more)
        self.write(number, grpc_frame(body), end=True, timeout=timeout)
        stream = self.wait(number, timeout)
        del self.streams[number]
        messages = stream.messages()
        return stream.status(), messages[0] if messages else None, stream.headers


def reason(status, headers):
    """A status for people: its name, hintd's reason, its message."""
    from urllib.parse import unquote

    name = STATUS[status] if status is not None and status < len(STATUS) else str(status)
    parts = [name, headers.get("hintd-reason", ""), unquote(headers.get("grpc-message", ""))[:160]]
    return " ".join(part for part in parts if part)
