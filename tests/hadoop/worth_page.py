"""Page, figures and plot of tests/hadoop/worth."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from pathlib import Path

import kinds
from worth_jobs import HINTED

STARVED = 0.5  # two cores run what some two hundred threads of six nodes want: they wait for each other in any case
STUDENT = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201)  # 97.5 % quantiles for 2, 3, ... degrees of freedom; beyond, the last
FIRST, LAST = "<!-- figures: written by tests/hadoop/worth -->", "<!-- end of figures -->"
SAID = {"off": "off", "on": "on", "hold": "on, held in turns", "data": "on, data placed", "both": "on, held, data placed", "plain": "on, gathers=false",
        "fixed": "off, nobody reroutes", "forwarding": "off, os-ken reroutes", "hinted": "on, os-ken reroutes", "routes": "off, hintd reroutes",
        "killed": "off, hintd's routes, hintd killed", "reduces": "on, reduces", "maps": "on, maps as well"}
COLORS = {"off": "#777777", "on": "#1f6fb4", "hold": "#c2571a", "data": "#2e7d4f", "both": "#7a3fa0", "plain": "#b03a5b",
          "fixed": "#777777", "forwarding": "#c2571a", "hinted": "#7a3fa0", "routes": "#1f6fb4", "killed": "#2e7d4f", "reduces": "#1f6fb4", "maps": "#2e7d4f"}
BASES = ("off", "fixed")  # by whose seconds the other arms' are divided


def by_rack(job: dict, racks: dict[str, str]) -> str:
    """How many reduces (or, without any, maps) ran in each rack: `2/2/2`."""
    count = Counter(racks[node] for node in job["reduces_on"] or job["maps_on"])
    return "/".join(str(count[rack]) for rack in sorted(set(racks.values())))


def spread(values: list[float], digits: int = 0) -> str:
    """Median, and lowest to highest where there are several."""
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def seconds(row: dict) -> float:
    """Mean over the run's jobs, from submission to end."""
    return statistics.mean(job["seconds"] for job in row["jobs"])


def shuffle(row: dict) -> float:
    """Mean over jobs that have one; the history says 0 of those that only write."""
    return statistics.mean(job["shuffle_seconds"] for job in row["jobs"] if job["reduces_on"] and job["shuffle_seconds"] is not None)


def interval(ratios: list[float]) -> str:
    """Geometric mean and its 95 % interval by Student's t; nothing of fewer than three."""
    if len(ratios) < 3:
        return ""
    logs = [math.log(ratio) for ratio in ratios]
    mean, half = statistics.mean(logs), STUDENT[min(len(logs) - 3, len(STUDENT) - 1)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"; {math.exp(mean):.2f} ({math.exp(mean - half):.2f}–{math.exp(mean + half):.2f})"


def of_jobs(row: dict, name: str) -> str:
    """A figure of each job; where they are many the mean by kind."""
    jobs = row["jobs"]
    if len(jobs) <= 3:
        return ", ".join(f"{job[name]:.0f}" for job in jobs)
    kinds: dict[str, list[float]] = {}
    for job in jobs:
        kinds.setdefault(job["kind"], []).append(job[name])
    return ", ".join(f"{len(values)} {kind} {statistics.mean(values):.0f}" for kind, values in kinds.items())


def places(row: dict, kind: str) -> str:
    """By rack, of each job that has any; where they are many, of all together."""
    jobs = [job for job in row["jobs"] if job[kind]]
    if len(row["jobs"]) > 3:
        jobs = [{kind: [node for job in jobs for node in job[kind]]}]
    return " ".join(by_rack({"reduces_on": [], "maps_on": job[kind]}, row["racks"]) for job in jobs) or "–"


def waited(rows: list[dict]) -> float:
    """Seconds that threads of jobs and cluster waited for a core, by the seconds that they ran."""
    return sum(row["cores"]["waited_seconds"] for row in rows) / sum(row["cores"]["ran_seconds"] for row in rows)


def reduces(row: dict) -> bool:
    """Whether any of its jobs has some that say how long their shuffle took: those of MapReduce do."""
    return any(job["reduces_on"] and job["shuffle_seconds"] is not None for job in row["jobs"])


def link_bytes(maps: list[int], reduces: tuple[int, ...], one: float) -> list[float]:
    """What a shuffle puts on each rack's uplink, out and in; `one`: what a map sends. Each reduce gets as much of each map."""
    share = [count / sum(reduces) for count in reduces]
    return [bytes_ for rack, sent in enumerate(maps) for bytes_ in (one * sent * (1 - share[rack]), one * share[rack] * (sum(maps) - sent))]


def splits(many: int, racks: int) -> list[tuple[int, ...]]:
    """All ways to put so many reduces in so many racks."""
    return [(many,)] if racks == 1 else [(here, *rest) for here in range(many + 1) for rest in splits(many - here, racks - 1)]


def best(row: dict, megabytes: int) -> float | None:
    """MB on the busiest uplink, one way, with the best of all placements of the reduces, of all jobs together, for maps where they
    ran. Shuffles alone: nothing of headers, heartbeats, or what is read and written."""
    racks = sorted(set(row["racks"].values()))
    if len(row["jobs"]) > 3 or not all(job["maps_on"] and job["reduces_on"] and job["shuffle_seconds"] is not None for job in row["jobs"]):
        return None
    seen = {tuple([0.0] * 2 * len(racks))}
    for job in row["jobs"]:
        maps = [sum(row["racks"][node] == rack for node in job["maps_on"]) for rack in racks]
        ways = [link_bytes(maps, reduces, megabytes / len(job["maps_on"])) for reduces in splits(len(job["reduces_on"]), len(racks))]
        seen = {tuple(round(had + more, 3) for had, more in zip(loads, way)) for loads in seen for way in ways}
    return min(map(max, seen))


def hinted(rows: list[dict]) -> str:
    count = Counter()
    for row in rows:
        count.update({key: row["counts"].get(key, 0) for key in ("on_hinted", "on_on_host", "on_in_rack", "homes_reduces", "homes_reduces_at_home")})
    home = f"; {count['homes_reduces_at_home']} of {count['homes_reduces']} at home" if count["homes_reduces"] else ""
    return (f"{count['on_hinted']}: {count['on_on_host']}, {count['on_in_rack']}" if count["on_hinted"] else "0") + home


def decided(row: dict) -> str:
    """What hintd decided for each job, with its own figures of the busiest link."""
    def of(one: dict) -> str:
        ours, default = (f"{value:.0f} s" if value is not None else "?" for value in one["worst_link_s"])
        return (f"none ({one['withheld']})" if one["withheld"] else f"{one['hinted']} hinted") + f", busiest link {ours}, YARN's own {default}"
    if len(row["decisions"]) > 3:
        return f"{len(row['decisions'])} asked for, {sum(not one['withheld'] for one in row['decisions'])} hinted"
    return "; ".join(of(one) for one in row["decisions"]) or ("not asked" if row["arm"] in HINTED else "–")


def groups(rows: list[dict], tests: dict[str, tuple[str, ...]]) -> dict[tuple[str, str], list[dict]]:
    return {(test, arm): found for test, arms in tests.items() for arm in arms
            if (found := [row for row in rows if (row["test"], row["arm"]) == (test, arm)])}


def ratios(rows: list[dict], test: str, arm: str, pair: int | None = None) -> list[float]:
    """Mean seconds a job by the ones of the same pair's run of the base arm on the same cluster; of one pair, or of all."""
    off = {(row["cluster"], row["pair"]): seconds(row) for row in rows if row["test"] == test and row["arm"] in BASES}
    found = [(row["cluster"], row["pair"], seconds(row)) for row in rows if (row["test"], row["arm"]) == (test, arm) and pair in (None, row["pair"])]
    return [took / off[cluster, number] for cluster, number, took in found if (cluster, number) in off]


def divisor(rows: list[dict]) -> str:
    """What the arm is called that others are divided by."""
    return SAID["off" if any(row["arm"] == "off" for row in rows) else "fixed"]


def table(rows: list[dict], tests: dict[str, tuple[str, ...]]) -> list[str]:
    lines = [f"| test | hints | runs | s a job | ÷ {divisor(rows)}, pair by pair, median; geometric mean, its 95 % interval | s until all ended | shuffle, s | MB over uplinks | MB over the busiest | "
             "hinted: on the host, in its rack; reduces to stay in home racks | waited for a core, of the time they ran |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    for (test, arm), found in groups(rows, tests).items():
        by_pair = [] if arm in BASES else ratios(rows, test, arm)
        ratio = spread(by_pair, 2) + interval(by_pair) if by_pair else ""
        shuffled = spread([shuffle(row) for row in found]) if reduces(found[0]) else "–"
        lines.append(f"| {test} | {SAID[arm]} | {len(found)} | {spread([seconds(row) for row in found])} | {ratio} | "
                     f"{spread([row['wall_seconds'] for row in found])} | {shuffled} | {spread([row['uplink_bytes'] / 1e6 for row in found])} | "
                     f"{spread([row['busiest_bytes'] / 1e6 for row in found])} | {hinted(found)} | {waited(found):.0%} |")
    return lines


def each(rows: list[dict], megabytes: int) -> list[str]:
    lines = [f"| test | pair | hints | s by job | ÷ {divisor(rows)} | shuffle, s by job | out of racks, MB | into racks, MB | busiest at best, MB | maps by rack | reduces by rack | hintd | "
             "waited for a core |", "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        least, ratio = best(row, megabytes), ratios(rows, row["test"], row["arm"], row["pair"])
        lines.append(
            "| " + " | ".join([
                row["test"], str(row["pair"] + 1), SAID[row["arm"]], of_jobs(row, "seconds"),
                f"{ratio[0]:.2f}" if ratio and row["arm"] not in BASES else "",
                of_jobs(row, "shuffle_seconds") if reduces(row) else "–",
                " ".join(f"{link['out'] / 1e6:.0f}" for link in row["uplinks"].values()),
                " ".join(f"{link['in'] / 1e6:.0f}" for link in row["uplinks"].values()),
                f"{least:.0f}" if least is not None else "–", places(row, "maps_on"), places(row, "reduces_on"), decided(row), f"{waited([row]):.0%}"]) + " |")
    return lines


def panel(rows: list[dict], names: list[tuple[str, str]], value, title: str, top: int) -> list[str]:
    """One dot a run, a bar at the median."""
    most = max(value(row) for row in rows) * 1.1
    height, left, step = 150, 50, 70
    parts = [f'<text x="{left}" y="{top - 8}" font-size="12">{title}</text>']
    for mark in range(5):
        y = top + height - height * mark / 4
        parts.append(f'<line x1="{left}" y1="{y:.0f}" x2="{left + step * len(names)}" y2="{y:.0f}" stroke="#e3e3e3"/>'
                     f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{most * mark / 4:.0f}</text>')
    for place, (test, arm) in enumerate(names):
        values = [value(row) for row in rows if (row["test"], row["arm"]) == (test, arm)]
        x = left + step * place + step / 2
        y = top + height * (1 - statistics.median(values) / most)
        parts.append(f'<line x1="{x - 18:.0f}" y1="{y:.1f}" x2="{x + 18:.0f}" y2="{y:.1f}" stroke="{COLORS[arm]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x + 9 * (number - (len(values) - 1) / 2):.1f}" cy="{top + height * (1 - one / most):.1f}" r="3.5" '
                  f'fill="{COLORS[arm]}" fill-opacity="0.7"/>' for number, one in enumerate(values)]
        parts.append(f'<text x="{x:.0f}" y="{top + height + 14}" text-anchor="middle">{test}</text>'
                     f'<text x="{x:.0f}" y="{top + height + 27}" text-anchor="middle" fill="{COLORS[arm]}">{SAID[arm].replace(", held in turns", ", held")}</text>')
    return parts


def plot(rows: list[dict], tests: dict[str, tuple[str, ...]]) -> str:
    names = list(groups(rows, tests))
    of_kinds = [(lambda row, kind=kind: kinds.seconds(row, kind), f"seconds a {kind} job, from submission to end") for kind in dict(kinds.SUBMITTED)]
    mean = [(seconds, "seconds a job, from submission to end")]
    panels = [*(of_kinds if {row["test"] for row in rows} == {"kinds"} else mean), (lambda row: row["busiest_bytes"] / 1e6, "MB over the busiest uplink, one way")]
    parts = [line for number, (value, title) in enumerate(panels) for line in panel(rows, names, value, title, 30 + 215 * number)]
    width = max(70 * len(names) + 70, 330)
    height = 215 * len(panels) + 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="10">\n'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def figures(rows: list[dict], settings: dict, tests: dict[str, tuple[str, ...]], plot_file: str, runs_file: str) -> str:
    loads = [value for row in rows for value in row["load"]]
    clusters = len({row["cluster"] for row in rows})
    starved = waited(rows) > STARVED
    big = kinds.machines.said(settings["big_nodes"]) if settings.get("big_nodes") else ""
    both = ", half of it on each of two links" if settings.get("switches") == "ovs" else ""
    return "\n".join([
        FIRST, "", f"{settings['racks']} racks of {settings['nodes_per_rack']} nodes, {settings['node_rate']} a node, {settings['uplink_rate']} a rack's "
        f"uplink{both}, each way{big}; Hadoop {settings['version']}; {settings['mb']} MB a job, {settings['reduces']} reduces, `wait-ms={settings['wait_ms']}`, policy `{settings.get('policy', 'container')}`. "
        + (f"TCP {', '.join(sorted({row['tcp'] for row in rows}))}. " if all("tcp" in row for row in rows) else "") + f"{len(rows)} run{'s' * (len(rows) > 1)} on {clusters} cluster{'s' * (clusters > 1)}; the machine's load was "
        f"{min(loads):.0f} to {max(loads):.0f}; idle, the uplinks carried {max(row['idle_bytes_per_s'] for row in rows) / 1e3:.1f} KB a second. "
        "Median, lowest–highest.", *([
            "", f"**The machine was busy**: threads of cluster and jobs waited {waited(rows):.0%} of the time they ran for a core. Seconds are those of "
            "the machine as well as of the network; bytes and places do not depend on it.",
        ] * starved), "", *table(rows, tests), *kinds.table(rows, SAID, spread), *cuts(rows), "", f"![seconds and bytes]({plot_file})", "", "Each run (racks in their order; "
        f"[all figures]({runs_file})):", "", *each(rows, settings["mb"]), "", LAST])


def cuts(rows: list[dict]) -> list[str]:
    """What cut links did, where any was cut."""
    cut = [row for row in rows if row.get("cut")]
    if not cut:
        return []
    lines = ["", "Each cut, seconds (a pair: of nodes with bytes over the link in the second before; it stands still until bytes come another way, or the link is back):", "",
             "| pair | arm | link | pairs with routes of hintd's | pairs by the link | stood still, median | at most | sent nothing more | longest silence in the 5 s before | "
             "from the cut to the mending, no byte from rack to rack | out of and into the link's rack | samples apart, at most |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in cut:
        found = row["cut"]
        still, usual = found["still_seconds"], found["usual_seconds"]
        lines.append("| " + " | ".join([
            str(row["pair"] + 1), SAID[row["arm"]], found["link"].replace("up", "rack").replace("-", " to spine"), str(found["routes"]), str(len(found["pairs"])),
            f"{statistics.median(still):.2f}" if still else "–", f"{max(still):.2f}" if still else "–", str(found["over"]),
            f"{max(usual):.2f}" if usual else "–", f"{found['longest_all']:.2f}", f"{found['longest_rack']:.2f}", f"{found['longest_sample']:.2f}"]) + " |")
    return lines


HEAD = """# What hints are worth on a real network

Stock MapReduce on [a small real cluster](yarn.md#on-a-network-with-limits) whose links are the kernel's own, hints off and on in turns.

"""


def write(page: Path, rows: list[dict], settings: dict, tests: dict[str, tuple[str, ...]]) -> None:
    """The page's part between its marks, the runs and the plot beside it."""
    folder = page.parent / "worth"
    folder.mkdir(parents=True, exist_ok=True)
    name = page.stem.removeprefix("worth-")
    (folder / f"{name}.json").write_text(json.dumps({"settings": settings, "runs": rows}, indent=None, separators=(",", ":")) + "\n")
    (folder / f"{name}.svg").write_text(plot(rows, tests))
    text = page.read_text() if page.exists() else f"{HEAD}{FIRST}\n{LAST}\n"
    before, _, rest = text.partition(FIRST)
    after = rest.partition(LAST)[2]
    page.write_text(before + figures(rows, settings, tests, f"worth/{name}.svg", f"worth/{name}.json") + after)
