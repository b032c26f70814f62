"""Page and bounds of tests/hadoop/simulated."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from worth_jobs import SMALL_MB
from worth_page import SAID, spread

SEVERAL = "on ÷ off, several jobs at once"
FIRST, LAST = "<!-- figures: written by tests/hadoop/simulated -->", "<!-- end of figures -->"
WRITERS = ("small", "load")
# What the page promises of runs on which nothing was calibrated: medians of recorded ÷ simulated within so much of 1, and
# ratios on ÷ off, one job at a time, within so much of those measured, in the median.
SECONDS_WITHIN, BYTES_WITHIN, RATIO_WITHIN = 0.15, 0.10, 0.10


def calibrates(file: str, row: dict) -> bool:
    """The first pair of each test of the first series; the other pairs, other rates, the mix and the gathered job judge."""
    return file == "real" and row["pair"] == 0 and row["arm"] != "hold"


def sorting(one: dict) -> list[tuple[dict, dict]]:
    """Jobs with a shuffle, recorded and simulated."""
    return [(job, sim) for job, sim in zip(one["row"]["jobs"], one["sim"]["jobs"]) if job["kind"] not in WRITERS]


def ratios(found: list[dict], name: str) -> list[float]:
    return [job[name] / sim[name] for one in found for job, sim in sorting(one) if sim[name]]


def out_more(one: dict) -> float:
    """What left the racks and came into none, beside what does when nothing runs: TeraSort's client reads samples. By job that sorts all."""
    row = one["row"]
    idle = row["idle_bytes_per_s"] * row["wall_seconds"]
    return (sum(link["out"] - link["in"] for link in row["uplinks"].values()) - idle) / max(1, sum(job["kind"] not in WRITERS for job, _ in sorting(one)))


def sampled(found: list[dict]) -> float:
    """Bytes that the client of one job reads."""
    return statistics.median(out_more(one) for one in found if calibrates(one["file"], one["row"]))


def files(found: list[dict]) -> float:
    """Bytes of job files, heartbeats and history that come into racks for a job: all that did where no byte of a shuffle crossed racks."""
    rows = [one["row"] for one in found if calibrates(one["file"], one["row"])]
    rows = [row for row in rows if len({row["racks"][node] for job in row["jobs"] for node in (*job["maps_on"], *job["reduces_on"])}) == 1]
    return statistics.median(sum(link["in"] for link in row["uplinks"].values()) / len(row["jobs"]) for row in rows)


def carried(one: dict, way: str, more: tuple[float, float]) -> tuple[float, float]:
    """Bytes over all uplinks one way, recorded and simulated. `more`: what a job's client reads, and a job's files."""
    row, (client, filed) = one["row"], more
    recorded, sim = sum(link[way] for link in row["uplinks"].values()), sum(one["sim"][way])
    sim += filed * len(row["jobs"])
    if way == "out":
        sim += row["idle_bytes_per_s"] * row["wall_seconds"]
        sim += sum(min(client, SMALL_MB * 10**6) if job["kind"] == "medium" else client for job, _ in sorting(one))
    return recorded, sim


def carried_ratios(found: list[dict], way: str, more: tuple[float, float]) -> list[float]:
    """Of runs of which more than a few megabytes crossed racks."""
    both = [carried(one, way, more) for one in found]
    return [recorded / sim for recorded, sim in both if recorded > 10e6 and sim > 0]


def each_uplink(found: list[dict], more: tuple[float, float]) -> list[float]:
    """Into each rack, where more than job files came in."""
    return [link["in"] / (sim + more[1] * len(one["row"]["jobs"]) / one["settings"]["racks"]) for one in found for link, sim in zip(one["row"]["uplinks"].values(), one["sim"]["in"]) if sim > 5e6]


def outside(found: list[dict]) -> tuple[float, float]:
    """What a job carries over uplinks beside map input and shuffle: samples that its client reads, and files."""
    return sampled(found), files(found)


def mean_seconds(jobs: list[dict]) -> float:
    return statistics.mean(job["seconds"] for job in jobs)


def on_by_off(found: list[dict]) -> list[tuple[dict, float, float]]:
    """Runs with hints: mean seconds of jobs with a shuffle by the ones of the same pair without hints, measured and simulated."""
    rows = []
    for one in found:
        row = one["row"]
        off = [other for other in found if (other["file"], other["row"]["test"], other["row"]["pair"], other["row"]["arm"]) == (one["file"], row["test"], row["pair"], "off")]
        if row["arm"] == "off" or not off:
            continue
        means = [[mean_seconds([pair[side] for pair in sorting(run)]) for run in (one, off[0])] for side in (0, 1)]
        rows.append((one, means[0][0] / means[0][1], means[1][0] / means[1][1]))
    return rows


def writes(one: dict) -> bool:
    """Jobs that write replicas take part, which the simulator does not have."""
    return any(job["kind"] in WRITERS for job in one["row"]["jobs"])


def older(one: dict) -> bool:
    """Receivers of a held job were not yet placed as one when this run was recorded; they are in the simulator."""
    return one["file"] == "real" and one["row"]["arm"] == "hold"


def groups(found: list[dict]) -> dict[tuple[str, str, str], list[dict]]:
    named: dict[tuple[str, str, str], list[dict]] = {}
    for one in found:
        named.setdefault((one["file"], one["row"]["test"], one["row"]["arm"]), []).append(one)
    return named


def table(found: list[dict], more: tuple[float, float]) -> list[str]:
    columns: list[tuple[str, Callable[[list[dict]], list[float]]]] = [
        ("seconds by job", lambda runs: ratios(runs, "seconds")), ("maps' seconds", lambda runs: ratios(runs, "map_seconds")),
        ("shuffle's seconds", lambda runs: ratios(runs, "shuffle_seconds")), ("bytes into racks", lambda runs: carried_ratios(runs, "in", more)),
        ("bytes out of racks", lambda runs: carried_ratios(runs, "out", more)), ("into each rack", lambda runs: each_uplink(runs, more))]
    lines = ["| runs | " + " | ".join(name for name, _ in columns) + " |", "|---|" + "---|" * len(columns)]

    def add(name: str, runs: list[dict]) -> None:
        cells = [of(runs) for _, of in columns]
        lines.append(f"| {name} | " + " | ".join(spread(values, 2) if values else "–" for values in cells) + " |")

    judged = [one for one in found if judges(one)]
    add("**calibration**", [one for one in found if calibrates(one["file"], one["row"])])
    add("**judged**, without the mix", [one for one in judged if not writes(one)])
    for name in dict.fromkeys(one["file"] for one in judged):
        add(f"judged, {name}.json", [one for one in judged if one["file"] == name])
    for (_, test, arm), runs in groups(found).items():
        rate = runs[0]["settings"]["uplink_rate"]
        add(f"{test}, {rate}, {SAID[arm]}{' (older hintd)' if older(runs[0]) else ''}", runs)
    return lines


def ratio_table(found: list[dict]) -> list[str]:
    lines = ["| test | uplinks | pair | hints | measured ÷ off | simulated ÷ off | measured ÷ simulated | reduces by rack, measured | simulated |", "|---|---|---|---|---|---|---|---|---|"]
    for one, measured, sim in on_by_off(found):
        row = one["row"]
        mark = " (calibration)" if calibrates(one["file"], row) else " (older hintd)" if older(one) else ""
        lines.append(f"| {row['test']} | {one['settings']['uplink_rate']} | {row['pair'] + 1} | {SAID[row['arm']]}{mark} | {measured:.2f} | {sim:.2f} | {measured / sim:.2f} | "
                     f"{places(one, 0)} | {places(one, 1)} |")
    return lines


def places(one: dict, side: int) -> str:
    racks = sorted(set(one["row"]["racks"].values()))

    def of(pair: tuple[dict, dict]) -> list[int]:
        if side:
            return pair[1]["reduces"]
        return [sum(one["row"]["racks"][node] == rack for node in pair[0]["reduces_on"]) for rack in racks]

    return " ".join("/".join(map(str, of(pair))) for pair in sorting(one))


def each(found: list[dict]) -> list[str]:
    lines = ["| test | uplinks | pair | hints | s by job | simulated | shuffle, s by job | simulated | into racks, MB | simulated | out of racks, MB | simulated |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]

    def listed(values: list[float]) -> str:
        return ", ".join(f"{value:.0f}" for value in values)

    for one in found:
        row, pairs, links = one["row"], sorting(one), one["row"]["uplinks"].values()
        cells = [listed([pair[side][name] for pair in pairs]) for name in ("seconds", "shuffle_seconds") for side in (0, 1)]
        for way in ("in", "out"):
            cells += [listed([link[way] / 1e6 for link in links]), listed([value / 1e6 for value in one["sim"][way]])]
        lines.append(f"| {row['test']} | {one['settings']['uplink_rate']} | {row['pair'] + 1} | {SAID[row['arm']]} | " + " | ".join(cells) + " |")
    return lines


def judges(one: dict) -> bool:
    return not calibrates(one["file"], one["row"]) and not older(one)


def means(found: list[dict]) -> list[float]:
    """Of whole runs: their jobs' mean seconds."""
    return [mean_seconds([job for job, _ in sorting(one)]) / mean_seconds([sim for _, sim in sorting(one)]) for one in found]


def summary(found: list[dict], mixed: bool = False) -> dict[str, tuple[list[float], float]]:
    """What the page promises: values and how far their median may be from 1. `mixed`: of runs in which jobs write replicas."""
    more = outside(found)
    judged = [one for one in found if judges(one) and writes(one) == mixed]
    hinted = [one for one in on_by_off(found) if judges(one[0]) and writes(one[0]) == mixed]
    alone, several = ([measured / sim for one, measured, sim in hinted if (len(one["row"]["jobs"]) > 1) == many] for many in (False, True))
    return {"mean seconds of a run's jobs": (means(judged), SECONDS_WITHIN), "seconds by job": (ratios(judged, "seconds"), SECONDS_WITHIN),
            "shuffle's seconds by job": (ratios(judged, "shuffle_seconds"), SECONDS_WITHIN), "bytes into racks": (carried_ratios(judged, "in", more), BYTES_WITHIN),
            "bytes out of racks": (carried_ratios(judged, "out", more), BYTES_WITHIN), "on ÷ off, one job at a time": (alone, RATIO_WITHIN), SEVERAL: (several, RATIO_WITHIN)}


def promised(found: list[dict]) -> list[str]:
    lines = ["| judged: measured ÷ simulated | median (lowest–highest) | goal | within it |", "|---|---|---|---|"]
    for mixed in (False, True):
        for name, (values, within) in summary(found, mixed).items():
            if not values:
                continue
            inside = sum(abs(value - 1) <= within for value in values)
            lines.append(f"| {'the mix: ' * mixed}{name} | {spread(values, 2)} | ± {within:.0%} | {inside} of {len(values)} |")
    return lines


def check(found: list[dict]) -> int:
    """Exit code: whether each median is where the page says."""
    wrong = 0
    for name, (values, within) in summary(found).items():
        middle = statistics.median(values)
        # Several jobs at once gain more than is simulated, as the page says; what counts is that not more is simulated than they gain.
        holds = middle <= 1 + within if name == SEVERAL else abs(middle - 1) <= within
        wrong += not holds
        print(f"{'kept' if holds else 'BROKEN'}: {name}: measured / simulated is {middle:.3f} in the median of {len(values)}, "
              + (f"at most {1 + within:.2f} expected" if name == SEVERAL else f"within {within:.0%} of 1 expected"))
    return 1 if wrong else 0


def figures(found: list[dict]) -> list[str]:
    runs = sum(calibrates(one["file"], one["row"]) for one in found)
    return [FIRST, "", f"{len(found)} runs, {runs} of them for the calibration. The client of a job read {sampled(found) / 1e6:.0f} MB of samples over uplinks "
            f"(what left the racks and came into none), and {files(found) / 1e6:.1f} MB of job files and heartbeats came into racks (all that did where no byte of a shuffle crossed racks); medians of "
            "the calibration's runs, and added to what is simulated. Median, lowest–highest.", "", *promised(found), "",
            "## On ÷ off", "", *ratio_table(found), "", "## Measured ÷ simulated", "", *table(found, outside(found)), "", "## Each run", "",
            "Jobs with a shuffle; racks in their order.", "", *each(found), "", LAST]


def write(page: Path, found: list[dict]) -> None:
    """The page's part between its marks."""
    before, _, rest = page.read_text().partition(FIRST)
    page.write_text(before + "\n".join(figures(found)) + rest.partition(LAST)[2])
