package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.Attempt;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.InputHomesRequest;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.Test;

/** Maps whose input a real hintd sent home. */
class HomeKeeperTest extends HomeKeeperFixture {
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
  void whatYarnPreemptsForGoesElsewhereMapsFirst() throws Exception {
    register();
    assertEquals(rows(3, 0, "*=3!"), allocate(maps(3)));
    pass(4);
    cluster.outstanding = 0;
    cluster.preempts = true;
    assertEquals("", pass(1), "all were given, and are on their way");
    cluster.outstanding = -1;
    assertTrue(pass(1).contains("*=3 "));
    assertEquals(1, count("ended_preemption"));
    register();
    cluster.preempts = false;
    allocate(maps(4));
    keeper.delivered(MAPS, host(0, true), rack(), now);
    assertEquals("*=2!", allocate(Yarn.row(REDUCES, "*", 2)));
    cluster.preempts = true;
    String sent = allocate();
    assertTrue(sent.contains("*=3 ") && !sent.contains("*=2"), sent);
    assertEquals(2, count("ended_preemption"));
    assertEquals(0, count("reduces_ended_preemption"), "what is freed is the maps' first");
    assertFalse(allocate().contains("*=2"), "until they have come");
    for (int i = 0; i < 3; i++) {
      keeper.delivered(MAPS, host(0, false), away(), now);
    }
    keeper.delivered(MAPS, host(0, true), rack(), now);
    keeper.delivered(MAPS, host(0, true), rack(), now);
    keeper.delivered(MAPS, host(0, true), rack(), now);
    sent = allocate(maps(0));
    assertTrue(sent.contains("*=2") && !sent.contains("*=2!"), "then theirs: " + sent);
    assertEquals(1, count("reduces_ended_preemption"));
    cluster.preempts = false;
    allocate(Yarn.row(REDUCES, "*", 0));
    assertTrue(allocate(Yarn.row(REDUCES, "*", 2)).contains("*=2!"), "the next stay as ever");
    assertFalse(pass(25).contains("*"));
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
}
