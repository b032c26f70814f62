"""hintd's calls and messages by field number (proto/hintd/v1)."""

from protobuf import first, message, parse, text

REQUEST = "/hintd.v1.Placement/RequestHints"
FOLLOW = "/hintd.v1.Placement/Follow"
RELEASE = "/hintd.v1.Placement/Release"
EXPLAIN = "/hintd.v1.Placement/Explain"
HEARTBEATS = "/hintd.v1.Feed/Heartbeats"
TOPOLOGY = "/hintd.v1.Feed/Topology"
EVENTS = "/hintd.v1.Feed/Events"
DATASETS = "/hintd.v1.Feed/Datasets"
WATCH = "/hintd.v1.Routes/Watch"
STATUS = "/hintd.v1.Admin/Status"
RELOAD = "/hintd.v1.Admin/Reload"
SUBMIT_PLAN = "/hintd.v1.Admin/SubmitPlan"


def resource(memory_mb, vcores=1):
    return message({1: memory_mb, 2: vcores})


def group(name, count, memory_mb=1024, priority=1, **more):
    fields = {1: name, 2: more.get("role", "map"), 3: count, 4: resource(memory_mb), 5: priority}
    return message(fields)


def edge(sender, receiver, size, pattern=1):
    return message({1: sender, 2: receiver, 3: pattern, 4: size})


def request(request_id, application, groups, attempt=1, **more):
    """A RequestHintsRequest; `more` by name."""
    fields = {1: request_id, 2: application, 3: attempt, 4: more.get("queue", "default"), 5: "ann", 6: "mapreduce"}
    fields[8] = groups
    numbers = {"edges": 9, "paths": 10, "constraints": 12, "policy": 13, "deadline_ms": 14, "seed": 15, "follows": 19}
    for name, number in numbers.items():
        if name in more:
            fields[number] = more[name]
    fields.update(more.get("fields", {}))
    return message(fields)


class Hints:
    """A RequestHintsResponse, what of it matters here."""

    def __init__(self, data):
        answer = parse(data)
        self.token, self.size = text(answer, 2), len(data)
        hints = parse(first(answer, 1, b""))
        self.decision, self.policy = text(hints, 1), text(hints, 4)
        self.degraded = [word.decode(errors="replace") for word in hints.get(16, [])]
        self.rows = len(hints.get(6, []))
        self.hosts, self.leases = [], []
        for hint in hints.get(6, []):
            hint = parse(hint)
            self.hosts.append(text(hint, 2))
            for lease in hint.get(6, []):
                self.leases += packed(lease)


def packed(value):
    """Numbers of a repeated field, packed or not."""
    from protobuf import read_varint

    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = read_varint(value, at)
        found.append(number)
    return found


def release(application, token, attempt=1, leases=()):
    return message({1: application, 2: attempt, 3: token, 4: list(leases)})


def event(application, kind, body=b"", attempt=1, group_name="map", task="t1"):
    """A TaskEvent; `kind`: 5 ready, 6 allocated, 7 finished, 8 the application is done."""
    return message({1: application, 2: attempt, 3: group_name, 4: task, kind: body})


def hello(source="attack", names_containers=False):
    return message({1: source, 2: 1, 3: int(names_containers)})


def register(host, rack, memory_mb=65536, vcores=64):
    return message({1: host, 2: 8041, 3: rack, 4: resource(memory_mb, vcores)})


def heartbeat(host, number, used_mb=0, used_vcores=0):
    return message({1: host, 2: number, 3: resource(used_mb, used_vcores), 5: "RUNNING"})


def network(switches, hosts, links):
    """A NetworkGraph. Switches: (name, tier); links: (id, a, b, bits a second)."""
    return message(
        {
            1: [message({1: name, 2: tier}) for name, tier in switches],
            2: [message({1: name}) for name in hosts],
            3: [message({1: name, 2: a, 3: b, 4: rate}) for name, a, b, rate in links],
        }
    )


def watch(name, pairs=(), flows=False, installs=False, nonce=b""):
    rows = [message({1: a, 2: b}) for a, b in pairs]
    return message({1: name, 2: rows, 3: int(flows), 4: int(installs), **({8: nonce} if nonce else {})})


def proof(nonce, token=""):
    """Fields of a RequestHintsRequest by which a client shows whose it is; a daemon of 0.1.0 ignores them."""
    return {20: token, 21: nonce} if token else {21: nonce}
