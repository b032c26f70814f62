"""The jobs of tests/hadoop/worth: stock MapReduce, Spark and Flink, by the command lines that a user would type."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import kinds

EXAMPLES = "org.apache.hadoop.examples."
DATA = "/data"
MAPS = REDUCES = 6
ROW = 100  # bytes of a row of TeraGen's
INPUTS = 3
SMALL_MB = 8  # of an input of the mix's medium jobs
SAMPLES = 20_000_000  # of each map of the CPU-bound job: some ten seconds of a core

# What is run with hints off; on; on with receivers held in turns; on with data placed as well; on with both. Of `gathered`: off; on with `gathers=false`; and on.
# Of `kinds`: off; stock jobs hinted as by default, so only their reduces; and their maps too.
TESTS = {"terasort": ("off", "on"), "three": ("off", "on", "hold"), "new": ("off", "on"), "teragen": ("off", "on"),
         "twelve": ("off", "on"), "cpu": ("off", "on"), "spark": ("off", "on"), "flink": ("off", "on"), "mix": ("off", "on", "hold", "both"),
         "data": ("off", "on", "data"), "gathered": ("off", "plain", "on"), "background": ("off", "on"), "half-uplink": ("off", "on"), "slow-node": ("off", "on"),
         "cut": ("fixed", "forwarding", "hinted", "routes", "killed"), "kinds": kinds.ARMS}
# Of those of `cut` (cut.py) only one is hinted.
HINTED = ("on", "hold", "data", "both", "plain", "hinted", "reduces", "maps")
# Whose run, not counted, goes before a test of recurring jobs.
FIRST = {"terasort": "terasort", "three": "terasort", "twelve": "twelve", "cpu": "cpu", "spark": "spark", "flink": "flink", "mix": "mix", "data": "data", "gathered": "gathered",
         "background": "terasort", "half-uplink": "terasort", "slow-node": "terasort", "cut": "terasort", "kinds": "kinds"}

# Whose history is their own, not MapReduce's.
FRAMEWORKS = ("spark", "flink")

# Twenty jobs as the sample of FB-2009 has them (of its first 600 jobs 83 % are small and have no shuffle, 1 % load more, 10 % have
# shuffles below 2 GB, 5 % above), the larger ones twice as often, so that they meet.
MIX = ["small"] * 14 + ["load"] + ["medium"] * 3 + ["large"] * 2
MIX_GAP = 8.0  # seconds between two submissions, in the mean
MIX_SEED = 2009
# Who reads what was written for it: hints and homes of blocks are of a path and its readers.
PLACED = ("data", "both")
# TeraSort's own scheduler names one replica of each block only.
ALL_REPLICAS = "-Dmapreduce.terasort.use.terascheduler=false"


@dataclass(frozen=True)
class Job:
    """One submission. TeraSort and TeraGen name themselves, so that a user of its own is what makes a recurring job another one."""

    kind: str
    words: list[str]
    output: str
    after: float = 0.0  # seconds from the run's beginning on
    user: str = "root"
    environment: dict[str, str] = field(default_factory=dict)


def teragen(megabytes: int, maps: int, output: str, *settings: str) -> list[str]:
    return [f"{EXAMPLES}terasort.TeraGen", f"-Dmapreduce.job.maps={maps}", "-Ddfs.blocksize=128m", *settings,
            str(megabytes * 10**6 // ROW), output]


def terasort(reduces: int, source: str, output: str, *settings: str) -> list[str]:
    return [f"{EXAMPLES}terasort.TeraSort", f"-Dmapreduce.job.reduces={reduces}", *settings, "-Dmapreduce.job.reduce.slowstart.completedmaps=1.0", source, output]


def mix(megabytes: int, folder: str) -> list[Job]:
    """The same twenty in the same order at the same times in every run. `folder`: of what they read."""
    drawn, after, jobs, seen = random.Random(MIX_SEED), 0.0, [], {}
    for number, kind in enumerate(drawn.sample(MIX, len(MIX))):
        output, turn = f"/out{number + 1}", seen.setdefault(kind, 0) % INPUTS + 1
        seen[kind] += 1
        words = {"small": lambda: teragen(1, 1, output), "load": lambda: teragen(2 * SMALL_MB, 2, output),
                 "medium": lambda: sort("small", turn, output, folder), "large": lambda: sort("large", turn, output, folder)}[kind]()
        jobs.append(Job(kind, words, output, after, kind))
        after += drawn.expovariate(1 / MIX_GAP)
    return jobs


def sort(kind: str, turn: int, output: str, folder: str = "") -> list[str]:
    """A TeraSort of an input of one kind, that names all replicas of its blocks."""
    reduces, source = {"small": (2, "small"), "large": (REDUCES, "in")}[kind]
    return terasort(reduces, f"{folder}/{source}{turn}", output, ALL_REPLICAS)


def two_kinds() -> list[Job]:
    """Small and large jobs of machines of two kinds, the same in every run."""
    found, seen = [], {}
    for number, (kind, after) in enumerate(kinds.SUBMITTED, 1):
        turn = seen.setdefault(kind, 0) % INPUTS + 1
        seen[kind] += 1
        output = f"/out{number}"
        found.append(Job(kind, sort(kind, turn, output), output, after, f"{kind}-kind"))
    return found


def jobs(test: str, arm: str, pair: int, megabytes: int, of: Callable[..., tuple[list[str], dict[str, str]]]) -> list[Job]:
    """Those of one run of a test. The inputs of single jobs are used in turns. `of`: command and environment of another
    framework's job, by its name, inputs and output."""
    if test == "mix":
        return mix(megabytes, DATA if written(test, arm) else "")
    if test == "kinds":
        return two_kinds()
    numbers = range(1, INPUTS + 1) if test == "three" else [pair % INPUTS + 1]
    found = []
    for number in numbers:
        source, output = f"/in{number}", f"/out{number}"
        if test in FRAMEWORKS:
            words, environment = of(test, ["/left", "/right"], output)
            found.append(Job(test, words, output, environment=environment))
            continue
        words = {
            "teragen": lambda: [f"{EXAMPLES}terasort.TeraGen", f"-Dmapreduce.job.maps={MAPS}", str(megabytes * 10**6 // ROW), output],
            "cpu": lambda: [f"{EXAMPLES}QuasiMonteCarlo", str(MAPS), str(SAMPLES)],
            "twelve": lambda: terasort(2 * REDUCES, source, output),
            "data": lambda: terasort(REDUCES, DATA, output, ALL_REPLICAS),
            "gathered": lambda: terasort(REDUCES, source, output, ALL_REPLICAS),
        }.get(test, lambda: terasort(REDUCES, source, output))()
        users = {"new": f"new-{'abcdefghijklmnopqrstuvwxyz'[pair % 26]}-{arm}", "twelve": "twelve"}
        found.append(Job(test, words, output, user=users.get(test, Job.user)))
    return found


def written(test: str, arm: str) -> list[tuple[str, str, int]]:
    """What a run reads that is written anew before it: folders, which input each is, how many such. The run that goes before a
    mix reads there too, so that hintd knows who reads these paths."""
    if test == "data":
        return [(DATA, "large", 0)]
    return [(f"{DATA}/in", "large", INPUTS), (f"{DATA}/small", "small", INPUTS)] if test == "mix" and arm in ("both", "first") else []


def inputs(test: str) -> set[str]:
    """Which inputs a test reads that are there before."""
    return {"data": set(), "cpu": set(), "teragen": set(), "spark": {"text"}, "flink": {"text"}, "mix": {"large", "small"}, "kinds": {"large", "small"}}.get(test, {"large"})


def write_text(file: Path, megabytes: int, seed: int) -> None:
    """Lines of 100 bytes: a key that both sides have once, text that does not compress, and a word that a thousand lines share."""
    drawn = random.Random(seed)
    with open(file, "w") as text:
        for number in range(megabytes * 10**6 // 100):
            noise = base64.b64encode(drawn.randbytes(60)).decode()
            text.write(f"{number * 7919 % 10**8:08} {noise} {number % 1000:09}\n")
