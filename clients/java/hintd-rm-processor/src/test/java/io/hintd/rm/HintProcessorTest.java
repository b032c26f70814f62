package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.Attempt;
import io.hintd.client.FeedStream;
import io.hintd.client.Group;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.TestDaemon;
import io.hintd.v1.ApplicationDone;
import io.hintd.v1.EventItem;
import io.hintd.v1.FeedHello;
import io.hintd.v1.ShuffleTurnRequest;
import io.hintd.v1.ShuffleTurnResponse;
import io.hintd.v1.TaskEvent;
import io.hintd.v1.TaskGroup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceContext;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceProcessor;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.exceptions.InvalidContainerReleaseException;
import org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.util.Records;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The processor between an ApplicationMaster and a scheduler that notes what it gets; hintd is real. */
class HintProcessorTest {
  private static final int NODES = 4;

  @TempDir Path folder;
  private final Scheduler yarn = new Scheduler();
  private HintProcessor processor;
  private TestDaemon daemon;
  private HintdClient client;
  private TestDaemon.Nodes nodes;
  private int applications;

  @AfterEach
  void stop() throws Exception {
    if (processor != null) {
      processor.stop();
    }
    if (nodes != null) {
      nodes.close();
      client.close();
    }
    if (daemon != null) {
      daemon.close();
    }
  }

  @Test
  void withoutADaemonRequestsPassAsTheyCameAndSoonNobodyAsks() throws Exception {
    start("127.0.0.1:1", "mode=on", "deadline-ms=100", "breaker-failures=2");
    until(
        () -> {
          passes(register());
          return processor.counters().isBreakerOpen();
        });
    passes(register());
    assertTrue(processor.counters().notAsked.sum() > 0, processor.counters().getCounts()::toString);
    assertEquals(0, processor.counters().errors.sum());
  }

  private void passes(ApplicationAttemptId app) throws Exception {
    assertEquals("*=3", yarn.told(allocate(app, any(3))));
    assertEquals("", yarn.told(allocate(app)));
    finish(app);
  }

  @Test
  void aMistakeOfOurOwnPassesTheRequestAsItCame() throws Exception {
    start("127.0.0.1:1", "mode=on");
    yarn.racksFail = true; // stands for any mistake
    ApplicationAttemptId app = register();
    assertEquals("*=3", yarn.told(allocate(app, any(3))));
    assertEquals("*=2", yarn.told(allocate(app, any(2))));
    assertTrue(processor.counters().errors.sum() > 0);
  }

  @Test
  void theProcessorOfAResourceManagerThatIsActiveNoLongerEndsAndKeepsNobody() throws Exception {
    Set<Thread> before = upkeep();
    start("127.0.0.1:1", "mode=on");
    ApplicationAttemptId app = register();
    Set<Thread> ours = upkeep();
    ours.removeAll(before);
    assertEquals(1, ours.size());
    yarn.over = true; // as after a failover, when YARN has made another and tells nobody
    Thread thread = ours.iterator().next();
    thread.join(60_000);
    assertFalse(thread.isAlive());
    assertEquals(0L, processor.counters().getCounts().get("attempts"));
    passes(app);
    passes(register());
  }

  private static Set<Thread> upkeep() {
    return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().equals("hintd-upkeep")).collect(Collectors.toSet());
  }

  @Test
  void hintsReachYarnAndContainersAreTold() throws Exception {
    startWithDaemon("mode=on", "wait-ms=1000");
    ApplicationAttemptId app = register();
    List<ResourceRequest> sent = allocate(app, any(2));
    TreeMap<String, Integer> hosts = hosts(sent);
    assertEquals(2, hosts.values().stream().mapToInt(Integer::intValue).sum(), yarn.told(sent));
    assertEquals(1, sent.stream().filter(row -> row.getResourceName().equals("*")).count());
    assertTrue(sent.stream().filter(row -> row.getResourceName().startsWith("/rack")).count() > 0);
    for (String host : hosts.keySet()) {
      yarn.give(app, host);
    }
    allocate(app);
    allocate(app);
    yarn.complete(app);
    allocate(app);
    finish(app);
    Map<String, Long> counts = processor.counters().getCounts();
    assertEquals(2L, counts.get("on_hinted"), counts::toString);
    assertEquals((long) hosts.size(), counts.get("on_on_host"), counts::toString);
    until(() -> processor.counters().getCounts().get("events_sent") == 2 * hosts.size() + 1);
    assertEquals(0L, processor.counters().getCounts().get("events_refused"));
  }

  @Test
  void inShadowRequestsPassAndAreComparedAndAQueueIsSwitchedOnByTheFile() throws Exception {
    startWithDaemon("mode=shadow", "wait-ms=1000");
    ApplicationAttemptId app = register();
    assertEquals("*=2", yarn.told(allocate(app, any(2))));
    assertEquals(2L, processor.counters().getCounts().get("shadow_hinted"));
    assertEquals("{*=SHADOW}", processor.counters().getModes().toString());
    Files.write(folder.resolve("settings"), Arrays.asList("address=" + daemon.address(), "mode=off", "mode.root.q=on", "wait-ms=1000"));
    until(() -> processor.counters().reloads.sum() == 2);
    assertEquals("{*=OFF, root.q=ON}", processor.counters().getModes().toString());
    assertFalse(hosts(allocate(register(), any(2))).isEmpty());
    Files.write(folder.resolve("settings"), Arrays.asList("address=" + daemon.address(), "mode=off"));
    until(() -> processor.counters().reloads.sum() == 3);
    assertTrue(hosts(allocate(register(), any(2))).isEmpty());
  }

  @Test
  void receiversOfHeavyShufflesWaitForTheirTurnAndNobodyWaitsForADeadDaemon() throws Exception {
    startWithDaemon("mode=on", "hold.root.q=true", "deadline-ms=20000");
    ranBefore(1L << 30);
    List<ApplicationAttemptId> apps = new ArrayList<>();
    // One after the other: of three that ask at once hintd may hear the last one first.
    for (int i = 0; i < 3; i++) {
      apps.add(register());
      allocate(apps.get(i), any(12));
      if (i < 2) {
        asked(apps.get(i), i == 0 ? 8 : 2); // a quarter of 32 containers, and of that for the next
      }
    }
    until(() -> { allocate(apps.get(2)); return processor.counters().held.sum() == 4 + 10 + 12; });
    long turns = processor.counters().turnsAsked.sum();
    until(() -> { allocate(apps.get(2)); return processor.counters().turnsAsked.sum() > turns; });
    assertEquals(26, processor.counters().held.sum(), "it is told again to wait");
    finish(apps.get(0));
    asked(apps.get(2), 2);
    ApplicationAttemptId late = register();
    allocate(late, any(5));
    until(() -> { allocate(late); return processor.counters().held.sum() == 10 + 10 + 5; });
    daemon.kill();
    asked(late, 5);
    assertEquals(0, processor.counters().errors.sum());
  }

  /** Those that wait for their turn, run and ended are placed as one with those that are asked for now. */
  @Test
  void hintdHearsHowManyReceiversThereAreInAllWhereAPartIsAskedFor() throws Exception {
    try (NotingHintd hintd = new NotingHintd()) {
      start(hintd.address(), "mode=on", "hold.root.q=true", "prefetch=false", "deadline-ms=20000");
      ApplicationAttemptId app = register();
      allocate(app, any(20, 3));
      part(hintd, app, "p20", 1, "3 of 0"); // maps never wait here
      hintd.atMost(8);
      allocate(app, any(10, 12));
      asked(app, 8);
      part(hintd, app, "p10", 1, "8 of 12");
      for (int given = 0; given < 3; given++) {
        yarn.give(app, TestDaemon.Nodes.host(given));
      }
      allocate(app); // they run
      hintd.atMost(10);
      asked(app, 7);
      part(hintd, app, "p10", 2, "2 of 12");
      yarn.complete(app); // they have ended: there is a turn for the others
      asked(app, 9);
      part(hintd, app, "p10", 3, "2 of 12");
      assertEquals(0, processor.counters().errors.sum());
    }
  }

  @Test
  void requestsOfAnApplicationWithATraceparentBelongToItsTrace() throws Exception {
    String traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    try (NotingHintd hintd = new NotingHintd()) {
      start(hintd.address(), "mode=on", "prefetch=false", "deadline-ms=20000");
      yarn.tags = new HashSet<>(Arrays.asList("nightly", "traceparent:" + traceparent, "traceparent:none"));
      ApplicationAttemptId app = register();
      allocate(app, any(20, 3));
      part(hintd, app, "p20", 1, "3 of 0");
      assertEquals(Collections.singletonList(traceparent), hintd.traceparents());
    }
  }

  /** How many of a group hints were asked for, and how many it was said to have in all, at the last of so many times. */
  private void part(NotingHintd hintd, ApplicationAttemptId app, String group, int times, String said) throws Exception {
    until(() -> { allocate(app); return hintd.asked(group).size() >= times; });
    TaskGroup last = hintd.asked(group).get(times - 1);
    assertEquals(said, last.getCount() + " of " + last.getWhole(), () -> hintd.asked(group).toString());
    assertEquals(times, hintd.asked(group).size());
  }

  @Test
  void hintdHearsOfReceiversBeforeTheyAreAskedForAndHoldsNothingForIt() throws Exception {
    startWithDaemon("mode=on", "hold.root.q=true", "deadline-ms=20000");
    ranBefore(1L << 30);
    List<ApplicationAttemptId> apps = new ArrayList<>();
    long began = System.nanoTime();
    for (int i = 0; i < 3; i++) {
      apps.add(register());
      allocate(apps.get(i));
      allocate(apps.get(i));
    }
    // On a machine that took as long as that, the second allocate may have told of it again.
    boolean slow = System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(TurnKeeper.ANNOUNCE_MS);
    long told = processor.counters().turnsAsked.sum();
    assertTrue(slow ? told >= 3 && told <= 6 : told == 3, told + ": once each, and seldom after that");
    until(() -> processor.counters().answered.sum() >= 3);
    allocate(apps.get(2), any(5));
    asked(apps.get(2), 5); // the others would be before it
    assertEquals(0, processor.counters().held.sum());
    assertEquals(0, processor.counters().refused.sum());
  }

  /** A run of the job that asked hintd itself, with so many bytes of shuffle. */
  private void ranBefore(long bytes) throws Exception {
    ApplicationAttemptId id = ApplicationAttemptId.newInstance(ApplicationId.newInstance(1_600_000_000_000L, 1), 1);
    Attempt attempt = new Attempt(id.getApplicationId().toString(), 1);
    HintRequest request = new HintRequest(attempt).queue("root.q").recurringJobKey(yarn.app(id).recurringKey());
    request.group(new Group("p20", 1, 1024, 1)).group(new Group("p10", 1, 1024, 1)).edge("p20", "p10", bytes);
    client.requestHints(request, Duration.ofSeconds(10));
    FeedStream<EventItem> events = FeedStream.events(client, FeedHello.newBuilder().setSource("test").build(), 10);
    TaskEvent done =
        TaskEvent.newBuilder()
            .setApplicationId(attempt.applicationId())
            .setAttempt(1)
            .setDone(ApplicationDone.newBuilder())
            .build();
    events.tell(number -> EventItem.newBuilder().setNumber(number).setEvent(done).build());
    until(() -> events.sent() == 1);
    until(() -> turnOf(client).getShuffleBytes() == bytes);
    events.close();
  }

  /** Of nobody's, who is forgotten in time; of no bytes, for it has received everything. */
  private ShuffleTurnResponse turnOf(HintdClient client) throws Exception {
    ApplicationAttemptId id = ApplicationAttemptId.newInstance(ApplicationId.newInstance(1_600_000_000_000L, 2), 1);
    ShuffleTurnRequest.Builder request =
        ShuffleTurnRequest.newBuilder()
            .setApplicationId(id.getApplicationId().toString())
            .setAttempt(1)
            .setQueue("root.q")
            .setRecurringJobKey(yarn.app(id).recurringKey())
            .setGroup("p10")
            .setReceivers(1)
            .setReceived(1);
    return client.shuffleTurn(request, Duration.ofSeconds(10)).get();
  }

  private void asked(ApplicationAttemptId app, int count) throws Exception {
    until(() -> { allocate(app); return yarn.standing(app) == count; });
  }

  @Test
  void aDaemonThatHangsCostsOneWaitAndNoMore() throws Exception {
    startWithDaemon("mode=on", "wait-ms=20", "deadline-ms=8000");
    allocate(register(), any(1)); // connected
    daemon.hang(true);
    ApplicationAttemptId app = register();
    long began = System.nanoTime();
    assertEquals("*=1", yarn.told(allocate(app, any(1))));
    long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
    assertTrue(took < 3000, took + " ms, though it is asked to wait for 20"); // a busy machine may halt for a while
    daemon.hang(false);
    // The answer that came at last goes with a later allocate.
    until(() -> processor.counters().getCounts().get("answered") + processor.counters().getCounts().get("failed") >= 2);
  }

  @Test
  void anAnswerThatComesLateGoesWithTheNextAllocate() throws Exception {
    startWithDaemon("mode=on", "wait-ms=0", "deadline-ms=5000");
    ApplicationAttemptId app = register();
    assertEquals("*=2", yarn.told(allocate(app, any(2))));
    until(() -> processor.counters().answered.sum() == 1);
    assertEquals(2, hosts(allocate(app)).values().stream().mapToInt(Integer::intValue).sum());
  }

  @Test
  void aJobThatRunsAgainIsAskedForAtItsRegistration() throws Exception {
    startWithDaemon("mode=on", "wait-ms=1000");
    for (int run = 0; run < 2; run++) {
      ApplicationAttemptId app = register();
      int prefetched = run;
      until(() -> processor.counters().answered.sum() >= 2 * prefetched);
      until(() -> processor.counters().getCounts().getOrDefault("homes_answered", 0L) > prefetched);
      assertFalse(hosts(allocate(app, any(20, 2))).isEmpty());
      finish(app);
    }
    assertEquals(1, processor.counters().prefetchUsed.sum());
    assertEquals(2, processor.counters().asked.sum(), "once each");
    assertEquals(1, processor.counters().waits.sum(), "and the second time nobody waits");
  }

  @Test
  void reducesAreNotAskedForBeforeMapsCame() throws Exception {
    startWithDaemon("mode=on", "wait-ms=1000");
    for (int run = 0; run < 2; run++) {
      ApplicationAttemptId app = register();
      assertFalse(hosts(allocate(app, any(20, 1), any(10, 2))).isEmpty());
      finish(app);
    }
    assertEquals(1, processor.counters().prefetchUsed.sum(), "the map");
    assertEquals(3, processor.counters().asked.sum(), "both at once, then each on its own");
  }

  @Test
  void asksThatYarnMindsOnlyWithOurRowsAreSentAgainAsTheyCame() throws Exception {
    startWithDaemon("mode=on", "wait-ms=1000");
    yarn.refuseHosts = true;
    ApplicationAttemptId app = register();
    assertEquals("*=2", yarn.told(allocate(app, any(2))));
    assertEquals(1, processor.counters().resentPlain.sum());
    yarn.refuseAll = true;
    assertThrows(InvalidResourceRequestException.class, () -> allocate(app, any(3)));
  }

  /** Maps in two racks, asked for in one of them alone; returns the rack that was left out. */
  private String atHome(ApplicationAttemptId app) throws Exception {
    List<String> racks = Arrays.asList(TestDaemon.Nodes.rack(0), TestDaemon.Nodes.rack(NODES - 1));
    List<ResourceRequest> maps = new ArrayList<>();
    for (String name : Arrays.asList("*", racks.get(0), racks.get(1))) {
      maps.add(Yarn.row(new Key(20, -1), name, 2));
    }
    List<ResourceRequest> sent = allocate(app, maps.toArray(new ResourceRequest[0]));
    assertFalse(sent.get(0).getRelaxLocality(), yarn.told(sent));
    List<String> out = new ArrayList<>();
    sent.stream().filter(row -> row.getNumContainers() == 0).forEach(row -> out.add(row.getResourceName()));
    assertEquals(1, out.size(), yarn.told(sent));
    return out.get(0);
  }

  private ApplicationAttemptId withHomes() throws Exception {
    startWithDaemon("mode=on", "wait-ms=1000", "deadline-ms=20000");
    assertFalse(HomeKeeperFixture.runReader(client, nodes, yarn.app(null).recurringKey(), 1_000L << 30).isEmpty());
    ApplicationAttemptId app = register();
    until(() -> processor.counters().getCounts().getOrDefault("homes_answered", 0L) > 0);
    return app;
  }

  @Test
  void rowsThatAreToComeBackWithAnAllocateThatFailsComeBackWithTheNext() throws Exception {
    ApplicationAttemptId app = withHomes();
    String away = atHome(app);
    yarn.nodesGone = true;
    yarn.mistake = new InvalidContainerReleaseException("not a container of yours");
    assertThrows(InvalidContainerReleaseException.class, () -> allocate(app));
    assertThrows(InvalidContainerReleaseException.class, () -> allocate(app), "and again");
    yarn.mistake = null;
    List<ResourceRequest> sent = allocate(app);
    assertTrue(sent.stream().anyMatch(row -> row.getResourceName().equals("*") && row.getRelaxLocality()), yarn.told(sent));
    assertTrue(yarn.told(sent).contains(away + "=2"), yarn.told(sent));
    assertEquals("", yarn.told(allocate(app)), "once");
  }

  @Test
  void whatYarnRefusesOfThatIsOwedUntilItTakesIt() throws Exception {
    ApplicationAttemptId app = withHomes();
    String away = atHome(app);
    yarn.nodesGone = true;
    yarn.refuseAll = true;
    assertThrows(InvalidResourceRequestException.class, () -> allocate(app));
    yarn.refuseAll = false;
    yarn.refuseHosts = true;
    assertEquals("*=1", yarn.told(allocate(app, any(1))), "the application's own go on");
    yarn.refuseHosts = false;
    String sent = yarn.told(allocate(app, Yarn.row(new Key(20, -1), "*", 1)));
    assertTrue(sent.contains("*=1") && sent.contains(away + "=2"), sent);
    assertEquals("", yarn.told(allocate(app)), "once");
  }

  @Test
  void rowsComeBackWithTheVeryAllocateAtWhichAMistakeOfOurOwnIsMade() throws Exception {
    ApplicationAttemptId app = withHomes();
    String away = atHome(app);
    yarn.racksFail = true; // stands for any mistake
    List<ResourceRequest> sent = allocate(app);
    assertTrue(sent.stream().anyMatch(row -> row.getResourceName().equals("*") && row.getRelaxLocality()), yarn.told(sent));
    assertTrue(yarn.told(sent).contains(away + "=2"), yarn.told(sent));
    assertTrue(processor.counters().errors.sum() > 0);
    assertEquals("*=3", yarn.told(allocate(app, any(3))), "and all passes as it comes");
  }

  @Test
  void reducesThatStayAtHomeHaveNoHintsAndTheirLeasesGoBack() throws Exception {
    ApplicationAttemptId app = withHomes();
    String away = atHome(app);
    String home = away.equals(TestDaemon.Nodes.rack(0)) ? TestDaemon.Nodes.host(NODES - 1) : TestDaemon.Nodes.host(0);
    yarn.give(app, home, 20);
    yarn.give(app, home, 20);
    allocate(app, any(10, 1)); // before a map came: it has a hint
    assertEquals(1L, processor.counters().getCounts().get("on_hinted"));
    List<ResourceRequest> sent = allocate(app, any(20, 0), any(10, 3));
    sent.removeIf(row -> row.getPriority().getPriority() != 10);
    for (ResourceRequest row : sent) {
      boolean any = row.getResourceName().equals("*");
      assertEquals(!any, row.getRelaxLocality(), yarn.told(sent));
      boolean atHome = any || row.getResourceName().equals(home) || row.getResourceName().equals(yarn.racks().get(home));
      assertEquals(atHome ? 3 : 0, row.getNumContainers(), yarn.told(sent));
    }
    assertTrue(yarn.told(sent).contains(home + "=3"), yarn.told(sent));
    until(() -> {
      allocate(app);
      return processor.counters().getOver().getOrDefault("at_home", 0L) == 3;
    });
    assertEquals(1L, processor.counters().getCounts().get("on_hinted"), "no other was hinted");
  }

  @Test
  void theProcessorThatTakesOverGoesOnForAnAttemptByTheSharedSecretAndNoOtherDoes() throws Exception {
    java.nio.file.Path secret = folder.resolve("secret");
    Files.write(secret, Arrays.asList("a secret of both ResourceManagers"));
    String[] lines = {"mode=on", "wait-ms=1000", "prefetch=false", "secret-file=" + secret};
    startWithDaemon(lines);
    ApplicationAttemptId app = register();
    assertFalse(hosts(allocate(app, any(10, 2))).isEmpty());
    processor.stop();
    start(daemon.address(), lines);
    register(app);
    assertFalse(hosts(allocate(app, any(11, 2))).isEmpty(), "the standby with the same secret");
    processor.stop();
    Files.write(secret, Arrays.asList("a secret of somebody else"));
    start(daemon.address(), lines);
    register(app);
    assertTrue(hosts(allocate(app, any(12, 2))).isEmpty(), "anybody else");
    until(() -> processor.counters().refused.sum() == 1);
  }

  /** Far above what anything here takes. */
  private static final long PATIENCE_S = 60;

  private interface Check {
    boolean holds() throws Exception;
  }

  private static void until(Check check) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (!check.holds()) {
      assertTrue(System.nanoTime() < end, "in time");
      Thread.sleep(10);
    }
  }

  private void startWithDaemon(String... lines) throws Exception {
    daemon = new TestDaemon("on").start();
    client = HintdClient.to(daemon.address());
    nodes = daemon.nodes(client, NODES);
    start(daemon.address(), lines);
  }

  private void start(String address, String... lines) throws Exception {
    List<String> all = new ArrayList<>(Arrays.asList(lines));
    all.add("address=" + address);
    Files.write(folder.resolve("settings"), all);
    processor = new HintProcessor();
    processor.start(yarn, folder.resolve("settings").toFile());
    processor.next(yarn);
    until(() -> processor.counters().getCounts().containsKey("events_sent")); // there is a client
  }

  private ApplicationAttemptId register() throws Exception {
    ApplicationAttemptId id = ApplicationAttemptId.newInstance(ApplicationId.newInstance(1_700_000_000_000L, ++applications), 1);
    register(id);
    return id;
  }

  private void register(ApplicationAttemptId id) throws Exception {
    processor.registerApplicationMaster(
        id, RegisterApplicationMasterRequest.newInstance("", 0, ""), Records.newRecord(RegisterApplicationMasterResponse.class));
  }

  /** Returns what the scheduler got. */
  private List<ResourceRequest> allocate(ApplicationAttemptId app, ResourceRequest... asks) throws YarnException {
    AllocateRequest request =
        AllocateRequest.newInstance(0, 0, new ArrayList<>(Arrays.asList(asks)), new ArrayList<>(), null);
    processor.allocate(app, request, Records.newRecord(AllocateResponse.class));
    return yarn.last;
  }

  private void finish(ApplicationAttemptId app) {
    processor.finishApplicationMaster(
        app, FinishApplicationMasterRequest.newInstance(FinalApplicationStatus.SUCCEEDED, "", ""),
        FinishApplicationMasterResponse.newInstance(true));
  }

  private static ResourceRequest any(int count) {
    return any(10, count);
  }

  private static ResourceRequest any(int priority, int count) {
    return ResourceRequest.newInstance(Priority.newInstance(priority), "*", Resource.newInstance(1024, 1), count, true);
  }

  private static TreeMap<String, Integer> hosts(List<ResourceRequest> rows) {
    TreeMap<String, Integer> hosts = new TreeMap<>();
    rows.stream().filter(row -> row.getResourceName().startsWith("node-")).forEach(row -> hosts.put(row.getResourceName(), row.getNumContainers()));
    return hosts;
  }

  /** The rest of the ResourceManager. */
  private static final class Scheduler implements ApplicationMasterServiceProcessor, Cluster {
    private final List<Container> given = new ArrayList<>();
    private final List<ContainerStatus> completed = new ArrayList<>();
    private final List<ContainerId> running = new ArrayList<>();
    List<ResourceRequest> last;
    boolean racksFail;
    volatile boolean over;
    boolean refuseHosts;
    boolean refuseAll;
    boolean nodesGone;
    /** What is wrong with the rest of each request; null: nothing. */
    YarnException mistake;
    Set<String> tags = Collections.emptySet();
    private int containers;
    /** By attempt: the last count for any node. */
    private final Map<ApplicationAttemptId, Integer> standing = new HashMap<>();

    int standing(ApplicationAttemptId app) {
      return standing.getOrDefault(app, 0);
    }

    String told(List<ResourceRequest> rows) {
      List<String> text = new ArrayList<>();
      rows.forEach(row -> text.add(row.getResourceName() + "=" + row.getNumContainers()));
      return String.join(" ", text);
    }

    void give(ApplicationAttemptId app, String host) {
      give(app, host, 10);
    }

    void give(ApplicationAttemptId app, String host, int priority) {
      ContainerId id = ContainerId.newContainerId(app, ++containers + 1);
      given.add(Container.newInstance(id, NodeId.newInstance(host, 45454), "", Resource.newInstance(1024, 1), Priority.newInstance(priority), null));
      given.get(given.size() - 1).setAllocationRequestId(-1);
      running.add(id);
    }

    void complete(ApplicationAttemptId app) {
      running.forEach(id -> completed.add(ContainerStatus.newInstance(id, ContainerState.COMPLETE, "", 0)));
      running.clear();
    }

    @Override
    public void init(ApplicationMasterServiceContext context, ApplicationMasterServiceProcessor next) {}

    @Override
    public void registerApplicationMaster(
        ApplicationAttemptId id, RegisterApplicationMasterRequest request, RegisterApplicationMasterResponse response) {}

    @Override
    public void allocate(ApplicationAttemptId id, AllocateRequest request, AllocateResponse response)
        throws YarnException {
      boolean hosts = request.getAskList().stream().anyMatch(row -> !row.getResourceName().equals("*"));
      if (refuseAll || (refuseHosts && hosts)) {
        throw new InvalidResourceRequestException("refused");
      }
      if (mistake != null) {
        throw mistake;
      }
      last = new ArrayList<>(request.getAskList());
      last.stream().filter(row -> row.getResourceName().equals("*")).forEach(row -> standing.put(id, row.getNumContainers()));
      response.setAllocatedContainers(new ArrayList<>(given));
      response.setCompletedContainersStatuses(new ArrayList<>(completed));
      given.clear();
      completed.clear();
    }

    @Override
    public void finishApplicationMaster(
        ApplicationAttemptId id, FinishApplicationMasterRequest request, FinishApplicationMasterResponse response) {}

    @Override
    public App app(ApplicationAttemptId attempt) {
      return new App("root.q", "ann", "MAPREDUCE", "daily 2026-11-21", "", false, tags);
    }

    @Override
    public Predicate<String> takes(Resource size) {
      return node -> !nodesGone;
    }

    @Override
    public boolean reserved(Attempt attempt, Key key) {
      return false;
    }

    @Override
    public int outstanding(Attempt attempt, Key key) {
      return -1;
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
    public boolean over() {
      return over;
    }

    @Override
    public Map<String, String> racks() {
      if (racksFail) {
        throw new IllegalStateException("a mistake");
      }
      Map<String, String> racks = new HashMap<>();
      for (int i = 0; i < NODES; i++) {
        racks.put(TestDaemon.Nodes.host(i), TestDaemon.Nodes.rack(i));
      }
      return Collections.unmodifiableMap(racks);
    }
  }
}
