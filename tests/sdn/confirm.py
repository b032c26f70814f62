"""How long a controller takes until an entry is known to be in force: by barrier, or by reading the table back as hintd
does where the controller confirms nothing."""

import json
import os
import subprocess
import sys
import time

ENTRIES = 300
COOKIE = 0x0068696E74640000
MASK = 0xFFFFFFFFFFFFFF00
CONTROLLER_WAIT_S = 30


def measure(world):
    """Prints percentiles; the world's own controller is put aside for os-ken's, which is asked without hintd."""
    fabric = world.fabric
    world.hintd.kill()
    world.hintd.wait()
    if world.kind == "ryu":
        command = [sys.executable, os.path.abspath(__file__), "ryu"]
    else:
        fabric.stop_controller()
        command = [fabric.command["command"][0], os.path.abspath(__file__), "os-ken"]
    environment = {**os.environ, **fabric.command.get("env", {}), "HINTD_OSKEN_CONFIG": f"{world.folder}/osken.toml"}
    done = subprocess.run(["ip", "netns", "exec", fabric.space, *command], capture_output=True, text=True, env=environment,
                          timeout=180)
    if done.returncode != 0:
        raise RuntimeError(f"confirm: exit {done.returncode}: {done.stderr[-2000:]}")
    print(f"sdn: MEASURED: {world.kind}: {done.stdout.strip()}", flush=True)


def address(number):
    return f"02:00:00:01:{number >> 8:02x}:{number & 255:02x}"


def tell(single, together):
    """One line: percentiles of entries one by one, and all at once."""
    ordered = sorted(single)
    p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    print(f"{len(single)} entries one by one, each until it is confirmed: p50 {p50 * 1e3:.2f} ms, p99 {p99 * 1e3:.2f} ms; "
          f"{ENTRIES} at once: {together * 1e3:.1f} ms", flush=True)


def os_ken():
    """Through the application's own switchboard: sent, then a barrier's answer."""
    os.environ["OSKEN_HUB_TYPE"] = "native"
    from hintd_osken import app, options
    from hintd_osken.model import match, outputs
    from hintd_osken.table import Command, Layer
    from os_ken import cfg
    from os_ken.base.app_manager import AppManager

    _ = app  # importing it declares options of os-ken, which must be there before they are read
    chosen = options.load()
    cfg.CONF(args=[], project="hintd_osken", default_config_files=[])
    host, port = chosen.listen_at()
    cfg.CONF.set_override("ofp_listen_host", host)
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
    manager = AppManager.get_instance()
    manager.load_apps(["hintd_osken.app"])
    manager.instantiate_apps(**manager.create_contexts())
    board = manager.applications["Hintd"].board
    end = time.monotonic() + CONTROLLER_WAIT_S
    while 1 not in board.connected() and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(3)

    def command(number):
        where = match(eth_src="02:00:00:00:00:01", eth_dst=address(number))
        return Command(1, chosen.marks.rule(Layer.ROUTE, where, outputs({3})))

    def apply(commands):
        began = time.monotonic()
        errors = [error for error in board.apply(commands, 5.0) if error is not None]
        if errors:
            raise RuntimeError(errors[0])
        return time.monotonic() - began

    single = [apply([command(number)]) for number in range(ENTRIES)]
    tell(single, apply([command(number) for number in range(ENTRIES, 2 * ENTRIES)]))
    os._exit(0)


def ryu():
    """Over REST: sent, then the table is read until it shows the entry."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=10)

    def post(path, body):
        connection.request("POST", path, json.dumps(body))
        return connection.getresponse().read()

    def add(number):
        ends = {"eth_src": "02:00:00:00:00:01", "eth_dst": address(number)}
        post("/stats/flowentry/add", {"dpid": 1, "cookie": COOKIE + 1, "priority": 1000, "match": ends,
                                      "actions": [{"type": "OUTPUT", "port": 3}]})

    def shown(numbers):
        wanted = {address(number) for number in numbers}
        pause = 0.002
        while True:
            table = json.loads(post("/stats/flow/1", {"cookie": COOKIE, "cookie_mask": MASK}))["1"]
            if wanted <= {entry["match"].get("dl_dst") for entry in table}:
                return
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    def timed(numbers):
        began = time.monotonic()
        for number in numbers:
            add(number)
        shown(numbers)
        return time.monotonic() - began

    single = [timed([number]) for number in range(ENTRIES)]
    tell(single, timed(range(ENTRIES, 2 * ENTRIES)))


if __name__ == "__main__":
    {"os-ken": os_ken, "ryu": ryu}[sys.argv[1]]()
