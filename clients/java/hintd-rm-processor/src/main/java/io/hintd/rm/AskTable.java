package io.hintd.rm;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;

/**
 * The asks of one application attempt: what it asked for, which rows of ours stand beside that in YARN's table, and
 * which asks to send so that YARN's table says what it should. No clock, no network, no threads.
 *
 * <p>YARN's rules that it heeds (AppSchedulingInfo, LocalityAppPlacementAllocator, RegularContainerAllocator):
 *
 * <ul>
 *   <li>Counts are absolute. An allocation takes one off the host's row, its rack's and {@code *}, as near as it was.
 *   <li>A host's row counts only while its rack's row does, and both only while {@code *} does.
 *   <li>A row with count 0 stays in YARN's table, and as a place asked for it makes {@code *} wait. All rows of a key
 *       go when its {@code *} is put to 0, so that is how a key that got all its containers is cleaned.
 *   <li>Containers delivered with the answer to a {@code *} were given before it was put, so YARN may have more
 *       outstanding than the application believes. That is the application's affair, and must not be cancelled here;
 *       where receivers are held {@link Turns} takes care of it.
 *   <li>YARN keeps and changes the very objects that it is given: rows are made anew each time, and none is kept.
 * </ul>
 */
final class AskTable {
  /** Containers of a key that hints should be asked for. */
  static final class Wanted {
    final Key key;
    final int count;
    final Resource size;

    Wanted(Key key, int count, Resource size) {
      this.key = key;
      this.count = count;
      this.size = size;
    }
  }

  /** Where a container came, seen from its hint. */
  enum Place { ON_HOST, IN_RACK, ELSEWHERE, NOT_HINTED }

  /** See {@link #delivered}. */
  static final class Followed {
    final Place place;
    final boolean used;
    final long lease;

    Followed(Place place, boolean used, long lease) {
      this.place = place;
      this.used = used;
      this.lease = lease;
    }
  }

  /** Hears of hints that are over before their containers came. */
  interface Over {
    void dropped(Piece piece, int containers, String why);
  }

  private static final class State {
    /** Outstanding containers: the last {@code *} that came less what was delivered since. */
    int any;
    Resource size;
    /** Why its asks are not hinted; null: they are. */
    String leftAlone;
    /** Rows of the application's own beside {@code *}, as they came last. */
    final TreeMap<String, Integer> own = new TreeMap<>();
    /** Rows of ours as YARN should have them by now; 0: a row that stands there. */
    final TreeMap<String, Integer> ours = new TreeMap<>();
    final Deque<Piece> pieces = new ArrayDeque<>();
    /** Of these, rows that YARN may have taken one less off. */
    final TreeSet<String> doubtful = new TreeSet<>();
    /** Rows of ours that went with the present allocate. */
    final TreeSet<String> sent = new TreeSet<>();
    /** {@code *} came with the present allocate; and containers delivered with the answer to the last that had it. */
    boolean fresh;
    int unsure;
    /** The size changed: YARN would give the rows that stand the old one. */
    boolean resized;

    void gone() {
      ours.clear();
      doubtful.clear();
      resized = false;
    }

    int promised() {
      int sum = 0;
      for (Piece piece : pieces) {
        sum += piece.remaining();
      }
      return sum;
    }
  }

  private final boolean besideOwn;
  private final Over over;
  private final TreeMap<Key, State> states = new TreeMap<>();
  private final TreeSet<String> blacklisted = new TreeSet<>();

  /** {@code besideOwn}: hint keys too for which the application itself names hosts or racks. */
  AskTable(boolean besideOwn, Over over) {
    this.besideOwn = besideOwn;
    this.over = over;
  }

  /** Takes in what the application asks for; returns what hints should be asked for. */
  List<Wanted> came(List<ResourceRequest> asks) {
    TreeMap<Key, List<ResourceRequest>> byKey = new TreeMap<>();
    for (ResourceRequest row : asks) {
      byKey.computeIfAbsent(Key.of(row), none -> new ArrayList<>()).add(row);
    }
    states.values().forEach(state -> {
      state.fresh = false;
      state.sent.clear();
    });
    List<Wanted> wanted = new ArrayList<>();
    byKey.forEach((key, rows) -> {
      State state = states.computeIfAbsent(key, none -> new State());
      int before = state.any;
      boolean any = false;
      for (ResourceRequest row : rows) {
        take(state, row);
        any |= ResourceRequest.ANY.equals(row.getResourceName());
      }
      if (state.any == 0) {
        forget(state, "cancelled");
        if (any) { // YARN drops the key with all its rows
          state.gone();
          state.own.clear();
          state.leftAlone = null;
        }
      } else if (state.leftAlone != null) {
        forget(state, "left_alone");
      } else if (state.any > before) {
        wanted.add(new Wanted(key, state.any - before, copy(state.size)));
      }
    });
    return wanted;
  }

  private void take(State state, ResourceRequest row) {
    String name = row.getResourceName();
    if (ResourceRequest.ANY.equals(name)) {
      state.any = Math.max(row.getNumContainers(), 0);
      state.fresh = true;
      state.unsure = 0;
      state.resized |= state.size != null && !state.size.equals(row.getCapability());
      state.size = copy(row.getCapability());
    } else {
      state.own.put(name, Math.max(row.getNumContainers(), 0));
      state.ours.remove(name); // YARN has what the application said
      state.doubtful.remove(name);
      if (!besideOwn && row.getNumContainers() > 0) {
        state.leftAlone = "own_locality";
      }
    }
    String why = notToBeTouched(row);
    if (why != null) {
      state.leftAlone = why;
    }
  }

  static String notToBeTouched(ResourceRequest row) {
    if (!row.getRelaxLocality()) {
      return "strict";
    }
    String label = row.getNodeLabelExpression();
    if (label != null && !label.isEmpty()) {
      return "labelled";
    }
    boolean opportunistic =
        row.getExecutionTypeRequest() != null
            && row.getExecutionTypeRequest().getExecutionType() == ExecutionType.OPPORTUNISTIC;
    return opportunistic ? "opportunistic" : null;
  }

  /** Hosts that the application wants nothing of; hints for them are over. */
  void blacklist(Collection<String> additions, Collection<String> removals) {
    blacklisted.addAll(additions);
    blacklisted.removeAll(removals);
    for (State state : states.values()) {
      drop(state, piece -> blacklisted.contains(piece.host), "blacklisted");
    }
  }

  Collection<String> blacklisted() {
    return Collections.unmodifiableSet(blacklisted);
  }

  /** Why a key's asks are not hinted; null: they are, or nothing is known of it. */
  String leftAlone(Key key) {
    State state = states.get(key);
    return state == null ? null : state.leftAlone;
  }

  /** Hints came: takes as much of each as is outstanding and not promised; returns containers taken. */
  int hinted(Key key, List<Piece> pieces) {
    State state = states.get(key);
    int taken = 0;
    for (Piece piece : pieces) {
      boolean welcome = state != null && state.leftAlone == null && !blacklisted.contains(piece.host);
      int room = welcome ? state.any - state.promised() : 0;
      int late = piece.remaining() - Math.max(Math.min(piece.remaining(), room), 0);
      if (late > 0) {
        piece.trim(late);
        over.dropped(piece, late, "late");
      }
      if (piece.remaining() > 0) {
        state.pieces.add(piece);
        taken += piece.remaining();
      }
    }
    return taken;
  }

  /** A container was delivered to the application. {@code host} as YARN names the node in asks. */
  Followed delivered(Key key, String host, String rack) {
    State state = states.get(key);
    if (state == null) {
      return new Followed(Place.NOT_HINTED, false, 0);
    }
    state.any = Math.max(state.any - 1, 0);
    state.unsure += state.fresh ? 1 : 0;
    mirror(state, host, rack);
    state.own.computeIfPresent(host, (name, count) -> Math.max(count - 1, 0));
    state.own.computeIfPresent(rack, (name, count) -> Math.max(count - 1, 0));
    Followed followed = match(state, host, rack);
    trim(state);
    return followed;
  }

  /** Which of our rows YARN took one off. */
  private static void mirror(State state, String host, String rack) {
    int onRack = Math.max(state.ours.getOrDefault(rack, 0), state.own.getOrDefault(rack, 0));
    if (onRack == 0) {
      return;
    }
    boolean onHost = state.ours.getOrDefault(host, 0) > 0;
    if (onHost) {
      less(state, host, false);
    }
    less(state, rack, !onHost || state.sent.contains(host)); // in the rack as asked, or there by chance
  }

  /** A row that comes to 0 so is gone in YARN's table; unless the container was given before the row was put. */
  private static void less(State state, String name, boolean doubt) {
    if (doubt || state.sent.contains(name)) {
      state.doubtful.add(name);
    }
    boolean keep = state.doubtful.contains(name);
    state.ours.computeIfPresent(name, (same, count) -> count > 1 ? (Integer) (count - 1) : keep ? (Integer) 0 : null);
  }

  private Followed match(State state, String host, String rack) {
    Piece near = null;
    for (Piece piece : state.pieces) {
      if (piece.host.equals(host)) {
        return new Followed(Place.ON_HOST, piece.used(), piece.give(true));
      }
      if (near == null && piece.inRack(rack)) {
        near = piece;
      }
    }
    if (near != null) {
      return beside(Place.IN_RACK, near);
    }
    // As many hints as containers: one of them did not get its own.
    if (!state.pieces.isEmpty() && state.promised() > state.any) {
      return beside(Place.ELSEWHERE, state.pieces.peekLast());
    }
    return new Followed(Place.NOT_HINTED, false, 0);
  }

  private Followed beside(Place place, Piece piece) {
    piece.give(false);
    over.dropped(piece, 0, "beside"); // its lease is of no use any more
    return new Followed(place, piece.used(), 0);
  }

  /**
   * What to send to YARN in place of {@code asks}, which {@link #came} was told of: the same rows, and rows of ours
   * that are new or other than YARN has them.
   *
   * @param used false: rows of ours are taken back, as in a queue that was switched off
   */
  List<ResourceRequest> rewrite(List<ResourceRequest> asks, boolean used, long now, long hostsFor, long racksFor) {
    List<ResourceRequest> rows = new ArrayList<>(asks);
    for (Map.Entry<Key, State> entry : states.entrySet()) {
      State state = entry.getValue();
      drop(state, piece -> piece.used() && now - piece.since() >= hostsFor + racksFor, "widened");
      trim(state);
      if (state.any == 0 && state.unsure == 0) {
        if (!state.ours.isEmpty()) {
          rows.add(row(entry.getKey(), state, ResourceRequest.ANY, 0)); // which takes all rows of the key away
          state.gone();
        }
        continue;
      }
      TreeMap<String, Integer> target = used ? target(state, now, hostsFor) : new TreeMap<>();
      send(entry.getKey(), state, target, rows);
    }
    states.values().removeIf(state -> state.any == 0 && state.pieces.isEmpty() && state.own.isEmpty());
    return rows.size() == asks.size() ? asks : rows;
  }

  private static TreeMap<String, Integer> target(State state, long now, long hostsFor) {
    TreeMap<String, Integer> target = new TreeMap<>();
    for (Piece piece : state.pieces) {
      if (piece.used()) {
        piece.addRows(target, now - piece.since() < hostsFor);
      }
    }
    target.replaceAll((name, count) -> Math.min(count, state.any));
    // The application's own word stands; ours is added where it says less.
    target.keySet().removeIf(name -> state.own.getOrDefault(name, 0) > 0);
    return target;
  }

  private static void send(Key key, State state, TreeMap<String, Integer> target, List<ResourceRequest> rows) {
    TreeSet<String> names = new TreeSet<>(target.keySet());
    names.addAll(state.ours.keySet());
    boolean last = target.isEmpty(); // what is doubtful is set right at the end: a row of 0 makes `*` wait
    for (String name : names) {
      int should = target.getOrDefault(name, 0);
      Integer has = state.ours.get(name);
      boolean other =
          has == null ? should > 0 : has != should || (last && state.doubtful.contains(name)) || (state.resized && should > 0);
      if (other) {
        rows.add(row(key, state, name, should));
        state.ours.put(name, should);
        state.sent.add(name);
        state.doubtful.remove(name);
      }
    }
    state.resized = false;
  }

  /** Promises of a key end. */
  void forget(Key key, String why) {
    State state = states.get(key);
    if (state != null) {
      forget(state, why);
    }
  }

  /** Keys that something is promised of. */
  List<Key> promised() {
    List<Key> keys = new ArrayList<>();
    states.forEach((key, state) -> {
      if (!state.pieces.isEmpty()) {
        keys.add(key);
      }
    });
    return keys;
  }

  /** The attempt is over, or hints are: every promise ends. Rows are left to {@link #rewrite} and to YARN. */
  void forgetAll(String why) {
    states.values().forEach(state -> forget(state, why));
  }

  /** Rows of ours that YARN has by now, by key; for tests and for people. */
  TreeMap<Key, TreeMap<String, Integer>> ours() {
    TreeMap<Key, TreeMap<String, Integer>> all = new TreeMap<>();
    states.forEach((key, state) -> all.put(key, new TreeMap<>(state.ours)));
    return all;
  }

  private void forget(State state, String why) {
    drop(state, piece -> true, why);
  }

  private void drop(State state, java.util.function.Predicate<Piece> which, String why) {
    for (Iterator<Piece> all = state.pieces.iterator(); all.hasNext(); ) {
      Piece piece = all.next();
      if (piece.remaining() == 0 || which.test(piece)) {
        int containers = piece.remaining();
        piece.trim(containers);
        over.dropped(piece, containers, why);
        all.remove();
      }
    }
  }

  /** No more is promised than is outstanding: the latest promises go first. */
  private void trim(State state) {
    int surplus = state.promised() - state.any;
    for (Iterator<Piece> latest = state.pieces.descendingIterator(); surplus > 0 && latest.hasNext(); ) {
      Piece piece = latest.next();
      int cut = Math.min(surplus, piece.remaining());
      piece.trim(cut);
      over.dropped(piece, cut, "not_wanted");
      surplus -= cut;
    }
    drop(state, piece -> false, "done");
  }

  private static ResourceRequest row(Key key, State state, String name, int count) {
    ResourceRequest row =
        ResourceRequest.newInstance(Priority.newInstance(key.priority), name, copy(state.size), count, true);
    row.setAllocationRequestId(key.allocationRequestId);
    return row;
  }

  private static Resource copy(Resource size) {
    return size == null ? Resource.newInstance(0, 0) : org.apache.hadoop.yarn.util.resource.Resources.clone(size);
  }
}
