"""Stock Flink's pieces, settings and command line in application mode on the small cluster, with its own Hadoop client."""

from __future__ import annotations

import shutil
from pathlib import Path

from small import BASE, collect, jvm

VERSION = "1.20.1"
TASK_MANAGERS = 4
OPENS = " ".join(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in (
    "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect", "java.text", "java.time", "java.util.concurrent",
    "java.util.concurrent.atomic", "java.util.concurrent.locks"))
SETTINGS = {
    "jobmanager.memory.process.size": "512m",
    "jobmanager.memory.off-heap.size": "64m",
    "jobmanager.memory.jvm-metaspace.size": "128m",
    "jobmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.process.size": "768m",
    "taskmanager.memory.framework.heap.size": "96m",
    "taskmanager.memory.jvm-metaspace.size": "128m",
    "taskmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.network.min": "48m",
    "taskmanager.memory.network.max": "48m",
    "taskmanager.memory.managed.size": "96m",
    "taskmanager.numberOfTaskSlots": "1",
    # So much input is otherwise for one TaskManager.
    "execution.batch.adaptive.auto-parallelism.enabled": "false",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    "restart-strategy.fixed-delay.delay": "1 s",
}


def settings(folder: Path) -> dict[str, str]:
    """Flink's folders, as its scripts name them."""
    conf = BASE / "flink-conf"
    conf.mkdir(exist_ok=True)
    rows = {**SETTINGS, "yarn.flink-dist-jar": next(folder.glob("flink-yarn-*.jar")), "env.java.opts.all": f"'{jvm()} {OPENS}'"}
    (conf / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in rows.items()))
    return {"FLINK_CONF_DIR": str(conf), "FLINK_LIB_DIR": str(folder), "FLINK_PLUGINS_DIR": str(conf), "FLINK_OPT_DIR": str(conf)}


def pieces(version: str = VERSION) -> tuple[Path, Path]:
    """Flink's jars in a folder, from Maven Central, and the jar of our application."""
    folder, jar = collect("flink", f"-Dflink.version={version}")
    for link in list(folder.iterdir()):  # it ships what lies there, and does not follow links
        target = link.resolve()
        link.unlink()
        shutil.copy(target, link)
    (folder / "mini-hadoop.jar").unlink()  # the cluster's, which is on its class path
    return folder, jar


def command(folder: Path, jar: Path, inputs: list[str], output: str) -> list[str]:
    """Of a word count, for `mini-hadoop hadoop`."""
    return ["--lib", f"{folder}:{BASE}/lib", "--heap", "160", "org.apache.flink.client.cli.CliFrontend", "run-application",
            "-t", "yarn-application", "-Dyarn.application.name=word count of flink", "-c", "io.hintd.test.WordCount", str(jar),
            ",".join(f"hdfs://master:8020{path}" for path in inputs), f"hdfs://master:8020{output}", str(TASK_MANAGERS)]
