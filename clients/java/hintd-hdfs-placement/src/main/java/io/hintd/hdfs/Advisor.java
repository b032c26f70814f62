package io.hintd.hdfs;

import io.hintd.client.HintdClient;
import io.hintd.client.HintdException;
import io.hintd.plugin.Breaker;
import io.hintd.v1.BlockAdvice;
import io.hintd.v1.ReplicasRequest;
import io.hintd.v1.ReplicasResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Asks hintd once a file, waits for little, remembers the answer. Never throws for hintd's sake. */
final class Advisor implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Advisor.class);
  /** A kind of failure is in the log once in so long. */
  private static final long SAID_MS = 600_000;
  /** Questions that nobody waits for, so that the first real one does not run in the interpreter alone. */
  private static final int WARM_ASKS = 20;

  private final Counters counters;
  private final Breaker breaker = new Breaker();
  /** Under way now. */
  private final AtomicInteger asking = new AtomicInteger();
  private final Map<String, Long> said = new ConcurrentHashMap<>();
  private volatile int cacheMax = 1;
  private final Map<String, File> files =
      new LinkedHashMap<String, File>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, File> eldest) {
          return size() > cacheMax;
        }
      };
  private String address = "";
  private volatile HintdClient client;

  /** What is known of one file. */
  private static final class File {
    /** Racks of its blocks, by turns; empty: HDFS's choice. */
    final CompletableFuture<List<String>> racks = new CompletableFuture<>();
    /** Blocks so far. */
    final AtomicInteger blocks = new AtomicInteger();
    volatile long untilMs;
  }

  Advisor(Counters counters) {
    this.counters = counters;
    counters.breaker(breaker::isOpen);
  }

  /** The rack in which the next block of a file should have a replica; null: HDFS's choice. */
  String rack(String path, Settings settings) {
    long now = nowMs();
    File file;
    boolean ask = false;
    synchronized (files) {
      file = files.get(path);
      if (file == null || now >= file.untilMs) {
        if (!mayAsk(settings, now)) {
          return null;
        }
        ask = true;
        file = new File();
        file.untilMs = now + settings.cacheMs;
        files.put(path, file);
      }
    }
    List<String> racks = ask ? ask(path, file, settings) : file.racks.getNow(null);
    if (racks == null) {
      counters.leftAlone(ask ? "late" : "asking");
      return null;
    }
    if (!ask) {
      counters.remembered.increment();
    }
    if (racks.isEmpty()) {
      counters.leftAlone("no_home");
      return null;
    }
    String rack = racks.get(Math.floorMod(file.blocks.getAndIncrement(), racks.size()));
    return rack.isEmpty() ? null : rack;
  }

  private boolean mayAsk(Settings settings, long now) {
    if (client == null) {
      counters.leftAlone("not_connected");
      return false;
    }
    if (asking.get() >= settings.waiting) {
      counters.leftAlone("busy");
      return false;
    }
    if (!breaker.ask(now)) {
      counters.leftAlone("breaker_open");
      return false;
    }
    asking.incrementAndGet();
    return true;
  }

  /** Null: no answer in time. */
  private List<String> ask(String path, File file, Settings settings) {
    counters.asked.increment();
    long began = System.nanoTime();
    boolean wait = breaker.wait(settings.breaker);
    try {
      HintdClient made = client;
      if (made == null) {
        throw new IllegalStateException("the client was closed");
      }
      ReplicasRequest request = ReplicasRequest.newBuilder().setPath(path).setBlocks(settings.blocks).build();
      made.replicas(request, Duration.ofMillis(settings.deadlineMs))
          .whenComplete((answer, error) -> heard(path, file, answer, error, settings, began));
    } catch (RuntimeException wrong) {
      heard(path, file, null, wrong, settings, began);
    }
    if (!wait) {
      return file.racks.getNow(null);
    }
    List<String> racks = null;
    try {
      racks = file.racks.get(settings.timeoutMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException late) {
      counters.late.increment();
      say("late", "no answer within {} ms: blocks go where HDFS puts them", settings.timeoutMs);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
    counters.waited.add(System.nanoTime() - began);
    breaker.waited(racks == null);
    return racks;
  }

  private void heard(
      String path, File file, ReplicasResponse answer, Throwable error, Settings settings, long began) {
    asking.decrementAndGet();
    if (error == null) {
      counters.answered.increment();
      counters.reason(answer.getReason());
      long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
      breaker.cameLate(took <= settings.timeoutMs);
      worksAgain();
      file.racks.complete(racks(answer));
      return;
    }
    file.untilMs = nowMs() + settings.retryMs;
    if (error instanceof HintdException.Refused) {
      // It works, and says no.
      counters.refused.increment();
      worksAgain();
      say("refused", "no advice for {}: {}", path, error.getMessage());
    } else {
      counters.failed.increment();
      if (breaker.failed(settings.breaker, nowMs())) {
        counters.breakerOpened.increment();
        say("breaker", "hintd is not asked for a while, blocks go where HDFS puts them: {}", error.getMessage());
      }
    }
    file.racks.complete(new ArrayList<>());
  }

  private void worksAgain() {
    if (breaker.answered()) {
      said.clear();
      LOG.info("hintd: it answers again and is asked as before");
    }
  }

  private static List<String> racks(ReplicasResponse answer) {
    List<String> racks = new ArrayList<>();
    boolean any = false;
    for (BlockAdvice block : answer.getBlocksList()) {
      String rack = block.getReplicasCount() == 0 ? "" : block.getReplicas(0).getRack();
      any |= !rack.isEmpty();
      racks.add(rack);
    }
    return any ? racks : new ArrayList<>();
  }

  /** Says it where that kind was not said lately. */
  void say(String kind, String message, Object... of) {
    long now = nowMs();
    Long before = said.get(kind);
    if (before == null || now - before >= SAID_MS) {
      said.put(kind, now);
      LOG.warn("hintd: " + message, of);
    }
  }

  /** Makes a client where there is none of this address. Slow: never on a thread that clients wait for. */
  synchronized void use(Settings settings) {
    cacheMax = settings.cache;
    if (settings.mode == Settings.Mode.OFF) {
      close();
      return;
    }
    if (settings.address.equals(address)) {
      return;
    }
    close();
    HintdClient made = HintdClient.to(settings.address);
    boolean answered = warm(made, settings);
    LOG.info("hintd: {} {}", settings.address, answered ? "answers" : "does not answer yet");
    address = settings.address;
    client = made;
  }

  /** A path without a reader: hintd looks, and remembers nothing. */
  private static boolean warm(HintdClient made, Settings settings) {
    ReplicasRequest nobody = ReplicasRequest.newBuilder().setPath("/").build();
    Duration patience = Duration.ofMillis(Math.max(settings.deadlineMs, 2_000));
    try {
      for (int again = 0; again < WARM_ASKS; again++) {
        made.replicas(nobody, patience).get(patience.toMillis() * 2, TimeUnit.MILLISECONDS);
      }
      return true;
    } catch (ExecutionException | TimeoutException silent) {
      return false;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Whether there is a client to ask by, be the daemon there or not. */
  boolean isConnected() {
    return client != null;
  }

  /** Forgets what was answered. */
  @Override
  public synchronized void close() {
    HintdClient was = client;
    if (was != null) {
      client = null;
      address = "";
      was.close();
    }
    synchronized (files) {
      files.clear();
    }
  }

  private static long nowMs() {
    return System.nanoTime() / 1_000_000;
  }
}
