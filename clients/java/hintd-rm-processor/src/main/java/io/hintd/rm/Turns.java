package io.hintd.rm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.yarn.api.records.ResourceRequest;

/**
 * Containers of receivers (reduces) that an application asked for, and how many of them YARN is asked for by now. What
 * waits for its turn goes to YARN later, in a row for any node with a larger count, as the application itself would send
 * it. No clock, no network, no threads.
 *
 * <ul>
 *   <li>YARN is never asked for more than the application asked for, nor for less than it was asked for already: what
 *       stands there may be reserved for. Only where nothing of that is left, by what was delivered, an ask of the
 *       application's for more says 0, for YARN may have counted twice what was on its way at the ask before.
 *   <li>Keys with rows of hosts or racks, strict, labelled and opportunistic ones pass as they come, for good.
 *   <li>Counts are absolute, in YARN's rows as here.
 * </ul>
 */
final class Turns {
  /** No bound. */
  static final int ALL = Integer.MAX_VALUE;

  private static final class State {
    /** Outstanding, as the application has it: its last count less what was delivered since. */
    int wish;
    /** Outstanding, as YARN has it, but for what was on its way when {@code *} was put last. */
    int passed;
    /** YARN has a row of it. */
    boolean stands;
    int running;
    int done;
    /** Containers that receivers may hold and ask for. */
    int most = ALL;
    boolean leftAlone;
    /** The application's last row for any node. */
    ResourceRequest last;

    /** YARN is asked for so many. */
    void put(int count) {
      passed = count;
      stands = count > 0;
    }

    /** What YARN should be asked for. */
    int target() {
      if (leftAlone || most == ALL) {
        return wish;
      }
      return Math.min(wish, Math.max(passed, most - running));
    }
  }

  private final TreeMap<Key, State> states = new TreeMap<>();

  /** Takes in what the application asks for; {@code candidate}: whether a key's asks may wait. */
  void came(List<ResourceRequest> asks, java.util.function.Predicate<Key> candidate) {
    for (ResourceRequest row : asks) {
      Key key = Key.of(row);
      State state = states.get(key);
      if (state == null) {
        if (!candidate.test(key)) {
          continue;
        }
        state = new State();
        states.put(key, state);
      }
      boolean any = ResourceRequest.ANY.equals(row.getResourceName());
      if (any) {
        state.wish = Math.max(row.getNumContainers(), 0);
        state.last = row;
      }
      state.leftAlone |= AskTable.notToBeTouched(row) != null || !any && row.getNumContainers() > 0;
    }
  }

  /** Keys that wish for containers or have some, and may be held. */
  List<Key> open() {
    List<Key> open = new ArrayList<>();
    states.forEach((key, state) -> {
      if (!state.leftAlone && (state.wish > 0 || state.running > 0)) {
        open.add(key);
      }
    });
    return open;
  }

  /** Whether no receivers stand and none ended: none were asked for so far, or all were taken back. */
  boolean none() {
    return states.values().stream().noneMatch(state -> state.leftAlone || state.wish > 0 || state.running > 0 || state.done > 0);
  }

  /** The key's receivers may hold and ask for so many containers from now on. */
  void most(Key key, int most) {
    State state = states.get(key);
    if (state != null) {
      state.most = most;
    }
  }

  /** What goes on to YARN in place of {@code asks}, which {@link #came} was told of. */
  List<ResourceRequest> pass(List<ResourceRequest> asks) {
    List<ResourceRequest> rows = new ArrayList<>();
    boolean same = true;
    TreeMap<Key, Integer> targets = new TreeMap<>();
    states.forEach((key, state) -> targets.put(key, state.target()));
    for (ResourceRequest row : asks) {
      Key key = Key.of(row);
      Integer target = targets.get(key);
      if (target == null || !ResourceRequest.ANY.equals(row.getResourceName())) {
        rows.add(row);
        continue;
      }
      State state = states.get(key);
      // YARN knows nothing of it yet. Where it does, it may have more than the application believes: what was on its way
      // when the row before came is for this one to take off.
      boolean nothing = target == 0 && !state.stands && state.wish > 0;
      if (!nothing) {
        rows.add(target == row.getNumContainers() ? row : counted(row, target));
      }
      same &= !nothing && target == row.getNumContainers();
      state.put(target);
    }
    for (Map.Entry<Key, State> entry : states.entrySet()) {
      State state = entry.getValue();
      int target = targets.get(entry.getKey());
      if (target != state.passed) {
        rows.add(counted(state.last, target));
        state.put(target);
        same = false;
      }
    }
    return same ? asks : rows;
  }

  /** What goes to YARN in place of {@code asks} if nothing is held from now on. */
  List<ResourceRequest> passAll(List<ResourceRequest> asks) {
    came(asks, none -> false); // once given up, nobody else tells of them
    List<ResourceRequest> rows = new ArrayList<>(asks);
    TreeSet<Key> said = new TreeSet<>();
    asks.stream().filter(row -> ResourceRequest.ANY.equals(row.getResourceName())).forEach(row -> said.add(Key.of(row)));
    states.forEach((key, state) -> {
      state.most = ALL;
      // Sent again even where YARN should have it: what was to carry it may not have arrived.
      if (state.wish > 0 && !said.contains(key)) {
        rows.add(counted(state.last, state.wish));
      }
      state.put(state.wish);
    });
    return rows;
  }

  /** A container was delivered to the application. */
  void delivered(Key key) {
    State state = states.get(key);
    if (state != null) {
      state.wish = Math.max(state.wish - 1, 0);
      state.passed = Math.max(state.passed - 1, 0);
      state.running++;
    }
  }

  /** One of the key's containers ended. */
  void ended(Key key, boolean failed) {
    State state = states.get(key);
    if (state != null) {
      state.running = Math.max(state.running - 1, 0);
      state.done += failed ? 0 : 1;
    }
  }

  /** Containers that YARN is not asked for yet. */
  int held() {
    int sum = 0;
    for (State state : states.values()) {
      sum += Math.max(state.wish - state.passed, 0);
    }
    return sum;
  }

  /** Receivers that are known by now. */
  int receivers(Key key) {
    State state = states.get(key);
    return state == null ? 0 : state.wish + state.running + state.done;
  }

  /** Those of them that ended well. */
  int done(Key key) {
    State state = states.get(key);
    return state == null ? 0 : state.done;
  }

  /** Memory of one, MB. */
  long memoryMb(Key key) {
    State state = states.get(key);
    return state == null || state.last == null ? 0 : state.last.getCapability().getMemorySize();
  }

  private static ResourceRequest counted(ResourceRequest row, int count) {
    ResourceRequest other = ResourceRequest.clone(row); // the application's own object stays as it is
    other.setNumContainers(count);
    return other;
  }
}
