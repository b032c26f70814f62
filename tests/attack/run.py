#!/usr/bin/env python3
"""The attack on a daemon of one's own: what a hostile client, a stalled reader or an odd file can do to it.

    python3 tests/attack/run.py --hintd target/debug/hintd
    python3 tests/attack/run.py --target 127.0.0.1:8470 --http 127.0.0.1:9470 --admin /run/hintd/admin.sock
    python3 tests/attack/run.py --hintd target/debug/hintd --only D1,D5 --json out.json

Only loopback is attacked. Exit code: 0, all held; 1, one broke; 2, misuse; 77, it can't be run here (README.md).
"""

import argparse
import ipaddress
import json
import os
import re
import resource
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import budgets  # noqa: E402
import floods  # noqa: E402
import local  # noqa: E402
import memory  # noqa: E402
import search  # noqa: E402
import streams  # noqa: E402
import surroundings  # noqa: E402
import tokens  # noqa: E402
from arena import ATTACKS, Arena, Result  # noqa: E402
from daemon import MIB  # noqa: E402
from http2 import address_of  # noqa: E402

# Importing one of these adds its attacks to ATTACKS.
MODULES_OF_ATTACKS = (floods, local, memory, search, streams, surroundings, tokens)
MISUSE = 2


def loopback(value):
    """`value`, an address of loopback or a socket's path; nothing else is ever attacked."""
    if value.startswith("/"):
        return value
    try:
        _, (host, port) = address_of(value)
        found = {entry[4][0] for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(f'"{value}" is no HOST:PORT: {error}') from error
    beyond = sorted(one for one in found if not ipaddress.ip_address(one).is_loopback)
    if beyond or not found:
        raise argparse.ArgumentTypeError(f'"{value}" is beyond loopback ({", ".join(beyond)}): it is not attacked')
    return value


def program(value):
    if not (os.path.isfile(value) and os.access(value, os.X_OK)):
        raise argparse.ArgumentTypeError(f'"{value}" is no program')
    return os.path.abspath(value)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hintd", type=program, help="program to start; each attack gets a daemon of its own")
    parser.add_argument("--hintctl", type=program, help="default: beside --hintd")
    parser.add_argument("--target", type=loopback, help="gRPC address of a running daemon")
    parser.add_argument("--http", type=loopback, help="its page of metrics and health")
    parser.add_argument("--admin", type=loopback, help="its admin socket")
    parser.add_argument("--pid", type=int, help="its process, to look at its memory more often than the page says it")
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--skip", default="", help="names that are left out")
    parser.add_argument("--seconds", type=float, default=600, help="no attack begins after so long [600]")
    parser.add_argument("--memory", type=float, default=768, help="MiB that memory may grow by in one attack [768]")
    parser.add_argument("--deadline", type=float, default=5, help="seconds that an honest placement may take [5]")
    parser.add_argument("--share", type=float, default=0.8, help="share of honest placements to be in time [0.8]")
    parser.add_argument("--part", type=int, default=32, metavar="N", help="M1: limits at 1/N of the defaults [32]")
    parser.add_argument("--memory-max", type=float, metavar="MIB",
                        help="put each daemon in a control group of so much memory, as MemoryMax does; needs root")
    parser.add_argument("--short", action="store_true", help="leave out what is long and has a shorter form of its own")
    parser.add_argument("--json", metavar="FILE", help="the same as JSON")
    parser.add_argument("--list", action="store_true", help="name the attacks and end")
    found = parser.parse_args()
    if found.list:
        for attack in sorted(ATTACKS, key=order):
            print(f"{attack.name:4} {attack.title}")
        sys.exit(0)
    if bool(found.hintd) == bool(found.target):
        parser.error("one of --hintd and --target is needed")
    known = {attack.name for attack in ATTACKS}
    only = set(found.only.split(",")) if found.only else known
    skip = set(filter(None, found.skip.split(",")))
    unknown = sorted((only | skip) - known)
    if unknown:
        parser.error(f"no attack is called {', '.join(unknown)}; --list names them")
    if found.short:
        skip |= {attack.name for attack in ATTACKS if attack.long} - set((found.only or "").split(","))
    if found.part < 1:
        parser.error("--part: at least 1, which is the defaults themselves")
    budgets.PART = found.part
    found.attacks = sorted((attack for attack in ATTACKS if attack.name in only - skip), key=order)
    if found.hintd and not found.hintctl:
        beside = os.path.join(os.path.dirname(found.hintd), "hintctl")
        found.hintctl = beside if os.path.exists(beside) else None
    found.stop_at = found.memory + 1024
    return found


def order(attack):
    """D before H before M before N, D2 before D10."""
    letters, digits, rest = re.fullmatch(r"([A-Z])(\d+)(.*)", attack.name).groups()
    return "DEHMN".index(letters), int(digits), rest


def size(value):
    return "-" if value is None else f"{value / MIB:.0f}"


def cells(result):
    placed = "-" if result.asked is None else f"{result.in_time}/{result.asked}"
    slowest = "-" if result.slowest is None else f"{result.slowest:.2f}"
    health = "-" if result.health_slowest is None else f"{result.health_slowest:.2f}"
    resident = f"{size(result.rss_before)} > {size(result.rss_peak)} > {size(result.rss_after)}"
    return [result.name, str(result.connections), f"{result.sent / 1024:.0f}", resident, placed, slowest, health,
            f"{result.seconds:.1f}", result.verdict]


HEAD = ["attack", "conns", "KiB sent", "RSS MiB before > peak > after", "placed", "slowest s", "healthz s", "took s",
        "verdict"]
WIDTHS = [6, 6, 9, 30, 9, 10, 10, 7, 8]


def line(row):
    return " ".join(f"{cell:<{width}}" for cell, width in zip(row, WIDTHS)).rstrip()


def main():
    chosen = options()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 16384)), hard))
    print(line(HEAD), flush=True)
    started, results = time.monotonic(), []
    for attack in chosen.attacks:
        if time.monotonic() - started > chosen.seconds:
            result = Result(attack)
            result.verdict, result.why = "not run", [f"{chosen.seconds:g} s were over"]
        else:
            result = Arena(chosen, attack).run()
        results.append(result)
        print(line(cells(result)), flush=True)
        print(f"       {result.title}")
        for why in result.why:
            print(f"       {result.verdict}: {why}")
        for note in result.notes:
            print(f"       {note}", flush=True)
    counts = {}
    for result in results:
        counts[result.verdict] = counts.get(result.verdict, 0) + 1
    print(f"{len(results)} attacks in {time.monotonic() - started:.0f} s: "
          + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump([vars(result) for result in results], file, indent=1, default=str)
    if not results:
        return MISUSE
    return 1 if counts.get("broke") or counts.get("error") else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
