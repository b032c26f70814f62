package io.hintd.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.Attempt;
import io.hintd.client.Group;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.TestDaemon;
import io.hintd.v1.ReplicasRequest;
import io.hintd.v1.ReplicasResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockManager;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Blocks of a NameNode with six DataNodes in three racks; hintd is real. */
class PolicyTest {
  private static final int BLOCK = 4_096;
  private static final String IN = "/data/in";

  @TempDir java.nio.file.Path folder;
  private TestDaemon hintd;
  private HintdClient client;
  private TestDaemon.Nodes nodes;
  private MiniDFSCluster cluster;
  private DistributedFileSystem fs;
  private HintdBlockPlacementPolicy policy;
  private Counters counters;

  @BeforeEach
  void start() throws Exception {
    hintd = new TestDaemon("on").start();
    client = HintdClient.to(hintd.address());
    nodes = hintd.nodes(client, 6);
    Configuration conf = new Configuration();
    conf.set("dfs.block.replicator.classname", HintdBlockPlacementPolicy.class.getName());
    conf.set(HintdBlockPlacementPolicy.FILE, folder.resolve("settings").toString());
    conf.setInt("dfs.blocksize", BLOCK);
    conf.setInt("dfs.bytes-per-checksum", 512);
    conf.setInt("dfs.namenode.fs-limits.min-block-size", 512);
    conf.setInt("dfs.namenode.redundancy.interval.seconds", 1);
    conf.setBoolean("dfs.namenode.redundancy.considerLoad", false);
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, folder.resolve("dfs").toString());
    settings("mode=off");
    String[] racks = {"/rack0", "/rack0", "/rack1", "/rack1", "/rack2", "/rack2"};
    cluster = new MiniDFSCluster.Builder(conf).numDataNodes(racks.length).racks(racks).build();
    cluster.waitActive();
    fs = cluster.getFileSystem();
    policy = (HintdBlockPlacementPolicy) blocks().getBlockPlacementPolicy();
    counters = policy.counters();
    await(() -> count("reloads") == 1);
  }

  @AfterEach
  void stop() throws Exception {
    if (cluster != null) {
      policy.stop();
      cluster.shutdown();
    }
    if (hintd != null) {
      nodes.close();
      client.close();
      hintd.close();
    }
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

  /** A recurring job reads all of {@link #IN}1 to 4 once, and says so; returns its home. */
  private String runReader() throws Exception {
    nodes.beat();
    HintRequest request = new HintRequest(new Attempt("application_1700000000000_0001", 1)).recurringJobKey("sort");
    List<String> paths = new ArrayList<>();
    for (int in = 1; in <= 4; in++) {
      paths.add(IN + in);
    }
    request.group(new Group("map", 4, 1_024, 1).role("map").priority(20).inputPaths(paths));
    request.group(new Group("reduce", 4, 1_024, 1).role("reduce").priority(10)).edge("map", "reduce", 10L << 30);
    TestDaemon.run(client, request, "map", "reduce");
    String[] home = {""};
    await(
        () -> {
          ReplicasRequest asked = ReplicasRequest.newBuilder().setPath(IN + "1").build();
          ReplicasResponse found = client.replicas(asked, Duration.ofSeconds(20)).join();
          home[0] = found.getRacksCount() == 1 ? found.getRacks(0).getRack() : "";
          return found.getReason().equals("homes");
        });
    return home[0];
  }

  private void on() throws Exception {
    // Nobody's machine is as slow as this one while it tests.
    use("mode=on", "timeout-ms=1000");
  }

  private void use(String... lines) throws Exception {
    long before = count("reloads");
    settings(lines);
    await(() -> count("reloads") > before && policy.isConnected());
  }

  private void settings(String... lines) throws IOException {
    List<String> all = new ArrayList<>(Collections.singletonList("address=" + hintd.address()));
    // Of two lines with one key the last counts.
    all.addAll(Arrays.asList(lines));
    java.nio.file.Path file = folder.resolve("settings.new");
    Files.write(file, String.join("\n", all).getBytes(StandardCharsets.UTF_8));
    Files.move(file, folder.resolve("settings"), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
  }

  /** Three blocks; returns the racks of each. */
  private List<Set<String>> write(String path, int replication) throws Exception {
    try (OutputStream out = fs.create(new Path(path), true, 512, (short) replication, BLOCK)) {
      out.write(new byte[2 * BLOCK + 1]);
    }
    // A file is closed once one replica of each block is reported; the others may be a moment later.
    await(() -> replicas(path, replication));
    List<Set<String>> racks = new ArrayList<>();
    for (BlockLocation block : locations(path)) {
      Set<String> of = new TreeSet<>();
      for (String name : block.getTopologyPaths()) {
        of.add(name.substring(0, name.lastIndexOf('/')));
      }
      racks.add(of);
    }
    return racks;
  }

  private BlockLocation[] locations(String path) throws IOException {
    FileStatus file = fs.getFileStatus(new Path(path));
    return fs.getFileBlockLocations(file, 0, file.getLen());
  }

  private boolean replicas(String path, int count) {
    try {
      for (BlockLocation block : locations(path)) {
        if (block.getHosts().length < count) {
          return false;
        }
      }
      return true;
    } catch (IOException wrong) {
      throw new java.io.UncheckedIOException(wrong);
    }
  }

  /** As addBlock does, from outside of the cluster. */
  private DatanodeStorageInfo[] choose(String path, int replication) {
    return choose(path, replication, null);
  }

  /** As addBlock does; who writes may be a DataNode. */
  private DatanodeStorageInfo[] choose(String path, int replication, DatanodeDescriptor writer) {
    return policy.chooseTarget(
        path, replication, writer, new ArrayList<>(), false, null, BLOCK, storagePolicy(),
        java.util.EnumSet.noneOf(AddBlockFlag.class));
  }

  private org.apache.hadoop.hdfs.protocol.BlockStoragePolicy storagePolicy() {
    return blocks().getStoragePolicy("HOT");
  }

  private BlockManager blocks() {
    return cluster.getNamesystem().getBlockManager();
  }

  private String said() {
    return counters.getCounts() + " " + counters.getLeftAlone() + " " + counters.getReasons();
  }

  private long count(String name) {
    return counters.getCounts().get(name);
  }

  private static void await(BooleanSupplier done) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!done.getAsBoolean()) {
      assertTrue(System.nanoTime() < end, "it does not come to that");
      TimeUnit.MILLISECONDS.sleep(20);
    }
  }
}
