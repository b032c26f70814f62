package io.hintd.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import javax.management.ObjectName;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeAdminManager;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.hdfs.server.namenode.NameNodeAdapter;
import org.apache.hadoop.test.GenericTestUtils.LogCapturer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/** Files and states that are not those of every day, on one NameNode, which asks the policy for erasure-coded files as well; hintd is real. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class UnusualFilesTest extends OnHdfs {
  private static final int CELL = 1 << 20;
  private static final String CODED = "XOR-2-1-1024k";
  private static final int HANDLERS = 4;

  private final List<LogCapturer> logs = new ArrayList<>();
  private String home;
  private long newBlocks;
  private long asked;
  private long placed;

  @BeforeAll
  void start(@TempDir java.nio.file.Path empty) throws Exception {
    for (Class<?> of : new Class<?>[] {Advisor.class, HintdBlockPlacementPolicy.class}) {
      logs.add(LogCapturer.captureLogs(LoggerFactory.getLogger(of)));
    }
    Configuration conf = new Configuration();
    conf.set("dfs.block.placement.ec.classname", HintdBlockPlacementPolicy.class.getName());
    start(empty, conf);
    home = runReader();
    on();
  }

  @AfterAll
  void end() throws Exception {
    logs.forEach(LogCapturer::stopCapturing);
    stop();
  }

  @BeforeEach
  void look() throws Exception {
    nodes.beat();
    newBlocks = count("new_blocks");
    asked = count("asked");
    placed = count("placed");
  }

  @Test
  void inSafeModeNothingIsAskedAndAfterItDataGoesHomeAsBefore() throws Exception {
    Path open = new Path(IN + "1/open");
    FSDataOutputStream out = fs.create(open, true, 512, (short) 2, BLOCK);
    out.write(new byte[BLOCK + 1]);
    out.hflush();
    assertEquals(2, count("new_blocks") - newBlocks);
    NameNodeAdapter.enterSafeMode(cluster.getNameNode(), false);
    try {
      for (int file = 0; file < 3; file++) {
        Path refused = new Path(IN + "1/refused-" + file);
        assertThrows(IOException.class, () -> fs.create(refused, true, 512, (short) 2, BLOCK));
      }
      assertThrows(IOException.class, () -> {
        out.write(new byte[BLOCK]);
        out.hflush();
      });
      assertEquals(2, count("new_blocks") - newBlocks, "HDFS refuses before it chooses");
      assertEquals(1, count("asked") - asked, this::said);
    } finally {
      NameNodeAdapter.leaveSafeMode(cluster.getNameNode());
    }
    try {
      out.close();
    } catch (IOException failed) {
      // in safe mode
    }
    fs.delete(open, false);
    assertAtHome(write(IN + "1/refused-0", 2));
    assertEquals(2, count("asked") - asked, this::said);
    assertEquals(2 + 3, count("placed") - placed, this::said);
    assertEquals(0, count("errors"));
  }

  @Test
  void aFileThatIsRenamedWhileItIsWrittenKeepsTheAdviceOfItsFirstPath() throws Exception {
    fs.mkdirs(new Path("/nobody/reads"));
    String[] from = {IN + "2/renamed", "/nobody/reads/renamed"};
    String[] to = {"/nobody/reads/it", IN + "2/it"};
    long nowhere = leftAlone("no_home");
    for (int file = 0; file < 2; file++) {
      try (FSDataOutputStream out = fs.create(new Path(from[file]), true, 512, (short) 2, BLOCK)) {
        out.write(new byte[BLOCK + 1]);
        out.hflush();
        assertTrue(fs.rename(new Path(from[file]), new Path(to[file])));
        out.write(new byte[2 * BLOCK]);
      }
      String written = to[file];
      await(() -> replicas(written, 2));
      assertEquals(file + 1, count("asked") - asked, "by its first path, once");
    }
    assertEquals(4, locations(to[0]).length);
    assertAtHome(racks(to[0]));
    assertEquals(4, count("placed") - placed, this::said);
    assertEquals(4, leftAlone("no_home") - nowhere, this::said);
    assertEquals(8, count("new_blocks") - newBlocks);
    assertEquals(0, count("fell_back") + count("errors"));
    assertAtHome(write(from[0], 2));
    assertEquals(2, count("asked") - asked, "another file of that path has its answer");
  }

  /** Its own rack each is what HDFS's policy for them would see to; here its default for replicas does what it does without us. */
  @Test
  void erasureCodedFilesAreNotAskedForAndCountedAmongTheOthers() throws Exception {
    Path folder = new Path(IN + "3/coded");
    fs.enableErasureCodingPolicy(CODED);
    fs.mkdirs(folder);
    fs.setErasureCodingPolicy(folder, CODED);
    for (int file = 0; file < 2; file++) {
      Path coded = new Path(folder, "part-" + file);
      try (FSDataOutputStream out = fs.create(coded, true, 512, (short) 1, CELL)) {
        out.write(new byte[2 * CELL + 1]); // two groups
      }
      assertTrue(fs.getFileStatus(coded).isErasureCoded());
      Set<String> hosts = new HashSet<>();
      hosts.addAll(java.util.Arrays.asList(locations(coded.toString())[0].getNames()));
      assertEquals(3, hosts.size(), "two blocks and their parity");
    }
    assertEquals(4, leftAlone("erasure_coded"), this::said);
    assertEquals(4, count("new_blocks") - newBlocks, this::said);
    assertEquals(0, count("asked") - asked);
    assertEquals(0, count("errors"));
    long said = said("dfs.block.placement.ec.classname names");
    assertTrue(said == 1 || said == 2, "once a policy; formatting the NameNode makes one as well: " + said);
    Object shown =
        ManagementFactory.getPlatformMBeanServer().getAttribute(new ObjectName("hintd:name=HdfsPlacement"), "LeftAlone");
    assertTrue(shown.toString().contains("erasure_coded"), "the bean is that of the policy for replicas");
    assertAtHome(write(IN + "3/replicas", 2));
  }

  @Test
  void smallFilesAreOneQuestionEachAndAsManyAsMayWaitInAllWhileHintdHangs() throws Exception {
    use("mode=on", "timeout-ms=1000", "deadline-ms=30000", "cache=100");
    try {
      long busy = leftAlone("busy");
      assertEquals(2_000, writeSmall(2_000, IN + "4/small-"));
      long questions = count("asked") - asked;
      assertEquals(2_000, questions + leftAlone("busy") - busy, this::said);
      await(() -> count("answered") + count("failed") >= asked + questions);
      use("mode=on", "timeout-ms=10", "deadline-ms=30000", "cache=100");
      logs.forEach(LogCapturer::clearOutput);
      long late = count("late");
      long failed = count("failed");
      long before = count("asked");
      long busyBefore = leftAlone("busy") + leftAlone("breaker_open");
      hintd.hang(true);
      try {
        assertEquals(10_000, writeSmall(10_000, IN + "4/hanging-"));
      } finally {
        hintd.hang(false);
      }
      // None was answered: what is asked in all is what may be under way at one time.
      long underWay = count("asked") - before;
      assertTrue(underWay <= HANDLERS + count("failed") - failed, this::said);
      assertTrue(count("late") - late <= underWay, "and nobody else waited: " + said());
      assertEquals(10_000, underWay + leftAlone("busy") + leftAlone("breaker_open") - busyBefore, this::said);
      assertTrue(said("no answer within") <= 1, "each kind once in ten minutes");
      await(() -> count("answered") + count("failed") - failed >= before + underWay);
    } finally {
      on();
    }
    assertEquals(0, count("errors"));
    assertAtHome(write(IN + "4/after", 2));
  }

  @Test
  void aHomeInMaintenanceIsLeftToHdfs() throws Exception {
    List<DatanodeDescriptor> atHome =
        blocks().getDatanodeManager().getDatanodes().stream()
            .filter(node -> node.getNetworkLocation().equals(home))
            .collect(Collectors.toList());
    long full = count("home_full");
    maintain(atHome, true);
    try {
      assertFalse(racksOf(choose(IN + "1/maintained", 3)).contains(home));
      assertTrue(count("home_full") > full, this::said);
      assertEquals(0, count("placed") - placed);
    } finally {
      maintain(atHome, false);
    }
    assertTrue(racksOf(choose(IN + "1/maintained", 3)).contains(home));
    assertEquals(1, count("asked") - asked, "the answer still stands");
    assertEquals(1, count("placed") - placed);
  }

  private void maintain(List<DatanodeDescriptor> of, boolean starts) {
    DatanodeAdminManager admin = blocks().getDatanodeManager().getDatanodeAdminManager();
    cluster.getNamesystem().writeLock();
    try {
      of.forEach(node -> {
        if (starts) {
          admin.startMaintenance(node, Long.MAX_VALUE);
        } else {
          admin.stopMaintenance(node);
        }
      });
    } finally {
      cluster.getNamesystem().writeUnlock();
    }
  }

  /** As so many handlers of the NameNode do, each with files of its own; returns those that got all replicas. */
  private int writeSmall(int files, String path) throws Exception {
    ExecutorService handlers = Executors.newFixedThreadPool(HANDLERS);
    try {
      List<Callable<Integer>> all = new ArrayList<>();
      for (int handler = 0; handler < HANDLERS; handler++) {
        int first = handler;
        all.add(() -> {
          int whole = 0;
          for (int file = first; file < files; file += HANDLERS) {
            whole += choose(path + file, 3).length == 3 ? 1 : 0;
          }
          return whole;
        });
      }
      int whole = 0;
      for (Future<Integer> of : handlers.invokeAll(all)) {
        whole += of.get();
      }
      return whole;
    } finally {
      handlers.shutdownNow();
    }
  }

  private void assertAtHome(List<Set<String>> racks) {
    racks.forEach(of -> assertTrue(of.contains(home), of + " without " + home + ": " + said()));
  }

  private static Set<String> racksOf(DatanodeStorageInfo[] targets) {
    assertEquals(3, targets.length);
    Set<String> racks = new HashSet<>();
    for (DatanodeStorageInfo target : targets) {
      racks.add(target.getDatanodeDescriptor().getNetworkLocation());
    }
    assertTrue(racks.size() > 1, "HDFS's rule: " + racks);
    return racks;
  }

  private long leftAlone(String why) {
    Map<String, Long> all = counters.getLeftAlone();
    return all.getOrDefault(why, 0L);
  }

  /** Lines of the log that say it. */
  private long said(String what) {
    return logs.stream().flatMap(log -> java.util.Arrays.stream(log.getOutput().split("\n"))).filter(line -> line.contains(what)).count();
  }
}
