package io.hintd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.v1.ApplicationDone;
import io.hintd.v1.EventItem;
import io.hintd.v1.FeedHello;
import io.hintd.v1.FollowMessage;
import io.hintd.v1.HeartbeatItem;
import io.hintd.v1.NodeHeartbeat;
import io.hintd.v1.ReplicasRequest;
import io.hintd.v1.TaskAllocated;
import io.hintd.v1.TaskEvent;
import io.hintd.v1.UsedMeans;
import java.time.Duration;
import java.util.Collections;
import java.util.HashSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The client and a real daemon. */
class DaemonTest {
  private static final Attempt ATTEMPT = new Attempt("application_1700000000000_0001", 1);
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private TestDaemon daemon;
  private HintdClient client;
  private TestDaemon.Nodes nodes;

  @BeforeEach
  void start() throws Exception {
    daemon = new TestDaemon("on").start();
    client = HintdClient.to(daemon.address());
    nodes = daemon.nodes(client, 4);
  }

  @AfterEach
  void stop() throws Exception {
    TestDaemon.closeAll(nodes, client, daemon);
  }

  @Test
  void answersAboveTheClientsBoundAreNotRead() throws Exception {
    ReplicasRequest request = ReplicasRequest.newBuilder().setPath("/nobody/reads/it").setBlocks(16).build();
    try (HintdClient small = HintdClient.to(daemon.address(), Secret.random(), 8)) {
      ExecutionException refused =
          assertThrows(ExecutionException.class, () -> small.replicas(request, PATIENCE).get());
      assertEquals("RESOURCE_EXHAUSTED", assertInstanceOf(HintdException.Refused.class, refused.getCause()).code());
    }
    assertEquals("no_plan", client.replicas(request, PATIENCE).get().getReason());
  }

  @Test
  void aStrangerGetsNothingOfAnApplicationThatItKnows() throws Exception {
    HintRequest request = maps(3);
    Answer answer = client.requestHints(request, PATIENCE);
    try (HintdClient stranger = HintdClient.to(daemon.address())) {
      for (HintRequest asked : new HintRequest[] {request, maps(1)}) {
        HintdException refused =
            assertThrows(HintdException.Refused.class, () -> stranger.requestHints(asked, PATIENCE));
        assertTrue(refused.getMessage().contains("token"), refused.getMessage());
      }
      assertThrows(HintdException.Refused.class, () -> stranger.release(ATTEMPT, "", Collections.emptyList(), PATIENCE));
      assertThrows(HintdException.Refused.class, () -> stranger.explain(answer.decisionId(), PATIENCE));
      assertEquals(1, stranger.release(ATTEMPT, answer.token(), answer.leases().subList(0, 1), PATIENCE));
    }
    assertEquals(answer.decisionId(), client.explain(answer.decisionId(), PATIENCE).getDecision().getDecisionId());
    assertEquals(2, client.release(ATTEMPT, "", Collections.emptyList(), PATIENCE));
  }

  @Test
  void theSameSecretIsTheSameClient() throws Exception {
    byte[] bytes = "0123456789abcdef".getBytes(java.nio.charset.StandardCharsets.UTF_8);
    StringBuilder hex = new StringBuilder();
    for (byte one : Secret.of(bytes).nonce("application_1_0001")) {
      hex.append(String.format("%02x", one));
    }
    assertEquals("eabbc6f648f32bfa66e81a1ae9334893", hex.toString(), "as the other languages' tests have it");
    assertFalse(Secret.of(bytes).toString().contains("0123"));
    assertThrows(IllegalArgumentException.class, () -> Secret.of(new byte[15]));
    HintRequest request = maps(3);
    try (HintdClient first = HintdClient.to(daemon.address(), Secret.of(bytes));
        HintdClient later = HintdClient.to(daemon.address(), Secret.of(bytes))) {
      Answer answer = first.requestHints(request, PATIENCE);
      assertEquals(answer.leases(), later.requestHints(request, PATIENCE).leases());
      assertEquals(3, later.release(ATTEMPT, "", Collections.emptyList(), PATIENCE));
    }
  }

  @Test
  void hintsNameNodesAndHoldALeaseForEachContainer() throws Exception {
    Answer answer = client.requestHints(maps(3).group(new Group("reduce", 1, 2048, 1)).edge("map", "reduce", 1 << 20), PATIENCE);
    assertEquals(3, answer.hints().stream().filter(hint -> hint.group().equals("map")).mapToInt(Hint::count).sum());
    assertTrue(answer.hints().stream().allMatch(hint -> hint.host().startsWith("node-")));
    assertEquals(4, new HashSet<>(answer.leases()).size());
    assertEquals("spread", answer.policy());
    assertEquals(2, client.release(ATTEMPT, answer.token(), answer.leases().subList(0, 2), PATIENCE));
    assertEquals(2, client.release(ATTEMPT, answer.token(), Collections.emptyList(), PATIENCE));
  }

  @Test
  void askingAgainWithTheSameRequestTakesNothingTwice() throws Exception {
    HintRequest request = maps(2);
    Answer first = client.requestHints(request, PATIENCE);
    Answer again = client.requestHints(request, PATIENCE);
    assertEquals(first.leases(), again.leases());
    assertEquals(first.decisionId(), again.decisionId());
    assertEquals(2, client.explain(first.decisionId(), PATIENCE).getLeasesCount());
  }

  @Test
  void aWrongRequestIsRefusedWithItsField() {
    HintdException.Refused refused =
        assertThrows(
            HintdException.Refused.class,
            () -> client.requestHints(new HintRequest(new Attempt("nonsense", 1)).group(new Group("g", 1, 1024, 1)), PATIENCE));
    assertEquals("application_id", refused.field());
    assertEquals("INVALID_ARGUMENT", refused.code());
    assertFalse(refused.reason().isEmpty());
  }

  @Test
  void aDaemonThatIsGoneCostsNoMoreThanThePatience() throws Exception {
    daemon.kill();
    long began = System.nanoTime();
    Answer answer = client.hintsOrNone(maps(1), Duration.ofMillis(300));
    long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
    assertTrue(answer.hints().isEmpty() && !answer.whyNone().isEmpty());
    assertTrue(took < 3000, took + " ms"); // a busy machine may halt for a while
    daemon.start();
    nodes.beat();
    assertEquals(1, client.requestHints(maps(1), PATIENCE).hints().size(), "found again after a restart");
  }

  @Test
  void aDaemonThatWasGoneForLongIsFoundAtOnce() throws Exception {
    daemon.kill();
    // Long enough for gRPC's own pauses to have grown to several seconds.
    for (int i = 0; i < 20; i++) {
      assertTrue(client.hintsOrNone(maps(1), Duration.ofMillis(200)).hints().isEmpty());
      Thread.sleep(100);
    }
    daemon.start();
    nodes.beat();
    assertEquals(1, client.requestHints(maps(1), Duration.ofSeconds(2)).hints().size());
  }

  @Test
  void aDaemonThatHangsCostsNoMoreThanThePatience() throws Exception {
    client.requestHints(maps(1), PATIENCE);
    daemon.hang(true);
    long began = System.nanoTime();
    ExecutionException error =
        assertThrows(ExecutionException.class, () -> client.ask(maps(1), Duration.ofMillis(200)).get(5, TimeUnit.SECONDS));
    long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
    daemon.hang(false);
    assertInstanceOf(HintdException.OutOfTime.class, error.getCause());
    assertTrue(took < 3000, took + " ms"); // a busy machine may halt for a while
  }

  @Test
  void askingWithoutWaitingAnswersLater() throws Exception {
    Answer answer = client.ask(maps(3), Duration.ofSeconds(5)).get(5, TimeUnit.SECONDS);
    assertEquals(3, answer.leases().size());
  }

  @Test
  void aFollowerHearsThatTheAttemptIsDoneAndGoesOnAfterARestart() throws Exception {
    Answer answer = client.requestHints(maps(2), PATIENCE);
    BlockingQueue<Object> heard = new LinkedBlockingQueue<>();
    Following.Listener listener =
        new Following.Listener() {
          @Override
          public void advice(FollowMessage message) {
            heard.add(message);
          }

          @Override
          public void ended(HintdException why) {
            heard.add(why == null ? "done" : why);
          }
        };
    try (Following following = client.follow(ATTEMPT, answer.token(), 0, listener)) {
      daemon.kill();
      daemon.start();
      nodes.beat();
      TaskEvent done = event().setDone(ApplicationDone.getDefaultInstance()).build();
      Object end = null;
      for (long until = System.nanoTime() + PATIENCE.toNanos(); end == null && System.nanoTime() < until; ) {
        following.tell(Collections.singletonList(done));
        end = heard.poll(200, TimeUnit.MILLISECONDS);
        end = end instanceof FollowMessage ? null : end;
      }
      assertEquals("done", end);
    }
    try (Following stranger = client.follow(ATTEMPT, "not the token", 0, listener)) {
      assertInstanceOf(HintdException.Refused.class, heard.poll(10, TimeUnit.SECONDS));
      assertFalse(stranger.tell(Collections.emptyList()));
    }
  }

  @Test
  void eventsReachTheDaemonAndBindTheirLeases() throws Exception {
    Answer answer = client.requestHints(maps(1), PATIENCE);
    Hint hint = answer.hints().get(0);
    try (FeedStream<EventItem> events =
        FeedStream.events(client, FeedHello.newBuilder().setSource("test").build(), 100)) {
      TaskAllocated allocated =
          TaskAllocated.newBuilder()
              .setHost(hint.host())
              .setContainerId("container_1700000000000_0001_01_000002")
              .setLeaseId(hint.leases().get(0))
              .build();
      TaskEvent event = event().setGroup("map").setTask("t1").setAllocated(allocated).build();
      events.tell(number -> EventItem.newBuilder().setNumber(number).setEvent(event).build());
      events.tell(number -> EventItem.newBuilder().setNumber(number).build()); // holds nothing
      assertTrue(events.settled(10, TimeUnit.SECONDS));
      assertEquals(2, events.sent());
      assertEquals(1, events.refused());
    }
    assertEquals(1, client.explain(answer.decisionId(), PATIENCE).getOutcome().getHints(0).getOnHost());
  }

  @Test
  void aFeedWhoseOpeningThrowsOnceIsOpenedAgain() throws Exception {
    AtomicInteger opened = new AtomicInteger();
    Runnable onOpen =
        () -> {
          if (opened.incrementAndGet() == 1) {
            throw new IllegalStateException("the first opening, which a test lets fail");
          }
        };
    try (FeedStream<HeartbeatItem> feed = FeedStream.heartbeats(client, hello(), 100, onOpen, ack -> {})) {
      feed.tell(DaemonTest::beat);
      assertTrue(feed.settled(20, TimeUnit.SECONDS));
      assertEquals(2, opened.get());
      assertEquals(1, feed.acknowledged());
      assertEquals(feed.sent(), feed.acknowledged());
    }
  }

  @Test
  void anItemThatCannotBeMadeEndsItsStreamAndNotTheFeed() throws Exception {
    AtomicInteger opened = new AtomicInteger();
    try (FeedStream<HeartbeatItem> feed =
        FeedStream.heartbeats(client, hello(), 100, opened::incrementAndGet, ack -> {})) {
      feed.tell(DaemonTest::beat);
      assertTrue(feed.settled(10, TimeUnit.SECONDS));
      feed.tell(
          number -> {
            throw new IllegalStateException("an item, which a test lets fail");
          });
      feed.tell(DaemonTest::beat);
      for (long until = System.nanoTime() + PATIENCE.toNanos(); opened.get() < 2 && System.nanoTime() < until; ) {
        Thread.sleep(10);
      }
      assertTrue(feed.settled(10, TimeUnit.SECONDS));
      assertEquals(2, opened.get());
      assertEquals(2, feed.acknowledged(), "both that could be made");
    }
  }

  @Test
  void aFeedSettlesAgainAfterEachRestart() throws Exception {
    AtomicInteger opened = new AtomicInteger();
    try (FeedStream<HeartbeatItem> feed =
        FeedStream.heartbeats(client, hello(), 100, opened::incrementAndGet, ack -> {})) {
      for (int life = 1; life <= 3; life++) {
        feed.tell(DaemonTest::beat);
        assertTrue(feed.settled(20, TimeUnit.SECONDS), "life " + life);
        daemon.kill();
        feed.tell(DaemonTest::beat); // lost with the stream, or told to the next
        daemon.start();
        for (long until = System.nanoTime() + PATIENCE.toNanos(); opened.get() <= life && System.nanoTime() < until; ) {
          Thread.sleep(10);
        }
        assertTrue(opened.get() > life, "opened again");
        assertTrue(feed.settled(20, TimeUnit.SECONDS), "after restart " + life);
        assertEquals(feed.sent(), feed.acknowledged());
      }
    }
  }

  private static FeedHello hello() {
    return FeedHello.newBuilder().setSource("test").setUsedMeans(UsedMeans.USED_MEANS_ALLOCATED).build();
  }

  /** Of a node that {@link TestDaemon.Nodes} registers; refused where it has not yet, and looked at all the same. */
  private static HeartbeatItem beat(long number) {
    return HeartbeatItem.newBuilder()
        .setNumber(number)
        .setHeartbeat(NodeHeartbeat.newBuilder().setHost(TestDaemon.Nodes.host(0)).setResponseId(1000))
        .build();
  }

  private static HintRequest maps(int count) {
    return new HintRequest(ATTEMPT).framework("mapreduce").group(new Group("map", count, 1024, 1).role("map"));
  }

  private static TaskEvent.Builder event() {
    return TaskEvent.newBuilder().setApplicationId(ATTEMPT.applicationId()).setAttempt(ATTEMPT.number());
  }
}
