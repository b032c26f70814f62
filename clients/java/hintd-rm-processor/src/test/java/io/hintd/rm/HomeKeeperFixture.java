package io.hintd.rm;

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
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A keeper before a real hintd that sent the input of a job home, on a cluster of {@value NODES} nodes in three racks. */
abstract class HomeKeeperFixture {
  static final int NODES = 6;
  static final Key MAPS = new Key(20, -1);
  static final Key REDUCES = new Key(10, -1);
  static final long PATIENCE_S = 60;

  final Cluster.App app = new Cluster.App("root.q", "ann", "MAPREDUCE", "daily 2026-11-21", "", false);
  final Counters counters = new Counters();
  final Daemon daemon = new Daemon(counters);
  final Nodes cluster = new Nodes();
  TestDaemon hintd;
  HintdClient client;
  TestDaemon.Nodes nodes;
  Settings settings;
  int home;
  int applications = 1;
  HomeKeeper keeper;
  long now = 1_000;
  Collection<String> blacklisted = Collections.emptyList();

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
    TestDaemon.closeAll(nodes, client, hintd);
  }

  void use(String... lines) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("address", hintd.address());
    properties.setProperty("deadline-ms", "20000");
    for (String line : lines) {
      properties.setProperty(line.split("=")[0], line.split("=")[1]);
    }
    settings = Settings.of(properties);
    daemon.use(settings);
  }

  String rack() {
    return "/rack" + home;
  }

  String away() {
    return "/rack" + (home + 1) % 3;
  }

  /** A host of the home rack, or of the next one. */
  String host(int nth, boolean atHome) {
    return TestDaemon.Nodes.host(2 * ((atHome ? home : home + 1) % 3) + nth);
  }

  /** An application registers, and the answer is there. */
  void register() throws Exception {
    Attempt attempt = new Attempt("application_1700000000000_000" + ++applications, 1);
    keeper = new HomeKeeper(attempt, app, cluster, daemon, counters);
    keeper.registered(Mode.ON, settings, now);
    assertNotNull(keeper.pending());
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
  }

  String allocate(Mode mode, ResourceRequest... rows) {
    List<ResourceRequest> asks = Arrays.asList(rows);
    keeper.came(asks, mode, settings, now);
    keeper.decide(blacklisted, mode, settings, now);
    return told(keeper.rewrite(asks));
  }

  String allocate(ResourceRequest... rows) {
    return allocate(Mode.ON, rows);
  }

  /** So many maps, each with a replica at home and one in the next rack. */
  ResourceRequest[] maps(int count) {
    List<ResourceRequest> rows = new ArrayList<>();
    for (String name : new String[] {"*", rack(), away(), host(0, true), host(0, false)}) {
      rows.add(Yarn.row(MAPS, name, count));
    }
    return rows.toArray(new ResourceRequest[0]);
  }

  /** Where rows are that ask for something, and whether `*` is strict. */
  static String told(List<ResourceRequest> rows) {
    TreeSet<String> text = new TreeSet<>();
    rows.forEach(row -> text.add(row.getResourceName() + "=" + row.getNumContainers() + (row.getRelaxLocality() ? "" : "!")));
    return String.join(" ", text);
  }

  String rows(int home, int away, String any) {
    List<ResourceRequest> rows = new ArrayList<>();
    rows.add(Yarn.row(MAPS, rack(), home));
    rows.add(Yarn.row(MAPS, host(0, true), home));
    rows.add(Yarn.row(MAPS, away(), away));
    rows.add(Yarn.row(MAPS, host(0, false), away));
    return any + " " + told(rows);
  }

  String back(int away, String any) {
    List<ResourceRequest> rows = Arrays.asList(Yarn.row(MAPS, away(), away), Yarn.row(MAPS, host(0, false), away));
    return any + " " + told(rows);
  }

  long count(String what) {
    return counters.getCounts().getOrDefault("homes_" + what, 0L);
  }

  /** Rows of both hosts at home and of their rack, beside others. */
  String atHome(Key key, int rack, int first, int second, String any, Object... others) {
    List<ResourceRequest> rows = new ArrayList<>();
    rows.add(Yarn.row(key, rack(), rack));
    rows.add(Yarn.row(key, host(0, true), first));
    rows.add(Yarn.row(key, host(1, true), second));
    for (int i = 0; i < others.length; i += 2) {
      rows.add(Yarn.row(key, (String) others[i], (Integer) others[i + 1]));
    }
    return any + told(rows);
  }

  /** An allocate a second; what they sent. */
  String pass(int seconds) throws Exception {
    String sent = "";
    for (int i = 0; i < seconds; i++) {
      now += 1_000;
      sent += allocate();
      if (keeper.asking() != null) {
        keeper.asking().get(PATIENCE_S, TimeUnit.SECONDS);
      }
    }
    return sent;
  }

  /** A job whose data was sent nowhere registers, and the answer is there. */
  void registerOther() throws Exception {
    Cluster.App other = new Cluster.App("root.q", "ann", "MAPREDUCE", "another", "", false);
    keeper = new HomeKeeper(new Attempt("application_1700000000000_01" + ++applications, 1), other, cluster, daemon, counters);
    keeper.registered(Mode.ON, settings, now);
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
  }

  /** A daemon whose policy gathers jobs. */
  static TestDaemon jointDaemon() throws Exception {
    TestDaemon hintd = new TestDaemon("on");
    hintd.configure("on", "joint");
    hintd.start();
    return hintd;
  }

  /** The job ran before, and the NameNode asked where its next input should go; returns that. */
  static String runReader(HintdClient client, TestDaemon.Nodes nodes, String recurringKey) throws Exception {
    return runReader(client, nodes, recurringKey, 10L << 30);
  }

  static void run(HintdClient client, TestDaemon.Nodes nodes, String recurringKey, String id, long bytes) throws Exception {
    nodes.beat();
    HintRequest request = new HintRequest(new Attempt(id, 1)).recurringJobKey(recurringKey);
    request.group(new Group("p20", 4, 1_024, 1).role("map").priority(20).inputPaths(Collections.singletonList("/in")));
    request.group(new Group("p10", 4, 1_024, 1).role("reduce").priority(10)).edge("p20", "p10", bytes);
    TestDaemon.run(client, request, "p20", "p10");
  }

  /** {@code bytes}: what it shuffled. */
  static String runReader(HintdClient client, TestDaemon.Nodes nodes, String recurringKey, long bytes) throws Exception {
    run(client, nodes, recurringKey, "application_1700000000000_0001", bytes);
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

  static final class Nodes implements Cluster {
    boolean reserved;
    final Set<String> unusable = new HashSet<>();
    int outstanding = -1;
    int roomMb = 8_192;
    boolean preempts;
    final Map<String, String> racks = new HashMap<>();

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
    public Predicate<String> takes(Resource size) {
      return node -> racks.containsKey(node) && !unusable.contains(node) && size.getMemorySize() <= roomMb;
    }

    @Override
    public boolean reserved(Attempt attempt, Key key) {
      return reserved;
    }

    @Override
    public int outstanding(Attempt attempt, Key key) {
      return outstanding;
    }

    @Override
    public boolean preemptsFor(Attempt attempt) {
      return preempts;
    }
  }
}
