package io.hintd.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Blocks of recurring data, a NameNode each; hintd is real. */
class PolicyTest extends OnHdfs {
  @BeforeEach
  void start(@TempDir java.nio.file.Path empty) throws Exception {
    start(empty, new Configuration());
  }

  @AfterEach
  void end() throws Exception {
    stop();
  }

  @Test
  void everyBlockOfRecurringDataHasAReplicaAtHomeAndTwoRacks() throws Exception {
    String home = runReader();
    on();
    for (int replication = 1; replication <= 4; replication++) {
      for (int file = 0; file < 4; file++) {
        nodes.beat();
        String written = "/_temporary/1/_temporary/attempt_1_0001_m_00000" + file + "_0/part-m-0000" + file;
        List<Set<String>> racks = write(IN + replication + written, replication);
        assertEquals(3, racks.size());
        for (Set<String> of : racks) {
          assertTrue(of.contains(home), of + " without " + home);
          assertEquals(Math.min(replication, 2), Math.min(of.size(), 2), "HDFS's rule");
        }
      }
    }
    assertEquals(16, count("asked"), () -> "once a file: " + said());
    assertEquals(32, count("remembered"));
    assertEquals(48, count("placed"), this::said);
    assertEquals(16L, counters.getReasons().get("homes"));
    assertEquals(0, count("fell_back") + count("errors") + count("late"));
    write("/nobody/reads/it", 3);
    assertEquals(1L, counters.getReasons().get("no_plan"));
    assertEquals(3L, counters.getLeftAlone().get("no_home"), "one answer for three blocks");
  }

  @Test
  void byClassesOfMachinesOneReplicaIsOnScaleUpMachinesAndTwoInARackOfOthers() throws Exception {
    nodes.close();
    hintd.kill();
    hintd.configure("on", "scale_up_out");
    hintd.start();
    nodes = hintd.nodes(client, 6, 2);
    on();
    List<DatanodeDescriptor> all = new ArrayList<>(blocks().getDatanodeManager().getDatanodes());
    List<DatanodeDescriptor> writers = new ArrayList<>(all);
    writers.add(null); // outside of the cluster
    for (DatanodeDescriptor writer : writers) {
      for (int replication = 2; replication <= 3; replication++) {
        String path = "/nobody/knows/who/reads/" + writers.indexOf(writer) + "/" + replication;
        List<String> racks = new ArrayList<>();
        for (DatanodeStorageInfo target : choose(path, replication, writer)) {
          racks.add(target.getDatanodeDescriptor().getNetworkLocation());
        }
        assertEquals(replication, racks.size());
        String up = "/rack0";
        assertEquals(1, Collections.frequency(racks, up), () -> racks + " for " + writer);
        racks.remove(up);
        assertEquals(1, new java.util.HashSet<>(racks).size(), () -> racks + " for " + writer);
      }
    }
    assertEquals(2L * writers.size(), counters.getReasons().get("classes"), this::said);
    assertEquals(2L * writers.size(), count("placed"), this::said);
    assertEquals(0, count("fell_back") + count("errors") + count("late"), this::said);
  }

  @Test
  void onlyNewBlocksAskAndNeverUnderTheLockOfTheNameNode() throws Exception {
    runReader();
    on();
    nodes.beat();
    write(IN + "1/x", 2);
    long asked = count("asked");
    fs.setReplication(new Path(IN + "1/x"), (short) 3);
    await(() -> replicas(IN + "1/x", 3));
    assertEquals(asked, count("asked"), "replication");
    assertEquals(3, count("new_blocks"));
    cluster.getNamesystem().writeLock();
    try {
      assertEquals(2, choose(IN + "1/y", 2).length);
    } finally {
      cluster.getNamesystem().writeUnlock();
    }
    cluster.getNamesystem().readLock();
    try {
      assertEquals(2, choose(IN + "1/y", 2).length);
    } finally {
      cluster.getNamesystem().readUnlock();
    }
    assertEquals(2L, counters.getLeftAlone().get("lock_held"));
    assertEquals(asked, count("asked"));
    nodes.beat();
    assertEquals(2, choose(IN + "1/y", 2).length);
    assertEquals(asked + 1, count("asked"), "without the lock it is asked");
  }

  @Test
  void itIsSwitchedByItsFileAndInShadowNothingMoves() throws Exception {
    runReader();
    write(IN + "1/off", 3);
    assertEquals(0, count("new_blocks"), "off: nothing is even counted");
    use("mode=shadow", "timeout-ms=1000");
    for (int file = 0; file < 4; file++) {
      nodes.beat();
      write(IN + "1/shadow-" + file, 1);
    }
    assertEquals(12, count("shadow_at_home") + count("shadow_elsewhere"), this::said);
    assertEquals(0, count("placed"));
    use("mode=on", "waiting=0");
    write(IN + "1/busy", 3);
    assertEquals(3L, counters.getLeftAlone().get("busy"), "as many may wait as it says");
    use("mode=on", "paths=/else");
    write(IN + "1/path", 3);
    assertEquals(3L, counters.getLeftAlone().get("path"));
    assertEquals(4, count("asked"), "in shadow");
  }

  @Test
  void aDaemonThatHangsOrIsGoneLeavesAllToHdfs() throws Exception {
    runReader();
    use("mode=on", "deadline-ms=100", "timeout-ms=10", "breaker-failures=2", "breaker-open-ms=3600000");
    hintd.hang(true);
    try {
      // The first block finds no answer in time, and the third file nobody who asks.
      for (int file = 0; file < 3; file++) {
        for (Set<String> racks : write(IN + "1/hang-" + file, 3)) {
          assertEquals(2, racks.size(), "HDFS's rule");
        }
        long failed = file + 1;
        await(() -> count("failed") >= Math.min(failed, 2));
      }
    } finally {
      hintd.hang(false);
    }
    assertTrue(counters.isBreakerOpen());
    assertEquals(2, count("asked"));
    assertEquals(3L, counters.getLeftAlone().get("breaker_open"));
    assertEquals(0, count("placed") + count("errors"));
    assertTrue(counters.getWaitMicros()[0] > 0);
    hintd.kill();
    use("mode=on", "address=127.0.0.1:1", "deadline-ms=100");
    for (Set<String> racks : write(IN + "1/gone", 3)) {
      assertEquals(2, racks.size());
    }
  }

  @Test
  void aHomeWithoutRoomIsLeftToHdfs() throws Exception {
    String home = runReader();
    on();
    List<DatanodeDescriptor> all =
        blocks().getDatanodeManager().getDatanodeListForReport(
            org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType.LIVE);
    nodes.beat();
    Set<org.apache.hadoop.net.Node> excluded = new java.util.HashSet<>();
    all.stream().filter(node -> node.getNetworkLocation().equals(home)).forEach(excluded::add);
    int before = excluded.size();
    DatanodeStorageInfo[] targets =
        policy.chooseTarget(
            IN + "1/full", 3, null, new ArrayList<>(), false, excluded, BLOCK, storagePolicy(),
            java.util.EnumSet.noneOf(AddBlockFlag.class));
    assertEquals(3, targets.length, "in the two racks that are left");
    assertEquals(2, before);
    assertTrue(count("home_full") >= 1);
    assertEquals(0, count("placed"));
  }
}
