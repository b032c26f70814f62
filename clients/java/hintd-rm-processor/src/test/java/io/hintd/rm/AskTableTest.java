package io.hintd.rm;

import static java.util.Arrays.asList;
import static java.util.Collections.emptyList;
import static java.util.Collections.singletonList;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.rm.AskTable.Place;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.ExecutionTypeRequest;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.Test;

class AskTableTest {
  private static final Key KEY = new Key(10, -1);
  private static final Map<String, String> RACKS = new HashMap<>();

  static {
    RACKS.put("h1", "/r1");
    RACKS.put("h2", "/r1");
    RACKS.put("h3", "/r2");
  }

  private final TreeMap<String, Integer> over = new TreeMap<>();
  private final List<Long> givenBack = new ArrayList<>();
  private final AskTable table = new AskTable(false, this::over);

  private void over(Piece piece, int containers, String why) {
    over.merge(why, containers, Integer::sum);
    givenBack.addAll(piece.surplus());
  }

  @Test
  void hintsBecomeHostAndRackRowsWithAbsoluteCounts() {
    ask(4);
    assertEquals(4, table.hinted(KEY, asList(hint("h1", 2, 0), hint("h3", 2, 0))));
    assertEquals("h1=2 h3=2 /r1=2 /r2=2", told(send(0)));
    assertEquals("", told(send(10)), "and are sent once");
  }

  @Test
  void ofHintsWithoutALeaseTheNextBestHostsAreNamedToo() {
    ask(2);
    table.hinted(KEY, singletonList(new Piece("h1", asList("h3", "h9"), RACKS, 2, emptyList(), "", true, 0)));
    assertEquals("h1=2 h3=2 /r1=2 /r2=2", told(send(0)), "but none that YARN does not have");
    AskTable leased = new AskTable(false, this::over);
    leased.came(singletonList(Yarn.row(KEY, "*", 1)));
    leased.hinted(KEY, singletonList(new Piece("h1", asList("h3"), RACKS, 1, singletonList(7L), "", true, 0)));
    assertEquals("h1=1 /r1=1", told(leased.rewrite(emptyList(), true, 0, 1000, 1000)));
  }

  @Test
  void aFollowedHintLeavesNothingToTakeBack() {
    ask(1);
    table.hinted(KEY, singletonList(hint("h1", 1, 5)));
    send(0);
    send(5); // delivered with the answer to the row's own ask, it might be older than the row
    AskTable.Followed followed = table.delivered(KEY, "h1", "/r1");
    assertEquals(Place.ON_HOST, followed.place);
    assertEquals(5, followed.lease);
    assertEquals("", told(send(10)));
    assertTrue(table.ours().isEmpty() && givenBack.isEmpty());
  }

  @Test
  void whenAllContainersCameElsewhereTheKeyIsCleanedAndTheLeaseGivenBack() {
    ask(1);
    table.hinted(KEY, singletonList(hint("h1", 1, 5)));
    send(0);
    assertEquals(Place.ELSEWHERE, table.delivered(KEY, "h3", "/r2").place);
    assertEquals("*=0", told(send(10)), "which takes all rows of the key away");
    assertEquals(singletonList(5L), givenBack);
    assertTrue(table.ours().isEmpty());
  }

  @Test
  void whatYarnMayHaveOutstandingStillIsNotCancelled() {
    ask(1);
    table.hinted(KEY, singletonList(hint("h1", 1, 5)));
    table.rewrite(singletonList(Yarn.row(KEY, "*", 1)), true, 0, 1000, 1000);
    // With the answer to the ask: it may be of the ask before, and YARN has this one outstanding.
    table.delivered(KEY, "h3", "/r2");
    assertEquals("h1=0 /r1=0", told(send(10)));
  }

  @Test
  void aContainerInTheRackTakesTheRackRowAndTheHostRowIsTakenBack() {
    ask(2);
    table.hinted(KEY, asList(hint("h1", 1, 0), hint("h3", 1, 0)));
    send(0);
    assertEquals(Place.IN_RACK, table.delivered(KEY, "h2", "/r1").place);
    assertEquals("h1=0", told(send(10)));
  }

  @Test
  void aHintWhoseHostIsBusyWidensToTheRackAndThenToAny() {
    ask(2);
    table.hinted(KEY, singletonList(hint("h1", 2, 3)));
    assertEquals("h1=2 /r1=2", told(send(0)));
    assertEquals("", told(send(999)));
    assertEquals("h1=0", told(send(1000)));
    assertEquals("/r1=0", told(send(2000)));
    assertEquals(2, over.get("widened"));
    assertEquals(asList(4L, 3L), givenBack);
    assertEquals(Place.NOT_HINTED, table.delivered(KEY, "h1", "/r1").place);
  }

  @Test
  void strictLabelledOpportunisticAndLocalisedAsksAreLeftAlone() {
    ResourceRequest strict = Yarn.row(KEY, "*", 2);
    strict.setRelaxLocality(false);
    leftAlone("strict", asList(Yarn.row(KEY, "h1", 2), Yarn.row(KEY, "/r1", 2), strict));
    ResourceRequest labelled = Yarn.row(KEY, "*", 2);
    labelled.setNodeLabelExpression("gpu");
    leftAlone("labelled", singletonList(labelled));
    ResourceRequest opportunistic = Yarn.row(KEY, "*", 2);
    opportunistic.setExecutionTypeRequest(ExecutionTypeRequest.newInstance(ExecutionType.OPPORTUNISTIC, true));
    leftAlone("opportunistic", singletonList(opportunistic));
    leftAlone("own_locality", asList(Yarn.row(KEY, "h1", 2), Yarn.row(KEY, "/r1", 2), Yarn.row(KEY, "*", 2)));
  }

  private void leftAlone(String why, List<ResourceRequest> asks) {
    AskTable fresh = new AskTable(false, this::over);
    assertTrue(fresh.came(asks).isEmpty(), why);
    assertEquals(why, fresh.leftAlone(KEY));
    assertEquals(0, fresh.hinted(KEY, singletonList(hint("h1", 1, 0))));
    assertSame(asks, fresh.rewrite(asks, true, 0, 1000, 1000));
  }

  @Test
  void aKeyThatTurnsStrictLosesTheRowsThatWereAdded() {
    ask(2);
    table.hinted(KEY, singletonList(hint("h1", 2, 0)));
    send(0);
    ResourceRequest strict = Yarn.row(KEY, "*", 2);
    strict.setRelaxLocality(false);
    List<ResourceRequest> asks = asList(Yarn.row(KEY, "h3", 2), Yarn.row(KEY, "/r2", 2), strict);
    table.came(asks);
    assertEquals("h3=2 *=2 h1=0 /r2=2 /r1=0".length(), told(table.rewrite(asks, true, 1, 1000, 1000)).length());
  }

  @Test
  void onlyWhatGrewIsAskedFor() {
    assertEquals(3, ask(3).get(0).count);
    table.delivered(KEY, "h1", "/r1");
    assertTrue(ask(2).isEmpty(), "the application took note of what came");
    assertEquals(2, ask(4).get(0).count);
    assertTrue(ask(1).isEmpty());
  }

  @Test
  void whatIsCancelledIsNoLongerHinted() {
    ask(3);
    table.hinted(KEY, asList(hint("h1", 2, 3), hint("h3", 1, 9)));
    send(0);
    ask(1);
    assertEquals("h1=1 h3=0 /r1=1 /r2=0", told(send(1)));
    assertEquals(asList(9L, 4L), givenBack);
    ask(0);
    assertEquals("", told(send(2)), "YARN itself dropped the key");
  }

  @Test
  void hintsThatComeTooLateAreGivenBack() {
    ask(1);
    table.delivered(KEY, "h3", "/r2");
    assertEquals(0, table.hinted(KEY, singletonList(hint("h1", 1, 5))));
    assertEquals(singletonList(5L), givenBack);
    assertEquals(0, table.hinted(new Key(99, 3), singletonList(hint("h1", 1, 6))));
    assertEquals("", told(send(0)));
  }

  @Test
  void inShadowNothingIsSentAndContainersAreCompared() {
    ask(2);
    table.hinted(KEY, singletonList(new Piece("h1", emptyList(), RACKS, 2, emptyList(), "", false, 0)));
    assertEquals("", told(send(0)));
    assertEquals(Place.ON_HOST, table.delivered(KEY, "h1", "/r1").place);
    assertEquals(Place.ELSEWHERE, table.delivered(KEY, "h3", "/r2").place);
  }

  @Test
  void aQueueSwitchedOffTakesItsRowsBack() {
    ask(2);
    table.hinted(KEY, singletonList(hint("h1", 2, 3)));
    send(0);
    table.forgetAll("off");
    assertEquals("h1=0 /r1=0", told(table.rewrite(emptyList(), false, 1, 1000, 1000)));
    assertEquals(asList(4L, 3L), givenBack);
  }

  @Test
  void blacklistedHostsAreNotNamed() {
    ask(2);
    table.hinted(KEY, asList(hint("h1", 1, 3), hint("h3", 1, 9)));
    send(0);
    table.blacklist(singletonList("h1"), emptyList());
    assertEquals("h1=0 /r1=0", told(send(1)));
    assertEquals(0, table.hinted(KEY, singletonList(hint("h1", 1, 7))));
  }

  @Test
  void aNewSizeIsToldForRowsThatStand() {
    ask(2);
    table.hinted(KEY, singletonList(hint("h1", 2, 0)));
    send(0);
    ResourceRequest larger = Yarn.row(KEY, "*", 2);
    larger.setCapability(Resource.newInstance(4096, 1));
    table.came(singletonList(larger));
    List<ResourceRequest> rows = send(1);
    assertEquals("h1=2 /r1=2", told(rows));
    assertTrue(rows.stream().allMatch(row -> row.getCapability().getMemorySize() == 4096));
  }

  @Test
  void rowsAreNewObjectsEachTime() {
    ResourceRequest any = Yarn.row(KEY, "*", 1);
    table.came(singletonList(any));
    table.hinted(KEY, singletonList(hint("h1", 1, 0)));
    List<ResourceRequest> rows = table.rewrite(singletonList(any), true, 0, 1000, 1000);
    assertSame(any, rows.get(0), "the application's own row goes on as it is");
    rows.forEach(row -> assertTrue(row == any || row.getCapability() != any.getCapability()));
    assertNotSame(rows.get(1).getCapability(), rows.get(2).getCapability());
  }

  @Test
  void besideOwnLocalityTheApplicationsRowsStay() {
    AskTable beside = new AskTable(true, this::over);
    List<ResourceRequest> asks = asList(Yarn.row(KEY, "h1", 1), Yarn.row(KEY, "/r1", 1), Yarn.row(KEY, "*", 1));
    assertEquals(1, beside.came(asks).size());
    beside.hinted(KEY, singletonList(hint("h3", 1, 0)));
    assertEquals("h1=1 h3=1 *=1 /r1=1 /r2=1".length(), told(beside.rewrite(asks, true, 0, 1000, 1000)).length());
  }

  private List<AskTable.Wanted> ask(int count) {
    return table.came(singletonList(Yarn.row(KEY, "*", count)));
  }

  /** An allocate that asks for nothing. */
  private List<ResourceRequest> send(long now) {
    table.came(emptyList());
    return table.rewrite(emptyList(), true, now, 1000, 1000);
  }

  private static Piece hint(String host, int count, long firstLease) {
    List<Long> leases = new ArrayList<>();
    for (long i = 0; firstLease > 0 && i < count; i++) {
      leases.add(firstLease + i);
    }
    return new Piece(host, emptyList(), RACKS, count, leases, "t", true, 0);
  }

  private static String told(List<ResourceRequest> rows) {
    TreeMap<String, Integer> sorted = new TreeMap<>();
    rows.forEach(row -> sorted.put((row.getResourceName().startsWith("/") ? "2" : "1") + row.getResourceName(), row.getNumContainers()));
    StringBuilder text = new StringBuilder();
    sorted.forEach((name, count) -> text.append(text.length() == 0 ? "" : " ").append(name.substring(1)).append('=').append(count));
    return text.toString();
  }
}
