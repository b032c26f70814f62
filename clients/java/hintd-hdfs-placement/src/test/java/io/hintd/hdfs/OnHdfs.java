package io.hintd.hdfs;

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

/** A NameNode with six DataNodes in three racks; hintd is real. */
abstract class OnHdfs {
  static final int BLOCK = 4_096;
  static final String IN = "/data/in";

  java.nio.file.Path folder;
  TestDaemon hintd;
  HintdClient client;
  TestDaemon.Nodes nodes;
  MiniDFSCluster cluster;
  DistributedFileSystem fs;
  HintdBlockPlacementPolicy policy;
  Counters counters;

  void start(java.nio.file.Path empty, Configuration conf) throws Exception {
    folder = empty;
    hintd = new TestDaemon("on").start();
    client = HintdClient.to(hintd.address());
    nodes = hintd.nodes(client, 6);
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

  void stop() throws Exception {
    if (cluster != null) {
      policy.stop();
      cluster.shutdown();
    }
    TestDaemon.closeAll(nodes, client, hintd);
  }

  /** A recurring job reads all of {@link #IN}1 to 4 once, and says so; returns its home. */
  String runReader() throws Exception {
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

  void on() throws Exception {
    // Nobody's machine is as slow as this one while it tests.
    use("mode=on", "timeout-ms=1000");
  }

  void use(String... lines) throws Exception {
    long before = count("reloads");
    settings(lines);
    await(() -> count("reloads") > before && policy.isConnected());
  }

  void settings(String... lines) throws IOException {
    List<String> all = new ArrayList<>(Collections.singletonList("address=" + hintd.address()));
    // Of two lines with one key the last counts.
    all.addAll(Arrays.asList(lines));
    java.nio.file.Path file = folder.resolve("settings.new");
    Files.write(file, String.join("\n", all).getBytes(StandardCharsets.UTF_8));
    Files.move(file, folder.resolve("settings"), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
  }

  /** Three blocks; returns the racks of each. */
  List<Set<String>> write(String path, int replication) throws Exception {
    try (OutputStream out = fs.create(new Path(path), true, 512, (short) replication, BLOCK)) {
      out.write(new byte[2 * BLOCK + 1]);
    }
    // A file is closed once one replica of each block is reported; the others may be a moment later.
    await(() -> replicas(path, replication));
    return racks(path);
  }

  /** Of each block. */
  List<Set<String>> racks(String path) throws IOException {
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

  BlockLocation[] locations(String path) throws IOException {
    FileStatus file = fs.getFileStatus(new Path(path));
    return fs.getFileBlockLocations(file, 0, file.getLen());
  }

  boolean replicas(String path, int count) {
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
  DatanodeStorageInfo[] choose(String path, int replication) {
    return choose(path, replication, null);
  }

  /** As addBlock does; who writes may be a DataNode. */
  DatanodeStorageInfo[] choose(String path, int replication, DatanodeDescriptor writer) {
    return policy.chooseTarget(
        path, replication, writer, new ArrayList<>(), false, null, BLOCK, storagePolicy(),
        java.util.EnumSet.noneOf(AddBlockFlag.class));
  }

  org.apache.hadoop.hdfs.protocol.BlockStoragePolicy storagePolicy() {
    return blocks().getStoragePolicy("HOT");
  }

  BlockManager blocks() {
    return cluster.getNamesystem().getBlockManager();
  }

  String said() {
    return counters.getCounts() + " " + counters.getLeftAlone() + " " + counters.getReasons();
  }

  long count(String name) {
    return counters.getCounts().get(name);
  }

  static void await(BooleanSupplier done) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!done.getAsBoolean()) {
      assertTrue(System.nanoTime() < end, "it does not come to that");
      TimeUnit.MILLISECONDS.sleep(20);
    }
  }
}
