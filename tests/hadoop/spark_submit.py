"""Command lines of stock Spark in cluster mode on the small cluster, with its own Hadoop client."""

from __future__ import annotations

from pathlib import Path

from small import jvm

EXECUTORS, TASKS = 4, 6
VERSION = "3.5.5"
# The least that Spark takes: an executor and its overhead are 512 MB, so a node has room for three.
MEMORY = ["--driver-memory", "480m", "--executor-memory", "480m", "--executor-cores", "1"]
DYNAMIC = ["spark.dynamicAllocation.enabled=true", "spark.dynamicAllocation.shuffleTracking.enabled=true",
           "spark.dynamicAllocation.initialExecutors=1", f"spark.dynamicAllocation.maxExecutors={EXECUTORS}"]


def command(folder: Path, jar: Path, main: str, *arguments: str, driver_host: str = "localhost", dynamic: bool = False) -> list[str]:
    """Of an application of ours, for `mini-hadoop hadoop`."""
    settings = [
        f"spark.yarn.jars=local:{folder}/*", "spark.yarn.populateHadoopClasspath=false",
        "spark.driver.memoryOverhead=32m", "spark.executor.memoryOverhead=32m",
        f"spark.driver.extraJavaOptions={jvm()}", f"spark.executor.extraJavaOptions={jvm()}",
        f"spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME={driver_host}", "spark.ui.enabled=false", "spark.eventLog.enabled=false",
        *(DYNAMIC if dynamic else [f"spark.executor.instances={EXECUTORS}"]),
    ]
    return ["--lib", str(folder), "--heap", "200", "org.apache.spark.deploy.SparkSubmit", "--master", "yarn", "--deploy-mode", "cluster",
            *MEMORY, *[word for setting in settings for word in ("--conf", setting)],
            "--class", f"io.hintd.test.{main}", str(jar), *arguments]
