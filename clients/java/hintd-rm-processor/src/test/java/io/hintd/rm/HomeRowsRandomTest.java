package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.Test;

/** ApplicationMasters that ask for maps as MapReduce's do, with their rows left out and restored at random, and without. */
class HomeRowsRandomTest {
  private static final int HOSTS = 6;
  private static final Key MAPS = new Key(20, -1);

  @Test
  void yarnIsAskedForTheSameInAllAndHasTheSameRowsOnceTheyAreRestored() {
    long[] narrowed = new long[3];
    for (int seed = 0; seed < 800; seed++) {
      new Run(seed, narrowed).run();
    }
    assertTrue(narrowed[0] > 1_000 && narrowed[1] > 1_000, "rows are left out: " + narrowed[0] + ", restored " + narrowed[1]);
    assertTrue(narrowed[2] > 1_000, "rows of every host stand: " + narrowed[2]);
  }

  private static String host(int i) {
    return "h" + i;
  }

  private static String rack(int i) {
    return "/r" + i / 2;
  }

  private static final class Run {
    final int seed;
    final Random random;
    final long[] counted;
    final Yarn with = new Yarn();
    final Yarn without = new Yarn();
    final HomeRows homes = new HomeRows();
    /** Maps that wait, by the hosts of their replicas. */
    final List<int[]> waiting = new ArrayList<>();
    /** Rows of the ApplicationMaster that changed since its last heartbeat. */
    final TreeSet<String> changed = new TreeSet<>();
    final TreeMap<String, Integer> table = new TreeMap<>();
    final List<Integer> undelivered = new ArrayList<>();
    Set<String> home;
    HomeRows.Target target;
    boolean strict;
    long withAny;
    long withoutAny;

    Run(int seed, long[] counted) {
      this.seed = seed;
      this.random = new Random(seed);
      this.counted = counted;
    }

    void run() {
      for (int round = 0; round < 30; round++) {
        if (random.nextInt(4) == 0) {
          for (int i = 1 + random.nextInt(6); i > 0; i--) {
            maps(random.nextInt(HOSTS), random.nextInt(HOSTS), 1);
          }
        }
        turn();
        allocate();
        for (int i = random.nextInt(4); i > 0; i--) {
          give();
        }
      }
      home = null;
      target = null;
      allocate();
      allocate(); // hosts at home have as many as the application has, once it knows of what came meanwhile
      same();
      // And everything that is left comes, anywhere.
      while (!waiting.isEmpty()) {
        give();
        allocate();
        same();
      }
    }

    private void maps(int one, int other, int by) {
      TreeSet<String> names = new TreeSet<>();
      for (int at : new int[] {one, other}) {
        names.add(host(at));
        names.add(rack(at));
      }
      names.add("*");
      names.forEach(name -> table.merge(name, by, Integer::sum));
      changed.addAll(names);
      if (by > 0) {
        waiting.add(new int[] {one, other});
      }
    }

    private void turn() {
      int what = random.nextInt(6);
      if (what > 1) {
        return;
      }
      home = what == 0 ? null : new HashSet<>();
      if (home != null) {
        int rack = random.nextInt(HOSTS / 2);
        for (int at : new int[] {2 * rack, 2 * rack + 1}) {
          Collections.addAll(home, host(at), rack(at));
        }
      }
      TreeMap<String, Integer> added = new TreeMap<>();
      if (home != null && random.nextBoolean()) {
        home.forEach(name -> added.put(name, HomeRows.ALL));
      }
      target = home == null ? null : new HomeRows.Target(home, added);
    }

    private void allocate() {
      List<ResourceRequest> asks = new ArrayList<>();
      changed.forEach(name -> asks.add(Yarn.row(MAPS, name, table.getOrDefault(name, 0))));
      changed.clear();
      Collections.shuffle(asks, random);
      homes.came(asks, key -> true);
      homes.open().forEach(key -> homes.keepTo(key, target));
      List<ResourceRequest> sent = homes.pass(asks, key -> with.count(key, "*"));
      for (ResourceRequest row : sent) {
        if (row.getResourceName().equals("*")) {
          counted[strict && row.getRelaxLocality() ? 1 : 0] += row.getRelaxLocality() == strict ? 1 : 0;
          strict = !row.getRelaxLocality();
        }
      }
      with.put(sent);
      without.put(asks);
      assertEquals(without.count(MAPS, "*"), with.count(MAPS, "*"), this::say);
      if (strict && target != null) {
        for (String name : target.added.keySet()) {
          assertTrue(with.count(MAPS, name) >= with.count(MAPS, "*"), () -> name + " says too little, " + say());
          counted[2]++;
        }
      }
      undelivered.forEach(this::delivered);
      undelivered.clear();
    }

    /** A map with a replica there takes the container, else one with a replica in the rack, else any. */
    private void delivered(int at) {
      homes.delivered(MAPS, host(at), rack(at));
      if (waiting.isEmpty()) {
        return; // one too many: given back
      }
      int[] best = waiting.get(0);
      for (int[] map : waiting) {
        best = map[0] / 2 == at / 2 || map[1] / 2 == at / 2 ? map : best;
      }
      for (int[] map : waiting) {
        best = map[0] == at || map[1] == at ? map : best;
      }
      waiting.remove(best);
      maps(best[0], best[1], -1);
    }

    /** YARN gives a container where the rows of ours allow it. */
    private void give() {
      if (with.count(MAPS, "*") == 0) {
        return;
      }
      int at = random.nextInt(HOSTS);
      if (!strict || with.count(MAPS, rack(at)) > 0) {
        with.allocate(MAPS, host(at), rack(at), false);
        without.allocate(MAPS, host(at), rack(at), false);
        undelivered.add(at);
        assertEquals(without.count(MAPS, "*"), with.count(MAPS, "*"), this::say);
      }
    }

    private void same() {
      assertEquals(rows(without), rows(with), this::say);
      assertTrue(!strict || with.count(MAPS, "*") == 0, this::say);
    }

    private static TreeMap<String, Integer> rows(Yarn yarn) {
      TreeMap<String, Integer> rows = new TreeMap<>(yarn.keys.getOrDefault(MAPS, new TreeMap<>()));
      rows.values().removeIf(count -> count == 0); // a row of 0 says no more than none
      return rows;
    }

    private String say() {
      return "seed " + seed + ": with " + with.keys + ", without " + without.keys + ", home " + home;
    }
  }
}
