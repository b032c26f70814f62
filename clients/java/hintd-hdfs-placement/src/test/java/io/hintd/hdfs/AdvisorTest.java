package io.hintd.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.v1.BlockAdvice;
import io.hintd.v1.ReplicaAdvice;
import io.hintd.v1.ReplicasRequest;
import io.hintd.v1.ReplicasResponse;
import java.io.IOException;
import java.io.StringReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.hadoop.net.NetworkTopology;
import org.apache.hadoop.test.GenericTestUtils.LogCapturer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** What becomes of answers and failures, whatever they are. There is no hintd: the tests answer. */
class AdvisorTest {
  private static final int FOR_ALL = 16;

  private final Counters counters = new Counters();
  private Supplier<CompletableFuture<ReplicasResponse>> answers;
  private final Advisor advisor =
      new Advisor(counters) {
        @Override
        CompletableFuture<ReplicasResponse> replicas(ReplicasRequest request, Duration deadline) {
          return answers.get();
        }
      };
  private Settings settings;

  @BeforeEach
  void connect() throws IOException {
    settings = settings("breaker-failures=1000");
    advisor.use(settings);
  }

  private static Settings settings(String line) throws IOException {
    Properties properties = new Properties();
    properties.load(new StringReader("address=127.0.0.1:1\ntimeout-ms=0\n" + line));
    return Settings.of(properties);
  }

  @AfterEach
  void close() {
    advisor.close();
  }

  @Test
  void ofHandlersThatFailTogetherOneSaysIt() throws Exception {
    LogCapturer log = LogCapturer.captureLogs(LoggerFactory.getLogger(Advisor.class));
    int kinds = 500;
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      CyclicBarrier together = new CyclicBarrier(4);
      List<CompletableFuture<Void>> handlers = new ArrayList<>();
      for (int handler = 0; handler < 4; handler++) {
        handlers.add(
            CompletableFuture.runAsync(
                () -> {
                  for (int kind = 0; kind < kinds; kind++) {
                    try {
                      together.await(FOR_ALL, TimeUnit.SECONDS);
                    } catch (InterruptedException | BrokenBarrierException | TimeoutException broken) {
                      throw new IllegalStateException(broken);
                    }
                    advisor.say("kind-" + kind, "said of {}", kind);
                  }
                },
                threads));
      }
      CompletableFuture.allOf(handlers.toArray(new CompletableFuture<?>[0])).get(60, TimeUnit.SECONDS);
    } finally {
      threads.shutdownNow();
      log.stopCapturing();
    }
    assertEquals(kinds, log.getOutput().split("said of ", -1).length - 1);
  }

  @Test
  void whateverIsThrownByAskingIsAFailureAndTheNextMayAsk() {
    answers =
        () -> {
          throw new OutOfMemoryError("unable to create native thread");
        };
    for (int file = 0; file < 10; file++) {
      assertNull(advisor.rack("/in/" + file, settings));
    }
    assertEquals(10, counters.failed.sum());
    answers = () -> CompletableFuture.completedFuture(null);
    assertNull(advisor.rack("/in/none", settings), "no answer at all: what reads it throws");
    assertEquals(11, counters.failed.sum());
    assertNull(counters.getLeftAlone().get("busy"));
    answers = () -> answer(Collections.singletonList("/rack1"));
    assertEquals("/rack1", advisor.rack("/in/x", settings).rack);
  }

  @Test
  void questionsThatNothingIsHeardOfAreGivenUp() {
    List<CompletableFuture<ReplicasResponse>> lost = new ArrayList<>();
    answers =
        () -> {
          lost.add(new CompletableFuture<>());
          return lost.get(lost.size() - 1);
        };
    for (int file = 0; file <= settings.waiting; file++) {
      assertNull(advisor.rack("/in/" + file, settings));
    }
    assertEquals(settings.waiting, lost.size());
    assertEquals(1L, counters.getLeftAlone().get("busy"));
    long now = System.nanoTime() / 1_000_000;
    advisor.giveUpLost(settings, now);
    assertEquals(0, counters.failed.sum(), "their time is not over");
    advisor.giveUpLost(settings, now + 60_000);
    assertEquals(settings.waiting, counters.failed.sum());
    lost.get(0).complete(ReplicasResponse.getDefaultInstance());
    assertEquals(0, counters.answered.sum(), "too late");
    answers = () -> answer(Collections.singletonList("/rack1"));
    assertEquals("/rack1", advisor.rack("/in/x", settings).rack);
  }

  @Test
  void ofAnAnswerNoMoreIsKeptThanWasAskedFor() {
    char[] slashes = new char[1_001];
    java.util.Arrays.fill(slashes, '/');
    List<String> racks = new ArrayList<>(Collections.singletonList(new String(slashes)));
    for (int rack = 1; rack < 5_000; rack++) {
      racks.add("/rack" + rack);
    }
    answers = () -> answer(racks);
    for (int turn = 0; turn < 2; turn++) {
      assertNull(advisor.rack("/in/x", settings), "no rack's name is that long");
      for (int block = 1; block < FOR_ALL; block++) {
        assertEquals("/rack" + block, advisor.rack("/in/x", settings).rack);
      }
    }
    answers = () -> answer(Collections.singletonList(new String("/rack1")));
    assertSame(advisor.rack("/in/y", settings).rack, advisor.rack("/in/z", settings).rack, "a name is kept once");
  }

  @Test
  void oneReplicaIsEnoughWhereTheThirdIsToldAnotherRack() {
    String[][] told = {{"/up"}, {"/up", "/out", "/out"}, {"/up", "", "/up"}, {"/up", "/out"}, {"", "/out", "/out"}};
    answers =
        () -> {
          ReplicasResponse.Builder answer = ReplicasResponse.newBuilder();
          for (String[] of : told) {
            BlockAdvice.Builder block = answer.addBlocksBuilder();
            for (String rack : of) {
              block.addReplicasBuilder().setRack(rack);
            }
          }
          return CompletableFuture.completedFuture(answer.build());
        };
    boolean[] once = {false, true, false, false};
    for (int block = 0; block < once.length; block++) {
      Advisor.Told of = advisor.rack("/in/x", settings);
      assertEquals("/up", of.rack);
      assertEquals(once[block], of.once, "block " + block);
    }
    assertNull(advisor.rack("/in/x", settings));
  }

  @Test
  void withMoreNamesThanThereAreRacksItBeginsAnew() {
    int[] name = {0};
    answers =
        () -> {
          List<String> racks = new ArrayList<>();
          while (racks.size() < FOR_ALL) {
            racks.add("/rack" + name[0]++);
          }
          return answer(racks);
        };
    for (int file = 0; file < 300; file++) {
      assertEquals("/rack" + file * FOR_ALL, advisor.rack("/in/" + file, settings).rack);
    }
    assertEquals(0, counters.remembered.sum());
    assertEquals("/rack" + (299 * FOR_ALL + 1), advisor.rack("/in/299", settings).rack);
    assertEquals(1, counters.remembered.sum());
    assertEquals("/rack" + 300 * FOR_ALL, advisor.rack("/in/0", settings).rack, "it was forgotten, and is asked for again");
  }

  @Test
  void smallFilesByTheTenThousandAreOneQuestionEachAndNoMoreAreRememberedThanItSays() throws IOException {
    settings = settings("cache=1000");
    advisor.use(settings);
    answers = () -> answer(Collections.singletonList("/rack1"));
    long asked = 20_000;
    for (int file = 0; file < asked; file++) {
      assertEquals("/rack1", advisor.rack("/in/small-" + file, settings).rack);
    }
    assertEquals(asked, counters.asked.sum());
    for (int file = 19_000; file < asked; file++) {
      assertEquals("/rack1", advisor.rack("/in/small-" + file, settings).rack);
    }
    assertEquals(asked, counters.asked.sum(), "the last thousand are remembered");
    assertEquals(1_000, counters.remembered.sum());
    advisor.rack("/in/small-18999", settings);
    assertEquals(asked + 1, counters.asked.sum(), "and no others");
    settings = settings("cache=10");
    advisor.use(settings);
    advisor.rack("/in/small-19990", settings);
    assertEquals(asked + 2, counters.asked.sum(), "nor more than it says from now on");
    advisor.rack("/in/small-18999", settings);
    assertEquals(asked + 2, counters.asked.sum());
  }

  @Test
  void whileNothingAnswersOrAllFailsTenThousandFilesAreFewQuestions() throws IOException {
    settings = settings("breaker-failures=3\nbreaker-open-ms=3600000");
    List<CompletableFuture<ReplicasResponse>> lost = new ArrayList<>();
    answers =
        () -> {
          lost.add(new CompletableFuture<>());
          return lost.get(lost.size() - 1);
        };
    for (int file = 0; file < 10_000; file++) {
      assertNull(advisor.rack("/in/small-" + file, settings));
    }
    assertEquals(settings.waiting, counters.asked.sum());
    assertEquals(10_000L - settings.waiting, counters.getLeftAlone().get("busy"));
    lost.forEach(one -> one.completeExceptionally(new IOException("gone")));
    for (int file = 10_000; file < 20_000; file++) {
      assertNull(advisor.rack("/in/small-" + file, settings));
    }
    assertEquals(settings.waiting, counters.asked.sum(), "three failures in a row: nobody asks");
    assertEquals(10_000L, counters.getLeftAlone().get("breaker_open"));
  }

  @Test
  void whatOthersWroteIsOneShortLineOfTheLog() {
    assertEquals("/rack\\u000a2026 FATAL \\u001b[2J\\u2028\\u202e", Advisor.printable("/rack\n2026 FATAL \033[2J\u2028\u202e"));
    assertEquals("null", Advisor.printable(null));
    assertEquals("é 20", Advisor.printable("é " + 20));
    String longest = String.join("", Collections.nCopies(300, "x"));
    assertEquals(longest, Advisor.printable(longest));
    assertEquals(longest + "...", Advisor.printable(longest + "y"));
  }

  @Test
  void reasonsThatAreNoTokensAreNotKeptApart() {
    counters.reason(String.join("", Collections.nCopies(65, "x")));
    counters.reason("homes");
    assertEquals("{(other)=1, homes=1}", counters.getReasons().toString());
  }

  /** HDFS's fields may be seen one by one. */
  @Test
  void oneLookThatFindsNoNameNodeDoesNotDecide() {
    HintdBlockPlacementPolicy outside =
        new HintdBlockPlacementPolicy() {
          {
            clusterMap = new NetworkTopology();
          }
        };
    assertTrue(HintdBlockPlacementPolicy.look(outside));
    assertFalse(HintdBlockPlacementPolicy.look(outside));
  }

  private static CompletableFuture<ReplicasResponse> answer(List<String> racks) {
    ReplicasResponse.Builder answer = ReplicasResponse.newBuilder().setReason("homes");
    for (String rack : racks) {
      answer.addBlocks(BlockAdvice.newBuilder().addReplicas(ReplicaAdvice.newBuilder().setRack(rack)));
    }
    return CompletableFuture.completedFuture(answer.build());
  }
}
