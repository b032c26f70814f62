"""A small leaf-spine network of Open vSwitch bridges, hosts in network namespaces, and a controller.

Everything lives in network namespaces and a folder of its own and is taken down by `Fabric.stop`.
The Linux kernel needs no Open vSwitch module: the bridges use the userspace datapath.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import time

LEAVES = 2
SPINES = 2
HOSTS_PER_LEAF = 2
CONTROLLER_PORT = 6653


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


class Fabric:
    """Two leaves, two spines, two hosts a leaf; the switches and the controller share one namespace."""

    def __init__(self, folder, controller, prefix):
        # What starts the controller, and its environment.
        self.folder, self.command = folder, controller
        self.space = f"{prefix}-net"
        self.hosts = [f"{prefix}-h{n}" for n in range(1, LEAVES * HOSTS_PER_LEAF + 1)]
        self.leaves = [f"leaf{n}" for n in range(1, LEAVES + 1)]
        self.spines = [f"spine{n}" for n in range(1, SPINES + 1)]
        self.controller = self.box = None
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
        self.vswitchd = self.daemon("ovs-vswitchd", self.db)
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
        return process

    def restart_switches(self):
        """All switches lose their entries and connections, as by a cut of power."""
        self.vswitchd.kill()
        self.vswitchd.wait()
        os.remove(f"{self.folder}/ovs-vswitchd.ctl")
        self.vswitchd = self.daemon("ovs-vswitchd", self.db)
        wait_until(lambda: all(map(self.answers, self.leaves + self.spines)), 10, "switches answer")

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

    def add_box(self, switch):
        """A namespace for a middlebox, on the switch's next port."""
        self.box = f"{self.space.removesuffix('-net')}-box"
        end = f"{switch}-box"
        run("ip", "netns", "add", self.box)
        run("ip", "-n", self.space, "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", self.box)
        run("ip", "-n", self.space, "link", "set", end, "up")
        run("ip", "-n", self.box, "link", "set", "eth0", "up")
        self.vsctl("add-port", switch, end)

    def start_controller(self):
        log = open(f"{self.folder}/controller.log", "a")
        self.controller = subprocess.Popen(
            ["ip", "netns", "exec", self.space, *self.command["command"]], stdout=log, stderr=log,
            env={**os.environ, **self.command.get("env", {})},
        )
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
        for space in [*self.hosts, self.space, *([self.box] if self.box else [])]:
            run("ip", "netns", "del", space, check=False)

    def leave_controller(self, switch):
        """One switch loses its controller and its entries, as if it were off to the controller."""
        self.vsctl("del-controller", switch)
        self.ofctl("del-flows", switch)

    def join_controller(self, switch):
        self.vsctl("set-controller", switch, f"tcp:127.0.0.1:{CONTROLLER_PORT}",
                   "--", "set", "controller", switch, "max_backoff=1000", "inactivity_probe=5000")

    def answers(self, switch):
        """Whether a switch is there at all."""
        show = ["ovs-ofctl", "-O", "OpenFlow13", "show", f"unix:{self.folder}/{switch}.mgmt"]
        return subprocess.run(show, capture_output=True, env=self.env).returncode == 0

    def ofctl(self, command, switch, *arguments):
        """Asks a switch itself, past the controller."""
        return run("ovs-ofctl", "-O", "OpenFlow13", command, f"unix:{self.folder}/{switch}.mgmt", *arguments, env=self.env)

    # --- what the network does ---------------------------------------------------------------------------------------

    def inside(self, space, *command, **options):
        return subprocess.Popen(["ip", "netns", "exec", space, *command], text=True, **options)

    def set_link(self, a, b, state):
        run("ip", "-n", self.space, "link", "set", self.port(a, b), state)


def wait_until(condition, seconds, what):
    """Polls until `condition()` holds; what it returned."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"{what}: not within {seconds} s")
