package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.Attempt;
import io.hintd.client.Group;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.TestDaemon;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.ReplicasRequest;
import io.hintd.v1.ReplicasResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Maps whose input a real hintd sent home. */
class HomeKeeperTest {
  private static final int NODES = 6;
  private static final Key MAPS = new Key(20, -1);
  private static final long PATIENCE_S = 60;

  private final Cluster.App app = new Cluster.App("root.q", "ann", "MAPREDUCE", "daily 2026-11-21", "", false);
  private final Counters counters = new Counters();
  private final Daemon daemon = new Daemon(counters);
  private final Nodes cluster = new Nodes();
  private TestDaemon hintd;
  private HintdClient client;
  private TestDaemon.Nodes nodes;
  private Settings settings;
  private int home;
  private int applications = 1;
  private HomeKeeper keeper;
  private long now = 1_000;

  @BeforeEach
  void start() throws Exception {
    hintd = new TestDaemon("on").start();
    client = HintdClient.to(hintd.address());
    nodes = hintd.nodes(client, NODES);
    String rack = runReader(client, nodes, app.recurringKey());
    assertFalse(rack.isEmpty());
    home = Integer.parseInt(rack.substring("/rack".length()));
    use("mode=on");
  }

  @AfterEach
  void stop() throws Exception {
    daemon.close();
    if (nodes == null) {
      return; // without a daemon the test was skipped
    }
    nodes.close();
    client.close();
    hintd.close();
  }

  private void use(String... lines) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("address", hintd.address());
    properties.setProperty("deadline-ms", "20000");
    for (String line : lines) {
      properties.setProperty(line.split("=")[0], line.split("=")[1]);
    }
    settings = Settings.of(properties);
    daemon.use(settings);
  }

  private String rack() {
    return "/rack" + home;
  }

  private String away() {
    return "/rack" + (home + 1) % 3;
  }

  /** A host of the home rack, or of the next one. */
  private String host(int nth, boolean atHome) {
    return TestDaemon.Nodes.host(2 * ((atHome ? home : home + 1) % 3) + nth);
  }

  /** An application registers, and the answer is there. */
  private void register() throws Exception {
    Attempt attempt = new Attempt("application_1700000000000_000" + ++applications, 1);
    keeper = new HomeKeeper(attempt, app, cluster, daemon, counters);
    keeper.registered(Mode.ON, settings, now);
    assertNotNull(keeper.pending());
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
  }

  private String allocate(Mode mode, ResourceRequest... rows) {
    List<ResourceRequest> asks = Arrays.asList(rows);
    keeper.came(asks, mode, settings, now);
    return told(keeper.rewrite(asks, Collections.emptyList(), mode, settings, now));
  }

  private String allocate(ResourceRequest... rows) {
    return allocate(Mode.ON, rows);
  }

  /** So many maps, each with a replica at home and one in the next rack. */
  private ResourceRequest[] maps(int count) {
    List<ResourceRequest> rows = new ArrayList<>();
    for (String name : new String[] {"*", rack(), away(), host(0, true), host(0, false)}) {
      rows.add(Yarn.row(MAPS, name, count));
    }
    return rows.toArray(new ResourceRequest[0]);
  }

  /** Where rows are that ask for something, and whether `*` is strict. */
  private static String told(List<ResourceRequest> rows) {
    TreeSet<String> text = new TreeSet<>();
    rows.forEach(row -> text.add(row.getResourceName() + "=" + row.getNumContainers() + (row.getRelaxLocality() ? "" : "!")));
    return String.join(" ", text);
  }

  private String rows(int home, int away, String any) {
    List<ResourceRequest> rows = new ArrayList<>();
    rows.add(Yarn.row(MAPS, rack(), home));
    rows.add(Yarn.row(MAPS, host(0, true), home));
    rows.add(Yarn.row(MAPS, away(), away));
    rows.add(Yarn.row(MAPS, host(0, false), away));
    return any + " " + told(rows);
  }

  private String back(int away, String any) {
    List<ResourceRequest> rows = Arrays.asList(Yarn.row(MAPS, away(), away), Yarn.row(MAPS, host(0, false), away));
    return any + " " + told(rows);
  }

  private long count(String what) {
    return counters.getCounts().getOrDefault("homes_" + what, 0L);
  }

  @Test
  void mapsStayAtHomeUntilNoneComesForAWhile() throws Exception {
    register();
    assertEquals(rows(3, 0, "*=3!"), allocate(maps(3)));
    assertEquals(3, count("narrowed"));
    now += 2_900;
    keeper.delivered(MAPS, host(0, true), rack(), now);
    settle();
    assertEquals("", allocate());
    assertEquals(1, count("at_home"));
    now += 2_900;
    settle();
    assertEquals("", allocate(), "one came meanwhile");
    now += 100;
    assertEquals(back(3, "*=2"), allocate());
    assertEquals(1, count("ended_waited"));
    assertEquals(rows(2, 2, "*=2"), allocate(maps(2)), "for good");
    assertEquals("{" + host(0, true) + "=4}", keeper.beside(4).toString(), "and reduces beside them");
  }

  /** The question that was asked again is answered. */
  private void settle() throws Exception {
    allocate();
    if (keeper.asking() != null) {
      keeper.asking().get(PATIENCE_S, TimeUnit.SECONDS);
    }
  }

  @Test
  void nothingWaitsForHomesWithoutRoomOrIsKeptFromBlocksThatLieElsewhere() throws Exception {
    register();
    cluster.full = true;
    assertEquals(rows(3, 3, "*=3"), allocate(maps(3)));
    assertEquals(1, count("ended_full"));
    cluster.full = false;
    register();
    cluster.outstanding = 0; // the scheduler has not heard of them yet
    assertEquals(rows(2, 0, "*=2!"), allocate(maps(2)));
    cluster.full = true;
    cluster.outstanding = 0;
    assertEquals("", allocate(), "they were given, and are on their way");
    cluster.outstanding = 1;
    assertEquals(back(2, "*=1"), allocate(), "no more than YARN has outstanding");
    cluster.full = false;
    cluster.outstanding = -1;
    register();
    ResourceRequest[] rows = maps(3);
    rows[1] = Yarn.row(MAPS, rack(), 2);
    assertTrue(allocate(rows).contains("*=3 "), "a map has no replica there");
    assertEquals(1, count("ended_not_at_home"));
    assertEquals(2, count("ended_full"));
  }

  @Test
  void retriesPassAndSwitchesCountAtOnce() throws Exception {
    register();
    assertEquals(rows(3, 0, "*=3!"), allocate(maps(3)));
    assertEquals("*=1 " + away() + "=1", allocate(Yarn.row(new Key(5, -1), "*", 1), Yarn.row(new Key(5, -1), away(), 1)));
    assertEquals(back(3, "*=3"), allocate(Mode.OFF));
    register();
    assertEquals(rows(3, 3, "*=3"), allocate(Mode.SHADOW, maps(3)));
    assertEquals(3, count("shadow_narrowed"));
    keeper.delivered(MAPS, host(0, false), away(), now);
    use("homes.root.q=false");
    assertEquals("", allocate());
    register0();
    assertEquals(rows(3, 3, "*=3"), allocate(maps(3)));
    assertEquals(3, count("narrowed"));
  }

  private void register0() {
    keeper = new HomeKeeper(new Attempt("application_1700000000000_0099", 1), app, cluster, daemon, counters);
    keeper.registered(Mode.ON, settings, now);
    assertEquals(null, keeper.pending(), "nobody is asked");
  }

  @Test
  void aDaemonThatDiesLetsGoOfWhatItHeldAndAnotherJobIsToldOfNone() throws Exception {
    use("deadline-ms=500", "breaker-failures=1");
    register();
    assertEquals(rows(3, 0, "*=3!"), allocate(maps(3)));
    hintd.kill();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    String sent = "";
    now += HomeKeeper.AGAIN_MS; // it is asked again
    while (sent.isEmpty()) {
      assertTrue(System.nanoTime() < end, "in time");
      Thread.sleep(10);
      sent = allocate();
    }
    assertEquals(back(3, "*=3"), sent);
    assertEquals(1, count("ended_silent"), () -> counters.getCounts().toString());
  }

  @Test
  void ofAJobWhoseDataWasSentNowhereAllPasses() throws Exception {
    Cluster.App other = new Cluster.App("root.q", "ann", "MAPREDUCE", "another", "", false);
    keeper = new HomeKeeper(new Attempt("application_1700000000000_0077", 1), other, cluster, daemon, counters);
    keeper.registered(Mode.ON, settings, now);
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
    assertEquals(rows(3, 3, "*=3"), allocate(maps(3)));
    assertEquals(1, count("ended_none_given"));
    assertEquals("{}", keeper.beside(4).toString());
    assertEquals(1, count("asked"), "and nobody asks again");
  }

  /** The job ran before, and the NameNode asked where its next input should go; returns that. */
  static String runReader(HintdClient client, TestDaemon.Nodes nodes, String recurringKey) throws Exception {
    nodes.beat();
    HintRequest request = new HintRequest(new Attempt("application_1700000000000_0001", 1)).recurringJobKey(recurringKey);
    request.group(new Group("p20", 4, 1_024, 1).role("map").priority(20).inputPaths(Collections.singletonList("/in")));
    request.group(new Group("p10", 4, 1_024, 1).role("reduce").priority(10)).edge("p20", "p10", 10L << 30);
    TestDaemon.run(client, request, "p20", "p10");
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (true) {
      ReplicasRequest asked = ReplicasRequest.newBuilder().setPath("/in").build();
      ReplicasResponse found = client.replicas(asked, Duration.ofSeconds(20)).join();
      if (found.getReason().equals("homes")) {
        return found.getRacksCount() == 1 ? found.getRacks(0).getRack() : "";
      }
      assertTrue(System.nanoTime() < end, found::toString);
      Thread.sleep(20);
    }
  }

  private static final class Nodes implements Cluster {
    boolean full;
    int outstanding = -1;
    private final Map<String, String> racks = new HashMap<>();

    Nodes() {
      for (int i = 0; i < NODES; i++) {
        racks.put(TestDaemon.Nodes.host(i), TestDaemon.Nodes.rack(i));
      }
    }

    @Override
    public App app(ApplicationAttemptId attempt) {
      return null;
    }

    @Override
    public boolean alive(ApplicationAttemptId attempt) {
      return true;
    }

    @Override
    public String nodeName(NodeId node) {
      return node.getHost();
    }

    @Override
    public Map<String, String> racks() {
      return racks;
    }

    @Override
    public boolean room(Collection<String> nodes, Resource size) {
      assertEquals(2, nodes.size(), "those of the home rack");
      return !full;
    }

    @Override
    public int outstanding(Attempt attempt, Key key) {
      return outstanding;
    }
  }
}
