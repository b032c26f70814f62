package io.hintd.rm;

import io.hintd.client.Attempt;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.InputHomesRequest;
import io.hintd.v1.InputHomesResponse;
import io.hintd.v1.RackHosts;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has one attempt's maps asked for in the racks to which hintd sent their input, as long as that costs nothing. One thread
 * at a time.
 *
 * <p>They are asked for everywhere again, for good: once none came for {@code homes-wait-ms}; at once where the homes have
 * no room, not all that is outstanding has a row there, hintd refuses or is silent or says that there are no homes any
 * more, or the queue is switched off.
 */
final class HomeKeeper {
  private static final Logger LOG = LoggerFactory.getLogger(HomeKeeper.class);
  static final long AGAIN_MS = 1_000;

  private static final class Stay {
    /** When a container last came, or the first ask did. */
    long since;
    boolean narrowed;
    boolean over;

    Stay(long since) {
      this.since = since;
    }
  }

  private final Attempt attempt;
  private final Cluster.App app;
  private final Cluster cluster;
  private final Daemon daemon;
  private final Counters counters;
  private final HomeRows rows = new HomeRows();
  private final Map<Key, Stay> stays = new HashMap<>();
  /** Containers that came, by host, of keys whose input has homes. */
  private final TreeMap<String, Integer> maps = new TreeMap<>();
  private CompletableFuture<InputHomesResponse> answer;
  private long again = Long.MIN_VALUE;
  /** Home racks; null: not told yet. Empty: there are none. */
  private TreeSet<String> racks;
  private boolean shadow;
  private String reason = "";
  private long holdsUntil;
  /** Hosts and racks of the homes, made of these nodes. */
  private Set<String> names = new HashSet<>();
  private Map<String, String> namesOf;

  HomeKeeper(Attempt attempt, Cluster.App app, Cluster cluster, Daemon daemon, Counters counters) {
    this.attempt = attempt;
    this.app = app;
    this.cluster = cluster;
    this.daemon = daemon;
    this.counters = counters;
  }

  private boolean wanted(Mode mode, Settings settings) {
    return mode != Mode.OFF && settings.homes(app.queue) && !settings.besideOwn && Roles.readInput(app.framework()) >= 0;
  }

  /** The ApplicationMaster registered: the answer is to be there when it asks. */
  void registered(Mode mode, Settings settings, long now) {
    if (wanted(mode, settings)) {
      ask(null, settings, now);
    }
  }

  /** Takes in what the application asks for; whether an answer is waited for. */
  boolean came(List<ResourceRequest> asks, Mode mode, Settings settings, long now) {
    boolean wanted = wanted(mode, settings);
    int priority = Roles.readInput(app.framework());
    rows.came(asks, key -> wanted && key.priority == priority);
    List<Key> open = rows.open();
    boolean fresh = false;
    boolean going = false;
    for (Key key : open) {
      fresh |= !stays.containsKey(key);
      Stay stay = stays.computeIfAbsent(key, none -> new Stay(now));
      if (!wanted) {
        end(key, stay, "off");
      }
      going |= !stay.over;
    }
    if (!going) {
      return false;
    }
    take(now);
    if (answer == null && (racks == null || !racks.isEmpty()) && now >= again) {
      ask(open.get(0), settings, now);
    }
    return fresh && answer != null && racks == null;
  }

  /** What is waited for; null: nothing. */
  CompletableFuture<?> pending() {
    return racks == null ? answer : null;
  }

  /** A question that is under way; null: none is. For tests. */
  CompletableFuture<?> asking() {
    return answer;
  }

  private void ask(Key key, Settings settings, long now) {
    InputHomesRequest.Builder request =
        InputHomesRequest.newBuilder()
            .setApplicationId(attempt.applicationId())
            .setAttempt(attempt.number())
            .setQueue(app.queue)
            .setRecurringJobKey(app.recurringKey())
            .setGroup(key == null ? new Key(Roles.readInput(app.framework()), -1).group() : key.group());
    if (key != null) {
      request.setOutstanding(rows.outstanding(key)).putAllByRack(rows.byRack(key, new HashSet<>(cluster.racks().values())));
    }
    answer = daemon.homes(request, settings);
    // At a registration nobody knows yet where blocks lie; the first ask says it.
    again = key == null ? now : now + AGAIN_MS;
  }

  private void take(long now) {
    if (answer == null || !answer.isDone()) {
      return;
    }
    CompletableFuture<InputHomesResponse> done = answer;
    answer = null;
    if (done.isCompletedExceptionally()) {
      holdsUntil = now; // and whatever stood on the last answer ends
      return;
    }
    InputHomesResponse told = done.join();
    TreeSet<String> found = new TreeSet<>();
    for (RackHosts home : told.getHomesList()) {
      found.add(home.getRack());
    }
    if (!found.equals(racks)) {
      namesOf = null;
    }
    racks = found;
    shadow = told.getShadow();
    reason = told.getReason();
    holdsUntil = now + told.getHoldsForMs();
  }

  /** What goes to YARN in place of {@code asks}. */
  List<ResourceRequest> rewrite(List<ResourceRequest> asks, Collection<String> blacklisted, Mode mode, Settings settings, long now) {
    take(now);
    for (Key key : rows.open()) {
      Stay stay = stays.get(key);
      if (!stay.over) {
        decide(key, stay, blacklisted, mode, settings, now);
      }
    }
    return rows.pass(asks, this::outstanding);
  }

  private void decide(Key key, Stay stay, Collection<String> blacklisted, Mode mode, Settings settings, long now) {
    boolean late = now - stay.since >= settings.homesWaitMs;
    if (racks == null) {
      if (late) {
        end(key, stay, "no_answer");
      }
      return;
    }
    if (racks.isEmpty() || rows.leftAlone(key) != null) {
      end(key, stay, racks.isEmpty() ? reason : rows.leftAlone(key));
      return;
    }
    Set<String> home = names();
    int near = 0;
    for (int count : rows.byRack(key, racks).values()) {
      near += count;
    }
    if (near < rows.outstanding(key)) {
      end(key, stay, "not_at_home");
    } else if (now >= holdsUntil || daemon.breaker().isOpen()) {
      end(key, stay, "silent");
    } else if (late) {
      end(key, stay, "waited");
    } else if (!rows.fresh(key) && outstanding(key) == 0) {
      return; // all of it was given, and is on its way to the application
    } else if (!room(key, home, blacklisted)) {
      end(key, stay, "full");
    } else {
      stay(key, stay, home, mode == Mode.ON && !shadow);
    }
  }

  private void stay(Key key, Stay stay, Set<String> home, boolean used) {
    if (!stay.narrowed) {
      stay.narrowed = true;
      counters.homes(used ? "narrowed" : "shadow_narrowed", rows.outstanding(key));
      LOG.info("hintd: {} of {}, {} containers, {} asked for in {} alone", key, attempt, rows.outstanding(key), used ? "are" : "would be", racks);
    }
    rows.keepTo(key, used ? home : null);
  }

  private boolean room(Key key, Set<String> home, Collection<String> blacklisted) {
    Map<String, String> all = cluster.racks();
    Set<String> hosts = new HashSet<>(home);
    hosts.removeAll(blacklisted);
    hosts.retainAll(all.keySet());
    return cluster.room(hosts, rows.last(key).getCapability());
  }

  private void end(Key key, Stay stay, String why) {
    if (stay.over) {
      return;
    }
    stay.over = true;
    rows.keepTo(key, null);
    counters.homes("ended_" + why, 1);
    if (racks != null && !racks.isEmpty()) {
      LOG.info(
          "hintd: {} of {} are asked for everywhere{}: {}, {} outstanding, asked for in {} of {}", key, attempt,
          stay.narrowed ? " again" : "", why, rows.outstanding(key), rows.byRack(key, racks), racks);
    }
  }

  private int outstanding(Key key) {
    try {
      return cluster.outstanding(attempt, key);
    } catch (RuntimeException unknown) {
      return -1;
    }
  }

  /** Home racks and their hosts. */
  private Set<String> names() {
    Map<String, String> all = cluster.racks();
    if (namesOf != all) {
      Set<String> found = new HashSet<>(racks);
      all.forEach((host, rack) -> {
        if (racks.contains(rack)) {
          found.add(host);
        }
      });
      namesOf = all;
      if (!found.equals(names)) {
        names = found;
      }
    }
    return names;
  }

  void delivered(Key key, String host, String rack, long now) {
    rows.delivered(key, host, rack);
    Stay stay = stays.get(key);
    if (stay == null) {
      return;
    }
    stay.since = now;
    if (racks != null && !racks.isEmpty()) {
      maps.merge(host, 1, Integer::sum);
      if (stay.narrowed) {
        counters.homes((shadow ? "shadow_" : "") + (racks.contains(rack) ? "at_home" : "elsewhere"), 1);
      }
    }
  }

  /** Hosts for {@code count} containers that read what those wrote, in proportion; empty: none came that have homes. */
  TreeMap<String, Integer> beside(int count) {
    TreeMap<String, Integer> hosts = new TreeMap<>();
    long all = 0;
    for (int came : maps.values()) {
      all += came;
    }
    long passed = 0;
    long given = 0;
    for (Map.Entry<String, Integer> came : maps.entrySet()) {
      passed += came.getValue();
      long due = count * passed / all; // the last one's part ends at the count: nothing is left over by rounding
      if (due > given) {
        hosts.put(came.getKey(), (int) (due - given));
        given = due;
      }
    }
    return hosts;
  }

  /** What goes to YARN in place of {@code asks} when nothing is left out any more. */
  List<ResourceRequest> passAll(List<ResourceRequest> asks) {
    stays.values().forEach(stay -> stay.over = true);
    return rows.passAll(asks, this::outstanding);
  }
}
