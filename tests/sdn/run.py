#!/usr/bin/env python3
"""hintd against a real controller: Open vSwitch, Ryu 4.34, and packets that are counted.

Run as root on a Debian machine: `python3 tests/sdn/run.py [HINTD_FOLDER]`; the folder holds `hintd` and `hintctl`
(default: target/debug, built if they are missing). What else is needed is installed: Debian packages, and Ryu and a gRPC
client into target/sdn. Exit code 0 and a line that begins with SKIP where network namespaces can't be made.

What is shown: the network is learnt; a job's routes are installed and carry packets; a link in use is cut, packets go on
over the other spine, and how many are lost and for how long is printed; the link returns and the routes with it, without
a lost packet; a controller that answers rubbish, half, too much or nothing, or dies, changes nothing; rules of ours that
nobody wants go, and rules of others stay.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fabric import REST_PORT, Fabric, install_controller, install_system_packages, run, wait_until  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COOKIE = 0x0068696E74640000
PACKET_EVERY = 0.001
PORT = 9000
# Far above what was measured, so that a busy machine passes and a lost failover does not.
LONGEST_MS = 1000

CONFIG = """
[listen]
grpc = "127.0.0.1:8470"
metrics = "127.0.0.1:9470"
admin_socket = "{folder}/admin.sock"
[log]
level = "info,hintd::sdn=debug"
[store]
path = "{folder}/journal.redb"
[leases]
time_to_live = "30m"
[model]
stale_after = "10m"
lost_after = "20m"
[queues."*"]
mode = "on"
[policies.{policy}]
[policy]
default = "{policy}"
[sdn.ryu]
url = "http://127.0.0.1:{port}"
poll = "1s"
counters = "1s"
timeout = "1s"
backoff = "1s"
settle = "2s"
answer_bytes = 1000000
audit = "1s"
orphans = "5s"
forward = true
link_bits_per_s = 1000000000
host_bits_per_s = 1000000000
[sdn.ryu.hosts]
{hosts}
[sdn.ryu.switches]
{switches}
"""


class Failed(Exception):
    """Something is not as it should be."""


def check(holds, what):
    if not holds:
        raise Failed(what)
    print(f"sdn: ok: {what}", flush=True)


class World:
    """The fabric, hintd in it, and what is asked of them."""

    def __init__(self, folder, binaries, tools):
        self.folder, self.binaries = folder, binaries
        self.client_python, self.stubs = tools["python"], tools["stubs"]
        self.fabric = Fabric(folder, tools["manager"], f"hintd{os.getpid()}")
        self.names = [f"node-{n}" for n in range(1, len(self.fabric.hosts) + 1)]
        self.hintd = self.client = None

    def start_hintd(self, policy):
        fabric = self.fabric
        hosts = "\n".join(f'"{fabric.mac(n)}" = "{name}"' for n, name in enumerate(self.names, start=1))
        switches = "\n".join(f'"{fabric.dpid(s):016x}" = "{s}"' for s in fabric.leaves + fabric.spines)
        text = CONFIG.format(folder=self.folder, port=REST_PORT, hosts=hosts, switches=switches, policy=policy)
        with open(f"{self.folder}/hintd.toml", "w") as file:
            file.write(text)
        log = open(f"{self.folder}/hintd.log", "a")
        command = [f"{self.binaries}/hintd", "--config", f"{self.folder}/hintd.toml"]
        self.hintd = fabric.inside(fabric.space, *command, stdout=log, stderr=log)
        fabric.started.append(self.hintd)
        wait_until(self.serves, 30, "hintd serves metrics")

    def serves(self):
        if self.hintd.poll() is not None:
            raise Failed(f"hintd runs: exit {self.hintd.returncode}")
        try:
            return self.metrics()
        except RuntimeError:
            return None

    def start_client(self):
        command = [self.client_python, f"{HERE}/client.py", self.stubs, "127.0.0.1:8470", *self.names]
        log = open(f"{self.folder}/client.log", "a")
        self.client = self.fabric.inside(
            self.fabric.space, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        self.fabric.started.append(self.client)
        return json.loads(self.client.stdout.readline())

    def request(self, **wanted):
        self.client.stdin.write(json.dumps(wanted) + "\n")
        self.client.stdin.flush()
        return json.loads(self.client.stdout.readline())

    def hintctl(self, *arguments):
        command = [f"{self.binaries}/hintctl", "--json", *arguments, "--admin-socket", f"{self.folder}/admin.sock"]
        done = subprocess.run(["ip", "netns", "exec", self.fabric.space, *command], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"sdn: hintctl {' '.join(arguments)}: {done.stderr.strip()}", file=sys.stderr, flush=True)
            return None
        return json.loads(done.stdout)

    def metrics(self):
        """Metrics by name and labels."""
        script = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9470/metrics', timeout=5).read().decode())"
        text = run("ip", "netns", "exec", self.fabric.space, sys.executable, "-c", script)
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def metric(self, name):
        return self.metrics().get(name, 0.0)

    def entries(self, switch, cookie=COOKIE, mask=0xFFFFFFFFFFFFFF00):
        dpid = self.fabric.dpid(switch)
        return self.fabric.curl(f"/stats/flow/{dpid}", {"cookie": cookie, "cookie_mask": mask})[str(dpid)]

    def output(self, switch, source, target):
        """The spine that a leaf sends a pair's packets to, by its route's entry."""
        ends = {"dl_src": self.fabric.mac(source), "dl_dst": self.fabric.mac(target)}
        for entry in self.entries(switch):
            if entry["match"] == ends and entry["actions"][0].startswith("OUTPUT:"):
                port = int(entry["actions"][0].split(":")[1])
                return self.fabric.spines[port - 1] if port <= len(self.fabric.spines) else "host"
        return None

    def links(self):
        """Links by name as hintd has them."""
        found = self.hintctl("links")
        return {link["id"]: link for link in (found or {"links": []})["links"]}


class Stream:
    """Numbered packets from one host to another."""

    def __init__(self, fabric, source, target):
        receive = [sys.executable, f"{HERE}/udp.py", "receive", str(PORT)]
        send = [sys.executable, f"{HERE}/udp.py", "send", fabric.address(target), str(PORT), str(PACKET_EVERY)]
        self.receiver = fabric.inside(fabric.hosts[target - 1], *receive, stdout=subprocess.PIPE)
        time.sleep(0.3)
        self.sender = fabric.inside(fabric.hosts[source - 1], *send, stdout=subprocess.PIPE)
        fabric.started += [self.receiver, self.sender]

    def end(self):
        """(number, sent, received) of each packet; received is None where it was lost."""
        self.sender.terminate()
        sent = self.sender.communicate()[0]
        time.sleep(0.3)
        self.receiver.terminate()
        received = self.receiver.communicate()[0]

        def pairs(text):
            return [tuple(map(int, line.split())) for line in text.splitlines()]

        arrived = dict(pairs(received))
        return [(number, at, arrived.get(number)) for number, at in pairs(sent)]


def bring_up(world):
    """The network is learnt from the controller, hosts from their first broadcasts."""
    fabric = world.fabric
    wait_until(lambda: world.metric("hintd_sdn_connected") == 1, 30, "hintd polls the controller")

    def learnt():
        for number, host in enumerate(fabric.hosts, start=1):
            fabric.inside(host, "ping", "-c", "1", "-W", "1", fabric.address(number % len(fabric.hosts) + 1),
                          stdout=subprocess.DEVNULL).wait()
        return len(world.links()) == 8
    wait_until(learnt, 30, "8 links: 4 between switches, 4 of hosts")
    links = world.links()
    check(all(link["up"] for link in links.values()), f"the network is learnt: {len(links)} links, all up")
    reached = [ping(fabric, 1, number) for number in range(2, len(fabric.hosts) + 1)]
    check(all(reached), "default forwarding carries pings and their ARP between all hosts")


def ping(fabric, source, target):
    command = ["ping", "-c", "5", "-i", "0.2", "-W", "1", fabric.address(target)]
    return fabric.inside(fabric.hosts[source - 1], *command, stdout=subprocess.DEVNULL).wait() == 0


def install_routes(world, policy):
    world.start_client()
    wait_until(lambda: (world.hintctl("status", "--live") or {}).get("nodes_usable", 0) == 4, 10, "4 nodes")
    time.sleep(1)
    answer = world.request(id="job-1", policy=policy)
    print(f"sdn: hints: {answer['routes']} routes", flush=True)
    used = wait_until(lambda: world.output("leaf1", 1, 3), 20, "the route from node-1 to node-3 is installed")
    wait_until(lambda: world.output("leaf2", 3, 1), 20, "the route back is installed")
    check(True, f"routes are installed: node-1 to node-3 by {used}")
    return used


def cut_and_restore(world, used):
    """Cuts the link in use under traffic; prints what that costs."""
    fabric = world.fabric
    other = next(spine for spine in fabric.spines if spine != used)
    stream = Stream(fabric, 1, 3)
    time.sleep(1.5)
    cut = time.monotonic_ns()
    fabric.set_link("leaf1", used, "down")
    cut_done = time.monotonic_ns()
    time.sleep(2)
    packets = stream.end()
    before = [p for p in packets if p[1] < cut - 50_000_000 and p[2] is None]
    late = [p for p in packets if p[1] > cut + LONGEST_MS * 1_000_000 and p[2] is None]
    lost = [p for p in packets if p[2] is None and p not in before]
    check(len(packets) > 1000 and not before, f"no packet is lost before the cut ({len(packets)} sent)")
    check(bool(lost), "the cut hits the path in use")
    resumed = min(p[2] for p in packets if p[2] is not None and p[0] > lost[-1][0])
    took, own = (resumed - cut) / 1e6, (cut_done - cut) / 1e6
    check(not late, f"traffic goes on after the cut: {len(lost)} packets lost at one a millisecond")
    print(f"sdn: MEASURED: {took:.1f} ms from the cut to the first packet over the new path "
          f"(`ip link set down` itself took {own:.1f} ms); {len(lost)} of {len(packets)} packets lost", flush=True)
    check(took < LONGEST_MS, f"within {LONGEST_MS} ms")
    check(world.output("leaf1", 1, 3) == other, f"the route from node-1 to node-3 goes by {other}")
    down = [name for name, link in world.links().items() if not link["up"]]
    check(down == [cable(world, "leaf1", used)], f"hintd has that link down and no other: {down}")
    check(all(ping(fabric, 2, number) for number in (1, 3, 4)), "default forwarding goes round the cut too")

    stream = Stream(fabric, 1, 3)
    time.sleep(0.5)
    fabric.set_link("leaf1", used, "up")
    wait_until(lambda: world.output("leaf1", 1, 3) == used, 40, f"the route returns to {used}")
    time.sleep(1)
    packets = stream.end()
    lost = [p for p in packets if p[2] is None]
    check(not lost, f"the route is taken back to {used}; {len(packets)} packets sent meanwhile, {len(lost)} lost")
    check(all(link["up"] for link in world.links().values()), "all links are up again")
    return took


def cable(world, leaf, spine):
    """hintd's name of the link between a leaf and a spine."""
    fabric = world.fabric
    return f"{leaf}:{fabric.spines.index(spine) + 1}-{spine}:{fabric.leaves.index(leaf) + 1}"


def sweep(world):
    """Entries with our cookie that nobody wants go; others' stay; ones that are lost come back."""
    fabric = world.fabric
    entry = {"dpid": 1, "priority": 1000, "match": {"eth_src": "02:00:00:00:00:77", "eth_dst": "02:00:00:00:00:78"},
             "actions": [{"type": "OUTPUT", "port": 3}]}
    foreign = {**entry, "cookie": 77, "priority": 5, "match": {"eth_dst": "02:00:00:00:00:79"}}
    fabric.curl("/stats/flowentry/add", {**entry, "cookie": COOKIE + 1})
    fabric.curl("/stats/flowentry/add", foreign)
    ends = {"eth_src": fabric.mac(1), "eth_dst": fabric.mac(3)}
    fabric.curl("/stats/flowentry/delete_strict", {"dpid": 1, "priority": 1000, "match": ends})

    def swept():
        odd = [e for e in world.entries("leaf1") if e["match"].get("dl_src") == "02:00:00:00:00:77"]
        return not odd and world.output("leaf1", 1, 3)
    wait_until(swept, 20, "the orphan goes and the lost entry is put back")
    check(len(world.entries("leaf1", 77, 0xFFFFFFFFFFFFFFFF)) == 1,
          "an entry of ours that nobody wants is removed, a lost one put back, another's left alone")


def bad_controller(world):
    """Controllers that are none: the last good state stays, and it is counted."""
    fabric = world.fabric
    expected = {"rubbish": "nonsense", "half": "broken", "never": "late", "huge": "too_large", "refusal": "refused"}
    links = set(world.links())
    fabric.stop_controller(signal.SIGKILL)
    for mode, reason in expected.items():
        name = f'hintd_sdn_requests_total{{what="topology",result="{reason}"}}'
        before = world.metric(name)
        impostor = fabric.inside(fabric.space, sys.executable, f"{HERE}/nonsense.py", str(REST_PORT), mode)
        fabric.started.append(impostor)
        try:
            wait_until(lambda: world.metric(name) >= before + 1, 15, f"{mode} is counted as {reason}")
        finally:
            impostor.kill()
            impostor.wait()
        found = world.links()
        check(set(found) == links and all(link["up"] for link in found.values()),
              f"a controller that answers {mode}: counted as {reason}, the last good network stays")
    check(world.metric("hintd_sdn_connected") == 0, "the controller counts as not answering")
    ages = [world.metric('hintd_source_age_seconds{source="topology"}') for _ in range(2) if not time.sleep(1.5)]
    check(ages[1] > ages[0] > 1, f"the topology's age grows: {ages[0]:.1f} s, then {ages[1]:.1f} s")
    check(ping(fabric, 1, 3), "packets go on without a controller")
    fabric.start_controller()
    wait_until(lambda: world.metric("hintd_sdn_connected") == 1, 30, "the controller is back")
    time.sleep(4)
    found = world.links()
    check(set(found) == links and all(link["up"] for link in found.values()),
          "a controller that starts anew and knows nothing yet takes nothing down")
    check(ping(fabric, 1, 3), "packets go on when it is back")


def client_tools(folder):
    """A Python with grpcio, and hintd's messages for it."""
    python, stubs = os.path.join(folder, "client", "bin", "python"), os.path.join(folder, "stubs")
    if not os.path.exists(os.path.join(folder, "client", ".done")):
        print("sdn: installing grpcio", flush=True)
        run(sys.executable, "-m", "venv", os.path.join(folder, "client"))
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run(*pip, "grpcio==1.85.1", "grpcio-tools==1.85.1")
        open(os.path.join(folder, "client", ".done"), "w").close()
    os.makedirs(stubs, exist_ok=True)
    protos = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(ROOT, "proto")) for name in names]
    run(python, "-m", "grpc_tools.protoc", f"-I{ROOT}/proto", f"--python_out={stubs}", f"--grpc_python_out={stubs}",
        *[path for path in protos if path.endswith(".proto")])
    return python, stubs


def skip_reason():
    if not sys.platform.startswith("linux"):
        return "network namespaces are Linux's"
    if os.geteuid() != 0:
        return "root is needed for network namespaces"
    done = subprocess.run(["unshare", "-n", "true"], capture_output=True)
    if done.returncode != 0:
        return "network namespaces can't be made here"
    return None


def main():
    reason = skip_reason()
    if reason:
        print(f"SKIP: sdn: {reason}")
        return 0
    binaries = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(ROOT, "target", "debug")
    if not os.path.exists(f"{binaries}/hintd"):
        run("cargo", "build", "--locked", "--bins", "--manifest-path", f"{ROOT}/Cargo.toml")
    install_system_packages()
    kept = os.path.join(ROOT, "target", "sdn")
    os.makedirs(kept, exist_ok=True)
    python, stubs = client_tools(kept)
    tools = {"manager": install_controller(os.path.join(kept, "ryu")), "python": python, "stubs": stubs}
    policy = os.environ.get("SDN_POLICY", "cross_layer")
    folder = tempfile.mkdtemp(prefix="hintd-sdn-")
    world = World(folder, binaries, tools)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began = time.monotonic()
    try:
        world.fabric.start()
        world.start_hintd(policy)
        bring_up(world)
        used = install_routes(world, policy)
        cut_and_restore(world, used)
        sweep(world)
        bad_controller(world)
        check(world.hintd.poll() is None, "hintd runs on")
    except (Failed, TimeoutError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"sdn: FAILED: {error}; logs are in {folder}", file=sys.stderr, flush=True)
        for log in ("hintd.log", "client.log"):
            if os.path.exists(f"{folder}/{log}"):
                with open(f"{folder}/{log}") as file:
                    print(f"--- {log}\n" + "".join(file.readlines()[-60:]), file=sys.stderr)
        return 1
    finally:
        world.fabric.stop()
    print(f"sdn: passed in {time.monotonic() - began:.0f} s")
    if not os.environ.get("SDN_KEEP"):
        import shutil
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
