"""A small leaf-spine network of Open vSwitch bridges, hosts in network namespaces, and a Ryu controller.

Everything lives in network namespaces and a folder of its own and is taken down by `Fabric.stop`.
The Linux kernel needs no Open vSwitch module: the bridges use the userspace datapath.
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

LEAVES = 2
SPINES = 2
HOSTS_PER_LEAF = 2
CONTROLLER_PORT = 6653
REST_PORT = 8080


def run(*command, check=True, env=None):
    """Runs a command to its end and returns its output."""
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def install_system_packages():
    """Open vSwitch, ping, ip and virtual environments from Debian, where they are missing."""
    wanted = {"ovs-vswitchd": "openvswitch-switch", "ping": "iputils-ping", "ip": "iproute2", "ethtool": "ethtool"}
    missing = {package for tool, package in wanted.items() if shutil.which(tool) is None}
    # Debian's python3 comes without what makes virtual environments.
    missing = sorted(missing | ({"python3-venv"} if importlib.util.find_spec("ensurepip") is None else set()))
    if not missing:
        return
    print(f"sdn: installing {' '.join(missing)}", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=600"]
    run("apt-get", *wait, "update", "-qq", env=env)
    run("apt-get", *wait, "install", "-y", "-qq", "--no-install-recommends", *missing, env=env)


def install_controller(folder):
    """A virtual environment with Ryu 4.34, mended so that it runs on a current Python; returns `ryu-manager`."""
    manager = os.path.join(folder, "bin", "ryu-manager")
    done = os.path.join(folder, ".mended")
    if os.path.exists(done):
        return manager
    print(f"sdn: installing Ryu 4.34 into {folder}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    pip = [os.path.join(folder, "bin", "pip"), "install", "-q", "--disable-pip-version-check"]
    run(*pip, "setuptools==57.5.0", "wheel<0.40", "pbr")
    run(*pip, "--no-build-isolation", "ryu==4.34", "eventlet==0.36.1", "dnspython<3")
    found = run(os.path.join(folder, "bin", "python"), "-c", "import ryu; print(ryu.__path__[0])").strip()
    mend_wsgi(os.path.join(found, "app", "wsgi.py"))
    open(done, "w").close()
    return manager


def mend_wsgi(path):
    """Ryu 4.34 imports what eventlet no longer has, and sends Python's text of bytes over the websocket."""
    with open(path) as file:
        text = file.read()
    text, imports = re.subn(
        r"    from eventlet\.wsgi import ALREADY_HANDLED\n    _ALREADY_HANDLED = ALREADY_HANDLED\n", "", text
    )
    text, calls = re.subn(
        r"        return self\._ALREADY_HANDLED\n",
        "        import eventlet.wsgi\n        eventlet.wsgi.WSGI_LOCAL.already_handled = True\n        return b''\n",
        text,
    )
    text, sends = re.subn(
        r"self\.ws\.send\(six\.text_type\((\w+)\)\)",
        r"self.ws.send(\1.decode() if isinstance(\1, bytes) else six.text_type(\1))",
        text,
    )
    if (imports, calls, sends) != (1, 1, 2):
        raise RuntimeError(f"{path} is not Ryu 4.34's: {imports}, {calls}, {sends} places found")
    with open(path, "w") as file:
        file.write(text)


class Fabric:
    """Two leaves, two spines, two hosts a leaf; the switches and the controller share one namespace."""

    def __init__(self, folder, manager, prefix):
        self.folder, self.manager = folder, manager
        self.space = f"{prefix}-net"
        self.hosts = [f"{prefix}-h{n}" for n in range(1, LEAVES * HOSTS_PER_LEAF + 1)]
        self.leaves = [f"leaf{n}" for n in range(1, LEAVES + 1)]
        self.spines = [f"spine{n}" for n in range(1, SPINES + 1)]
        self.controller = None
        self.started = []

    # --- names -------------------------------------------------------------------------------------------------------

    def dpid(self, switch):
        return (1 if switch in self.leaves else 17) + (self.leaves + self.spines).index(switch) % LEAVES

    @staticmethod
    def mac(number):
        return f"02:00:00:00:00:{number:02x}"

    @staticmethod
    def address(number):
        return f"10.9.0.{number}"

    def port(self, switch, peer):
        """The veth end at `switch` of its link with `peer` (a switch, or a host's number)."""
        return f"{switch}-{peer}" if isinstance(peer, str) else f"{switch}-h{peer}"

    # --- life --------------------------------------------------------------------------------------------------------

    def start(self):
        run("ip", "netns", "add", self.space)
        run("ip", "-n", self.space, "link", "set", "lo", "up")
        self.start_switches()
        for leaf in self.leaves:
            for spine in self.spines:
                self.wire(leaf, spine)
        for number, host in enumerate(self.hosts, start=1):
            self.add_host(number, host)
        self.start_controller()

    def start_switches(self):
        folder = self.folder
        self.db = f"unix:{folder}/db.sock"
        self.env = {**os.environ, "OVS_RUNDIR": folder, "OVS_LOGDIR": folder, "OVS_DBDIR": folder}
        run("ovsdb-tool", "create", f"{folder}/conf.db", "/usr/share/openvswitch/vswitch.ovsschema", env=self.env)
        self.daemon("ovsdb-server", f"{folder}/conf.db", f"--remote=punix:{folder}/db.sock")
        run("ovs-vsctl", f"--db={self.db}", "--no-wait", "init", env=self.env)
        self.daemon("ovs-vswitchd", self.db)
        for switch in self.leaves + self.spines:
            dpid = self.dpid(switch)
            self.vsctl(
                "add-br", switch, "--", "set", "bridge", switch, "datapath_type=netdev", "protocols=OpenFlow13",
                "fail_mode=secure", f"other-config:datapath-id={dpid:016x}",
                f"other-config:hwaddr=02:ff:00:00:00:{dpid:02x}",
                "--", "set-controller", switch, f"tcp:127.0.0.1:{CONTROLLER_PORT}",
                "--", "set", "controller", switch, "max_backoff=1000", "inactivity_probe=5000",
            )

    def daemon(self, program, *arguments):
        log = open(f"{self.folder}/{program}.out", "w")
        own = [f"--pidfile={self.folder}/{program}.pid", f"--unixctl={self.folder}/{program}.ctl",
               f"--log-file={self.folder}/{program}.log", "-vconsole:off"]
        command = ["ip", "netns", "exec", self.space, program, *arguments, *own]
        process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log)
        self.started.append(process)
        wait_until(lambda: os.path.exists(f"{self.folder}/{program}.ctl") or process.poll(), 10, program)
        if process.poll() is not None:
            raise RuntimeError(f"{program} ended: see {self.folder}/{program}.out")

    def vsctl(self, *arguments):
        return run("ovs-vsctl", f"--db={self.db}", *arguments, env=self.env)

    def wire(self, a, b):
        ends = self.port(a, b), self.port(b, a)
        run("ip", "-n", self.space, "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for switch, end in zip((a, b), ends):
            run("ip", "-n", self.space, "link", "set", end, "up")
            self.vsctl("add-port", switch, end)

    def add_host(self, number, host):
        leaf = self.leaves[(number - 1) // HOSTS_PER_LEAF]
        end = self.port(leaf, number)
        run("ip", "netns", "add", host)
        run("ip", "-n", self.space, "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", host)
        run("ip", "-n", self.space, "link", "set", end, "up")
        for command in (
            ["link", "set", "lo", "up"],
            ["link", "set", "eth0", "address", self.mac(number)],
            ["link", "set", "eth0", "up"],
            ["addr", "add", f"{self.address(number)}/24", "dev", "eth0"],
        ):
            run("ip", "-n", host, *command)
        # A userspace switch forwards packets whose checksums a veth left to be filled in.
        run("ip", "netns", "exec", host, "ethtool", "-K", "eth0", "tx", "off", check=False)
        self.vsctl("add-port", leaf, end)

    def start_controller(self):
        log = open(f"{self.folder}/ryu.log", "a")
        command = [
            "ip", "netns", "exec", self.space, self.manager, "--observe-links",
            "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(CONTROLLER_PORT),
            "--wsapi-host", "127.0.0.1", "--wsapi-port", str(REST_PORT),
            "ryu.app.rest_topology", "ryu.app.ofctl_rest", "ryu.app.ws_topology",
        ]
        self.controller = subprocess.Popen(command, stdout=log, stderr=log)
        self.started.append(self.controller)

    def stop_controller(self, how=signal.SIGKILL):
        self.controller.send_signal(how)
        self.controller.wait(timeout=10)

    def stop(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self.started):
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for space in [*self.hosts, self.space]:
            run("ip", "netns", "del", space, check=False)

    # --- what the network does ---------------------------------------------------------------------------------------

    def inside(self, space, *command, **options):
        return subprocess.Popen(["ip", "netns", "exec", space, *command], text=True, **options)

    def set_link(self, a, b, state):
        run("ip", "-n", self.space, "link", "set", self.port(a, b), state)

    def curl(self, path, body=None):
        """Asks the controller, inside its namespace."""
        script = (
            "import sys, urllib.request\n"
            "body = sys.argv[2].encode() if len(sys.argv) > 2 else None\n"
            "print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=body), timeout=5).read().decode())"
        )
        arguments = [f"http://127.0.0.1:{REST_PORT}{path}"] + ([json.dumps(body)] if body is not None else [])
        text = run("ip", "netns", "exec", self.space, sys.executable, "-c", script, *arguments).strip()
        return json.loads(text) if text else None


def wait_until(condition, seconds, what):
    """Polls until `condition()` holds; what it returned."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"{what}: not within {seconds} s")
