package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.rm.Settings.Mode;
import java.util.Arrays;
import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.Test;

/** Maps of jobs whose input was sent nowhere, which wait for hosts of their blocks. */
class NearBlocksTest extends HomeKeeperFixture {
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
}
