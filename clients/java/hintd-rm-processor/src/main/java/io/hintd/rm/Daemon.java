package io.hintd.rm;

import io.hintd.client.Answer;
import io.hintd.client.Attempt;
import io.hintd.client.FeedStream;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.HintdException;
import io.hintd.v1.EventItem;
import io.hintd.v1.FeedHello;
import io.hintd.v1.TaskEvent;
import java.time.Duration;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The way to hintd: never blocks, never throws for hintd's sake. */
final class Daemon implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Daemon.class);
  private static final int EVENTS_WAITING = 10_000;

  private final Counters counters;
  private final Breaker breaker = new Breaker();
  private String address = "";
  private HintdClient client;
  private FeedStream<EventItem> events;

  Daemon(Counters counters) {
    this.counters = counters;
    counters.breaker(breaker::isOpen);
  }

  /** A future that fails with {@link HintdException}; null: hintd is not asked for the moment. */
  CompletableFuture<Answer> ask(HintRequest request, Settings settings) {
    if (!breaker.ask(nowMs())) {
      counters.notAsked.increment();
      return null;
    }
    counters.asked.increment();
    return client(settings)
        .ask(request, Duration.ofMillis(settings.deadlineMs))
        .whenComplete((answer, error) -> heard(request, error, settings));
  }

  private void heard(HintRequest request, Throwable error, Settings settings) {
    if (error == null) {
      breaker.answered();
      counters.answered.increment();
    } else if (error instanceof HintdException.Refused) {
      // It works, and says no.
      breaker.answered();
      counters.refused.increment();
      LOG.warn("hintd gives no hints for {}: {}", request.attempt(), error.getMessage());
    } else {
      counters.failed.increment();
      if (breaker.failed(settings, nowMs())) {
        counters.breakerOpened.increment();
        LOG.warn("hintd is not asked for a while, requests pass as they are: {}", error.getMessage());
      }
    }
  }

  Breaker breaker() {
    return breaker;
  }

  void release(Attempt attempt, String token, Collection<Long> leases, Settings settings) {
    if (!leases.isEmpty()) {
      client(settings).releaseLater(attempt, token, leases, Duration.ofMillis(settings.deadlineMs));
    }
  }

  void tell(TaskEvent event, Settings settings) {
    if (settings.events) {
      client(settings);
      events().tell(number -> EventItem.newBuilder().setNumber(number).setEvent(event).build());
    }
  }

  private synchronized FeedStream<EventItem> events() {
    return events;
  }

  private synchronized HintdClient client(Settings settings) {
    if (!settings.address.equals(address)) {
      close();
      address = settings.address;
      client = HintdClient.to(address);
      FeedHello hello = FeedHello.newBuilder().setSource("rm-processor").build();
      FeedStream<EventItem> opened = FeedStream.events(client, hello, EVENTS_WAITING);
      events = opened;
      counters.gauge("events_sent", opened::sent);
      counters.gauge("events_dropped", opened::dropped);
      counters.gauge("events_refused", opened::refused);
    }
    return client;
  }

  @Override
  public synchronized void close() {
    if (client != null) {
      events.close();
      client.close();
      client = null;
      address = "";
    }
  }

  private static long nowMs() {
    return System.nanoTime() / 1_000_000;
  }
}
