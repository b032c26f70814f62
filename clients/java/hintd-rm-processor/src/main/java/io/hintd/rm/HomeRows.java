package io.hintd.rm;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import org.apache.hadoop.yarn.api.records.ResourceRequest;

/**
 * Rows of tasks that read an application's input, and which of them YARN has by now: all, or those at home alone. Keeps
 * its own account of what was left out, so that YARN gets it back as the application has it. No clock, no network, no
 * threads.
 *
 * <p>YARN's rules that it heeds, beside those of {@link AskTable}:
 *
 * <ul>
 *   <li>{@code *} with {@code relaxLocality = false} has YARN pass nodes by that no row of host or rack names. Rows at
 *       home stay relaxed: any node of a home rack is as good once the host was waited for.
 *   <li>Rows elsewhere are put to 0, which YARN keeps; the application's ApplicationMaster believes that they stand, so
 *       changes of them are taken in here and not sent.
 *   <li>Where {@code *} is sent without being the application's own word, its count is what YARN has outstanding: the
 *       application does not know yet what was given since its last heartbeat.
 * </ul>
 */
final class HomeRows {
  private static final class State {
    /** Outstanding, as the application has it: its last count less what was delivered since. */
    int any;
    /** The application's last row for any node. */
    ResourceRequest last;
    /** Its other rows, with the counts that YARN would have. */
    final TreeMap<String, ResourceRequest> own = new TreeMap<>();
    /** Of these, rows that came with the present allocate: what is delivered with its answer was given before them. */
    final TreeSet<String> fresh = new TreeSet<>();
    String leftAlone;
    /** Hosts and racks that rows should be left of; null: all. */
    Set<String> home;
    /** The same as YARN has it. */
    Set<String> stands;
    /** It was narrowed once. */
    boolean touched;

    void gone() {
      own.clear();
      home = null;
      stands = null;
    }
  }

  private final TreeMap<Key, State> states = new TreeMap<>();

  /** Takes in what the application asks for; {@code candidate}: whether a key's rows may be left out. */
  void came(List<ResourceRequest> asks, Predicate<Key> candidate) {
    TreeSet<Key> cancelled = new TreeSet<>();
    states.values().forEach(state -> state.fresh.clear());
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
      ResourceRequest kept = ResourceRequest.clone(row); // YARN changes the object that it is given
      if (ResourceRequest.ANY.equals(row.getResourceName())) {
        state.any = Math.max(row.getNumContainers(), 0);
        state.last = kept;
        state.fresh.add(ResourceRequest.ANY);
        if (state.any == 0) {
          cancelled.add(key);
        }
      } else {
        state.own.put(row.getResourceName(), kept);
        state.fresh.add(row.getResourceName());
      }
      String why = AskTable.notToBeTouched(row);
      state.leftAlone = why == null ? state.leftAlone : why;
    }
    cancelled.forEach(key -> states.get(key).gone()); // YARN drops the key with all its rows
  }

  /** Keys with outstanding containers. */
  List<Key> open() {
    List<Key> open = new ArrayList<>();
    states.forEach((key, state) -> {
      if (state.any > 0) {
        open.add(key);
      }
    });
    return open;
  }

  /** Why a key's rows are never left out; null: they may be. */
  String leftAlone(Key key) {
    return states.get(key).leftAlone;
  }

  /** Whether the key's {@code *} came with the present allocate: YARN does not have it yet. */
  boolean fresh(Key key) {
    return states.get(key).fresh.contains(ResourceRequest.ANY);
  }

  /** Outstanding, as the application has it. */
  int outstanding(Key key) {
    return states.get(key).any;
  }

  /** Its last row for any node: size and all; not to be changed. */
  ResourceRequest last(Key key) {
    return states.get(key).last;
  }

  /** Containers that the key's rows ask for by rack; {@code racks}: names that are racks. */
  TreeMap<String, Integer> byRack(Key key, Set<String> racks) {
    TreeMap<String, Integer> found = new TreeMap<>();
    states.get(key).own.forEach((name, row) -> {
      if (row.getNumContainers() > 0 && racks.contains(name)) {
        found.put(name, row.getNumContainers());
      }
    });
    return found;
  }

  /** From now on the key has rows of these hosts and racks alone; null: all. */
  void keepTo(Key key, Set<String> home) {
    states.get(key).home = home;
  }

  /** A container was delivered to the application. */
  void delivered(Key key, String host, String rack) {
    State state = states.get(key);
    if (state == null) {
      return;
    }
    state.any = Math.max(state.any - 1, 0);
    for (String name : new String[] {host, rack}) {
      if (!state.fresh.contains(name)) {
        state.own.computeIfPresent(name, (same, row) -> counted(row, Math.max(row.getNumContainers() - 1, 0)));
      }
    }
  }

  /**
   * What goes on to YARN in place of {@code asks}, of which {@link #came} was told.
   *
   * @param outstanding what YARN has for any node of a key; less than 0: not known
   */
  List<ResourceRequest> pass(List<ResourceRequest> asks, ToIntFunction<Key> outstanding) {
    TreeMap<Key, TreeSet<String>> said = new TreeMap<>();
    asks.forEach(row -> said.computeIfAbsent(Key.of(row), none -> new TreeSet<>()).add(row.getResourceName()));
    TreeMap<Key, Integer> turned = turned(said, outstanding);
    List<ResourceRequest> rows = new ArrayList<>(asks.size());
    boolean same = true;
    for (ResourceRequest row : asks) {
      Key key = Key.of(row);
      State state = states.get(key);
      // Whether they turn or not, the rows that came go by what YARN has after this.
      Set<String> home = state == null ? null : turned.containsKey(key) ? state.home : state.stands;
      ResourceRequest sent = home == null ? row : narrowed(row, home);
      rows.add(sent);
      same &= sent == row;
    }
    turned.forEach((key, count) -> turn(states.get(key), said.getOrDefault(key, new TreeSet<>()), count, rows));
    return same && rows.size() == asks.size() ? asks : rows;
  }

  /** Keys whose rows YARN has otherwise than it should, with the count of {@code *} that is to be said for that; 0: none. */
  private TreeMap<Key, Integer> turned(TreeMap<Key, TreeSet<String>> said, ToIntFunction<Key> outstanding) {
    TreeMap<Key, Integer> turned = new TreeMap<>();
    states.forEach((key, state) -> {
      if (Objects.equals(state.home, state.stands)) {
        return;
      }
      boolean strictness = (state.home == null) != (state.stands == null);
      boolean sayAny = strictness && !said.getOrDefault(key, new TreeSet<>()).contains(ResourceRequest.ANY);
      int count = sayAny ? has(key, state, outstanding) : 0;
      if (!sayAny || count > 0 || state.home == null) {
        turned.put(key, count);
      } // else YARN has given everything: there is nothing to narrow
    });
    return turned;
  }

  /** Adds what has to be said beside what the application says, so that YARN has the rows that it should. */
  private static void turn(State state, TreeSet<String> names, int count, List<ResourceRequest> rows) {
    state.own.forEach((name, row) -> {
      boolean now = state.home == null || state.home.contains(name);
      boolean before = state.stands == null || state.stands.contains(name);
      if (now != before && !names.contains(name)) {
        rows.add(counted(row, now ? row.getNumContainers() : 0));
      }
    });
    if (count > 0) {
      ResourceRequest any = counted(state.last, count);
      rows.add(state.home == null ? any : strict(any));
    }
    state.stands = state.home;
    state.touched |= state.home != null;
  }

  /** What goes to YARN in place of {@code asks} if nothing is left out from now on. */
  List<ResourceRequest> passAll(List<ResourceRequest> asks, ToIntFunction<Key> outstanding) {
    came(asks, none -> false); // once given up, nobody else tells of them
    for (State state : states.values()) {
      // Sent again even where YARN should have it: what was to carry it may not have arrived.
      state.stands = state.touched && state.any > 0 ? Collections.<String>emptySet() : null;
      state.home = null;
    }
    return pass(asks, outstanding);
  }

  private static int has(Key key, State state, ToIntFunction<Key> outstanding) {
    int found = outstanding.applyAsInt(key);
    return found < 0 ? state.any : found;
  }

  private static ResourceRequest narrowed(ResourceRequest row, Set<String> home) {
    if (ResourceRequest.ANY.equals(row.getResourceName())) {
      return strict(ResourceRequest.clone(row));
    }
    return home.contains(row.getResourceName()) || row.getNumContainers() == 0 ? row : counted(row, 0);
  }

  private static ResourceRequest strict(ResourceRequest row) {
    row.setRelaxLocality(false);
    return row;
  }

  private static ResourceRequest counted(ResourceRequest row, int count) {
    ResourceRequest other = ResourceRequest.clone(row);
    other.setNumContainers(count);
    return other;
  }
}
