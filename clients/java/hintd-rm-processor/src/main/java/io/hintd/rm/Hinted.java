package io.hintd.rm;

import io.hintd.client.Answer;
import io.hintd.client.Attempt;
import io.hintd.client.Group;
import io.hintd.client.Hint;
import io.hintd.client.HintRequest;
import io.hintd.rm.Settings.Mode;
import io.hintd.v1.ApplicationDone;
import io.hintd.v1.TaskAllocated;
import io.hintd.v1.TaskEvent;
import io.hintd.v1.TaskFinished;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceBlacklistRequest;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One application attempt: what it asks for, what hintd was asked of it, which containers it has. One thread at a time. */
final class Hinted {
  private static final Logger LOG = LoggerFactory.getLogger(Hinted.class);
  /** Asks within this time after registration are what a recurring job asks for first, ms. */
  private static final long FIRST_MS = 10_000;

  /** What went to hintd and has not come back, or not been looked at. */
  private static final class Asked {
    final Map<String, Key> keys = new LinkedHashMap<>();
    final Map<String, AskTable.Wanted> wanted = new LinkedHashMap<>();
    final boolean prefetched;
    CompletableFuture<Answer> answer;

    Asked(boolean prefetched) {
      this.prefetched = prefetched;
    }
  }

  private static final class Running {
    final Key key;
    final String host;
    final long since;

    Running(Key key, String host, long since) {
      this.key = key;
      this.host = host;
      this.since = since;
    }
  }

  final Attempt attempt;
  private final Cluster.App app;
  private final Cluster cluster;
  private final Daemon daemon;
  private final Counters counters;
  private final Recurring recurring;
  private final Semaphore waiting;
  private final AskTable table;
  private final TurnKeeper turns;
  private final HomeKeeper homes;
  private final long registered = nowMs();
  private final List<Asked> asked = new ArrayList<>();
  private final List<AskTable.Wanted> first = new ArrayList<>();
  private final Map<ContainerId, Running> running = new HashMap<>();
  private Settings settings;
  private boolean done;
  private boolean broken;
  /** It was given up, and YARN has not taken what was held of it. */
  private boolean owes;

  Hinted(
      Attempt attempt, Cluster.App app, Cluster cluster, Daemon daemon, Counters counters, Recurring recurring,
      Semaphore waiting, Settings settings) {
    this.attempt = attempt;
    this.app = app;
    this.cluster = cluster;
    this.daemon = daemon;
    this.counters = counters;
    this.recurring = recurring;
    this.waiting = waiting;
    this.settings = settings;
    this.table = new AskTable(settings.besideOwn, this::over);
    this.homes = new HomeKeeper(attempt, app, cluster, daemon, counters);
    this.turns = new TurnKeeper(attempt, app, daemon, counters, homes::askedIn);
  }

  /** The ApplicationMaster registered: asks for what a run of the same job asked for first. */
  void registered() {
    if (!settings.prefetch || mode() == Mode.OFF) {
      return;
    }
    homes.registered(mode(), settings, nowMs());
    List<AskTable.Wanted> expected = new ArrayList<>(recurring.of(app.recurringKey()));
    // Where these should go depends on where others came, and nothing has come yet.
    expected.removeIf(want -> Roles.reads(app.framework(), want.key.priority));
    if (!expected.isEmpty()) {
      counters.prefetched.increment();
      ask(expected, true);
    }
  }

  /** What to send to YARN in place of the request's asks; {@code waited[0]} gets nanoseconds waited for hints. */
  List<ResourceRequest> before(AllocateRequest request, List<ResourceRequest> asks, Settings now, long[] waited) {
    settings = now;
    Mode mode = mode();
    List<ResourceRequest> came = turns.before(asks, mode == Mode.ON && settings.holds(app.queue), settings, nowMs());
    ResourceBlacklistRequest blacklist = request.getResourceBlacklistRequest();
    if (blacklist != null) {
      table.blacklist(orNone(blacklist.getBlacklistAdditions()), orNone(blacklist.getBlacklistRemovals()));
    }
    List<AskTable.Wanted> wanted = table.came(came);
    boolean waitForHomes = homes.came(came, mode, settings, nowMs());
    countLeftAlone(came, mode);
    if (mode == Mode.OFF) {
      table.forgetAll("off");
    } else if (want(wanted) | waitForHomes) {
      waited[0] = waitForAnswers(waitForHomes);
    }
    homes.decide(table.blacklisted(), mode, settings, nowMs());
    table.promised().stream().filter(homes::keeps).forEach(key -> table.forget(key, "at_home"));
    collect(mode, mode == Mode.OFF || !wanted.isEmpty() || nowMs() - registered > FIRST_MS);
    List<ResourceRequest> rows =
        table.rewrite(came, mode == Mode.ON, nowMs(), settings.hostsForMs, settings.racksForMs);
    rows.subList(came.size(), rows.size()).forEach(
        row -> (row.getNumContainers() > 0 ? counters.rowsAdded : counters.rowsTakenBack).increment());
    return homes.rewrite(rows);
  }

  /** What goes to YARN in place of {@code asks} where nothing of ours is to: what was held goes now. See {@link #settled}. */
  List<ResourceRequest> plain(List<ResourceRequest> asks) {
    return homes.passAll(turns.passAll(asks));
  }

  /** YARN took what {@link #plain} had it sent. */
  void settled() {
    owes = false;
  }

  /** Containers that came while YARN is owed rows: these are not asked for again. */
  void delivered(AllocateResponse response) {
    Map<String, String> racks = cluster.racks();
    for (Container container : response.getAllocatedContainers()) {
      String node = cluster.nodeName(container.getNodeId());
      turns.delivered(Key.of(container));
      homes.delivered(Key.of(container), node, racks.getOrDefault(node, ""), nowMs());
    }
  }

  boolean quiet(List<ResourceRequest> came) {
    return came.isEmpty() && asked.isEmpty();
  }

  private Mode mode() {
    return app.labelled ? Mode.OFF : settings.mode(app.queue);
  }

  /** Asks for what no prefetch covers; returns whether there is anything to wait for. */
  private boolean want(List<AskTable.Wanted> wanted) {
    if (wanted.isEmpty()) {
      return false;
    }
    if (nowMs() - registered <= FIRST_MS) {
      first.addAll(wanted);
    }
    List<AskTable.Wanted> open = new ArrayList<>();
    for (AskTable.Wanted want : wanted) {
      if (!prefetched(want)) {
        open.add(want);
      }
    }
    if (!open.isEmpty()) {
      ask(open, false);
    }
    return true;
  }

  private boolean prefetched(AskTable.Wanted want) {
    for (Asked earlier : asked) {
      AskTable.Wanted same = earlier.wanted.get(want.key.group());
      if (earlier.prefetched && same != null && same.count == want.count && same.size.equals(want.size)) {
        counters.prefetchUsed.increment();
        return true;
      }
    }
    return false;
  }

  private void ask(List<AskTable.Wanted> wanted, boolean prefetch) {
    Asked ask = new Asked(prefetch);
    HintRequest request =
        new HintRequest(attempt)
            .queue(app.queue)
            .user(app.user)
            .framework(app.framework())
            .recurringJobKey(app.recurringKey())
            .amHost(cluster.racks().containsKey(app.amHost) ? app.amHost : "")
            .avoidHosts(table.blacklisted())
            .traceparent(app.traceparent);
    for (AskTable.Wanted want : wanted) {
      String name = want.key.group();
      ask.keys.put(name, want.key);
      ask.wanted.put(name, want);
      request.group(group(want));
    }
    ask.answer = daemon.ask(request, settings);
    if (ask.answer != null) {
      asked.add(ask);
    }
  }

  private Group group(AskTable.Wanted want) {
    Resource size = want.size;
    int count = Math.min(want.count, settings.containersMax);
    Group group =
        new Group(want.key.group(), count, size.getMemorySize(), size.getVirtualCores())
            .whole(Math.min(turns.inAll(want.key), settings.containersMax))
            .priority(want.key.priority)
            .allocationRequestId(want.key.allocationRequestId)
            .role(Roles.of(app.framework(), want.key.priority));
    for (ResourceInformation kind : size.getResources()) {
      boolean basic = kind.getName().equals(ResourceInformation.MEMORY_URI) || kind.getName().equals(ResourceInformation.VCORES_URI);
      if (!basic && kind.getValue() > 0) {
        group.resource(kind.getName(), kind.getValue());
      }
    }
    return group;
  }

  /** Returns nanoseconds waited. */
  private long waitForAnswers(boolean forHomes) {
    List<CompletableFuture<?>> answers = new ArrayList<>();
    asked.forEach(ask -> answers.add(ask.answer));
    if (forHomes && homes.pending() != null) {
      answers.add(homes.pending());
    }
    boolean all = true;
    for (CompletableFuture<?> answer : answers) {
      all &= answer.isDone();
    }
    if (all || !daemon.breaker().wait(settings.breaker) || !waiting.tryAcquire()) {
      return 0;
    }
    long began = System.nanoTime();
    long end = began + TimeUnit.MILLISECONDS.toNanos(settings.waitMs);
    counters.waits.increment();
    boolean inVain = false;
    try {
      for (CompletableFuture<?> answer : answers) {
        try {
          answer.get(Math.max(end - System.nanoTime(), 1), TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
          inVain = true;
        } catch (ExecutionException failed) {
          // collected later
        } catch (InterruptedException stopped) {
          Thread.currentThread().interrupt();
          break;
        }
      }
    } finally {
      waiting.release();
    }
    daemon.breaker().waited(inVain);
    if (inVain) {
      counters.waitsInVain.increment();
    }
    return System.nanoTime() - began;
  }

  /** Takes in the answers that are there. */
  private void collect(Mode mode, boolean prefetchesToo) {
    for (Iterator<Asked> all = asked.iterator(); all.hasNext(); ) {
      Asked ask = all.next();
      if (ask.answer.isDone() && (prefetchesToo || !ask.prefetched)) {
        all.remove();
        if (!ask.answer.isCompletedExceptionally()) {
          take(ask, ask.answer.join(), mode);
        }
      }
    }
  }

  private void take(Asked ask, Answer answer, Mode mode) {
    Map<String, String> racks = cluster.racks();
    Map<String, List<Piece>> pieces = new LinkedHashMap<>();
    boolean used = mode == Mode.ON && !answer.shadow();
    LOG.info(
        "hintd: {} of {} {} for {}: {}", answer.decisionId(), attempt, used ? "hints" : "would hint", ask.keys.keySet(),
        answer.history());
    for (Hint hint : answer.hints()) {
      if (!racks.containsKey(hint.host())) {
        counters.over("unknown_host", hint.count());
        daemon.release(attempt, answer.token(), hint.leases(), settings);
        continue;
      }
      Key stays = ask.keys.get(hint.group());
      if (used && stays != null && homes.keeps(stays)) {
        counters.over("at_home", hint.count());
        daemon.release(attempt, answer.token(), hint.leases(), settings);
        continue;
      }
      if (!used) {
        daemon.release(attempt, answer.token(), hint.leases(), settings);
      }
      Collection<Long> leases = used ? hint.leases() : new ArrayList<>();
      pieces
          .computeIfAbsent(hint.group(), none -> new ArrayList<>())
          .add(new Piece(hint.host(), hint.fallbacks(), racks, hint.count(), leases, answer.token(), used, nowMs()));
    }
    pieces.forEach(
        (group, found) -> {
          Key key = ask.keys.get(group);
          if (key != null) {
            counters.containers(used, "hinted", table.hinted(key, found));
          }
        });
  }

  private void over(Piece piece, int containers, String why) {
    if (containers > 0) {
      counters.over(why, containers);
      counters.containers(piece.used(), "over", why.equals("late") ? 0 : containers);
    }
    daemon.release(attempt, piece.token(), piece.surplus(), settings);
  }

  private void countLeftAlone(List<ResourceRequest> came, Mode mode) {
    if (came.isEmpty()) {
      return;
    }
    TreeSet<Key> keys = new TreeSet<>();
    came.stream().filter(row -> row.getNumContainers() > 0).forEach(row -> keys.add(Key.of(row)));
    for (Key key : keys) {
      String why = mode == Mode.OFF ? (app.labelled ? "labelled" : "off") : table.leftAlone(key);
      if (why != null) {
        counters.leftAlone(why);
      }
    }
  }

  /** YARN answered: takes note of containers and tells hintd. */
  void after(AllocateRequest request, AllocateResponse response) {
    Map<String, String> racks = cluster.racks();
    for (Container container : response.getAllocatedContainers()) {
      Key key = Key.of(container);
      String node = cluster.nodeName(container.getNodeId());
      turns.delivered(key);
      homes.delivered(key, node, racks.getOrDefault(node, ""), nowMs());
      AskTable.Followed followed = table.delivered(key, node, racks.getOrDefault(node, ""));
      if (followed.place != AskTable.Place.NOT_HINTED) {
        counters.containers(followed.used, followed.place.name().toLowerCase(java.util.Locale.ROOT), 1);
      }
      running.put(container.getId(), new Running(key, node, nowMs()));
      TaskAllocated.Builder allocated =
          TaskAllocated.newBuilder().setHost(node).setContainerId(container.getId().toString()).setLeaseId(followed.lease);
      tell(event(key, container.getId()).setAllocated(allocated).build());
    }
    List<ContainerId> released = orNone(request.getReleaseList());
    for (ContainerStatus status : response.getCompletedContainersStatuses()) {
      Running was = running.remove(status.getContainerId());
      if (was != null) {
        // Of a container that was given back nothing is to be learnt of how long such tasks take.
        boolean failed = status.getExitStatus() != ContainerExitStatus.SUCCESS || released.contains(status.getContainerId());
        turns.ended(was.key, failed);
        TaskFinished.Builder finished =
            TaskFinished.newBuilder().setHost(was.host).setDurationMs(nowMs() - was.since).setFailed(failed);
        tell(event(was.key, status.getContainerId()).setFinished(finished).build());
      }
    }
  }

  /** The application is done, or gone; once. */
  void done(boolean failed) {
    if (done) {
      return;
    }
    done = true;
    turns.done();
    table.forgetAll("application_done");
    collect(Mode.OFF, true);
    if (!first.isEmpty() && !failed) {
      recurring.remember(app.recurringKey(), first);
    }
    tell(
        TaskEvent.newBuilder()
            .setApplicationId(attempt.applicationId())
            .setAttempt(attempt.number())
            .setDone(ApplicationDone.newBuilder().setFailed(failed))
            .build());
  }

  /** Something went wrong here: from now on the attempt's requests pass as they come. */
  void giveUp() {
    owes |= !broken;
    broken = true;
  }

  boolean owes() {
    return owes;
  }

  boolean givenUp() {
    return broken;
  }

  private TaskEvent.Builder event(Key key, ContainerId container) {
    return TaskEvent.newBuilder()
        .setApplicationId(attempt.applicationId())
        .setAttempt(attempt.number())
        .setGroup(key.group())
        .setTask(container.toString())
        .setAtMs(System.currentTimeMillis());
  }

  private void tell(TaskEvent event) {
    if (mode() != Mode.OFF) {
      daemon.tell(event, settings);
    }
  }

  private static <T> List<T> orNone(List<T> list) {
    return list == null ? new ArrayList<>() : list;
  }

  private static long nowMs() {
    return System.nanoTime() / 1_000_000;
  }
}
