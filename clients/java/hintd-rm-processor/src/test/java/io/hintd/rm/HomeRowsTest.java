package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractUsersManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AppSchedulingInfo;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.Queue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceUsage;
import org.junit.jupiter.api.Test;

/** Maps' rows in the ResourceManager's own table of an application, beside the same without us. */
class HomeRowsTest {
  private static final Key MAPS = new Key(20, -1);
  private static final Set<String> HOME = new HashSet<>(Arrays.asList("/r1", "h1", "h2"));

  private final HomeRows homes = new HomeRows();
  private final AppSchedulingInfo with = table(1);
  private final AppSchedulingInfo without = table(2);

  /** Hadoop's table; of its queue it wants the metrics only. */
  private static AppSchedulingInfo table(int application) {
    QueueMetrics metrics = QueueMetrics.forQueue("root.q" + application, null, false, new Configuration());
    ClassLoader loader = HomeRowsTest.class.getClassLoader();
    Queue queue =
        (Queue)
            Proxy.newProxyInstance(
                loader, new Class<?>[] {Queue.class},
                (self, method, arguments) -> method.getName().equals("getMetrics") ? metrics : null);
    ApplicationAttemptId id = ApplicationAttemptId.newInstance(ApplicationId.newInstance(1L, application), 1);
    AbstractUsersManager users =
        (AbstractUsersManager)
            Proxy.newProxyInstance(loader, new Class<?>[] {AbstractUsersManager.class}, (self, method, arguments) -> null);
    RMContextImpl context = new RMContextImpl();
    context.setYarnConfiguration(new Configuration());
    return new AppSchedulingInfo(id, "ann", queue, users, 0, new ResourceUsage(), new HashMap<>(), context);
  }

  /** Its own rows of these places. */
  private static HomeRows.Target only(Set<String> places) {
    return new HomeRows.Target(places, new TreeMap<>());
  }

  /** Beside those, rows of all hosts of the home, for all that is outstanding. */
  private static HomeRows.Target everyHost() {
    TreeMap<String, Integer> added = new TreeMap<>();
    HOME.forEach(place -> added.put(place, HomeRows.ALL));
    return new HomeRows.Target(HOME, added);
  }

  private static TreeMap<String, String> rows(AppSchedulingInfo table) {
    TreeMap<String, String> rows = new TreeMap<>();
    table.getAllResourceRequests().forEach(row -> rows.put(row.getPriority() + " " + row.getResourceName(), row.toString()));
    return rows;
  }

  /** Three maps, each in both racks, and a fourth key that is none of ours. */
  private static List<ResourceRequest> asks(int maps) {
    List<ResourceRequest> asks = new ArrayList<>();
    for (String name : new String[] {"*", "/r1", "/r2", "h1", "h3"}) {
      asks.add(Yarn.row(MAPS, name, maps));
    }
    asks.add(Yarn.row(new Key(5, -1), "*", 1));
    asks.add(Yarn.row(new Key(5, -1), "/r2", 1));
    return asks;
  }

  /** Both tables get what they would; returns what went to ours. */
  private List<ResourceRequest> allocate(int outstanding, ResourceRequest... rows) {
    List<ResourceRequest> asks = Arrays.asList(rows);
    List<ResourceRequest> copies = new ArrayList<>();
    asks.forEach(row -> copies.add(ResourceRequest.clone(row)));
    homes.came(asks, key -> key.priority == 20);
    List<ResourceRequest> sent = homes.pass(asks, key -> outstanding);
    assertEquals(copies, asks, "the application's own rows stay as they are");
    List<ResourceRequest> put = new ArrayList<>();
    sent.forEach(row -> put.add(ResourceRequest.clone(row)));
    with.updateResourceRequests(put, false);
    without.updateResourceRequests(copies, false);
    return sent;
  }

  private static String told(List<ResourceRequest> rows) {
    TreeSet<String> text = new TreeSet<>();
    rows.forEach(row -> text.add(row.getResourceName() + "=" + row.getNumContainers() + (row.getRelaxLocality() ? "" : "!")));
    return String.join(" ", text);
  }

  private static ResourceRequest[] array(List<ResourceRequest> rows) {
    return rows.toArray(new ResourceRequest[0]);
  }

  @Test
  void rowsElsewhereAreLeftOutAndComeBackAsTheApplicationHasThem() {
    homes.came(asks(3), key -> key.priority == 20);
    homes.keepTo(MAPS, only(HOME));
    List<ResourceRequest> sent = allocate(-1, array(asks(3)));
    assertEquals("*=1 *=3! /r1=3 /r2=0 /r2=1 h1=3 h3=0", told(sent), "a retry of a failed map goes anywhere");
    assertEquals(7, sent.size());
    // Two came; the application takes their rows off, those that were left out too.
    homes.delivered(MAPS, "h1", "/r1");
    assertEquals("*=2! /r2=0 h3=0", told(allocate(-1, Yarn.row(MAPS, "*", 2), Yarn.row(MAPS, "/r2", 2), Yarn.row(MAPS, "h3", 2))));
    assertEquals("", told(allocate(-1)), "nothing new");
    homes.keepTo(MAPS, null);
    assertEquals("*=1 /r2=2 h3=2", told(allocateRestored(1)), "one more was given, and is on its way");
    ResourceRequest any = Yarn.row(MAPS, "*", 1);
    allocate(-1, any);
    assertEquals(rows(without), rows(with), "to the last letter");
    assertSame(Collections.<ResourceRequest>emptyList(), homes.pass(Collections.emptyList(), key -> 1));
  }

  /** An allocate of nothing, of which the other table hears nothing. */
  private List<ResourceRequest> allocateRestored(int outstanding) {
    List<ResourceRequest> sent = homes.pass(new ArrayList<>(), key -> outstanding);
    List<ResourceRequest> put = new ArrayList<>();
    sent.forEach(row -> put.add(ResourceRequest.clone(row)));
    with.updateResourceRequests(put, false);
    return sent;
  }

  @Test
  void anAnswerThatComesLateTakesRowsBackAndAsksForNoMoreThanYarnHas() {
    assertEquals("*=1 *=3 /r1=3 /r2=1 /r2=3 h1=3 h3=3", told(allocate(-1, array(asks(3)))));
    homes.keepTo(MAPS, only(HOME));
    assertEquals("*=2! /r2=0 h3=0", told(allocateRestored(2)));
    homes.keepTo(MAPS, null);
    assertEquals("*=2 /r2=3 h3=3", told(allocateRestored(2)));
    homes.keepTo(MAPS, only(HOME));
    assertEquals("", told(allocateRestored(0)), "all of them were given");
    homes.keepTo(MAPS, null);
    assertEquals("", told(allocateRestored(0)));
  }

  @Test
  void rowsThatComeWhenAllWasGivenPassAsTheyAre() {
    allocate(-1, array(asks(3)));
    homes.keepTo(MAPS, only(HOME));
    assertEquals("/r2=2 h3=2", told(allocate(0, Yarn.row(MAPS, "/r2", 2), Yarn.row(MAPS, "h3", 2))));
    homes.keepTo(MAPS, null);
    allocate(-1);
    assertEquals(rows(without), rows(with), "nothing is left at 0");
  }

  @Test
  void otherHomesMoveRowsOnly() {
    allocate(-1, array(asks(3)));
    homes.keepTo(MAPS, only(HOME));
    allocateRestored(3);
    homes.keepTo(MAPS, only(new HashSet<>(Arrays.asList("/r2", "h3"))));
    assertEquals("/r1=0 /r2=3 h1=0 h3=3", told(allocateRestored(3)));
  }

  @Test
  void whatWasCancelledIsForgottenAndWhatIsGivenUpComesBackWhole() {
    homes.came(asks(3), key -> key.priority == 20);
    homes.keepTo(MAPS, only(HOME));
    allocate(-1, array(asks(3)));
    List<ResourceRequest> all = homes.passAll(new ArrayList<>(), key -> -1);
    assertEquals("*=3 /r1=3 /r2=3 h1=3 h3=3", told(all), "what YARN has is not certain any more");
    with.updateResourceRequests(all, false);
    assertEquals(rows(without), rows(with));
    homes.keepTo(MAPS, only(HOME));
    assertFalse(told(allocate(-1, array(asks(2)))).isEmpty());
    allocate(-1, Yarn.row(MAPS, "*", 0), Yarn.row(MAPS, "/r1", 0), Yarn.row(MAPS, "/r2", 0));
    assertEquals(rows(without), rows(with), "YARN dropped the key");
    assertTrue(homes.open().isEmpty());
    List<ResourceRequest> none = new ArrayList<>();
    assertSame(none, homes.passAll(none, key -> -1));
  }

  @Test
  void rowsOfEveryHostSayAsMuchAsTheRowForAnyNodeAndAreTakenBack() {
    homes.came(asks(3), key -> key.priority == 20);
    homes.keepTo(MAPS, everyHost());
    assertEquals("*=1 *=3! /r1=3 /r2=0 /r2=1 h1=3 h2=3 h3=0", told(allocate(-1, array(asks(3)))));
    homes.delivered(MAPS, "h2", "/r1");
    assertEquals("*=2! /r1=2 /r2=0 h1=2 h2=2", told(allocate(-1, Yarn.row(MAPS, "*", 2), Yarn.row(MAPS, "/r2", 2), Yarn.row(MAPS, "h1", 1))));
    assertEquals("*=4! /r1=4 h1=4 h2=4", told(allocate(-1, Yarn.row(MAPS, "*", 4), Yarn.row(MAPS, "/r1", 4))));
    assertEquals("", told(allocate(-1)), "nothing new");
    homes.keepTo(MAPS, only(HOME));
    assertEquals("/r1=4 h1=1 h2=0", told(allocateRestored(4)), "as the application has them");
    homes.keepTo(MAPS, everyHost());
    assertEquals("/r1=4 h1=4 h2=4", told(allocateRestored(4)));
    homes.keepTo(MAPS, null);
    assertEquals("*=3 /r1=4 /r2=2 h1=1 h2=0 h3=3", told(allocateRestored(3)), "and no more than YARN has");
    homes.keepTo(MAPS, everyHost());
    allocateRestored(3);
    allocate(-1, Yarn.row(MAPS, "*", 4)); // both tables have all of the application's words again
    List<ResourceRequest> all = homes.passAll(new ArrayList<>(), key -> 4);
    assertEquals("*=4 /r1=4 /r2=2 h1=1 h2=0 h3=3", told(all), "what YARN has is not certain any more");
    with.updateResourceRequests(all, false);
    assertEquals(asking(without), asking(with));
  }

  /** Rows that ask for something: a row of 0 says no more than none. */
  private static TreeMap<String, String> asking(AppSchedulingInfo table) {
    TreeMap<String, String> rows = rows(table);
    table.getAllResourceRequests().stream()
        .filter(row -> row.getNumContainers() == 0)
        .forEach(row -> rows.remove(row.getPriority() + " " + row.getResourceName()));
    return rows;
  }

  @Test
  void ofAMapWithReplicasInTwoHomesBothRacksSayItAndTheRowForAnyNodeCountsIt() {
    Set<String> both = new HashSet<>(Arrays.asList("/r1", "/r2", "h1", "h2", "h3"));
    homes.came(asks(3), key -> key.priority == 20);
    assertEquals("{/r1=3, /r2=3}", homes.counts(MAPS, new HashSet<>(Arrays.asList("/r1", "/r2"))).toString(), "six, of three");
    homes.keepTo(MAPS, only(both));
    assertEquals("*=1 *=3! /r1=3 /r2=1 /r2=3 h1=3 h3=3", told(allocate(-1, array(asks(3)))));
    assertEquals(3, with.getPendingAsk(MAPS.atScheduler(), "*").getCount(), "YARN gives no more");
    for (String host : new String[] {"h1", "h3", "h1"}) {
      homes.delivered(MAPS, host, host.equals("h3") ? "/r2" : "/r1");
    }
    assertTrue(homes.open().isEmpty(), "and nothing is waited for once they came");
  }

  @Test
  void withTwoHomesYarnGivesAsManyAsAreAskedForAndNothingIsStarved() throws Exception {
    try (RealYarn yarn = new RealYarn()) {
      for (int i = 0; i < 6; i++) {
        yarn.node("h" + i, "/r" + i / 2, 8);
      }
      ApplicationAttemptId id = yarn.submit(ApplicationId.newInstance(1L, 7));
      // Four with a replica in either home, one whose only replica is in neither: eight by rows, of five.
      List<ResourceRequest> asks = new ArrayList<>();
      Object[] counts = {"*", 5, "/r0", 4, "h0", 4, "/r1", 4, "h2", 4, "/r2", 1, "h4", 1};
      for (int i = 0; i < counts.length; i += 2) {
        asks.add(Yarn.row(MAPS, (String) counts[i], (Integer) counts[i + 1]));
      }
      homes.came(asks, key -> true);
      homes.keepTo(MAPS, only(new HashSet<>(Arrays.asList("/r0", "/r1", "h0", "h1", "h2", "h3"))));
      yarn.allocate(id, homes.pass(asks, key -> -1), new ArrayList<>());
      TreeMap<String, Integer> came = new TreeMap<>();
      for (int beat = 0; beat < 50; beat++) {
        yarn.beat();
        yarn.allocate(id, new ArrayList<>(), new ArrayList<>())
            .forEach(given -> came.merge(given.getNodeId().getHost(), 1, Integer::sum));
      }
      assertEquals(5, came.values().stream().mapToInt(Integer::intValue).sum(), came::toString);
      assertEquals(new TreeSet<>(Arrays.asList("h0", "h2")), came.keySet(), came::toString);
    }
  }

  @Test
  void whatIsAddedTakesNothingFromWhereYarnIsAskedAlready() {
    allocate(-1, array(asks(3)));
    assertTrue(homes.narrows(MAPS, everyHost()), "h3 is left out, and all of it becomes strict");
    homes.keepTo(MAPS, only(HOME));
    allocateRestored(3);
    assertFalse(homes.narrows(MAPS, everyHost()));
    homes.keepTo(MAPS, everyHost());
    allocateRestored(3);
    assertTrue(homes.narrows(MAPS, only(new HashSet<>(Arrays.asList("/r1", "h1")))), "h2 had one");
  }

  @Test
  void strictAndLabelledAsksAreNamed() {
    ResourceRequest strict = Yarn.row(MAPS, "*", 1);
    strict.setRelaxLocality(false);
    homes.came(Collections.singletonList(strict), key -> true);
    assertEquals("strict", homes.leftAlone(MAPS));
  }
}
