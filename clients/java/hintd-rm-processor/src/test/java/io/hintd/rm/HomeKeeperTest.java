package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.Attempt;
import io.hintd.client.Group;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.TestDaemon;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.InputHomesRequest;
import io.hintd.v1.InputHomesResponse;
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
import java.util.stream.IntStream;
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
  private static final Key REDUCES = new Key(10, -1);
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
  /** The rack of a job that is gathered beside others. */
  private String busy;
  private int applications = 1;
  private HomeKeeper keeper;
  private long now = 1_000;
  private Collection<String> blacklisted = Collections.emptyList();

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
    keeper.decide(blacklisted, mode, settings, now);
    return told(keeper.rewrite(asks));
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

  /** Rows of both hosts at home and of their rack, beside others. */
  private String atHome(Key key, int rack, int first, int second, String any, Object... others) {
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
  private String pass(int seconds) throws Exception {
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

  @Test
  void mapsStayAtHomeUntilNoneComesForAWhileThoughHomesAreFull() throws Exception {
    register();
    assertEquals(rows(3, 0, "*=3!"), allocate(maps(3)));
    assertEquals(3, count("narrowed"));
    assertEquals("", pass(2));
    assertEquals(atHome(MAPS, 3, 3, 3, ""), pass(1), "a host that was not named may have room");
    assertEquals("", pass(26), "nobody leaves because homes are full");
    keeper.delivered(MAPS, host(1, true), rack(), now);
    assertEquals(1, count("at_home"));
    assertEquals("", pass(29), "one came meanwhile");
    assertEquals(atHome(MAPS, 2, 3, 0, "*=2 ", away(), 3, host(0, false), 3), pass(1));
    assertEquals(1, count("ended_waited"));
    assertEquals(rows(2, 2, "*=2"), allocate(maps(2)), "for good");
  }

  @Test
  void mapsThatAreAskedForAfterAllCameWaitAnew() throws Exception {
    register();
    allocate(maps(1));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    assertEquals(rows(0, 0, "*=0"), allocate(maps(0)));
    assertEquals("", pass(60));
    assertEquals(atHome(MAPS, 1, 1, 1, "*=1! ", away(), 0, host(0, false), 0), allocate(maps(1)), "a map that is to run again");
    assertEquals("", pass(29));
    assertTrue(pass(1).startsWith("*=1 "));
  }

  @Test
  void nothingWaitsForHomesWithoutNodesOrIsKeptFromBlocksThatLieElsewhere() throws Exception {
    register();
    cluster.unusable.addAll(Arrays.asList(host(0, true), host(1, true)));
    assertEquals(rows(3, 3, "*=3"), allocate(maps(3)));
    assertEquals(1, count("ended_no_nodes"));
    cluster.unusable.clear();
    register();
    cluster.outstanding = 0; // the scheduler has not heard of them yet
    assertEquals(rows(2, 0, "*=2!"), allocate(maps(2)));
    blacklisted = Arrays.asList(host(0, true), host(1, true));
    assertEquals("", allocate(), "they were given, and are on their way");
    cluster.outstanding = 1;
    assertEquals(back(2, "*=1"), allocate(), "no more than YARN has outstanding");
    assertEquals(2, count("ended_no_nodes"));
    blacklisted = Collections.emptyList();
    cluster.outstanding = -1;
    register();
    ResourceRequest[] rows = maps(3);
    rows[1] = Yarn.row(MAPS, rack(), 2);
    assertTrue(allocate(rows).startsWith("*=3! "), "a map has no replica there: they wait for their blocks");
    assertEquals(3, count("blocks"));
    assertEquals(0, count("ended_not_at_home"));
    use("blocks-for-ms=0");
    register();
    assertTrue(allocate(rows).startsWith("*=3 "), "nobody waits for blocks");
    assertEquals(1, count("ended_not_at_home"));
  }

  @Test
  void ofHostsOnlyThoseThatTakeContainersAreNamed() throws Exception {
    register();
    allocate(maps(2));
    pass(2);
    cluster.unusable.add(host(1, true));
    String one = told(Arrays.asList(Yarn.row(MAPS, rack(), 2), Yarn.row(MAPS, host(0, true), 2)));
    assertEquals(one, pass(1));
    cluster.unusable.clear();
    assertEquals(told(Arrays.asList(Yarn.row(MAPS, host(1, true), 2))), pass(1));
    blacklisted = Arrays.asList(host(1, true));
    assertEquals(told(Arrays.asList(Yarn.row(MAPS, host(1, true), 0))), pass(1));
  }

  @Test
  void whatYarnReservedForBecomesStrictOnceThatIsOver() throws Exception {
    register();
    cluster.reserved = true;
    assertEquals(rows(3, 3, "*=3"), allocate(maps(3)));
    assertEquals("", pass(2));
    cluster.reserved = false;
    assertEquals(back(0, "*=3!"), pass(1));
    cluster.reserved = true;
    assertEquals(atHome(MAPS, 3, 3, 3, ""), pass(3), "more rows do it no harm");
    assertTrue(pass(24).startsWith("*=3 "), "nor do all of them: it began to wait with the first ask");
  }

  @Test
  void reducesGoWhereMapsRanAtHomeThenToAllHostsOfHomesAndElsewhereAfterAWhile() throws Exception {
    register();
    allocate(maps(4));
    assertNull(keeper.askedIn(REDUCES), "who knows where maps will come");
    assertEquals("*=4", allocate(Yarn.row(REDUCES, "*", 4)), "no map came yet");
    assertFalse(keeper.keeps(REDUCES));
    assertEquals(Collections.emptySet(), keeper.askedIn(REDUCES));
    for (int i = 0; i < 3; i++) {
      keeper.delivered(MAPS, host(0, true), rack(), now);
    }
    keeper.delivered(MAPS, host(1, true), rack(), now);
    allocate(maps(0));
    assertTrue(keeper.keeps(REDUCES));
    assertEquals(Collections.singleton(rack()), keeper.askedIn(REDUCES));
    assertEquals(4, count("reduces"));
    // Three and one, and what came is not asked for again.
    keeper.delivered(REDUCES, host(1, true), rack(), now);
    assertEquals(told(Arrays.asList(Yarn.row(REDUCES, "*", 3))) + "! " + told(Arrays.asList(
        Yarn.row(REDUCES, rack(), 3), Yarn.row(REDUCES, host(0, true), 3), Yarn.row(REDUCES, host(1, true), 0))), allocate(Yarn.row(REDUCES, "*", 3)));
    assertEquals("", pass(2));
    assertTrue(pass(1).endsWith(host(1, true) + "=3"), "any of them is as good");
    assertEquals("", pass(26));
    String back = pass(1);
    assertEquals(atHome(REDUCES, 0, 0, 0, "*=3 "), back);
    assertEquals(1, count("reduces_ended_waited"));
    assertEquals(1, count("reduces_at_home"));
    assertEquals("*=5", allocate(Yarn.row(REDUCES, "*", 5)), "while some of them wait");
    for (int i = 0; i < 5; i++) {
      keeper.delivered(REDUCES, host(0, false), away(), now);
    }
    allocate(Yarn.row(REDUCES, "*", 0));
    assertEquals(Collections.emptySet(), keeper.askedIn(REDUCES), "they came elsewhere");
    assertTrue(allocate(Yarn.row(REDUCES, "*", 2)).startsWith("*=2! "), "the next begin anew");
    assertEquals(Collections.singleton(rack()), keeper.askedIn(REDUCES));
    assertEquals(0, count("ended_waited"));
  }

  @Test
  void reducesOfAJobWhoseMapsRanElsewhereAreLeftAlone() throws Exception {
    register();
    allocate(maps(2));
    keeper.delivered(MAPS, host(0, false), away(), now);
    keeper.delivered(MAPS, host(0, false), away(), now);
    allocate(maps(0));
    assertEquals("*=4", allocate(Yarn.row(REDUCES, "*", 4)));
    assertFalse(keeper.keeps(REDUCES));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    assertEquals("", pass(2));
    assertEquals(0, count("reduces"), "one of three ran at home");
    keeper.delivered(MAPS, host(0, true), rack(), now);
    assertEquals("", pass(2));
    assertEquals(0, count("reduces"), "nor is a half most of them");
    keeper.delivered(MAPS, host(1, true), rack(), now);
    assertEquals("*=3", allocate(Mode.SHADOW, Yarn.row(REDUCES, "*", 3)));
    assertEquals(3, count("shadow_reduces"));
    assertFalse(keeper.keeps(REDUCES));
  }

  @Test
  void reducesHaveNoRowsWhileMapsOfTheirJobWaitAtHome() throws Exception {
    register();
    allocate(maps(4));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    assertEquals("*=2!", allocate(Yarn.row(REDUCES, "*", 2)));
    assertEquals(2, count("reduces_held"));
    String sent = pass(29);
    assertFalse(sent.contains("=2"), sent);
    for (int i = 0; i < 3; i++) {
      keeper.delivered(MAPS, host(1, true), rack(), now);
    }
    assertEquals(told(Arrays.asList(Yarn.row(REDUCES, rack(), 2), Yarn.row(REDUCES, host(1, true), 2))), pass(1));
    // A map is to run again: places that are left take none of its room.
    assertTrue(allocate(maps(1)).contains(host(1, true) + "=0"));
    keeper.delivered(MAPS, host(1, true), rack(), now);
    assertTrue(pass(1).contains(rack() + "=2"));
    assertEquals("", pass(2));
    assertTrue(pass(1).contains(host(0, true) + "=2"));
    assertEquals("", pass(26), "they wait at home as long as ever from then on");
    assertTrue(pass(1).startsWith("*=2 "));
    assertEquals(1, count("reduces_ended_waited"));
  }

  @Test
  void reducesThatAreHeldForLongFindHomesAsTheyWere() throws Exception {
    register();
    allocate(maps(1));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    allocate(maps(0));
    assertEquals(Collections.singleton(rack()), keeper.askedIn(REDUCES), "where they will be");
    now += 100_000; // nobody asked hintd meanwhile
    assertTrue(allocate(Yarn.row(REDUCES, "*", 2)).startsWith("*=2! "));
    assertEquals("", pass(2));
    hintd.kill();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    String sent = "";
    while (!sent.startsWith("*=2 ")) {
      assertTrue(System.nanoTime() < end, "in time");
      Thread.sleep(10);
      now += 100;
      sent = allocate();
    }
    assertEquals(1, count("reduces_ended_silent"), () -> counters.getCounts().toString());
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
    use("deadline-ms=3000", "breaker-failures=1");
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

  /** A job whose data was sent nowhere registers, and the answer is there. */
  private void registerOther() throws Exception {
    Cluster.App other = new Cluster.App("root.q", "ann", "MAPREDUCE", "another", "", false);
    keeper = new HomeKeeper(new Attempt("application_1700000000000_01" + ++applications, 1), other, cluster, daemon, counters);
    keeper.registered(Mode.ON, settings, now);
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
  }

  @Test
  void ofAJobWhoseDataWasSentNowhereAllPassesWhereNobodyWaitsForBlocks() throws Exception {
    use("blocks-for-ms=0");
    registerOther();
    assertEquals(rows(3, 3, "*=3"), allocate(maps(3)));
    assertEquals(1, count("ended_none_given"));
    assertEquals(1, count("asked"), "and nobody asks again");
  }

  @Test
  void mapsWhoseDataWasSentNowhereWaitForHostsOfTheirBlocksThenForTheirRacksUntilNoneComes() throws Exception {
    registerOther();
    assertEquals(rows(3, 3, "*=3!"), allocate(maps(3)), "their rows stay as they came");
    assertEquals(3, count("blocks"));
    assertEquals(hosts(3, 3, 3, 3), pass(1), "none came for a second: all hosts of their racks");
    keeper.delivered(MAPS, host(1, false), away(), now);
    assertEquals(hosts(3, 0, 3, 0), allocate(), "one came: hosts of their blocks again");
    assertEquals(hosts(2, 2, 2, 2), pass(1), "no more than are outstanding");
    assertEquals("", pass(3));
    assertEquals("*=2 " + hosts(3, 0, 3, 0), pass(1), "none came for 5 s");
    assertEquals(1, count("blocks_ended_waited"));
    assertEquals(0, count("narrowed") + count("at_home") + count("elsewhere"));
    assertEquals(rows(2, 2, "*=2"), allocate(maps(2)), "for good");
  }

  /** Rows of both hosts at home, and of both elsewhere. */
  private String hosts(int home, int otherHome, int away, int otherAway) {
    return told(Arrays.asList(
        Yarn.row(MAPS, host(0, true), home), Yarn.row(MAPS, host(1, true), otherHome),
        Yarn.row(MAPS, host(0, false), away), Yarn.row(MAPS, host(1, false), otherAway)));
  }

  @Test
  void whoSaysSoWaitsForHostsOfBlocksAlone() throws Exception {
    use("blocks-for-ms=3000", "block-racks-for-ms=0");
    registerOther();
    assertEquals(rows(3, 3, "*=3!"), allocate(maps(3)));
    assertEquals("", pass(2));
    keeper.delivered(MAPS, host(0, false), away(), now);
    assertEquals("", pass(2), "no row of another host is added");
    assertEquals("*=2", pass(1), "none came for 3 s");
    assertEquals(1, count("blocks_ended_waited"));
  }

  @Test
  void ofRacksOfBlocksOnlyHostsThatTakeContainersAreNamed() throws Exception {
    registerOther();
    allocate(maps(3));
    cluster.unusable.add(host(1, true));
    blacklisted = Collections.singleton(away());
    String sent = pass(1);
    assertFalse(sent.contains(host(1, true)) || sent.contains(host(1, false)), sent);
    cluster.unusable.clear();
    assertTrue(pass(1).contains(host(1, true) + "=3"));
  }

  @Test
  void nobodyStaysForWhatIsLeftOfAHomeThatIsBeingDrained() throws Exception {
    List<String> more = Arrays.asList("more-1", "more-2", "more-3");
    more.forEach(host -> cluster.racks.put(host, rack()));
    register();
    allocate(maps(3));
    cluster.unusable.addAll(more.subList(0, 2));
    pass(5);
    assertEquals(0, count("ended_few_nodes"), "most of its five hosts are there");
    cluster.unusable.addAll(more);
    assertTrue(pass(1).contains("*=3 "));
    assertEquals(1, count("ended_few_nodes"));
  }

  @Test
  void aJobStaysWhereMostOfItsMapsRanThoughHintdHasForgottenWhereThatIs() throws Exception {
    gathering();
    register();
    home = Integer.parseInt(gatheredIn("application_1700000000000_000" + applications).substring("/rack".length()));
    List<ResourceRequest> rows = Arrays.asList(Yarn.row(MAPS, "*", 3), Yarn.row(MAPS, rack(), 3), Yarn.row(MAPS, host(0, true), 3));
    keeper.came(rows, Mode.ON, settings, now);
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
    allocate();
    keeper.delivered(MAPS, host(0, true), rack(), now);
    keeper.delivered(MAPS, host(1, true), rack(), now);
    gathering();
    String other = IntStream.range(0, 3).mapToObj(rack -> "/rack" + rack).filter(rack -> !Arrays.asList(rack(), busy).contains(rack)).findFirst().get();
    ResourceRequest[] left = {Yarn.row(MAPS, "*", 1), Yarn.row(MAPS, rack(), 0), Yarn.row(MAPS, other, 1)};
    allocate(left);
    String sent = pass(5);
    assertEquals(other, gatheredIn("application_1700000000000_000" + applications), "by the block that is left");
    assertFalse(sent.contains(other + "=1") || sent.contains("*=1 "), sent);
    assertEquals(Collections.singleton(rack()), new TreeSet<>(keeper.askedIn(REDUCES)));
  }

  /** A daemon whose policy gathers jobs, and that knows a run which shuffled sixteen times what it read. */
  private void gathering() throws Exception {
    stop();
    hintd = jointDaemon();
    client = HintdClient.to(hintd.address());
    nodes = hintd.nodes(client, NODES);
    use("mode=on", "gathers=true");
    run(client, nodes, app.recurringKey(), "application_1700000000000_0001", 64L << 30);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while ((busy = gatheredIn("application_1700000000000_9999")).isEmpty()) {
      assertTrue(System.nanoTime() < end, "the run is known");
      Thread.sleep(20);
    }
  }

  /** A daemon whose policy gathers jobs. */
  static TestDaemon jointDaemon() throws Exception {
    TestDaemon hintd = new TestDaemon("on");
    hintd.configure("on", "joint");
    hintd.start();
    return hintd;
  }

  private String gatheredIn(String application) throws Exception {
    InputHomesRequest.Builder asked = InputHomesRequest.newBuilder().setApplicationId(application).setAttempt(1);
    asked.setQueue(app.queue).setRecurringJobKey(app.recurringKey()).setGroup("p20").setMayGather(true);
    InputHomesResponse told = client.inputHomes(asked, Duration.ofSeconds(20)).join();
    assertEquals(told.getHomesCount() > 0, told.getGathered());
    return told.getGathered() ? told.getHomes(0).getRack() : "";
  }

  @Test
  void aJobThatIsGatheredIsAskedForAtItsHomesFromTheBeginningWhereMostOfItsBlocksLie() throws Exception {
    gathering();
    register();
    String application = "application_1700000000000_000" + applications;
    // Neither where it would be without its blocks, nor where another has much to do.
    String drawn = gatheredIn(application);
    home = IntStream.range(0, 3).filter(rack -> !Arrays.asList(drawn, busy).contains("/rack" + rack)).findFirst().getAsInt();
    ResourceRequest[] rows = {
      Yarn.row(MAPS, "*", 3), Yarn.row(MAPS, rack(), 2), Yarn.row(MAPS, host(1, true), 2), Yarn.row(MAPS, away(), 1), Yarn.row(MAPS, host(0, false), 1)
    };
    assertTrue(keeper.came(Arrays.asList(rows), Mode.ON, settings, now), "where it is gathered depends on its blocks");
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
    assertEquals(atHome(MAPS, 3, 2, 2, "*=3! ", away(), 0, host(0, false), 0), allocate(rows), "as many on each host");
    assertEquals(rack(), gatheredIn(application), "for good");
    assertFalse(keeper.came(Arrays.asList(rows), Mode.ON, settings, now), "nobody waits again");
    assertEquals(3, count("gathered"));
    keeper.delivered(MAPS, host(1, true), rack(), now);
    assertEquals(1, count("at_home"));
    assertEquals(told(Arrays.asList(Yarn.row(MAPS, rack(), 2), Yarn.row(MAPS, host(1, true), 1))), pass(2), "with the one that came");
    assertEquals(atHome(MAPS, 2, 2, 2, ""), pass(1), "wherever there is room");
    assertEquals("", pass(57));
    assertEquals(0, count("ended_not_at_home"));
    // 64 GiB over an uplink of 500 MB a second, which nodes without a network are taken to have, take 137 s.
    assertTrue(pass(80).contains("*=2 "), "none came for so long");
    assertEquals(1, count("ended_waited"));
    use("gathers=false");
    register();
    assertFalse(keeper.came(Arrays.asList(rows), Mode.ON, settings, now), "nobody waits who may not be gathered");
    assertTrue(allocate(rows).contains(away() + "=1"), "its rows stay as they came");
    assertEquals(3, count("blocks"), "and are waited for");
  }

  @Test
  void reducesOfAJobThatWaitsForItsBlocksAreNotHeldAndHintsHaveTheirSay() throws Exception {
    registerOther();
    allocate(maps(3));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    assertEquals("*=2", allocate(Yarn.row(REDUCES, "*", 2)));
    assertTrue(keeper.keeps(MAPS) && !keeper.keeps(REDUCES));
    assertEquals(0, count("reduces_held") + count("reduces"));
  }

  @Test
  void nobodyWaitsForBlocksOfMapsThatHaveNoneOrWhereTheQueueIsOffOrInShadow() throws Exception {
    registerOther();
    assertEquals("*=3", allocate(Yarn.row(MAPS, "*", 3)));
    assertEquals(1, count("blocks_ended_no_rows"));
    registerOther();
    assertEquals(rows(3, 3, "*=3"), allocate(Mode.SHADOW, maps(3)));
    assertEquals(3, count("shadow_blocks"));
    assertEquals(rows(3, 3, "*=3!"), allocate(maps(3)));
    now += 1_000;
    assertEquals("*=3", allocate(Mode.OFF), "back at once");
    assertEquals(1, count("blocks_ended_off"));
  }

  @Test
  void nobodyWaitsForBlocksOnHostsThatAreNoNodesOrCanNotTakeMaps() throws Exception {
    registerOther();
    ResourceRequest[] elsewhere = {Yarn.row(MAPS, "*", 3), Yarn.row(MAPS, rack(), 3), Yarn.row(MAPS, "localhost", 3)};
    assertEquals("*=3 " + told(Arrays.asList(elsewhere[1], elsewhere[2])), allocate(elsewhere), "as object stores have it");
    assertEquals(1, count("blocks_ended_no_rows"));
    registerOther();
    assertEquals(rows(3, 3, "*=3!"), allocate(maps(3)));
    cluster.unusable.add(host(0, true));
    assertEquals("", allocate(), "the other replica's host can take all of them");
    blacklisted = Collections.singleton(host(0, false));
    assertEquals("*=3", pass(1));
    assertEquals(2, count("blocks_ended_no_rows"));
  }

  @Test
  void aDaemonThatDiesEndsTheWaitForBlocks() throws Exception {
    use("deadline-ms=3000", "breaker-failures=1", "blocks-for-ms=60000");
    registerOther();
    assertEquals(rows(3, 3, "*=3!"), allocate(maps(3)));
    hintd.kill();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    String sent = "";
    now += 5_000;
    while (sent.isEmpty()) {
      assertTrue(System.nanoTime() < end, "in time");
      Thread.sleep(10);
      sent = allocate();
    }
    assertEquals("*=3", sent);
    assertEquals(1, count("blocks_ended_silent"), () -> counters.getCounts().toString());
  }

  /** Its last run shuffled so much that hintd is patient; seconds, up. */
  private int patient() throws Exception {
    run(client, nodes, app.recurringKey(), "application_1700000000000_0050", 100L << 30);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (true) {
      InputHomesRequest.Builder asked =
          InputHomesRequest.newBuilder()
              .setApplicationId("application_1700000000000_0051")
              .setAttempt(1)
              .setQueue(app.queue)
              .setRecurringJobKey(app.recurringKey())
              .setGroup(MAPS.group());
      int found = client.inputHomes(asked, Duration.ofSeconds(20)).join().getPatienceMs();
      if (found > 100_000) {
        return (found + 999) / 1_000;
      }
      assertTrue(System.nanoTime() < end, () -> "patience " + found);
      Thread.sleep(20);
    }
  }

  @Test
  void mapsAndReducesWaitAsLongAsHintdSays() throws Exception {
    int patience = patient();
    register();
    assertEquals(rows(3, 0, "*=3!"), allocate(maps(3)));
    assertEquals(atHome(MAPS, 3, 3, 3, ""), pass(3));
    assertEquals("", pass(patience - 4));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    assertEquals("", pass(patience - 1), "since the last one");
    assertTrue(pass(1).startsWith("*=2 "));
    assertEquals(1, count("ended_waited"));
    register();
    allocate(maps(1));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    allocate(maps(0));
    assertTrue(allocate(Yarn.row(REDUCES, "*", 2)).startsWith("*=2! "));
    pass(3);
    long asked = count("asked");
    assertEquals("", pass(patience - 4));
    assertTrue(count("asked") >= asked + patience - 5, "while reduces alone wait, hintd is asked each second");
    assertTrue(pass(1).startsWith("*=2 "));
    assertEquals(1, count("reduces_ended_waited"));
  }

  @Test
  void nobodyWaitsForLongerThanHisSettingsLet() throws Exception {
    patient();
    use("homes-wait-ms=45000");
    register();
    allocate(maps(3));
    pass(3);
    assertEquals("", pass(41));
    assertEquals(atHome(MAPS, 3, 3, 0, "*=3 ", away(), 3, host(0, false), 3), pass(1));
    assertEquals(45_000, HomeKeeper.waitMs(50_000, settings));
    assertEquals(40_000, HomeKeeper.waitMs(40_000, settings));
    assertEquals(30_000, HomeKeeper.waitMs(0, settings), "an older hintd");
    use("mode=on");
    assertEquals(3_600_000, HomeKeeper.waitMs(-1, settings), "it is unsigned");
  }

  @Test
  void howeverLongHintsKeepTheirHostsAllOfTheHomeHaveRowsInTime() throws Exception {
    patient();
    use("hosts-for-ms=3600000");
    register();
    allocate(maps(3));
    assertEquals("", pass(29));
    assertEquals(atHome(MAPS, 3, 3, 3, ""), pass(1));
  }

  @Test
  void howeverPatientNobodyWaitsWhereNothingCanCome() throws Exception {
    patient();
    for (boolean maps : new boolean[] {true, false}) {
      for (String why : new String[] {"gone", "hosts", "racks", "size"}) {
        register();
        allocate(maps(2));
        if (!maps) {
          keeper.delivered(MAPS, host(0, true), rack(), now);
          allocate(maps(0));
          assertTrue(allocate(Yarn.row(REDUCES, "*", 2)).startsWith("*=2! "));
        }
        pass(4);
        long ended = count((maps ? "" : "reduces_") + "ended_no_nodes");
        cluster.unusable.addAll(why.equals("gone") ? Arrays.asList(host(0, true), host(1, true)) : Collections.emptyList());
        blacklisted = why.equals("hosts") ? Arrays.asList(host(0, true), host(1, true)) : blacklisted;
        blacklisted = why.equals("racks") ? Arrays.asList(rack()) : blacklisted;
        cluster.roomMb = why.equals("size") ? 1_023 : cluster.roomMb;
        assertTrue(allocate().startsWith("*=2 "), why);
        assertEquals(ended + 1, count((maps ? "" : "reduces_") + "ended_no_nodes"), why);
        cluster.unusable.clear();
        blacklisted = Collections.emptyList();
        cluster.roomMb = 8_192;
      }
    }
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

  private static final class Nodes implements Cluster {
    boolean reserved;
    final Set<String> unusable = new HashSet<>();
    int outstanding = -1;
    int roomMb = 8_192;
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
  }
}
