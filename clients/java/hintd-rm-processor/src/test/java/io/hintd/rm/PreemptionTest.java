package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.Attempt;
import io.hintd.client.Group;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.TestDaemon;
import io.hintd.v1.ShuffleTurnRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
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
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;
import org.apache.hadoop.yarn.util.Records;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The processor before Hadoop's own CapacityScheduler, which takes containers and nodes away again; hintd is real. */
class PreemptionTest {
  private static final int NODES = 6;
  private static final int ROOM = 3;
  private static final Key MAPS = new Key(20, -1);
  private static final Key REDUCES = new Key(10, -1);
  /** Heartbeats of all nodes after which YARN gives containers anywhere: more than there are nodes, of those that have room. */
  private static final int BEATS = 4;
  /** Far above what anything here takes. */
  private static final long PATIENCE_S = 60;

  @TempDir Path folder;
  private final HintProcessor processor = new HintProcessor();
  private final List<Job> jobs = new ArrayList<>();
  private TestDaemon hintd;
  private HintdClient client;
  private TestDaemon.Nodes nodes;
  private RealYarn yarn;
  private boolean started;

  @BeforeEach
  void start() throws Exception {
    hintd = new TestDaemon("on").start();
    client = HintdClient.to(hintd.address());
    nodes = hintd.nodes(client, NODES);
    yarn = new RealYarn("a", "b");
    for (int i = 0; i < NODES; i++) {
      yarn.node(TestDaemon.Nodes.host(i), TestDaemon.Nodes.rack(i), ROOM);
    }
  }

  @AfterEach
  void stop() throws Exception {
    if (started) {
      processor.stop();
    }
    TestDaemon.closeAll(yarn, nodes, client, hintd);
  }

  private void process(String... lines) throws Exception {
    List<String> all = new ArrayList<>(Arrays.asList("mode=on", "homes=false", "prefetch=false", "deadline-ms=20000"));
    all.addAll(Arrays.asList(lines));
    all.add("address=" + hintd.address());
    Files.write(folder.resolve("settings"), all);
    processor.start(new Nodes(), folder.resolve("settings").toFile());
    processor.next(new Rest());
    started = true;
    until(() -> processor.counters().getCounts().containsKey("events_sent")); // there is a client
  }

  /** Receivers of a job whose containers another queue takes back are held, pass and come to their end as those of any. */
  @Test
  void whoIsPreemptedHasItsTurnStillAndWhoWaitsForItComesToItsEnd() throws Exception {
    process("hold=true");
    ranBefore();
    Job first = new Job("a");
    first.ask(REDUCES, 18);
    steps(() -> first.running(REDUCES) == 12 && held() == 6); // a quarter of the 48 containers that hintd knows of
    Job second = new Job("b");
    second.ask(MAPS, 9);
    steps(() -> second.running(MAPS) == 9);
    assertTrue(first.preempted >= 3, this::say); // YARN may give it again what it took before the other has it
    // What was taken back may be asked for again, and no more.
    steps(() -> first.standing(REDUCES) == 3 && held() == 6);
    second.ask(REDUCES, 9);
    steps(() -> {
      second.finish(MAPS);
      return second.done(MAPS) == 9;
    });
    steps(() -> held() > 6); // the second waits for the first
    steps(() -> {
      first.finish(REDUCES);
      second.finish(REDUCES);
      return first.done(REDUCES) == 18 && second.done(REDUCES) == 9;
    });
    assertEquals(0, held(), this::say);
    for (Job job : jobs) {
      assertEquals(0, job.standing(REDUCES) + job.standing(MAPS) + job.wish(REDUCES) + job.wish(MAPS), this::say);
    }
    assertEquals(0, processor.counters().errors.sum() + processor.counters().resentPlain.sum());
  }

  /** YARN counts what is outstanding, not where it may go: what it takes back on other nodes is of no use to who stays by its blocks. */
  @Test
  void whoStaysByItsBlocksGoesElsewhereWhereYarnTakesContainersBackForIt() throws Exception {
    process("homes=true", "blocks-for-ms=60000", "wait-ms=1000");
    Job first = new Job("b");
    first.ask(MAPS, NODES * ROOM);
    steps(() -> first.running(MAPS) == NODES * ROOM);
    Job second = new Job("a");
    second.askNear(MAPS, 6, TestDaemon.Nodes.host(0), TestDaemon.Nodes.rack(0));
    steps(() -> second.running(MAPS) == 6);
    Map<String, Long> counts = processor.counters().getCounts();
    assertEquals(1, counts.getOrDefault("homes_blocks_ended_preemption", 0L), this::say);
    assertEquals(0, processor.counters().errors.sum());
  }

  /** The processor asks for nothing strict any more one look before YARN kills, and not where YARN would not kill. */
  @Test
  void whomYarnKillsForIsKnownOneLookBefore() throws Exception {
    process("mode=off");
    CapacitySchedulerConfiguration conf = yarn.scheduler.getConfiguration();
    conf.set(CapacitySchedulerConfiguration.PREEMPTION_WAIT_TIME_BEFORE_KILL, "15000");
    Job first = new Job("b");
    Job second = new Job("a");
    first.ask(MAPS, NODES * ROOM);
    awaitRunning(first, NODES * ROOM);
    Preemption preemption = new Preemption(any -> true);
    Near near = (job, now) -> {
      preemption.look(yarn.scheduler, now);
      return preemption.isNear((CSQueue) yarn.scheduler.getApplicationAttempt(job.id).getQueue(), now);
    };
    assertFalse(near.at(second, 0), "it asks for nothing");
    second.ask(MAPS, 3);
    second.heartbeat();
    assertFalse(near.at(second, 1_000));
    assertFalse(near.at(second, 12_999));
    assertTrue(near.at(second, 13_000), "12 s, for YARN looks each 3 s and kills after 15");
    assertFalse(near.at(first, 13_000), "it has more than its capacity");
    for (String way : new String[] {CapacitySchedulerConfiguration.PREEMPTION_OBSERVE_ONLY, CapacitySchedulerConfiguration.LAZY_PREEMPTION_ENABLED}) {
      conf.setBoolean(way, true);
      assertFalse(near.at(second, 14_000), way);
      conf.setBoolean(way, false);
    }
    second.ask(MAPS, -3);
    second.heartbeat();
    assertFalse(near.at(second, 20_000));
    second.ask(MAPS, 3);
    second.heartbeat();
    assertTrue(near.at(second, 43_000), "YARN remembers whom it chose for 30 s");
    second.ask(MAPS, -3);
    second.heartbeat();
    assertFalse(near.at(second, 74_000));
    second.ask(MAPS, 3);
    second.heartbeat();
    assertFalse(near.at(second, 75_000), "and no longer");
    assertTrue(near.at(second, 88_000));
    yarn.node("node-6", "/rack3", ROOM);
    assertFalse(near.at(second, 89_000), "there is room for all of them");
    second.ask(MAPS, 1);
    second.heartbeat();
    assertTrue(near.at(second, 90_000), "but not for these");
    Preemption nobody = new Preemption(any -> false);
    for (long now = 90_000; now <= 120_000; now += 30_000) {
      nobody.look(yarn.scheduler, now);
    }
    assertFalse(nobody.isNear((CSQueue) yarn.scheduler.getApplicationAttempt(second.id).getQueue(), 120_000), "nobody kills");
  }

  @Test
  void nobodyIsNearWhereAValueCanNotBeReadOrOthersMayKeepWhatTheyHave() throws Exception {
    process("mode=off");
    CapacitySchedulerConfiguration conf = yarn.scheduler.getConfiguration();
    Job first = new Job("b");
    Job second = new Job("a");
    first.ask(MAPS, NODES * ROOM);
    awaitRunning(first, NODES * ROOM);
    second.ask(MAPS, 3);
    second.heartbeat();
    Preemption preemption = new Preemption(any -> true);
    CSQueue queue = (CSQueue) yarn.scheduler.getApplicationAttempt(second.id).getQueue();
    preemption.look(yarn.scheduler, 100_000);
    assertTrue(preemption.isNear(queue, 100_000), "it kills at once here");
    conf.set(CapacitySchedulerConfiguration.PREEMPTION_WAIT_TIME_BEFORE_KILL, "15s");
    assertThrows(NumberFormatException.class, () -> preemption.look(yarn.scheduler, 101_000));
    assertFalse(preemption.isNear(queue, 101_000));
    conf.set(CapacitySchedulerConfiguration.PREEMPTION_WAIT_TIME_BEFORE_KILL, "0");
    preemption.look(yarn.scheduler, 102_000);
    assertTrue(preemption.isNear(queue, 102_000));
    conf.set(CapacitySchedulerConfiguration.PREEMPTION_MAX_IGNORED_OVER_CAPACITY, "1.5");
    preemption.look(yarn.scheduler, 103_000);
    assertFalse(preemption.isNear(queue, 103_000), "the other has twice its capacity, and may have two and a half times");
  }

  private interface Near {
    boolean at(Job job, long now) throws Exception;
  }

  private void awaitRunning(Job job, int containers) throws Exception {
    until(() -> {
      job.heartbeat();
      yarn.beat();
      return job.running(MAPS) == containers;
    });
  }

  /** hintd knows what a run of the jobs shuffles. */
  private void ranBefore() throws Exception {
    HintRequest before = new HintRequest(new Attempt("application_1600000000000_0001", 1)).recurringJobKey(app("a").recurringKey());
    before.group(new Group("p20", 4, 1_024, 1).role("map").priority(20));
    before.group(new Group("p10", 4, 1_024, 1).role("reduce").priority(10)).edge("p20", "p10", 10L << 30);
    TestDaemon.run(client, before, "p20", "p10");
    ShuffleTurnRequest.Builder nobody =
        ShuffleTurnRequest.newBuilder()
            .setApplicationId("application_1600000000000_0002")
            .setAttempt(1)
            .setQueue("a")
            .setRecurringJobKey(app("a").recurringKey())
            .setGroup("p10")
            .setReceivers(1)
            .setReceived(1); // it has all of its bytes, so nobody waits for it
    until(() -> client.shuffleTurn(nobody, Duration.ofSeconds(20)).get().getShuffleBytes() > 0);
  }

  /** A maintenance mode is HDFS's alone; a node that YARN is to give up is being decommissioned. */
  @Test
  void whatIsHintedToNodesThatAreBeingDecommissionedComesElsewhere() throws Exception {
    process("wait-ms=1000", "hosts-for-ms=3600000", "racks-for-ms=3600000");
    Job job = new Job("a");
    Set<String> gone = new TreeSet<>();
    for (int ask = 2; ask <= 8; ask += 6) { // the second time hintd, which knows nothing of it here, may name them again
      job.ask(MAPS, ask - job.at.size());
      job.heartbeat();
      Set<String> hinted = hosts(job.sent);
      assertFalse(hinted.isEmpty(), this::say);
      gone.addAll(gone.isEmpty() ? hinted : Collections.emptySet());
      gone.forEach(host -> yarn.state(host, NodeState.DECOMMISSIONING));
      for (int beat = 0; beat < BEATS; beat++) {
        yarn.beat();
      }
      job.heartbeat();
      assertEquals(ask, job.running(MAPS), this::say);
      assertTrue(gone.stream().noneMatch(job.at::contains), this::say);
    }
    Map<String, Long> counts = processor.counters().getCounts();
    long came = 0;
    for (String where : Arrays.asList("on_on_host", "on_in_rack", "on_elsewhere")) {
      came += counts.getOrDefault(where, 0L);
    }
    assertEquals(8, came, this::say);
    assertEquals(counts.get("on_hinted"), came, this::say);
    assertEquals(0, processor.counters().errors.sum());
  }

  private static Set<String> hosts(List<ResourceRequest> rows) {
    Set<String> hosts = new TreeSet<>();
    rows.stream().map(ResourceRequest::getResourceName).filter(name -> name.startsWith("node-")).forEach(hosts::add);
    return hosts;
  }

  private long held() {
    return processor.counters().held.sum();
  }

  private String say() {
    StringBuilder all = new StringBuilder();
    jobs.forEach(job -> all.append(job.say()).append("; "));
    return all + processor.counters().getCounts().toString() + processor.counters().getOver();
  }

  private interface Check {
    boolean holds() throws Exception;
  }

  private void until(Check check) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    while (!check.holds()) {
      assertTrue(System.nanoTime() < end, this::say);
      Thread.sleep(10);
    }
  }

  /** Heartbeats of applications and nodes, and a look at who has more than its share, until that holds. */
  private void steps(Check check) throws Exception {
    until(() -> {
      for (Job job : jobs) {
        job.heartbeat();
      }
      yarn.beat();
      yarn.cluster.refresh();
      yarn.preempt();
      return check.holds();
    });
  }

  private static Cluster.App app(String queue) {
    return new Cluster.App(queue, "ann", "MAPREDUCE", "sort 2026-11-21", "", false);
  }

  /** An application that asks for any node, and again for what is taken from it. */
  private final class Job {
    final ApplicationAttemptId id;
    private final TreeMap<Key, Integer> wish = new TreeMap<>();
    private final TreeSet<Key> changed = new TreeSet<>();
    /** Where what they read lies. */
    private final Map<Key, List<String>> near = new HashMap<>();
    private final TreeMap<ContainerId, Key> running = new TreeMap<>();
    private final Map<Key, Integer> done = new HashMap<>();
    /** Where containers came. */
    final List<String> at = new ArrayList<>();
    /** What YARN was last asked for. */
    List<ResourceRequest> sent = new ArrayList<>();
    int preempted;

    Job(String queue) throws Exception {
      id = yarn.submit(ApplicationId.newInstance(1_700_000_000_000L, jobs.size() + 1), queue);
      queues.put(id, queue);
      processor.registerApplicationMaster(
          id, RegisterApplicationMasterRequest.newInstance("", 0, ""), Records.newRecord(RegisterApplicationMasterResponse.class));
      jobs.add(this);
    }

    void ask(Key key, int more) {
      wish.merge(key, more, Integer::sum);
      changed.add(key);
    }

    /** For more containers of a key that read on a host. */
    void askNear(Key key, int more, String host, String rack) {
      ask(key, more);
      near.put(key, Arrays.asList(host, rack));
    }

    int wish(Key key) {
      return wish.getOrDefault(key, 0);
    }

    long running(Key key) {
      return running.values().stream().filter(key::equals).count();
    }

    int done(Key key) {
      return done.getOrDefault(key, 0);
    }

    /** What YARN has outstanding. */
    int standing(Key key) {
      return Math.max(yarn.cluster.outstanding(new Attempt(id.getApplicationId().toString(), 1), key), 0);
    }

    /** One of its containers ends well, where there is any. */
    void finish(Key key) {
      for (Map.Entry<ContainerId, Key> one : running.entrySet()) {
        if (one.getValue().equals(key)) {
          yarn.finish(one.getKey());
          running.remove(one.getKey());
          done.merge(key, 1, Integer::sum);
          return;
        }
      }
    }

    void heartbeat() throws Exception {
      List<ResourceRequest> asks = new ArrayList<>();
      for (Key key : changed) {
        asks.add(Yarn.row(key, "*", wish(key)));
        near.getOrDefault(key, Collections.emptyList()).forEach(name -> asks.add(Yarn.row(key, name, wish(key))));
      }
      changed.clear();
      AllocateRequest request = AllocateRequest.newInstance(0, 0, asks, new ArrayList<>(), null);
      AllocateResponse response = Records.newRecord(AllocateResponse.class);
      processor.allocate(id, request, response);
      sent = new ArrayList<>(request.getAskList());
      for (Container given : response.getAllocatedContainers()) {
        Key key = Key.of(given);
        if (wish(key) == 0) { // YARN gave one before it was asked anew; MapReduce gives it back
          yarn.finish(given.getId());
          continue;
        }
        ask(key, -1); // and tells YARN, as MapReduce does
        running.put(given.getId(), key);
        at.add(given.getNodeId().getHost());
      }
      for (ContainerStatus status : response.getCompletedContainersStatuses()) {
        Key key = running.remove(status.getContainerId());
        if (key != null) {
          assertEquals(ContainerExitStatus.PREEMPTED, status.getExitStatus());
          preempted++;
          ask(key, 1);
        }
      }
    }

    String say() {
      return queues.get(id) + " wishes " + wish + ", runs " + running.values() + ", done " + done + ", preempted " + preempted
          + ", standing " + standing(MAPS) + " and " + standing(REDUCES) + ", at " + at + ", sent " + sent;
    }
  }

  private final Map<ApplicationAttemptId, String> queues = new HashMap<>();

  /** The processors behind ours. */
  private final class Rest implements ApplicationMasterServiceProcessor {
    @Override
    public void init(ApplicationMasterServiceContext context, ApplicationMasterServiceProcessor next) {}

    @Override
    public void registerApplicationMaster(
        ApplicationAttemptId id, RegisterApplicationMasterRequest request, RegisterApplicationMasterResponse response) {}

    @Override
    public void allocate(ApplicationAttemptId id, AllocateRequest request, AllocateResponse response) {
      response.setAllocatedContainers(yarn.allocate(id, request.getAskList(), request.getReleaseList()));
      response.setCompletedContainersStatuses(yarn.ended(id));
    }

    @Override
    public void finishApplicationMaster(
        ApplicationAttemptId id, FinishApplicationMasterRequest request, FinishApplicationMasterResponse response) {
      assertEquals(FinalApplicationStatus.SUCCEEDED, request.getFinalApplicationStatus());
    }
  }

  /** The ResourceManager's nodes, and applications of ours. */
  private final class Nodes implements Cluster {
    @Override
    public App app(ApplicationAttemptId attempt) {
      return PreemptionTest.app(queues.get(attempt));
    }

    @Override
    public boolean alive(ApplicationAttemptId attempt) {
      return true;
    }

    @Override
    public String nodeName(NodeId node) {
      return yarn.cluster.nodeName(node);
    }

    @Override
    public Map<String, String> racks() {
      return yarn.cluster.racks();
    }

    @Override
    public Predicate<String> takes(Resource size) {
      return yarn.cluster.takes(size);
    }

    @Override
    public boolean reserved(Attempt attempt, Key key) {
      return yarn.cluster.reserved(attempt, key);
    }

    @Override
    public int outstanding(Attempt attempt, Key key) {
      return yarn.cluster.outstanding(attempt, key);
    }

    @Override
    public boolean preemptsFor(Attempt attempt) {
      return yarn.cluster.preemptsFor(attempt);
    }
  }
}
