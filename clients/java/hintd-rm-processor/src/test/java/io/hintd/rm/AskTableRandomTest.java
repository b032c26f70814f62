package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.Test;

/** Applications that ask, cancel and get containers at random, beside the same ones without hints. */
class AskTableRandomTest {
  private static final int HOSTS = 6;
  private static final Key[] HINTED = {new Key(0, -1), new Key(20, -1), new Key(20, 3)};
  private static final Key STRICT = new Key(30, -1);
  private static final Key LABELLED = new Key(31, -1);
  private static final Key OWN = new Key(32, -1);

  private final Map<String, String> racks = new HashMap<>();

  AskTableRandomTest() {
    for (int i = 0; i < HOSTS; i++) {
      racks.put(host(i), rack(i));
    }
  }

  @Test
  void yarnsTableDiffersInOurRowsOnlyAndInNoneWhenTheyAreTakenBack() {
    long rowsOfOurs = 0;
    for (int seed = 0; seed < 600; seed++) {
      rowsOfOurs += new Run(seed).run();
    }
    assertTrue(rowsOfOurs > 6_000, "the test hints: " + rowsOfOurs);
  }

  private static String host(int i) {
    return "h" + i;
  }

  private static String rack(int i) {
    return "/r" + i / 2;
  }

  private static final class Given {
    final Key key;
    final int host;

    Given(Key key, int host) {
      this.key = key;
      this.host = host;
    }
  }

  private final class Run {
    final int seed;
    final Random random;
    final Yarn with = new Yarn();
    final Yarn without = new Yarn();
    final TreeMap<Long, Integer> leases = new TreeMap<>();
    final AskTable table = new AskTable(false, (piece, containers, why) -> piece.surplus().forEach(this::back));
    /** What the application believes to be outstanding. */
    final TreeMap<Key, Integer> outstanding = new TreeMap<>();
    final List<Given> undelivered = new ArrayList<>();
    final TreeSet<Key> hinted = new TreeSet<>();
    long now;
    long lease;
    long rowsOfOurs;

    Run(int seed) {
      this.seed = seed;
      this.random = new Random(seed);
    }

    long run() {
      for (int round = 0; round < 40; round++) {
        now += random.nextInt(800);
        allocate(true, asks());
        for (int i = random.nextInt(5); i > 0; i--) {
          give();
        }
      }
      table.forgetAll("off");
      allocate(false, new ArrayList<>());
      for (Key key : hinted) {
        with.keys.getOrDefault(key, new TreeMap<>()).forEach(
            (name, count) -> assertTrue(name.equals("*") || count == 0, () -> say(key) + ": all taken back"));
      }
      assertTrue(leases.isEmpty(), () -> "seed " + seed + ": every lease used or given back, left " + leases);
      return rowsOfOurs;
    }

    List<ResourceRequest> asks() {
      List<ResourceRequest> asks = new ArrayList<>();
      for (Key key : HINTED) {
        int has = outstanding.getOrDefault(key, 0);
        int what = random.nextInt(10);
        // More, less, none, what came taken off, or nothing said.
        int should = what < 2 ? has + 1 + random.nextInt(4) : what == 2 ? random.nextInt(has + 1) : what == 3 ? 0 : has;
        if (should != has || what > 6) {
          outstanding.put(key, should);
          asks.add(Yarn.row(key, "*", should));
        }
      }
      if (random.nextInt(4) == 0) {
        asks.addAll(located(STRICT, false));
        asks.addAll(located(OWN, true));
        ResourceRequest labelled = Yarn.row(LABELLED, "*", random.nextInt(4));
        labelled.setNodeLabelExpression("gpu");
        outstanding.put(LABELLED, labelled.getNumContainers());
        asks.add(labelled);
      }
      Collections.shuffle(asks, random);
      return asks;
    }

    private List<ResourceRequest> located(Key key, boolean relaxed) {
      int count = random.nextInt(3);
      int at = random.nextInt(HOSTS);
      List<ResourceRequest> rows = new ArrayList<>();
      for (String name : new String[] {host(at), rack(at), "*"}) {
        ResourceRequest row = Yarn.row(key, name, count);
        row.setRelaxLocality(relaxed);
        rows.add(row);
      }
      outstanding.put(key, count);
      return rows;
    }

    void allocate(boolean used, List<ResourceRequest> asks) {
      String before = asks.toString();
      for (AskTable.Wanted want : table.came(asks)) {
        assertTrue(java.util.Arrays.asList(HINTED).contains(want.key), () -> say(want.key));
        if (used && random.nextInt(5) > 0) {
          hinted.add(want.key);
          table.hinted(want.key, pieces(want.count + random.nextInt(2)));
        }
      }
      List<ResourceRequest> rows = table.rewrite(asks, used, now, 1000, 1000);
      assertEquals(before, asks.toString(), "the application's rows are not changed");
      assertEquals(asks, rows.subList(0, asks.size()));
      for (ResourceRequest row : rows.subList(asks.size(), rows.size())) {
        Key key = Key.of(row);
        assertTrue(hinted.contains(key) && row.getRelaxLocality(), () -> say(key));
        int count = row.getNumContainers();
        String name = row.getResourceName();
        assertTrue(count <= (name.equals("*") ? 0 : outstanding.get(key)), () -> say(key) + ": " + row);
        if (count > 0 && racks.containsKey(name)) {
          assertTrue(table.ours().get(key).get(racks.get(name)) > 0, () -> say(key) + ": " + name + " without its rack");
        }
      }
      rowsOfOurs += rows.size() - asks.size();
      with.put(rows);
      without.put(asks);
      check();
      for (Given given : undelivered) {
        outstanding.computeIfPresent(given.key, (key, count) -> Math.max(count - 1, 0));
        AskTable.Followed followed = table.delivered(given.key, host(given.host), rack(given.host));
        if (followed.lease != 0) {
          assertTrue(leases.remove(followed.lease) != null, "a lease is used once");
        }
      }
      undelivered.clear();
    }

    private List<Piece> pieces(int count) {
      List<Piece> pieces = new ArrayList<>();
      for (int left = count; left > 0; ) {
        int some = 1 + random.nextInt(left);
        List<Long> held = new ArrayList<>();
        if (random.nextBoolean()) {
          for (int i = 0; i < some; i++) {
            held.add(++lease);
            leases.put(lease, 1);
          }
        }
        int at = random.nextInt(HOSTS);
        List<String> others = Collections.singletonList(host(random.nextInt(HOSTS)));
        pieces.add(new Piece(host(at), others, racks, some, held, "t", true, now));
        left -= some;
      }
      return pieces;
    }

    private void back(long given) {
      assertTrue(leases.remove(given) != null, () -> "seed " + seed + ": lease " + given + " is given back once");
    }

    /** YARN gives a container of any key that has one outstanding, anywhere. */
    void give() {
      List<Key> open = new ArrayList<>();
      with.keys.forEach((key, rows) -> {
        if (with.count(key, "*") > 0) {
          open.add(key);
        }
      });
      if (!open.isEmpty()) {
        Key key = open.get(random.nextInt(open.size()));
        int at = random.nextInt(HOSTS);
        boolean byChance = random.nextInt(4) == 0;
        with.allocate(key, host(at), rack(at), byChance);
        without.allocate(key, host(at), rack(at), byChance);
        undelivered.add(new Given(key, at));
        check();
      }
    }

    void check() {
      TreeSet<Key> all = new TreeSet<>(with.keys.keySet());
      all.addAll(without.keys.keySet());
      for (Key key : all) {
        assertEquals(without.count(key, "*"), with.count(key, "*"), () -> say(key) + ": any");
        if (!hinted.contains(key)) {
          assertEquals(without.keys.get(key), with.keys.get(key), () -> say(key) + ": untouched");
        }
      }
    }

    private String say(Key key) {
      return "seed " + seed + ", " + key + ": with " + with.keys.get(key) + ", without " + without.keys.get(key) + ", ours " + table.ours().get(key);
    }
  }
}
