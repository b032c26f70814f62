package io.hintd.rm;

import io.hintd.client.Answer;
import io.hintd.client.Attempt;
import io.hintd.client.FeedStream;
import io.hintd.client.Group;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.HintdException;
import io.hintd.client.Secret;
import io.hintd.plugin.Breaker;
import io.hintd.plugin.SaidOnce;
import io.hintd.v1.EventItem;
import io.hintd.v1.FeedHello;
import io.hintd.v1.InputHomesRequest;
import io.hintd.v1.InputHomesResponse;
import io.hintd.v1.ShuffleTurnRequest;
import io.hintd.v1.ShuffleTurnResponse;
import io.hintd.v1.TaskEvent;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The way to hintd: never blocks, never throws for hintd's sake. */
final class Daemon implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Daemon.class);
  private static final int EVENTS_WAITING = 10_000;

  private final Counters counters;
  private final Breaker breaker = new Breaker();
  /** Refusals that the log has. */
  private final SaidOnce said = new SaidOnce();
  private volatile String address = "";
  private final Secret own = Secret.random();
  /** Both are null until {@link #use} has made them. */
  private volatile HintdClient client;
  private volatile FeedStream<EventItem> events;
  /** The log says that it does not answer yet; of each client its own. */
  private volatile AtomicBoolean silent = new AtomicBoolean();
  /** Somebody is sent to see whether it answers now. */
  private final AtomicBoolean looking = new AtomicBoolean();

  Daemon(Counters counters) {
    this.counters = counters;
    counters.breaker(breaker::isOpen);
  }

  /** A future that fails with {@link HintdException}; null: hintd is not asked for the moment. */
  CompletableFuture<Answer> ask(HintRequest request, Settings settings) {
    HintdClient made = client;
    if (made == null || !breaker.ask(nowMs())) {
      counters.notAsked.increment();
      return null;
    }
    counters.asked.increment();
    long began = nowMs();
    return made
        .ask(request, Duration.ofMillis(settings.deadlineMs))
        .whenComplete(
            (answer, error) -> {
              if (error == null) {
                // Who was not waited for after many vain waits is again, once it is as fast as that.
                breaker.cameLate(nowMs() - began <= settings.waitMs);
              }
              heard(request.attempt().applicationId(), error, settings);
            });
  }

  /** Whether receivers may be asked for; as {@link #ask}. */
  CompletableFuture<ShuffleTurnResponse> turn(ShuffleTurnRequest.Builder request, Settings settings) {
    HintdClient made = client;
    if (made == null || !breaker.ask(nowMs())) {
      counters.notAsked.increment();
      return null;
    }
    counters.turnsAsked.increment();
    return made
        .shuffleTurn(request, Duration.ofMillis(settings.deadlineMs))
        .whenComplete((answer, error) -> heard(request.getApplicationId(), error, settings));
  }

  /** Where an application's input was sent; as {@link #ask}. */
  CompletableFuture<InputHomesResponse> homes(InputHomesRequest.Builder request, Settings settings) {
    HintdClient made = client;
    if (made == null || !breaker.ask(nowMs())) {
      counters.notAsked.increment();
      return null;
    }
    counters.homes("asked", 1);
    return made
        .inputHomes(request, Duration.ofMillis(settings.deadlineMs))
        .whenComplete(
            (answer, error) -> {
              if (error == null) {
                answered();
                counters.homes("answered", 1);
              } else {
                heard(request.getApplicationId(), error, settings);
              }
            });
  }

  private void heard(String asker, Throwable error, Settings settings) {
    if (error == null) {
      answered();
      counters.answered.increment();
    } else if (error instanceof HintdException.Refused) {
      // It works, and says no.
      answered();
      counters.refused.increment();
      // Each application asks for turns and homes once a second for as long as it runs.
      if (said.due(asker + ' ' + ((HintdException.Refused) error).reason(), nowMs())) {
        LOG.warn("hintd gives no hints for {}: {}", asker, error.getMessage());
      }
    } else {
      counters.failed.increment();
      if (breaker.failed(settings.breaker, nowMs())) {
        counters.breakerOpened.increment();
        LOG.warn("hintd is not asked for a while, requests pass as they are: {}", error.getMessage());
      }
    }
  }

  private void answered() {
    if (breaker.answered()) {
      LOG.info("hintd: {} answers again and is asked as before", address);
      silent.set(false);
    } else {
      noLongerSilent(silent);
    }
  }

  private void noLongerSilent(AtomicBoolean said) {
    if (said.getAndSet(false)) {
      LOG.info("hintd: {} answers", address);
    }
  }

  /** Where the log says that it does not answer yet, and no application asks, that would stand there for ever. */
  private void look(Settings settings) {
    HintdClient made = client;
    AtomicBoolean said = silent;
    if (made == null || !said.get() || !looking.compareAndSet(false, true)) {
      return;
    }
    // No attempt has this name: a daemon refuses it at once, and remembers nothing.
    HintRequest request = new HintRequest(new Attempt("", 1)).group(new Group("", 1, 1, 1)).policy("warm");
    made.ask(request, Duration.ofMillis(settings.deadlineMs))
        .whenComplete(
            (answer, error) -> {
              looking.set(false);
              if (error == null || error instanceof HintdException.Refused) {
                noLongerSilent(said);
              }
            });
  }

  Breaker breaker() {
    return breaker;
  }

  void release(Attempt attempt, String token, Collection<Long> leases, Settings settings) {
    HintdClient made = client;
    if (made != null && !leases.isEmpty()) {
      made.releaseLater(attempt, token, leases, Duration.ofMillis(settings.deadlineMs));
    }
  }

  void tell(TaskEvent event, Settings settings) {
    FeedStream<EventItem> made = events;
    if (made != null && settings.events) {
      made.tell(number -> EventItem.newBuilder().setNumber(number).setEvent(event).build());
    }
  }

  /** Makes a client where there is none of this address. Slow: never on a thread that applications wait for. */
  synchronized void use(Settings settings) {
    if (settings.address.equals(address)) {
      look(settings);
      return;
    }
    close();
    HintdClient made = HintdClient.to(settings.address, secret(settings));
    boolean answered = made.warm(Duration.ofMillis(Math.max(settings.deadlineMs, 2_000)));
    LOG.info("hintd: {} {}", settings.address, answered ? "answers" : "does not answer yet");
    FeedHello hello = FeedHello.newBuilder().setSource("rm-processor").build();
    FeedStream<EventItem> opened = FeedStream.events(made, hello, EVENTS_WAITING);
    counters.gauge("events_sent", opened::sent);
    counters.gauge("events_dropped", opened::dropped);
    counters.gauge("events_refused", opened::refused);
    address = settings.address;
    silent = new AtomicBoolean(!answered);
    events = opened;
    client = made;
  }

  /** Of the file that is named, else one of this process. */
  private Secret secret(Settings settings) {
    if (settings.secretFile.isEmpty()) {
      return own;
    }
    try {
      String text = new String(Files.readAllBytes(Paths.get(settings.secretFile)), StandardCharsets.UTF_8);
      return Secret.of(text.trim().getBytes(StandardCharsets.UTF_8));
    } catch (IOException | IllegalArgumentException wrong) {
      counters.errors.increment();
      LOG.error("hintd: secret-file {}: {}; a secret of this process stands in for it", settings.secretFile, wrong.toString());
      return own;
    }
  }

  @Override
  public synchronized void close() {
    HintdClient was = client;
    if (was != null) {
      client = null;
      address = "";
      events.close();
      events = null;
      was.close();
    }
  }

  private static long nowMs() {
    return System.nanoTime() / 1_000_000;
  }
}
