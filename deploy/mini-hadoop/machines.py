"""Machines of two kinds (`--big-nodes`): the first nodes have more memory, cores and bandwidth than the others, and a larger share of
the CPU where a cgroup is to be had. Each tells YARN its class by a node attribute, which needs no label and no queue.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from cables import PREFIX, Trouble, bits

SCALE_UP = "scale-up"  # what hintd's policy scale_up_out calls them
ATTRIBUTE = "hintd-class"
# A big node by another one. With twice the containers and four times the CPU a task has twice the CPU where all nodes are full.
TIMES = {"memory": 2, "vcores": 2, "rate": 2, "cpu": 4}
GROUP = PREFIX.rstrip("-")
SHARES = {"cpu.shares": (1024, 262_144), "cpu.weight": (100, 10_000)}  # what a group has by default, and at most


def mark(nodes: dict[str, dict], big: int, node_rate: str) -> None:
    """The first `big` of the nodes are big."""
    if not 0 <= big < len(nodes):
        raise Trouble(f"--big-nodes {big}: expected 0 to {len(nodes) - 1}, so that others are left of {len(nodes)} nodes")
    rate = bits(node_rate) * TIMES["rate"]
    for name in list(nodes)[:big]:
        nodes[name] |= {"class": SCALE_UP, "rate": f"{rate}bit"}
        bits(nodes[name]["rate"])  # or it is too much


def is_big(node: dict) -> bool:
    return node.get("class") == SCALE_UP


def said(big: int) -> str:
    """For people, behind what a node has."""
    return (f"; the first {big} nodes have {TIMES['memory']} times the memory, {TIMES['vcores']} times the vcores, {TIMES['rate']} times the rate and "
            f"{TIMES['cpu']} times the CPU share of another")


def properties(node: dict, memory_mb: int, vcores: int) -> dict[str, object]:
    """What yarn-site.xml of its NodeManager has beside; nothing of a node that is not big."""
    if not is_big(node):
        return {}
    return {"yarn.nodemanager.resource.memory-mb": memory_mb * TIMES["memory"],
            "yarn.nodemanager.resource.cpu-vcores": vcores * TIMES["vcores"],
            "yarn.nodemanager.node-attributes.provider": "config",
            "yarn.nodemanager.node-attributes.provider.configured-node-attributes": f"{ATTRIBUTE},STRING,{node['class']}"}


# --- shares of the CPU -----------------------------------------------------------------------------------------------------------


def hierarchy() -> tuple[Path, str] | None:
    """Where groups with shares of the CPU are, and the file of a share: cgroup 1, else cgroup 2."""
    with contextlib.suppress(OSError):
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        for _, folder, kind, options, *_ in mounts:
            if kind == "cgroup" and "cpu" in options.split(","):
                return Path(folder), "cpu.shares"
        for _, folder, kind, *_ in mounts:
            if kind == "cgroup2" and "cpu" in (Path(folder) / "cgroup.controllers").read_text().split():
                return Path(folder), "cpu.weight"
    return None


def group() -> Path | None:
    """The group of all nodes' groups, if it is there."""
    found = hierarchy()
    return found[0] / GROUP if found is not None and (found[0] / GROUP).exists() else None


def share_cpu(planned: dict) -> str:
    """A group for each node, all in one that has as much as their processes would have without; why there are none, where there are
    none."""
    found = hierarchy()
    if found is None:
        return "no cgroup with a cpu controller is mounted here"
    root, file = found
    one, most = SHARES[file]
    shares = {name: one * (TIMES["cpu"] if is_big(node) else 1) for name, node in planned["nodes"].items()}
    # A group has one share whatever the nice value of who is in it: a step of nice is a quarter.
    together = min(int(sum(shares.values()) * 1.25 ** -os.getpriority(os.PRIO_PROCESS, 0)), most)
    try:
        (root / GROUP).mkdir(exist_ok=True)
        if file == "cpu.weight":
            for folder in (root, root / GROUP):
                (folder / "cgroup.subtree_control").write_text("+cpu")
        (root / GROUP / file).write_text(str(together))
        for name, share in shares.items():
            (root / GROUP / name).mkdir(exist_ok=True)
            (root / GROUP / name / file).write_text(str(share))
    except OSError as error:
        no_shares()
        return str(error)
    return ""


def command(node: str) -> list[str]:
    """What a program is started by so that it, and whatever it starts, has its node's share; before anything that hides cgroups."""
    found = group()
    if found is None or not (found / node).exists():
        return []
    return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(found / node / "cgroup.procs")]


def no_shares() -> None:
    """Takes the groups away. Processes have ended, but the kernel may still count one."""
    found = group()
    if found is None:
        return
    for folder in [*(path for path in found.iterdir() if path.is_dir()), found]:
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.05)
