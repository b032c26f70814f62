package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.Attempt;
import io.hintd.client.HintdClient;
import io.hintd.client.TestDaemon;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.InputHomesRequest;
import io.hintd.v1.InputHomesResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Jobs whose input a real hintd sent home, on Hadoop's own CapacityScheduler, a second a step. */
class HomesOnYarnTest {
  private static final int NODES = 6;
  private static final int ROOM = 3;
  private static final Key MAPS = new Key(20, -1);
  private static final Key REDUCES = new Key(10, -1);
  private static final long PATIENCE_S = 60;
  /** homes-wait-ms, and what heartbeats of nodes and of the application take to ask and to tell. */
  private static final int BOUND_S = 33;

  private Cluster.App app = new Cluster.App("root.q", "ann", "MAPREDUCE", "daily 2026-11-21", "", false);
  private final Counters counters = new Counters();
  private final Daemon daemon = new Daemon(counters);
  private final List<Job> jobs = new ArrayList<>();
  private TestDaemon hintd;
  private HintdClient client;
  private TestDaemon.Nodes nodes;
  private RealYarn yarn;
  private Settings settings;
  private int home;
  private long now;
  private int applications = 1;

  @BeforeEach
  void start() throws Exception {
    hintd = new TestDaemon("on").start();
    client = HintdClient.to(hintd.address());
    nodes = hintd.nodes(client, NODES);
    String rack = HomeKeeperFixture.runReader(client, nodes, app.recurringKey());
    assertFalse(rack.isEmpty());
    home = Integer.parseInt(rack.substring("/rack".length()));
    settings = Settings.of(settings("mode", "on"));
    daemon.use(settings);
    yarn = yarn();
  }

  private static RealYarn yarn() throws Exception {
    RealYarn yarn = new RealYarn();
    for (int i = 0; i < NODES; i++) {
      yarn.node(TestDaemon.Nodes.host(i), TestDaemon.Nodes.rack(i), ROOM);
    }
    return yarn;
  }

  @AfterEach
  void stop() throws Exception {
    daemon.close();
    TestDaemon.closeAll(yarn, nodes, client, hintd);
  }

  private Properties settings(String key, String value) {
    Properties properties = new Properties();
    properties.setProperty("address", hintd.address());
    properties.setProperty("deadline-ms", "20000");
    properties.setProperty("mode", "on");
    properties.setProperty(key, value);
    return properties;
  }

  private String host(int nth) {
    return TestDaemon.Nodes.host(2 * home + nth);
  }

  private String away() {
    return TestDaemon.Nodes.host(2 * ((home + 1) % 3));
  }

  private String rack(String host) {
    return yarn.cluster.racks().get(host);
  }

  private boolean isHome(String host) {
    return rack(host).equals("/rack" + home);
  }

  private String third() {
    return TestDaemon.Nodes.host(2 * ((home + 2) % 3));
  }

  /** A MapReduce job: its maps first, its reduces once they are done, or some of them. */
  private final class Job {
    final ApplicationAttemptId id;
    final HomeKeeper keeper;
    final int mapSeconds;
    final Resource size;
    /** Waiting maps, by the hosts of their replicas. */
    final List<List<String>> waiting = new ArrayList<>();
    final TreeMap<String, Integer> table = new TreeMap<>();
    final TreeSet<String> changed = new TreeSet<>();
    final Map<ContainerId, Long> running = new HashMap<>();
    /** Hosts of the replicas that a map reads. */
    final Map<ContainerId, List<String>> reading = new HashMap<>();
    /** Where containers came. */
    final List<String> mapsAt = new ArrayList<>();
    final List<String> reducesAt = new ArrayList<>();
    /** Containers of reduces that run: until all maps are done, and 5 s. */
    final TreeSet<ContainerId> reducing = new TreeSet<>();
    /** Maps that are done when it asks for reduces. */
    int slowStart = Integer.MAX_VALUE;
    int mapsDone;
    int reduces;
    int reducesAsked;
    boolean asked;
    /** When a container last came or it began to wait, and the longest that it waited. */
    long since = now;
    long longest;

    Job(int mapSeconds, int memoryMb, int reduces) throws Exception {
      id = yarn.submit(ApplicationId.newInstance(1_700_000_000_000L, ++applications));
      keeper = new HomeKeeper(new Attempt(id.getApplicationId().toString(), 1), app, yarn.cluster, daemon, counters);
      this.mapSeconds = mapSeconds;
      this.size = Resource.newInstance(memoryMb, 1);
      this.reduces = reduces;
      keeper.registered(Mode.ON, settings, now);
      jobs.add(this);
    }

    Job maps(int count, String... hosts) {
      for (int i = 0; i < count; i++) {
        waiting.add(Arrays.asList(hosts));
        add(Arrays.asList(hosts), 1);
      }
      return this;
    }

    private void add(List<String> hosts, int by) {
      TreeSet<String> names = new TreeSet<>(hosts);
      hosts.forEach(host -> names.add(rack(host)));
      names.add("*");
      names.forEach(name -> table.merge(name, by, Integer::sum));
      changed.addAll(names);
    }

    boolean done() {
      return waiting.isEmpty() && running.isEmpty() && reduces == 0;
    }

    void heartbeat() throws Exception {
      List<ResourceRequest> asks = new ArrayList<>();
      changed.forEach(name -> asks.add(row(MAPS, name, table.get(name))));
      changed.clear();
      boolean reads = asked || mapsDone >= slowStart || waiting.isEmpty() && running.isEmpty();
      if (reads && reducesAsked != reduces) {
        asks.add(row(REDUCES, "*", reduces));
        reducesAsked = reduces;
        asked = true;
        since = now;
      }
      boolean mapsRun = !waiting.isEmpty() || !reducing.containsAll(running.keySet());
      reducing.forEach(id -> running.computeIfPresent(id, (same, end) -> mapsRun ? now + 5_000 : end));
      List<ContainerId> over = new ArrayList<>();
      for (Iterator<Map.Entry<ContainerId, Long>> all = running.entrySet().iterator(); all.hasNext(); ) {
        Map.Entry<ContainerId, Long> one = all.next();
        if (one.getValue() <= now) {
          over.add(one.getKey());
          mapsDone += reducing.contains(one.getKey()) ? 0 : 1;
          all.remove();
        }
      }
      Collections.sort(over);
      if (keeper.asking() != null) {
        keeper.asking().get(PATIENCE_S, TimeUnit.SECONDS);
      }
      if (keeper.came(asks, Mode.ON, settings, now)) {
        keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
      }
      keeper.decide(Collections.emptyList(), Mode.ON, settings, now);
      for (Container given : yarn.allocate(id, keeper.rewrite(asks), over)) {
        take(given);
      }
      if (!waiting.isEmpty() || asked && reduces > 0) {
        longest = Math.max(longest, now - since);
      }
    }

    private void take(Container given) {
      String host = given.getNodeId().getHost();
      Key key = Key.of(given);
      keeper.delivered(key, host, rack(host), now);
      since = now;
      if (key.equals(REDUCES) ? reduces == 0 : waiting.isEmpty()) {
        // YARN was asked for it before the application knew of another: given back, as MapReduce does.
        running.put(given.getId(), now);
        return;
      }
      if (key.equals(REDUCES)) {
        reduces--;
        reducesAt.add(host);
        reducing.add(given.getId());
        running.put(given.getId(), now + 5_000);
        return;
      }
      List<String> best = waiting.get(0);
      for (List<String> map : waiting) {
        best = map.contains(host) ? map : best;
      }
      waiting.remove(best);
      add(best, -1);
      reading.put(given.getId(), best);
      mapsAt.add(host);
      running.put(given.getId(), now + 1_000L * mapSeconds);
    }

    /** All its maps are taken away, and wait again. */
    void preempted() {
      for (ContainerId map : new TreeSet<>(running.keySet())) {
        yarn.preempt(id, map);
        running.remove(map);
        waiting.add(reading.get(map));
        add(reading.get(map), 1);
      }
      since = now;
    }

    private ResourceRequest row(Key key, String name, int count) {
      ResourceRequest row = Yarn.row(key, name, count);
      row.setCapability(key.equals(MAPS) ? size : Resource.newInstance(1024, 1));
      return row;
    }

    long atHome(List<String> hosts) {
      return hosts.stream().filter(HomesOnYarnTest.this::isHome).count();
    }

    String say() {
      return "maps " + mapsAt + ", reduces " + reducesAt + ", longest wait " + longest + ", " + counters.getCounts();
    }
  }

  private interface Until {
    boolean holds();
  }

  /** Seconds that it took. */
  private int run(int most, Until until) throws Exception {
    for (int second = 0; second < most; second++) {
      if (until.holds()) {
        return second;
      }
      for (Job job : jobs) {
        job.heartbeat();
      }
      yarn.beat();
      now += 1_000;
    }
    return most;
  }

  private boolean allDone() {
    return jobs.stream().allMatch(Job::done);
  }

  private long count(String what) {
    return counters.getCounts().getOrDefault("homes_" + what, 0L);
  }

  @Test
  void aJobWithMoreTasksThanItsHomeHasRoomStaysThere() throws Exception {
    Job job = new Job(8, 1024, 9).maps(10, host(0), away()).maps(10, host(1), away());
    assertTrue(run(300, this::allDone) < 100, job::say);
    assertEquals(20, job.atHome(job.mapsAt), job::say);
    assertEquals(9, job.atHome(job.reducesAt), job::say);
    assertEquals(0, count("ended_waited") + count("reduces_ended_waited"), job::say);
  }

  @Test
  void aJobsOwnReducesLeaveItsMapsTheRoomAtHome() throws Exception {
    Job job = new Job(8, 1024, 2 * ROOM).maps(10, host(0), away()).maps(10, host(1), away());
    job.slowStart = 1;
    assertTrue(run(300, this::allDone) < 100, job::say);
    assertEquals(20, job.atHome(job.mapsAt), job::say);
    assertEquals(2 * ROOM, job.atHome(job.reducesAt), job::say);
    assertEquals(0, count("ended_waited") + count("reduces_ended_waited"), job::say);
  }

  @Test
  void reducesOfARunWhoseInputLiesElsewhereDoNotGoHomeForOneMapThatRanThere() throws Exception {
    Job job = new Job(5, 1024, 2 * ROOM).maps(1, host(0), away()).maps(3, away(), third()).maps(2, third(), away());
    yarn.allocate(job.id, new ArrayList<>(), new ArrayList<>());
    assertTrue(run(100, this::allDone) < 60, job::say);
    assertEquals(6, count("blocks"), job::say);
    assertEquals(0, count("narrowed") + count("reduces"), job::say);
    assertTrue(job.atHome(job.reducesAt) < 2 * ROOM, job::say);
  }

  @Test
  void mapsOfAGatheredJobAreAsManyOnEachHostOfItsRack() throws Exception {
    gathering();
    Job job = new Job(8, 1024, 0).maps(2, host(0), away()).maps(2, host(1), third());
    assertTrue(run(100, this::allDone) < 30, job::say);
    assertEquals(4, count("gathered"), job::say);
    // A node's heartbeat would take three.
    assertEquals(Arrays.asList(host(0), host(0), host(1), host(1)), job.mapsAt.stream().sorted().collect(Collectors.toList()), job::say);
  }

  /** A daemon whose policy gathers jobs, and that knows a run which shuffled sixteen times what it read. */
  private void gathering() throws Exception {
    stop();
    hintd = HomeKeeperFixture.jointDaemon();
    client = HintdClient.to(hintd.address());
    nodes = hintd.nodes(client, NODES);
    settings = Settings.of(settings("gathers", "true"));
    daemon.use(settings);
    yarn = yarn();
    HomeKeeperFixture.run(client, nodes, app.recurringKey(), "application_1700000000000_0001", 64L << 30);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    InputHomesRequest.Builder asked = InputHomesRequest.newBuilder().setApplicationId("application_1700000000000_9999").setAttempt(1);
    asked.setQueue(app.queue).setRecurringJobKey(app.recurringKey()).setGroup("p20").setMayGather(true);
    InputHomesResponse told;
    while (!(told = client.inputHomes(asked, Duration.ofSeconds(20)).join()).getGathered()) {
      assertTrue(System.nanoTime() < end, "the run is known");
      Thread.sleep(20);
    }
    home = (Integer.parseInt(told.getHomes(0).getRack().substring("/rack".length())) + 1) % 3; // nothing is to be done there
  }

  @Test
  void whoTakesItsReducesBackWaitsForATurnAnew() throws Exception {
    TurnKeeper turns = new TurnKeeper(new Attempt("application_1700000000000_0098", 1), app, daemon, counters, key -> Collections.emptySet());
    List<ResourceRequest> asks = Arrays.asList(Yarn.row(REDUCES, "*", 20));
    assertEquals(12, standing(turns, asks, 0));
    List<ResourceRequest> back = Arrays.asList(Yarn.row(REDUCES, "*", 0));
    assertEquals(0, turns.before(back, true, settings, now).get(0).getNumContainers());
    long asked = counters.turnsAsked.sum();
    assertEquals(12, standing(turns, asks, 0));
    assertTrue(counters.turnsAsked.sum() > asked, "what was said before is old");
  }

  @Test
  void hintdIsToldWhereReducesAreAskedForAndGivesTurnsByThat() throws Exception {
    AtomicReference<Collection<String>> racks = new AtomicReference<>(Collections.singleton("/rack" + home));
    Attempt attempt = new Attempt("application_1700000000000_0099", 1);
    TurnKeeper turns = new TurnKeeper(attempt, app, daemon, counters, key -> racks.get());
    List<ResourceRequest> asks = Arrays.asList(Yarn.row(REDUCES, "*", 20));
    assertEquals(8, standing(turns, asks, 0), "half of the home's 16 containers");
    racks.set(Collections.emptySet());
    assertEquals(12, standing(turns, Collections.emptyList(), 8), "a quarter of all 48, once it gave its home up");
  }

  /** What YARN is asked for when that changes, from {@code before} on. */
  private int standing(TurnKeeper turns, List<ResourceRequest> asks, int before) throws Exception {
    List<ResourceRequest> sent = turns.before(asks, true, settings, now);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (sent.isEmpty() || sent.get(0).getNumContainers() == before) {
      assertTrue(System.nanoTime() < end, "in time");
      Thread.sleep(10);
      now += 100;
      sent = turns.before(Collections.emptyList(), true, settings, now);
    }
    return sent.get(0).getNumContainers();
  }

  /** A job whose input was sent nowhere; with so much to do on the hosts of its blocks that they have room for one map in 2 s. */
  private Job elsewhere(String what) throws Exception {
    settings = Settings.of(settings("blocks-for-ms", what));
    daemon.use(settings);
    Cluster.App before = app;
    app = new Cluster.App("root.q", "ann", "MAPREDUCE", "another", "", false);
    Job other = new Job(2, 1024, 0).maps(6, host(0), away());
    app = before;
    return other;
  }

  @Test
  void mapsOfAJobWithoutHomesComeOnHostsOfTheirBlocksWhereYarnAloneGivesThemAnywhere() throws Exception {
    for (String wait : new String[] {"3000", "0"}) {
      jobs.clear();
      Job busy = new Job(2, 1024, 0).maps(2 * ROOM, host(0), away());
      run(1, () -> false);
      Job job = elsewhere(wait);
      assertTrue(run(60, this::allDone) < 40, job::say);
      long local = job.mapsAt.stream().filter(host -> host.equals(host(0)) || host.equals(away())).count();
      assertEquals(wait.equals("3000"), local == 6, () -> wait + ": " + job.say() + " / " + busy.say());
    }
  }

  @Test
  void aJobWhoseBlocksLieOnBusyHostsStaysInTheirRacks() throws Exception {
    Job hog = new Job(600, 1024, 0).maps(ROOM, host(0)).maps(ROOM, away());
    run(8, () -> hog.waiting.isEmpty());
    Job job = elsewhere("3000");
    assertTrue(run(60, job::done) < 30, job::say);
    assertEquals(6, job.mapsAt.size(), job::say);
    Map<String, String> racks = yarn.cluster.racks();
    List<String> near = Arrays.asList(racks.get(host(0)), racks.get(away()));
    assertTrue(job.mapsAt.stream().allMatch(host -> near.contains(racks.get(host))), job::say);
    assertFalse(job.mapsAt.contains(host(0)) || job.mapsAt.contains(away()), job::say);
    assertEquals(0, count("blocks_ended_waited"), job::say);
    assertTrue(job.longest <= 6_000, job::say);
  }

  @Test
  void aJobWhoseBlocksLieInBusyRacksGoesAnywhereAfterAWhile() throws Exception {
    Map<String, String> racks = yarn.cluster.racks();
    List<String> near = Arrays.asList(racks.get(host(0)), racks.get(away()));
    Job hog = new Job(600, 1024, 0);
    racks.forEach((host, rack) -> {
      if (near.contains(rack)) {
        hog.maps(ROOM, host);
      }
    });
    run(16, () -> hog.waiting.isEmpty());
    Job job = elsewhere("3000");
    assertTrue(run(60, job::done) < 30, job::say);
    assertEquals(6, job.mapsAt.stream().filter(host -> !near.contains(racks.get(host))).count(), job::say);
    assertEquals(1, count("blocks_ended_waited"), job::say);
    assertTrue(job.longest <= 10_000, job::say);
  }

  @Test
  void mapsRunOnAnotherHostOfTheHomeOnceTheirsIsBusyForThreeSeconds() throws Exception {
    Job job = new Job(60, 1024, 0).maps(5, host(0), away());
    run(4, () -> false);
    assertEquals(Collections.nCopies(ROOM, host(0)), job.mapsAt, job::say);
    run(4, () -> false);
    assertEquals(5, job.mapsAt.size(), "YARN serves no rack's row beside a strict one for any node: " + job.say());
    assertEquals(5, job.atHome(job.mapsAt), job::say);
  }

  @Test
  void jobsThatCompeteForAHomeAllComeToTheirEnd() throws Exception {
    for (boolean largeFirst : new boolean[] {true, false}) {
      jobs.clear();
      Job first = new Job(10, 1024, largeFirst ? 8 : 2);
      Job second = new Job(10, 1024, largeFirst ? 2 : 8);
      Job large = largeFirst ? first : second;
      Job small = largeFirst ? second : first;
      large.maps(15, host(0), away()).maps(15, host(1), away());
      small.maps(2, host(0), away()).maps(2, host(1), away());
      assertTrue(run(400, this::allDone) < 300, () -> large.say() + " / " + small.say());
      for (Job job : jobs) {
        assertTrue(job.longest <= 1_000L * BOUND_S, job::say);
      }
      assertEquals(30, large.mapsAt.size());
      assertEquals(4, small.mapsAt.size());
    }
  }

  @Test
  void aJobWhoseHomeAnotherOneKeepsBusyGoesElsewhereAfterTheBound() throws Exception {
    Job hog = new Job(600, 1024, 0).maps(3, host(0), away()).maps(3, host(1), away());
    run(5, () -> false);
    assertEquals(6, hog.atHome(hog.mapsAt), hog::say);
    Job job = new Job(5, 1024, 2).maps(4, host(0), away());
    run(29, () -> false);
    assertEquals(0, job.mapsAt.size(), job::say);
    assertTrue(run(100, job::done) < 40, job::say);
    assertEquals(0, job.atHome(job.mapsAt), job::say);
    assertEquals(4, job.mapsAt.size());
    assertTrue(job.longest <= 1_000L * BOUND_S, job::say);
    assertEquals(1, count("ended_waited"));
    assertEquals(2, job.reducesAt.size());
  }

  @Test
  void aNodeThatYarnKeepsForAMapIsNotLostToIt() throws Exception {
    Job atHome = new Job(600, 1024, 0).maps(1, host(0)).maps(1, host(1));
    Job elsewhere = new Job(20, 1024, 0);
    yarn.cluster.racks().keySet().stream().filter(host -> !isHome(host)).forEach(host -> elsewhere.maps(1, host));
    run(3, () -> atHome.mapsAt.size() + elsewhere.mapsAt.size() == NODES);
    assertEquals(NODES, atHome.mapsAt.size() + elsewhere.mapsAt.size());
    // Before hintd answers, YARN reserves a node elsewhere for a large map.
    Job large = new Job(5, 1024 * ROOM, 0).maps(1, away(), host(0));
    List<ResourceRequest> asks = new ArrayList<>();
    large.changed.forEach(name -> asks.add(large.row(MAPS, name, large.table.get(name))));
    yarn.allocate(large.id, asks, new ArrayList<>());
    yarn.beat(away());
    assertTrue(yarn.cluster.reserved(new Attempt(large.id.getApplicationId().toString(), 1), MAPS));
    assertTrue(run(60, large::done) < 30, large::say);
    assertEquals(1, large.mapsAt.size(), large::say);
    assertTrue(large.longest < 25_000, "what YARN reserved was served once there was room: " + large.say());
  }

  @Test
  void ofAHomeWhoseNodesAreDecommissionedNobodyWaits() throws Exception {
    yarn.state(host(0), NodeState.DECOMMISSIONING);
    yarn.state(host(1), NodeState.UNHEALTHY);
    Job job = new Job(5, 1024, 1).maps(4, host(0), away());
    assertTrue(run(60, this::allDone) < 30, job::say);
    assertEquals(1, count("ended_no_nodes"), job::say);
    assertEquals(0, count("narrowed"), job::say);
  }

  @Test
  void nobodyWaitsForAHomeOfLabelledNodes() throws Exception {
    yarn.label(host(0), "gpu");
    yarn.label(host(1), "gpu");
    Job job = new Job(5, 1024, 1).maps(4, host(0), away());
    assertTrue(run(60, this::allDone) < 30, job::say);
    assertEquals(1, count("ended_no_nodes"), job::say);
    assertEquals(0, count("narrowed"), job::say);
  }

  @Test
  void nobodyWaitsForNodesThatNeverHoldTheContainer() throws Exception {
    yarn.node("large", "/large", 2 * ROOM);
    Job job = new Job(5, 1024 * ROOM + 1, 1).maps(2, host(0), "large");
    assertTrue(run(60, this::allDone) < 30, job::say);
    assertEquals(Collections.nCopies(2, "large"), job.mapsAt, job::say);
    assertEquals(1, count("ended_no_nodes"), job::say);
    assertEquals(0, count("narrowed"), job::say);
    assertTrue(yarn.cluster.takes(Resource.newInstance(1024 * ROOM, 100)).test(host(0)), "this scheduler goes by memory alone");
  }

  @Test
  void mapsThatAreTakenFromTheirHomeWaitThereAnewAndThenGoElsewhere() throws Exception {
    Job job = new Job(600, 1024, 0).maps(3, host(0), away()).maps(3, host(1), away());
    run(5, () -> job.waiting.isEmpty());
    assertEquals(6, job.atHome(job.mapsAt), job::say);
    run(40, () -> false); // longer than anybody waits for a home
    job.preempted();
    Job hog = new Job(600, 1024, 0).maps(3, host(0)).maps(3, host(1));
    hog.heartbeat();
    yarn.beat(); // before the first heartbeat of who lost them
    run(29, () -> false);
    assertEquals(6, job.mapsAt.size(), job::say);
    assertTrue(run(60, () -> job.waiting.isEmpty()) < 10, job::say);
    assertEquals(6, job.atHome(job.mapsAt), "all others came elsewhere: " + job.say());
    assertEquals(12, job.mapsAt.size(), job::say);
    assertTrue(job.longest <= 1_000L * BOUND_S, job::say);
    assertEquals(1, count("ended_waited"), job::say);
  }

  @Test
  void whatIsTakenBeforeTheJobHearsOfItStaysStrictNoLongerThanTheRest() throws Exception {
    Job hog = new Job(600, 1024, 0).maps(ROOM, host(1));
    run(5, () -> hog.waiting.isEmpty());
    Job job = new Job(5, 1024, 0).maps(2, host(0), away());
    job.heartbeat();
    assertEquals(ROOM + 2, count("narrowed"), job::say);
    for (int again = 0; again < 3; again++) {
      yarn.beat(host(0));
      assertTrue(yarn.preemptUnheard(job.id, MAPS) && yarn.preemptUnheard(job.id, MAPS), "both came, and are gone");
    }
    yarn.state(host(0), NodeState.DECOMMISSIONING);
    run(29, () -> false);
    assertEquals(0, job.mapsAt.size(), job::say);
    assertTrue(run(60, () -> job.waiting.isEmpty()) < 10, job::say);
    assertEquals(0, job.atHome(job.mapsAt), job::say);
    assertEquals(2, job.mapsAt.size(), job::say);
    assertTrue(job.longest <= 1_000L * BOUND_S, job::say);
  }
}
