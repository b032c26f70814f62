package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.HintdClient;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.InputHomesRequest;
import io.hintd.v1.InputHomesResponse;
import io.hintd.v1.ReplicasRequest;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.Test;

/** Jobs that a real hintd gathers in a rack though their input lies elsewhere as well. */
class GatheredJobsTest extends HomeKeeperFixture {
  /** The rack of a job that is gathered beside others. */
  private String busy;

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
  void aJobWhoseInputIsNotWhereHintdSentItIsGatheredAsAnyOther() throws Exception {
    gathering();
    ReplicasRequest sent = ReplicasRequest.newBuilder().setPath("/in").build();
    String given = client.replicas(sent, Duration.ofSeconds(20)).join().getRacks(0).getRack();
    register();
    String application = "application_1700000000000_000" + applications;
    home = IntStream.range(0, 3).filter(rack -> !Arrays.asList(given, busy).contains("/rack" + rack)).findFirst().getAsInt();
    ResourceRequest[] rows = {
      Yarn.row(MAPS, "*", 3), Yarn.row(MAPS, rack(), 3), Yarn.row(MAPS, host(1, true), 3), Yarn.row(MAPS, away(), 1), Yarn.row(MAPS, host(0, false), 1)
    };
    assertTrue(keeper.came(Arrays.asList(rows), Mode.ON, settings, now), "what hintd says of its blocks is waited for");
    keeper.pending().get(PATIENCE_S, TimeUnit.SECONDS);
    assertEquals(atHome(MAPS, 3, 2, 2, "*=3! ", away(), 0, host(0, false), 0), allocate(rows));
    assertEquals(rack(), gatheredIn(application));
    assertEquals(3, count("gathered"));
    assertEquals(0, count("blocks") + count("ended_not_at_home"));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    pass(4);
    assertEquals(0, count("ended_not_at_home"), "for good");
    use("gathers=false");
    register();
    assertFalse(keeper.came(Arrays.asList(rows), Mode.ON, settings, now), "nobody waits who may not be gathered");
    assertTrue(allocate(rows).contains(away() + "=1"), "its rows stay as they came");
  }
}
