package io.hintd.rm;

import io.hintd.client.Attempt;
import io.hintd.v1.ReceiverRacks;
import io.hintd.v1.ShuffleTurnRequest;
import io.hintd.v1.ShuffleTurnResponse;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds back one attempt's asks for receivers of a heavy shuffle until hintd says that it is their turn, in queues that
 * hold. One thread at a time.
 *
 * <p>Before the first ask for receivers, and while all are taken back, hintd is told now and then that they will come: it finds out how much
 * the job shuffles, which nothing else tells of a job that never ran before.
 *
 * <p>Whatever goes wrong, nothing is held: hintd refuses, is silent for its deadline, or the breaker is open; the queue is
 * switched off; or the attempt was held for {@code hold-max-ms} in all.
 */
final class TurnKeeper {
  private static final Logger LOG = LoggerFactory.getLogger(TurnKeeper.class);
  /** hintd forgets who says nothing for 30 s. */
  static final long ANNOUNCE_MS = 5_000;

  private static final class Asked {
    CompletableFuture<ShuffleTurnResponse> answer;
    long again;
    /** Not held so far: it was not asked yet. */
    boolean first = true;
    boolean held;
    /** What the log says of it; null: nothing yet. */
    Boolean said;
    long heldMs;
    long looked;
  }

  private final Attempt attempt;
  private final Cluster.App app;
  private final Daemon daemon;
  private final Counters counters;
  /** Racks in which a key's receivers are asked for alone; empty: anywhere; null: not known. */
  private final Function<Key, Collection<String>> askedIn;
  private final Turns turns = new Turns();
  private final Map<Key, Asked> asked = new HashMap<>();
  /** Counted among the containers that are held. */
  private int held;
  /** When hintd is to be told that receivers will come. */
  private long announce = Long.MIN_VALUE;

  TurnKeeper(
      Attempt attempt, Cluster.App app, Daemon daemon, Counters counters, Function<Key, Collection<String>> askedIn) {
    this.attempt = attempt;
    this.app = app;
    this.daemon = daemon;
    this.counters = counters;
    this.askedIn = askedIn;
  }

  /** What goes on in place of {@code came}. */
  List<ResourceRequest> before(List<ResourceRequest> came, boolean holds, Settings settings, long now) {
    turns.came(came, key -> holds && Roles.reads(app.framework(), key.priority));
    List<Key> open = turns.open();
    if (holds && turns.none()) {
      announce(settings, now);
    }
    rest(open);
    for (Key key : open) {
      Asked of = asked.computeIfAbsent(key, none -> new Asked());
      if (!holds || of.heldMs >= settings.holdMaxMs) {
        let(key, of);
        continue;
      }
      take(key, of, now);
      if (of.answer == null && now >= of.again) {
        ask(key, of, settings, now);
      }
    }
    return count(turns.pass(came));
  }

  /** Keys whose receivers were taken back, as MapReduce does for maps that need their room: they begin anew with the next ask. */
  private void rest(List<Key> open) {
    asked.forEach((key, of) -> {
      if (!open.contains(key)) {
        of.answer = null;
        of.again = Long.MIN_VALUE;
        of.first = true;
        of.held = false;
      }
    });
  }

  private void announce(Settings settings, long now) {
    int priority = Roles.readers(app.framework());
    if (priority < 0 || now < announce) {
      return;
    }
    announce = now + ANNOUNCE_MS;
    daemon.turn(request(new Key(priority, -1)), settings); // of no receivers; whatever it says, nothing is held
  }

  private ShuffleTurnRequest.Builder request(Key key) {
    return ShuffleTurnRequest.newBuilder()
        .setApplicationId(attempt.applicationId())
        .setAttempt(attempt.number())
        .setQueue(app.queue)
        .setRecurringJobKey(app.recurringKey())
        .setGroup(key.group());
  }

  private void ask(Key key, Asked of, Settings settings, long now) {
    ShuffleTurnRequest.Builder request =
        request(key)
            .setReceivers(Math.max(turns.receivers(key), 1))
            .setReceived(turns.done(key))
            .setMemoryMb(turns.memoryMb(key));
    Collection<String> racks = askedIn.apply(key);
    if (racks != null) {
      request.setAskedIn(ReceiverRacks.newBuilder().addAllRacks(racks));
    }
    of.answer = daemon.turn(request, settings);
    of.again = now + 1_000;
    if (of.answer == null) {
      let(key, of);
    } else if (of.first) {
      of.first = false;
      of.looked = now;
      of.held = true; // until the first answer, or the deadline of the question
      turns.most(key, 0);
      take(key, of, now); // it may be there
    }
  }

  private void take(Key key, Asked of, long now) {
    if (of.held) {
      of.heldMs += now - of.looked;
    }
    of.looked = now;
    if (of.answer == null || !of.answer.isDone()) {
      return;
    }
    CompletableFuture<ShuffleTurnResponse> answer = of.answer;
    of.answer = null;
    if (answer.isCompletedExceptionally()) {
      let(key, of);
      return;
    }
    ShuffleTurnResponse turn = answer.join();
    of.again = now + Math.max(turn.getAgainAfterMs(), 100);
    of.held = turn.hasAtMost() && turn.getAtMost() == 0;
    turns.most(key, turn.hasAtMost() ? turn.getAtMost() : Turns.ALL);
    if (of.said == null || of.said != of.held) {
      of.said = of.held;
      LOG.info(
          "hintd: {} of {} {} ({}, {} before it, {} bytes by {})", key, attempt, of.held ? "are held" : "may be asked for",
          turn.getReason(), turn.getBefore(), turn.getShuffleBytes(), turn.getBytesFrom().isEmpty() ? "nobody" : turn.getBytesFrom());
    }
  }

  private void let(Key key, Asked of) {
    of.held = false;
    turns.most(key, Turns.ALL);
  }

  /** Receivers of the key in all, those that are held among them; 0: they never wait here. */
  int inAll(Key key) {
    return turns.receivers(key);
  }

  void delivered(Key key) {
    turns.delivered(key);
  }

  void ended(Key key, boolean failed) {
    turns.ended(key, failed);
  }

  /** What goes to YARN in place of {@code came} when nothing is held any more. */
  List<ResourceRequest> passAll(List<ResourceRequest> came) {
    return count(turns.passAll(came));
  }

  /** The attempt is over. */
  void done() {
    counters.held.add(-held);
    held = 0;
  }

  private List<ResourceRequest> count(List<ResourceRequest> rows) {
    int now = turns.held();
    counters.held.add(now - held);
    held = now;
    return rows;
  }
}
