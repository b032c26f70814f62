"""A stock MapReduce job on the small cluster, and what became of it."""

from __future__ import annotations

import re
import subprocess
import time
from typing import NamedTuple

from small import BASE, HISTORY, JOB_SECONDS, MINI, counters, fetch, hadoop, promise, say

REDUCES = 6


class Attempt(NamedTuple):
    """A successful attempt of a task. Times are milliseconds since 1970; `shuffled` is 0 of a map."""

    node: str
    rack: str
    sent: int  # bytes that its task left for reduces
    started: int
    shuffled: int
    finished: int


def attempts(job: str, kind: str, at: str = HISTORY) -> list[Attempt]:
    """The successful attempt of each task of a kind (m, r)."""
    found = []
    for task in fetch(f"{at}/ws/v1/history/mapreduce/jobs/{job}/tasks?type={kind}")["tasks"].get("task", []):
        path = f"{at}/ws/v1/history/mapreduce/jobs/{job}/tasks/{task['id']}"
        counted = [row["value"] for group in fetch(f"{path}/counters")["jobTaskCounters"]["taskCounterGroup"]
                   for row in group["counter"] if row["name"] == "MAP_OUTPUT_MATERIALIZED_BYTES"]
        for attempt in fetch(f"{path}/attempts")["taskAttempts"]["taskAttempt"]:
            if attempt["state"] == "SUCCEEDED":
                found.append(Attempt(attempt["nodeHttpAddress"].split(":")[0], attempt["rack"], sum(counted), attempt["startTime"],
                                     attempt.get("shuffleFinishTime", 0), attempt["finishTime"]))
    return found


def job(name: str, output: str, during=None) -> dict:
    """A stock word count on real text; what became of it."""
    before, began = counters(), time.monotonic()
    arguments = ["org.apache.hadoop.examples.WordCount", f"-Dmapreduce.job.reduces={REDUCES}",
                 "-Dmapreduce.job.reduce.slowstart.completedmaps=1.0", "/in", output]
    if during is None:
        done = hadoop(*arguments)
        text, code = done.stderr + done.stdout, done.returncode
    else:
        with open(BASE / "job.log", "w+") as log:
            process = subprocess.Popen([str(MINI), "hadoop", *arguments], stdout=log, stderr=log)
            during(BASE / "job.log")
            try:
                code = process.wait(timeout=JOB_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                code = 124
        text = (BASE / "job.log").read_text()
    took = time.monotonic() - began
    # The processor hears of the last containers with the application's last heartbeat; counters settle with it.
    time.sleep(2)
    after = counters()
    delta = {key: after[key] - before.get(key, 0) for key in after if not re.search(r"_p\d+$", key)}
    found = re.search(r"job_\d+_\d+", text)
    result = {"ok": code == 0 and "completed successfully" in text, "seconds": took, "counts": delta,
              "id": found.group() if found else "", "text": text}
    if result["ok"]:
        for _ in range(30):  # the history server reads finished jobs now and then
            try:
                maps, reduces = attempts(result["id"], "m"), attempts(result["id"], "r")
                break
            except (OSError, KeyError, TypeError):
                time.sleep(1)
        else:
            maps, reduces = [], []
        pairs = [(m, r) for m in maps for r in reduces]
        sent = sum(m[2] for m, _ in pairs)
        detail = fetch(f"{HISTORY}/ws/v1/history/mapreduce/jobs/{result['id']}")["job"] if maps else {}
        result |= {
            "job_seconds": (detail.get("finishTime", 0) - detail.get("startTime", 0)) / 1e3,
            "data_local": int((re.search(r"Data-local map tasks=(\d+)", text) or [0, 0])[1]),
            "maps": len(maps), "reduces": len(reduces), "hosts": len({row[0] for row in reduces}),
            "map_hosts": " ".join(sorted(row[0] for row in maps)),
            "reduce_hosts": " ".join(sorted(row[0] for row in reduces)),
            "in_node": sum(m[0] == r[0] for m, r in pairs) / max(len(pairs), 1),
            "in_rack": sum(m[1] == r[1] for m, r in pairs) / max(len(pairs), 1),
            # Each reduce fetches an equal part of each map's output.
            "rack_bytes": sum(m[2] for m, r in pairs if m[1] != r[1]) / max(len(reduces), 1),
            "shuffle_bytes": sent / max(len(reduces), 1),
        }
    say(f"{name}: {'succeeded' if result['ok'] else 'FAILED'} in {took:.0f} s"
        + (f" ({result['job_seconds']:.0f} s of the job): maps data-local {result['data_local']} of {result['maps']}, "
           f"map-reduce pairs in one node {result['in_node']:.0%}, in one rack {result['in_rack']:.0%}, "
           f"reduces on {result['hosts']} nodes; {result['rack_bytes'] / 1e6:.2f} of {result['shuffle_bytes'] / 1e6:.2f} MB "
           f"of the shuffle between racks\n  maps on {result['map_hosts']}, reduces on {result['reduce_hosts']}" if result["ok"] else f"\n{text[-3000:]}"))
    promise(result["ok"], f"{name}: the job succeeds")
    return result
