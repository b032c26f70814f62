"""Command lines of stock Spark in cluster mode on the small cluster, with its own Hadoop client, and its history server."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from small import BASE, MINI, fetch, jvm, promise, until

EXECUTORS, TASKS = 4, 6
VERSION = "3.5.5"
# The least that Spark takes: an executor and its overhead are 512 MB, so a node has room for three.
MEMORY = ["--driver-memory", "480m", "--executor-memory", "480m", "--executor-cores", "1"]
EVENT_LOG = "hdfs://master:8020/spark-history"
HISTORY_PORT = 18080
DYNAMIC = ["spark.dynamicAllocation.enabled=true", "spark.dynamicAllocation.shuffleTracking.enabled=true",
           "spark.dynamicAllocation.initialExecutors=1", f"spark.dynamicAllocation.maxExecutors={EXECUTORS}"]


def command(folder: Path, jar: Path, main: str, *arguments: str, driver_host: str = "localhost", dynamic: bool = False,
            event_log: bool = False) -> list[str]:
    """Of an application of ours, for `mini-hadoop hadoop`."""
    settings = [
        f"spark.yarn.jars=local:{folder}/*", "spark.yarn.populateHadoopClasspath=false",
        "spark.driver.memoryOverhead=32m", "spark.executor.memoryOverhead=32m",
        f"spark.driver.extraJavaOptions={jvm()}", f"spark.executor.extraJavaOptions={jvm()}",
        f"spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME={driver_host}", "spark.ui.enabled=false",
        f"spark.eventLog.enabled={str(event_log).lower()}", f"spark.eventLog.dir={EVENT_LOG}",
        *(DYNAMIC if dynamic else [f"spark.executor.instances={EXECUTORS}"]),
    ]
    return ["--lib", str(folder), "--heap", "200", "org.apache.spark.deploy.SparkSubmit", "--master", "yarn", "--deploy-mode", "cluster",
            *MEMORY, *[word for setting in settings for word in ("--conf", setting)],
            "--class", f"io.hintd.test.{main}", str(jar), *arguments]


@contextlib.contextmanager
def history_server(folder: Path, address: str) -> Iterator[None]:
    """Spark's own, over `EVENT_LOG`, which has to be there. It sees what ended within seconds."""
    settings = BASE / "spark-history.conf"
    settings.write_text(f"spark.history.fs.logDirectory {EVENT_LOG}\nspark.history.fs.update.interval 2s\n"
                        f"spark.history.ui.port {HISTORY_PORT}\n")
    with open(BASE / "logs/spark-history.log", "w") as log:
        server = subprocess.Popen([str(MINI), "hadoop", "--lib", str(folder), "--heap", "200", "org.apache.spark.deploy.history.HistoryServer",
                                   "--properties-file", str(settings)], stdout=log, stderr=log)
        try:
            promise(until(lambda: listed(address) is not None, 60) is not None, "Spark's history server answers")
            yield
        finally:
            server.terminate()
            server.wait()


def listed(address: str) -> int | None:
    """How many ended applications it knows; None: it does not answer."""
    try:
        return len(fetch(f"{address}/api/v1/applications?status=completed"))
    except OSError:
        return None
