package io.hintd.rm;

import io.hintd.client.Attempt;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.InputHomesRequest;
import io.hintd.v1.InputHomesResponse;
import io.hintd.v1.RackHosts;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.function.Predicate;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps one attempt's maps in the racks to which hintd sent their input, or in which it gathers them, and its reduces where
 * those maps ran. One thread at a time.
 *
 * <p>Maps: rows elsewhere are left out and {@code *} is strict. Reduces, where most of the maps that came are at home: rows
 * of hosts in proportion to those maps, and {@code *} is strict; no rows while maps of the job wait for room at home, for
 * YARN serves reduces first. Either way all usable hosts of the homes have rows for all that is
 * outstanding after {@code hosts-for-ms}, 30 s at most, for YARN serves no rack's row beside a strict {@code *}.
 *
 * <p>They are asked for as the application asks again once none came for as long as hintd says, {@code homes-wait-ms} at
 * most; at once where of maps that stayed not all that are outstanding have a row at home any more, no node of the homes can
 * take them, hintd refuses or is silent or says that there are no homes any more, the queue is switched off, or YARN is about
 * to take containers of other queues away for them. Maps then go elsewhere for good, reduces until all that were asked for
 * have come. That homes are full is no reason.
 *
 * <p>A job that hintd gathers has input everywhere: all usable hosts of its homes have rows for its maps from the beginning,
 * for as many each until {@code hosts-for-ms} are over, and that its own rows name other places is no reason against it. What
 * lies elsewhere is read over the network.
 *
 * <p>Maps of a job whose input was sent nowhere or lies elsewhere, and that is not gathered, stay by their blocks: their own
 * rows are left as they are, and {@code *} is strict. YARN relaxes {@code *} of a small job after a heartbeat or two. Once none
 * came for {@code blocks-for-ms}, all usable hosts of the racks that its rows name have rows, for what is read in a rack crosses
 * no uplink; once none came for {@code block-racks-for-ms} more, they go elsewhere for good.
 */
final class HomeKeeper {
  private static final Logger LOG = LoggerFactory.getLogger(HomeKeeper.class);
  static final long AGAIN_MS = 1_000;
  /** For who stays by its blocks, hintd is asked only whether it is there and still says yes: twice while an answer holds. */
  private static final long BLOCKS_AGAIN_MS = 2_500;
  /** Answers of a hintd that advises the application, and knows no homes of its input. */
  private static final Set<String> NO_HOMES =
      Collections.unmodifiableSet(new HashSet<>(Arrays.asList("no_key", "none_given", "racks_gone", "not_at_home")));
  /** Where hintd says homes and not how long to wait there: it is older than that. */
  private static final int PATIENCE_MS = 30_000;
  /** All usable hosts of the homes have rows by then. */
  private static final long HOSTS_FOR_MAX_MS = 30_000;

  private static final class Stay {
    final boolean maps;
    /** When a container last came, or the first ask did. */
    long since;
    /** When it was narrowed. */
    long began;
    boolean narrowed;
    /** Hosts of the homes that could take them when it was narrowed, or other homes were told; 0: not counted yet. */
    int hosts;
    /** And not only counted, in shadow. */
    boolean kept;
    /** It went elsewhere before YARN killed containers of other queues for it. */
    boolean yielded;
    boolean over;
    /** All of it came. */
    boolean idle;
    /** Reduces that wait for maps of their job. */
    boolean held;
    /** Whether its reduces were counted as held since then. */
    boolean counted;
    /** It stays by its blocks, for its input has no homes. */
    boolean blocks;
    /** Containers that came, by host. */
    final Map<String, Integer> came = new HashMap<>();

    Stay(boolean maps, long since) {
      this.maps = maps;
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
  /** Maps that came, by host. */
  private final TreeMap<String, Integer> maps = new TreeMap<>();
  /** Where reduces are asked for, as looked at last. */
  private final Map<Key, TreeSet<String>> askedIn = new HashMap<>();
  private CompletableFuture<InputHomesResponse> answer;
  /** What is asked says where the maps' blocks lie. */
  private boolean saysBlocks;
  /** hintd answered one that said so. */
  private boolean knowsBlocks;
  /** The first ask for maps reads elsewhere than where hintd sent the input: it may gather the job. */
  private boolean isElsewhere;
  private long again = Long.MIN_VALUE;
  /** Home racks, as told last; null: not told yet. Empty: there are none for maps. */
  private TreeSet<String> racks;
  private boolean shadow;
  /** The input lies everywhere, and maps are kept in the racks all the same. */
  private boolean gathered;
  private String reason = "";
  private long holdsUntil;
  /** Tasks go without a container at home for so long, as told last with homes; unsigned, 0: not told. */
  private int patienceMs;
  /** Something was to stay at the last allocate. */
  private boolean went;
  private final Homes homes;

  HomeKeeper(Attempt attempt, Cluster.App app, Cluster cluster, Daemon daemon, Counters counters) {
    this.attempt = attempt;
    this.app = app;
    this.cluster = cluster;
    this.daemon = daemon;
    this.counters = counters;
    this.homes = new Homes(cluster);
  }

  private boolean wanted(Mode mode, Settings settings) {
    return mode != Mode.OFF && settings.homes(app.queue) && !settings.besideOwn && Roles.readInput(app.framework()) >= 0;
  }

  private boolean areMaps(Key key) {
    return key.priority == Roles.readInput(app.framework());
  }

  /** The ApplicationMaster registered: the answer is to be there when it asks. */
  void registered(Mode mode, Settings settings, long now) {
    if (wanted(mode, settings)) {
      ask(null, settings);
      again = now; // nobody knows yet where blocks lie; the first ask says it
    }
  }

  /** Takes in what the application asks for; whether an answer is waited for. */
  boolean came(List<ResourceRequest> asks, Mode mode, Settings settings, long now) {
    boolean wanted = wanted(mode, settings);
    rows.came(asks, key -> wanted && (areMaps(key) || Roles.reads(app.framework(), key.priority)));
    List<Key> open = rows.open();
    rest(open);
    boolean fresh = false;
    boolean going = false;
    Key reads = null;
    for (Key key : open) {
      fresh |= areMaps(key) && !stays.containsKey(key);
      Stay stay = stays.computeIfAbsent(key, none -> new Stay(areMaps(key), now));
      if (stay.idle) {
        stay.idle = false;
        stay.since = now;
      }
      if (!wanted) {
        end(key, stay, "off");
      }
      going |= !stay.over && (stay.maps || !maps.isEmpty() && !homes.none());
      reads = !stay.over && stay.maps ? key : reads;
    }
    take(now);
    if (going && !went) {
      holdsUntil = Math.max(holdsUntil, now + settings.deadlineMs); // nobody asked meanwhile: by then hintd has answered
    }
    went = going;
    isElsewhere =
        !knowsBlocks && reads != null && racks != null && !racks.isEmpty() && settings.gathers && !app.recurringKey().isEmpty()
            && asked(reads, racks) < rows.outstanding(reads);
    if (going) {
      askAgain(reads, fresh, settings, now);
    }
    return fresh && going && pending() != null;
  }

  /** {@code reads}: maps that are outstanding; null: none are. {@code fresh}: they are asked for the first time. */
  private void askAgain(Key reads, boolean fresh, Settings settings, long now) {
    if (answer != null && !saysBlocks && fresh && reads != null && settings.gathers && !app.recurringKey().isEmpty()) {
      CompletableFuture<InputHomesResponse> without = answer;
      ask(reads, settings); // where a job is gathered depends on its blocks: what was asked without them came too early
      again = now + AGAIN_MS;
      if (answer == null) {
        answer = without;
        saysBlocks = false;
      }
    }
    boolean blocks = reads != null && byBlocks(settings);
    if (answer == null && (racks == null || !racks.isEmpty() || reads == null || blocks) && now >= again) {
      ask(reads, settings);
      again = now + (blocks ? BLOCKS_AGAIN_MS : AGAIN_MS);
    }
  }

  /** Whether maps may stay by their blocks: hintd advises the application, and knows no homes of its input. */
  private boolean byBlocks(Settings settings) {
    return settings.blocksForMs > 0 && racks != null && racks.isEmpty() && NO_HOMES.contains(reason);
  }

  /** Of keys that got all their containers, reduces begin anew with the next. */
  private void rest(List<Key> open) {
    for (Iterator<Map.Entry<Key, Stay>> all = stays.entrySet().iterator(); all.hasNext(); ) {
      Map.Entry<Key, Stay> entry = all.next();
      if (open.contains(entry.getKey())) {
        continue;
      }
      entry.getValue().idle = true;
      if (!entry.getValue().maps) {
        rows.keepTo(entry.getKey(), null);
        all.remove();
      }
    }
  }

  /** What is waited for; null: nothing. */
  CompletableFuture<?> pending() {
    return racks == null || (gathered || isElsewhere) && !knowsBlocks ? answer : null;
  }

  /** A question that is under way; null: none is. For tests. */
  CompletableFuture<?> asking() {
    return answer;
  }

  /** {@code key}: maps that are outstanding; null: none are. */
  private void ask(Key key, Settings settings) {
    InputHomesRequest.Builder request =
        InputHomesRequest.newBuilder()
            .setApplicationId(attempt.applicationId())
            .setAttempt(attempt.number())
            .setQueue(app.queue)
            .setRecurringJobKey(app.recurringKey())
            .setMayGather(settings.gathers)
            .setGroup(key == null ? new Key(Roles.readInput(app.framework()), -1).group() : key.group());
    if (key != null) {
      request.setOutstanding(rows.outstanding(key)).putAllByRack(rows.counts(key, new HashSet<>(cluster.racks().values())));
    }
    saysBlocks = key != null;
    answer = daemon.homes(request, settings);
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
    if (gathered && told.getGathered() && !found.isEmpty() && mostMapsAtHome()) {
      found = racks; // hintd forgot what it chose: what the maps wrote lies where they ran
    }
    if (!found.equals(racks)) {
      stays.values().forEach(stay -> stay.hosts = 0);
    }
    racks = found;
    knowsBlocks |= saysBlocks;
    shadow = told.getShadow();
    gathered = told.getGathered();
    reason = told.getReason();
    holdsUntil = now + told.getHoldsForMs();
    // Maps whose blocks lie elsewhere are no reason against reduces beside those that ran at home.
    if (!found.isEmpty() || !reason.equals("not_at_home")) {
      homes.are(found);
      patienceMs = told.getPatienceMs();
    }
  }

  /** How long tasks go without a container at home, ms, where hintd says {@code patienceMs}: unsigned, 0: it does not say. */
  static long waitMs(int patienceMs, Settings settings) {
    return Math.min(Integer.toUnsignedLong(patienceMs == 0 ? PATIENCE_MS : patienceMs), settings.homesWaitMs);
  }

  /** Without a container for so long, ms, it goes elsewhere. */
  private long staysForMs(Stay stay, Settings settings) {
    return stay.blocks ? settings.blocksForMs + settings.blockRacksForMs : waitMs(patienceMs, settings);
  }

  /** There may be a reason to stay later. */
  private static final String NOT_YET = "";

  /** Looks at who stays; before {@link #rewrite}. */
  void decide(Collection<String> blacklisted, Mode mode, Settings settings, long now) {
    take(now);
    boolean yields = yields();
    for (Key key : rows.open()) {
      Stay stay = stays.get(key);
      if (!stay.over) {
        decide(key, stay, blacklisted, mode, settings, yields, now);
      }
      if (!stay.maps) {
        askedIn.put(key, stay.kept ? homes.racks() : new TreeSet<>());
      }
    }
  }

  /**
   * Racks in which the key's reduces are asked for alone, were when the last of them came, or will be; empty: anywhere; null:
   * nobody knows yet.
   */
  Collection<String> askedIn(Key key) {
    if (askedIn.containsKey(key)) {
      return askedIn.get(key);
    }
    if (homes.none() || maps.isEmpty()) {
      return racks == null || !homes.none() ? null : new TreeSet<>();
    }
    return mostMapsAtHome() ? homes.racks() : new TreeSet<>();
  }

  /**
   * Whether YARN takes containers of other queues away for what is kept here: it counts what is outstanding and not where that
   * may go, and what it frees elsewhere is of no use to a strict ask.
   */
  private boolean yields() {
    try {
      return stays.values().stream().anyMatch(stay -> stay.kept && !stay.idle) && cluster.preemptsFor(attempt);
    } catch (RuntimeException unknown) {
      return false;
    }
  }

  /** Maps that wait at home, or for what YARN kills for them. */
  private static boolean holdsReduces(Stay stay, int outstanding) {
    return stay.maps && !stay.blocks && (stay.kept || stay.yielded && outstanding != 0);
  }

  /** Reduces leave maps of their job the room: YARN serves them first, and MapReduce takes them back after minutes only. */
  private void hold(Key key, Stay stay, boolean narrowed, long now) {
    boolean holds = !stay.maps && rows.open().stream().anyMatch(other -> holdsReduces(stays.get(other), outstanding(other)));
    if (holds && narrowed && !stay.counted) {
      stay.counted = true;
      counters.homes("reduces_held", rows.outstanding(key));
    }
    if (holds || stay.held) {
      stay.since = now; // they do not wait for room
      stay.began = now;
    }
    stay.held = holds;
    stay.counted &= holds;
  }

  private void decide(
      Key key, Stay stay, Collection<String> blacklisted, Mode mode, Settings settings, boolean yields, long now) {
    String why = stay.maps ? notMaps(key, stay, blacklisted, settings) : notReduces(key, stay);
    hold(key, stay, why == null, now);
    boolean late = now - stay.since >= staysForMs(stay, settings);
    if (NOT_YET.equals(why)) {
      if (late) {
        end(key, stay, "no_answer");
      }
      return;
    }
    if (why == null && (now >= holdsUntil || daemon.breaker().isOpen())) {
      why = "silent";
    }
    if (why == null && !rows.fresh(key) && outstanding(key) == 0) {
      return; // all of it was given, and is on its way to the application
    }
    // What is freed is the maps' first: YARN serves reduces before them.
    if (why == null && yields && stay.kept && !stay.held) {
      stay.yielded = true;
      why = "preemption";
    }
    TreeMap<String, String> hosts = homes.usable(blacklisted, rows.last(key).getCapability());
    if (why == null && !late && !stay.blocks) {
      // One container after the other from what is left of a rack that is being drained would keep it there for ever.
      why = hosts.isEmpty() ? "no_nodes" : hosts.size() * 2 < stay.hosts ? "few_nodes" : null;
    }
    if (why != null || late) {
      end(key, stay, why != null ? why : "waited");
    } else {
      HomeRows.Target target =
          stay.blocks ? nearBlocks(key, stay, blacklisted, settings, now) : target(key, stay, hosts, settings, now);
      stay.hosts = stay.narrowed && stay.hosts > 0 ? stay.hosts : hosts.size();
      stay(key, stay, target, mode == Mode.ON && !shadow, settings, now);
    }
  }

  /** Why maps do not stay; null: they do. */
  private String notMaps(Key key, Stay stay, Collection<String> blacklisted, Settings settings) {
    if (racks == null) {
      return NOT_YET;
    }
    if (rows.leftAlone(key) != null) {
      return rows.leftAlone(key);
    }
    boolean elsewhere = !racks.isEmpty() && !gathered && asked(key, racks) < rows.outstanding(key);
    // hintd says it too where it is told in time: both ways lead to the same.
    stay.blocks &= !gathered; // hintd said so too late for the first ask
    stay.blocks |= !stay.narrowed && (byBlocks(settings) || elsewhere && settings.blocksForMs > 0);
    if (stay.blocks) {
      // Homes that hintd found meanwhile are those of later runs.
      boolean advised = !racks.isEmpty() || byBlocks(settings);
      return !advised ? reason : askedOfHosts(key, blacklisted) < rows.outstanding(key) ? "no_rows" : null;
    }
    if (racks.isEmpty()) {
      return reason;
    }
    return elsewhere ? "not_at_home" : null;
  }

  /** Containers that the key's rows ask for in those racks, one that names several counted in each. */
  private long asked(Key key, Set<String> racks) {
    return rows.counts(key, racks).values().stream().mapToLong(count -> count).sum();
  }

  /**
   * Containers that the key's rows ask for on hosts that can take them, one that names several counted in each. A host of a
   * block need be no node of YARN's.
   */
  private long askedOfHosts(Key key, Collection<String> blacklisted) {
    Map<String, String> all = cluster.racks();
    Predicate<String> takes = cluster.takes(rows.last(key).getCapability());
    long asked = 0;
    for (Map.Entry<String, Integer> row : rows.counts(key, all.keySet()).entrySet()) {
      String host = row.getKey();
      boolean usable = !blacklisted.contains(host) && !blacklisted.contains(all.get(host)) && takes.test(host);
      asked += usable ? row.getValue() : 0;
    }
    return asked;
  }

  /** Why reduces do not stay; null: they do. */
  private String notReduces(Key key, Stay stay) {
    if (rows.leftAlone(key) != null || rows.namesPlaces(key)) {
      return rows.leftAlone(key) != null ? rows.leftAlone(key) : "own_locality";
    }
    if (homes.none()) {
      return stay.narrowed ? reason : NOT_YET;
    }
    if (mostMapsAtHome()) {
      return null;
    }
    return stay.narrowed ? "not_at_home" : NOT_YET; // the input of this run lies elsewhere, or these are other homes
  }

  /**
   * Whether most maps that came, on hosts that are still there, came at home. Where others ran, what they wrote goes into the
   * homes over their uplinks, which hints spread better.
   */
  private boolean mostMapsAtHome() {
    Map<String, String> all = cluster.racks();
    long balance = 0;
    for (Map.Entry<String, Integer> map : maps.entrySet()) {
      balance += homes.has(map.getKey()) ? map.getValue() : all.containsKey(map.getKey()) ? -map.getValue() : 0;
    }
    return balance > 0;
  }

  /** Hosts of its blocks; once none came there for a while, all hosts of their racks, each for as many as its rack's row. */
  private HomeRows.Target nearBlocks(
      Key key, Stay stay, Collection<String> blacklisted, Settings settings, long now) {
    TreeMap<String, Integer> added = new TreeMap<>();
    if (now - stay.since >= settings.blocksForMs) {
      Map<String, Integer> asked = rows.counts(key, new HashSet<>(cluster.racks().values()));
      Predicate<String> takes = cluster.takes(rows.last(key).getCapability());
      cluster.racks().forEach((host, rack) -> {
        boolean usable = asked.containsKey(rack) && !blacklisted.contains(host) && !blacklisted.contains(rack);
        if (usable && takes.test(host)) {
          added.put(host, asked.get(rack));
        }
      });
    }
    return new HomeRows.Target(rows.names(key), added);
  }

  private HomeRows.Target target(Key key, Stay stay, TreeMap<String, String> hosts, Settings settings, long now) {
    // Hosts of its blocks alone may never have room, whatever is set for hints.
    boolean early = !stay.narrowed || now - stay.began < Math.min(settings.hostsForMs, HOSTS_FOR_MAX_MS);
    TreeMap<String, Integer> added = new TreeMap<>();
    if (stay.held) {
      return new HomeRows.Target(new HashSet<>(), added); // beside a strict one for any node YARN gives none
    }
    // A gathered job's own rows name few hosts at home, or none.
    boolean even = stay.maps && gathered;
    if (early && (even || !stay.maps)) {
      int count = rows.outstanding(key);
      (even ? evenly(count, stay.came, hosts.keySet()) : shares(count, stay.came, hosts)).forEach((host, share) -> {
        added.put(host, share);
        added.merge(hosts.get(host), share, Integer::sum);
      });
    }
    if (!early || !stay.maps && added.isEmpty()) { // of reduces: no host where a map ran is usable
      hosts.forEach((host, rack) -> {
        added.put(host, HomeRows.ALL);
        added.put(rack, HomeRows.ALL);
      });
    }
    return new HomeRows.Target(stay.maps && !(even && early) ? homes.names() : new HashSet<>(), added);
  }

  /**
   * Of {@code count} containers beside those that came, how many go to each host so that all have as many. One heartbeat of a
   * node would take all that it has room for, and what they read would come over its cable alone.
   */
  private static TreeMap<String, Integer> evenly(int count, Map<String, Integer> came, Set<String> hosts) {
    long total = count;
    for (String host : hosts) {
      total += came.getOrDefault(host, 0);
    }
    long each = (total + hosts.size() - 1) / hosts.size();
    TreeMap<String, Integer> shares = new TreeMap<>();
    for (String host : hosts) {
      long share = each - came.getOrDefault(host, 0);
      if (share > 0) {
        shares.put(host, (int) Math.min(share, count));
      }
    }
    return shares;
  }

  /** Of {@code count} containers beside those that came, how many go to each host: in all, in proportion to its maps. */
  private TreeMap<String, Integer> shares(int count, Map<String, Integer> came, Map<String, String> hosts) {
    TreeMap<String, Integer> at = new TreeMap<>(maps);
    at.keySet().retainAll(hosts.keySet());
    long all = 0;
    long total = count;
    for (String host : at.keySet()) {
      all += at.get(host);
      total += came.getOrDefault(host, 0);
    }
    TreeMap<String, Integer> shares = new TreeMap<>();
    long passed = 0;
    long given = 0;
    for (Map.Entry<String, Integer> map : at.entrySet()) {
      passed += map.getValue();
      long due = total * passed / all; // the last one's part ends at the total: nothing is left over by rounding
      long share = due - given - came.getOrDefault(map.getKey(), 0);
      given = due;
      if (share > 0) {
        shares.put(map.getKey(), (int) Math.min(share, count));
      }
    }
    return shares;
  }

  private void stay(Key key, Stay stay, HomeRows.Target target, boolean used, Settings settings, long now) {
    // YARN would keep a node for a container that it may not give there any more.
    if (used && rows.narrows(key, target) && cluster.reserved(attempt, key)) {
      return;
    }
    if (!stay.narrowed) {
      stay.narrowed = true;
      stay.began = now;
      String what = stay.blocks ? "blocks" : !stay.maps ? "reduces" : gathered ? "gathered" : "narrowed";
      counters.homes((used ? "" : "shadow_") + what, rows.outstanding(key));
      LOG.info(
          "hintd: {} of {}, {} containers, {} asked for {} alone, until none came for {} ms", key, attempt,
          rows.outstanding(key), used ? "are" : "would be", stay.blocks ? "near their blocks" : "in " + homes,
          staysForMs(stay, settings));
    }
    stay.kept = used;
    rows.keepTo(key, used ? target : null);
  }

  private void end(Key key, Stay stay, String why) {
    if (stay.over) {
      return;
    }
    stay.over = true;
    stay.kept = false;
    rows.keepTo(key, null);
    if (!stay.maps && !stay.narrowed) {
      return; // it never was to stay
    }
    counters.homes((stay.blocks ? "blocks_ended_" : stay.maps ? "ended_" : "reduces_ended_") + why, 1);
    if (stay.blocks) {
      LOG.info("hintd: {} of {} are asked for everywhere again: {}, {} outstanding", key, attempt, why, rows.outstanding(key));
    } else if (racks != null && !racks.isEmpty()) {
      LOG.info(
          "hintd: {} of {} are asked for everywhere{}: {}, {} outstanding, asked for in {} of {}", key, attempt,
          stay.narrowed ? " again" : "", why, rows.outstanding(key), rows.counts(key, racks), racks);
    }
  }

  /** What goes to YARN in place of {@code asks}. */
  List<ResourceRequest> rewrite(List<ResourceRequest> asks) {
    return rows.pass(asks, this::outstanding);
  }

  /** Whether the key's rows are those of homes: hints have no say in it. */
  boolean keeps(Key key) {
    Stay stay = stays.get(key);
    return stay != null && stay.kept;
  }

  private int outstanding(Key key) {
    try {
      return cluster.outstanding(attempt, key);
    } catch (RuntimeException unknown) {
      return -1;
    }
  }

  void delivered(Key key, String host, String rack, long now) {
    rows.delivered(key, host, rack);
    Stay stay = stays.get(key);
    if (stay == null) {
      return;
    }
    stay.since = now;
    stay.came.merge(host, 1, Integer::sum);
    if (stay.maps) {
      maps.merge(host, 1, Integer::sum);
    }
    if (stay.narrowed && !stay.blocks) {
      String where = homes.hasRack(rack) ? "at_home" : "elsewhere";
      counters.homes((shadow ? "shadow_" : "") + (stay.maps ? "" : "reduces_") + where, 1);
    }
  }

  /** What goes to YARN in place of {@code asks} when nothing is left out any more. */
  List<ResourceRequest> passAll(List<ResourceRequest> asks) {
    stays.values().forEach(stay -> stay.over = true);
    return rows.passAll(asks, this::outstanding);
  }
}
