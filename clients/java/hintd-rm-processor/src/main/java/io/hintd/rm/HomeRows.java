package io.hintd.rm;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import org.apache.hadoop.yarn.api.records.ResourceRequest;

/**
 * Rows of tasks that should stay in some racks, and which of them YARN has by now: the application's, or those of a target.
 * Keeps its own account of what was left out and added, so that YARN gets it back as the application has it. No clock, no
 * network, no threads.
 *
 * <p>YARN's rules that it heeds, beside those of {@link AskTable}:
 *
 * <ul>
 *   <li>{@code *} with {@code relaxLocality = false} has YARN pass nodes by that no row of host or rack names, and hosts
 *       of a rack whose row is all that names them: opportunities that a strict key misses are not counted.
 *   <li>Counts of hosts and racks are upper bounds, {@code *} is the count. A row that says as much as {@code *} when both
 *       are put says as much until {@code *} is put again, for each container takes one off {@code *} and at most one off
 *       the row. So rows that are added are put again with each {@code *}.
 *   <li>Rows elsewhere are put to 0, which YARN keeps; the application's ApplicationMaster believes that they stand, so
 *       changes of them are taken in here and not sent.
 *   <li>Where {@code *} is sent without being the application's own word, its count is what YARN has outstanding: the
 *       application does not know yet what was given since its last heartbeat.
 * </ul>
 */
final class HomeRows {
  /** As many as are outstanding. */
  static final int ALL = Integer.MAX_VALUE;

  /** Rows that YARN should have of a key beside a strict {@code *}. */
  static final class Target {
    /** The application's own rows of these hosts and racks stay; others are put to 0. */
    final Set<String> own;
    /** Rows of these hosts and racks, whatever the application says of them, with the most that they ask for, from 1 on. */
    final Map<String, Integer> added;

    Target(Set<String> own, Map<String, Integer> added) {
      this.own = own;
      this.added = added;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Target && added.equals(((Target) other).added) && own.equals(((Target) other).own);
    }

    @Override
    public int hashCode() {
      return added.hashCode();
    }
  }

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
    /** What YARN should have; null: the application's rows. */
    Target target;
    /** The same as YARN has it. */
    Target stands;
    /** It had a target once. */
    boolean touched;
    /** Hosts and racks of which YARN was sent rows that were added, since it last dropped the key. */
    final TreeSet<String> added = new TreeSet<>();

    void gone() {
      own.clear();
      target = null;
      stands = null;
      added.clear();
    }

    /** What a row asks for by that target: the most of one that is added, 0: it is left out, {@link #OWN}. */
    int kind(Target of, String name) {
      if (of != null && of.added.containsKey(name)) {
        return of.added.get(name);
      }
      return own.containsKey(name) && (of == null || of.own.contains(name)) ? OWN : 0;
    }

    /** The row as YARN should have it where {@code *} says {@code any}. */
    ResourceRequest row(Target of, String name, int any) {
      int kind = kind(of, name);
      if (kind == OWN) {
        return counted(own.get(name), own.get(name).getNumContainers());
      }
      ResourceRequest row = counted(last, Math.min(kind, any));
      row.setResourceName(name);
      row.setRelaxLocality(true);
      return row;
    }
  }

  /** What the application says. */
  private static final int OWN = -1;

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

  /** Containers that the key's rows of these hosts or racks ask for. */
  TreeMap<String, Integer> counts(Key key, Set<String> names) {
    TreeMap<String, Integer> found = new TreeMap<>();
    states.get(key).own.forEach((name, row) -> {
      if (row.getNumContainers() > 0 && names.contains(name)) {
        found.put(name, row.getNumContainers());
      }
    });
    return found;
  }

  /** Hosts and racks of the application's own rows. */
  Set<String> names(Key key) {
    return new TreeSet<>(states.get(key).own.keySet());
  }

  /** Whether the key's rows name hosts or racks by the application's own word. */
  boolean namesPlaces(Key key) {
    return states.get(key).own.values().stream().anyMatch(row -> row.getNumContainers() > 0);
  }

  /** From now on YARN has these rows of the key; null: the application's. */
  void keepTo(Key key, Target target) {
    states.get(key).target = target;
  }

  /** Whether places that YARN is asked for now would be left out with that target. */
  boolean narrows(Key key, Target target) {
    State state = states.get(key);
    TreeSet<String> names = new TreeSet<>(state.own.keySet());
    names.addAll(state.added);
    return state.stands == null
        || names.stream().anyMatch(name -> state.kind(target, name) == 0 && state.kind(state.stands, name) != 0);
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
      State state = states.get(Key.of(row));
      // Whether they turn or not, the rows that came go by what YARN has after this.
      Target target = state == null ? null : turned.containsKey(Key.of(row)) ? state.target : state.stands;
      ResourceRequest sent = target == null ? row : rewritten(state, row, target);
      rows.add(sent);
      same &= sent == row;
    }
    TreeSet<String> none = new TreeSet<>();
    states.forEach((key, state) -> {
      if (turned.containsKey(key) || state.stands != null && said.getOrDefault(key, none).contains(ResourceRequest.ANY)) {
        boolean turns = turned.containsKey(key);
        turn(state, turns ? state.target : state.stands, said.getOrDefault(key, none), turns ? turned.get(key) : 0, rows);
      }
    });
    return same && rows.size() == asks.size() ? asks : rows;
  }

  /** Keys whose rows YARN has otherwise than it should, with the count of {@code *} that is to be said for that; 0: none. */
  private TreeMap<Key, Integer> turned(TreeMap<Key, TreeSet<String>> said, ToIntFunction<Key> outstanding) {
    TreeMap<Key, Integer> turned = new TreeMap<>();
    states.forEach((key, state) -> {
      if (Objects.equals(state.target, state.stands)) {
        return;
      }
      boolean strictness = (state.target == null) != (state.stands == null);
      boolean sayAny = strictness && !said.getOrDefault(key, new TreeSet<>()).contains(ResourceRequest.ANY);
      int count = sayAny ? has(key, state, outstanding) : 0;
      if (!sayAny || count > 0 || state.target == null) {
        turned.put(key, count);
      } // else YARN has given everything: there is nothing to narrow
    });
    return turned;
  }

  /** Adds what has to be said beside what the application says, so that YARN has the rows of {@code target}. */
  private static void turn(State state, Target target, TreeSet<String> said, int count, List<ResourceRequest> rows) {
    TreeSet<String> names = new TreeSet<>(state.own.keySet());
    names.addAll(state.added);
    if (target != null) {
      names.addAll(target.added.keySet());
    }
    boolean withAny = count > 0 || said.contains(ResourceRequest.ANY);
    int most = Math.max(state.any, count);
    for (String name : names) {
      boolean adds = target != null && target.added.containsKey(name);
      boolean other = state.kind(target, name) != state.kind(state.stands, name);
      if (!said.contains(name) && (other || adds && withAny)) {
        rows.add(state.row(target, name, most));
      }
    }
    if (count > 0) {
      ResourceRequest any = counted(state.last, count);
      rows.add(target == null ? any : strict(any));
    }
    if (target != null) {
      state.added.addAll(target.added.keySet());
      state.touched = true;
    }
    state.stands = target;
  }

  /** What goes to YARN in place of {@code asks} if nothing is left out from now on. */
  List<ResourceRequest> passAll(List<ResourceRequest> asks, ToIntFunction<Key> outstanding) {
    came(asks, none -> false); // once given up, nobody else tells of them
    for (State state : states.values()) {
      // Sent again even where YARN should have it: what was to carry it may not have arrived.
      TreeMap<String, Integer> added = new TreeMap<>();
      state.added.forEach(name -> added.put(name, ALL));
      state.stands = state.touched && state.any > 0 ? new Target(Collections.<String>emptySet(), added) : null;
      state.target = null;
    }
    return pass(asks, outstanding);
  }

  private static int has(Key key, State state, ToIntFunction<Key> outstanding) {
    int found = outstanding.applyAsInt(key);
    return found < 0 ? state.any : found;
  }

  private static ResourceRequest rewritten(State state, ResourceRequest row, Target target) {
    String name = row.getResourceName();
    if (ResourceRequest.ANY.equals(name)) {
      return strict(ResourceRequest.clone(row));
    }
    if (target.added.containsKey(name)) {
      return state.row(target, name, state.any);
    }
    return target.own.contains(name) || row.getNumContainers() == 0 ? row : counted(row, 0);
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
