"""What the configuration has beside with two NameNodes and two ResourceManagers (`--ha`)."""

from __future__ import annotations

from pathlib import Path


def name_node_pair(node: str, base: Path, masters: dict[str, str]) -> dict[str, object]:
    """What hdfs-site.xml has beside with two NameNodes; the keys of a single one are not looked at then."""
    found: dict[str, object] = {
        "dfs.nameservices": "mini",
        "dfs.ha.namenodes.mini": "nn1,nn2",
        "dfs.namenode.shared.edits.dir": f"file://{base}/data/shared-edits",
        "dfs.client.failover.proxy.provider.mini":
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "dfs.ha.tail-edits.period": "1s",
        "dfs.permissions.enabled": "true",
        "dfs.namenode.fs-limits.min-block-size": 512,
    }
    for number, master in enumerate(masters, 1):
        found |= {f"dfs.namenode.rpc-address.mini.nn{number}": f"{master}:8020",
                  f"dfs.namenode.http-address.mini.nn{number}": f"{master}:9870"}
        if node == master:
            found["dfs.ha.namenode.id"] = f"nn{number}"
    return found


def resource_manager_pair(node: str, base: Path, masters: dict[str, str]) -> dict[str, object]:
    """What yarn-site.xml has beside with two ResourceManagers. No ZooKeeper: nobody fences, and `lead` is careful."""
    found: dict[str, object] = {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.resourcemanager.cluster-id": "mini",
        "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
        "yarn.resourcemanager.ha.automatic-failover.enabled": "false",
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class":
            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
        "yarn.resourcemanager.fs.state-store.uri": f"file://{base}/data/rm-state",
        # Left out, a NodeManager that finds none waits 30 s for the next try.
        "yarn.client.failover-sleep-base-ms": 500,
        "yarn.client.failover-sleep-max-ms": 2000,
    }
    for number, master in enumerate(masters, 1):
        found |= {f"yarn.resourcemanager.hostname.rm{number}": master,
                  f"yarn.resourcemanager.webapp.address.rm{number}": f"{master}:8088"}
        if node == master:
            found["yarn.resourcemanager.ha.id"] = f"rm{number}"
    return found
