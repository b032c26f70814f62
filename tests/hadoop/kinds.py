"""Machines of two kinds, for tests/hadoop/worth: jobs of two kinds, how scale_up_out is told of so small a cluster, and the tables of
seconds and places by kind of job and class of machine. No Hadoop is needed for any of it."""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "deploy/mini-hadoop"))
import machines

POLICY = "scale_up_out"
ARMS = ("off", "reduces", "maps")
# Two large jobs, and small ones that come while these run, so that both kinds meet: kind, and seconds after the run's beginning.
SUBMITTED = [("large", 0), ("small", 5), ("small", 12), ("large", 19), ("small", 26), ("small", 33)]
BLOCK = 128 << 20  # what hintd takes a map to read of which nobody tells more
# A small job has two maps and a large one six. Sizes are scaled down with the rates, so each counts as a block.
CROSSPOINT = 4 * BLOCK
CONTAINERS = 6  # of a node that is not big
PARAMETERS = {
    "scale_up": machines.SCALE_UP,
    "speed": machines.TIMES["cpu"] / machines.TIMES["memory"],  # of a task where all nodes are full
    "large_speed": 0.65,  # as Figure 5.1 has large jobs (docs/policies.md), without the waves that they have there
    "large_input_bytes": CROSSPOINT, "large_shuffling_input_bytes": CROSSPOINT,
    "scale_up_containers": machines.TIMES["memory"] * CONTAINERS, "scale_out_containers": machines.TIMES["memory"] * CONTAINERS,
}
MOSTLY = 0.9  # of a job's containers on one class: from then on scale_up_out learns from it how fast that class is
STAGES = {"p20": "maps_on", "p10": "reduces_on"}  # groups, as the processor names them, and where the history says they ran


def settings() -> str:
    """Of hintd's configuration."""
    rows = ", ".join(f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in PARAMETERS.items())
    return f"policies = {{ {POLICY} = {{ {rows} }} }}\n"


def big(row: dict) -> set[str]:
    """The run's big nodes."""
    return {name for name, of in row.get("classes", {}).items() if of == machines.SCALE_UP}


def hinted(row: dict, job: dict) -> dict[str, Counter]:
    """How many of a job's maps and reduces were hinted to each host."""
    found = {stage: Counter() for stage in STAGES.values()}
    for decision in row["decisions"]:
        if decision["application"].removeprefix("application") == job["id"].removeprefix("job"):
            for group, host in decision.get("hints", []):
                if group in STAGES:
                    found[STAGES[group]][host] += 1
    return found


def places(row: dict, job: dict) -> Counter:
    """Of one job: tasks, those on big nodes, those hinted to either class, and those of them that came on their host and in its class."""
    there, count = big(row), Counter()
    for stage, hosts in hinted(row, job).items():
        came = Counter(job[stage])
        on_big = {True: sum(many for host, many in came.items() if host in there)}
        on_big[False] = sum(came.values()) - on_big[True]
        count[stage] += sum(came.values())
        count[f"{stage}, big"] += on_big[True]
        for of in (True, False):
            wanted = {host: many for host, many in hosts.items() if (host in there) == of}
            count["hinted to big" if of else "hinted to others"] += sum(wanted.values())
            count["on host"] += sum(min(many, came[host]) for host, many in wanted.items())
            count["in class"] += min(sum(wanted.values()), on_big[of])
    return count


def tells(row: dict, job: dict) -> bool:
    """Whether nearly all of the job ran on one class."""
    on = [host in big(row) for stage in STAGES.values() for host in job[stage]]
    return bool(on) and max(sum(on), len(on) - sum(on)) >= MOSTLY * len(on)


def by_kind(rows: list[dict], arm: str, kind: str) -> list[tuple[dict, list[dict]]]:
    """Runs of an arm with their jobs of a kind."""
    return [(row, [job for job in row["jobs"] if job["kind"] == kind]) for row in rows if (row["test"], row["arm"]) == ("kinds", arm)]


def seconds(row: dict, kind: str) -> float:
    return statistics.mean(job["seconds"] for job in row["jobs"] if job["kind"] == kind)


def table(rows: list[dict], said: dict[str, str], spread: Callable[..., str]) -> list[str]:
    """Seconds and places by kind of job; nothing where no run was of machines of two kinds."""
    rows = [row for row in rows if row["test"] == "kinds"]
    if not rows:
        return []
    off = {row["pair"]: row for row in rows if row["arm"] == "off"}
    lines = ["", "By kind of job; *hinted* are maps and reduces together:", "",
             "| jobs | hints | runs | s a job | ÷ off, pair by pair, median | maps on big nodes | reduces on big nodes | hinted to big nodes, to others | "
             "of these on their host, in its class | jobs with nine of ten on one class |", "|---|---|---|---|---|---|---|---|---|---|"]
    for kind in dict(SUBMITTED):
        for arm in ARMS:
            found = by_kind(rows, arm, kind)
            if not found:
                continue
            ratio = [seconds(row, kind) / seconds(off[row["pair"]], kind) for row, _ in found if row["pair"] in off and arm != "off"]
            ran = [(row, job) for row, jobs in found for job in jobs]
            went = sum((places(row, job) for row, job in ran), Counter())
            lines.append(f"| {kind} | {said[arm]} | {len(found)} | {spread([seconds(row, kind) for row, _ in found])} | {spread(ratio, 2) if ratio else ''} | "
                         f"{went['maps_on, big']} of {went['maps_on']} | {went['reduces_on, big']} of {went['reduces_on']} | "
                         f"{went['hinted to big']}, {went['hinted to others']} | {went['on host']}, {went['in class']} | {sum(tells(row, job) for row, job in ran)} of {len(ran)} |")
    return lines


def judged(row: dict) -> str:
    """How hintd judged each job that it was asked about: where its decision value put it."""
    kinds = {job["id"].removeprefix("job"): job["kind"] for job in row["jobs"] if job["ok"]}
    found = Counter()
    for decision in row["decisions"]:
        value = decision.get("decision_value")
        if value is not None:
            found[kinds.get(decision["application"].removeprefix("application"), "?"), "small" if value > 0 else "large"] += 1
    return ", ".join(f"{many} of {kind} jobs as {as_}" for (kind, as_), many in sorted(found.items())) or "none"
