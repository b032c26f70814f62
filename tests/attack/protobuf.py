"""Protocol buffers by field number: what the attack needs, so that it can also write what no library would."""

import struct


def varint(value):
    """A number as a varint; negative ones as 64 bits, as protobuf has them."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field: int and bool as varint, text, bytes and messages with their length, float as a double."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(fields):
    """A message of `{number: value}`; a list repeats the field."""
    out = bytearray()
    for number, value in fields.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            out += field(number, one)
    return bytes(out)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def parse(data):
    """`{number: [values]}`: numbers as int, what has a length as bytes, eight bytes as float, four as int."""
    out, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = read_varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 2:
            length, at = read_varint(data, at)
            value, at = bytes(data[at : at + length]), at + length
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise ValueError(f"wire type {kind} of field {number}")
        out.setdefault(number, []).append(value)
    return out


def first(fields, number, default=None):
    """The last value of a field, as protobuf reads one that is not repeated."""
    values = fields.get(number)
    return values[-1] if values else default


def text(fields, number):
    return first(fields, number, b"").decode(errors="replace")
