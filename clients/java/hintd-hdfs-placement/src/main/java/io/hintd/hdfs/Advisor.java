package io.hintd.hdfs;

import io.hintd.client.HintdClient;
import io.hintd.client.HintdException;
import io.hintd.client.Secret;
import io.hintd.plugin.Breaker;
import io.hintd.plugin.SaidOnce;
import io.hintd.v1.BlockAdvice;
import io.hintd.v1.ReplicasRequest;
import io.hintd.v1.ReplicasResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Asks hintd once a file, waits for little, remembers the answer. Never throws for hintd's sake. */
class Advisor implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Advisor.class);
  /** Questions that nobody waits for, so that the first real one does not run in the interpreter alone. */
  private static final int WARM_ASKS = 20;
  /** What of an answer may come into the NameNode's memory: whoever listens on the port may send anything. */
  private static final int MESSAGE_BYTES = 1 << 20;
  private static final int RACK_CHARS = 1_000;
  private static final int RACKS_MAX = 4_096;
  /** Others' words in one line of the log. */
  private static final int SAID_CHARS = 300;
  /** A question that nothing was heard of for so long after its deadline is given up. */
  private static final long LOST_MS = 5_000;

  private final Counters counters;
  private final Breaker breaker = new Breaker();
  /** Those whose question is under way now. */
  private final Set<File> asking = ConcurrentHashMap.newKeySet();
  private final SaidOnce said = new SaidOnce();
  private volatile int cacheMax = 1;
  private final Map<String, File> files =
      new LinkedHashMap<String, File>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, File> eldest) {
          return size() > cacheMax;
        }
      };
  /** Racks of those files, each name once. With the files it is guarded by {@link #files}. */
  private final Map<String, String> rackNames = new HashMap<>();
  private String address = "";
  private volatile HintdClient client;

  /** Where a block should have a replica. */
  static final class Told {
    static final Told NOWHERE = new Told("", false);

    /** Empty: wherever HDFS puts it. */
    final String rack;
    /** Its third replica is told another rack, so one there is enough. */
    final boolean once;

    Told(String rack, boolean once) {
      this.rack = rack;
      this.once = once;
    }
  }

  /** What is known of one file. */
  private static final class File {
    final String path;
    final long beganNs = System.nanoTime();
    /** Racks of its blocks, by turns; empty: HDFS's choice. */
    final CompletableFuture<List<Told>> racks = new CompletableFuture<>();
    /** Blocks so far. */
    final AtomicInteger blocks = new AtomicInteger();
    volatile long untilMs;
    final long lostMs;

    File(String path, Settings settings) {
      this.path = path;
      untilMs = nowMs() + settings.cacheMs;
      lostMs = nowMs() + settings.deadlineMs + LOST_MS;
    }
  }

  Advisor(Counters counters) {
    this.counters = counters;
    counters.breaker(breaker::isOpen);
  }

  /** The rack in which the next block of a file should have a replica; null: HDFS's choice. */
  Told rack(String path, Settings settings) {
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
        file = new File(path, settings);
        asking.add(file);
        files.put(path, file);
      }
    }
    List<Told> racks = ask ? ask(file, settings) : file.racks.getNow(null);
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
    Told told = racks.get(Math.floorMod(file.blocks.getAndIncrement(), racks.size()));
    return told.rack.isEmpty() ? null : told;
  }

  private boolean mayAsk(Settings settings, long now) {
    if (client == null) {
      counters.leftAlone("not_connected");
      return false;
    }
    if (asking.size() >= settings.waiting) {
      counters.leftAlone("busy");
      return false;
    }
    if (!breaker.ask(now)) {
      counters.leftAlone("breaker_open");
      return false;
    }
    return true;
  }

  /** Null: no answer in time. */
  private List<Told> ask(File file, Settings settings) {
    counters.asked.increment();
    boolean wait = breaker.wait(settings.breaker);
    try {
      ReplicasRequest request = ReplicasRequest.newBuilder().setPath(file.path).setBlocks(settings.blocks).build();
      replicas(request, Duration.ofMillis(settings.deadlineMs))
          .whenComplete((answer, error) -> heard(file, answer, error, settings));
    } catch (Throwable wrong) {
      // Errors, too: gRPC starts threads, and there may be none to be had.
      heard(file, null, wrong, settings);
    }
    if (!wait) {
      return file.racks.getNow(null);
    }
    List<Told> racks = null;
    try {
      racks = file.racks.get(settings.timeoutMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException | ExecutionException late) {
      counters.late.increment();
      say("late", "no answer within {} ms: blocks go where HDFS puts them", settings.timeoutMs);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
    counters.waited.add(System.nanoTime() - file.beganNs);
    breaker.waited(racks == null);
    return racks;
  }

  /** Asks by the client; tests answer in its place. */
  CompletableFuture<ReplicasResponse> replicas(ReplicasRequest request, Duration deadline) {
    HintdClient made = client;
    if (made == null) {
      throw new IllegalStateException("the client was closed");
    }
    return made.replicas(request, deadline);
  }

  /** The end of a question, however it ends; what comes after it was given up is dropped. */
  private void heard(File file, ReplicasResponse answer, Throwable error, Settings settings) {
    if (!asking.remove(file)) {
      return;
    }
    List<Told> racks = Collections.emptyList();
    try {
      if (error == null) {
        racks = racks(answer, settings);
        answered(file, answer, settings);
      } else {
        failed(file, error, settings);
      }
    } catch (Throwable wrong) {
      failed(file, wrong, settings);
    } finally {
      file.racks.complete(racks);
    }
  }

  private void answered(File file, ReplicasResponse answer, Settings settings) {
    counters.answered.increment();
    counters.reason(answer.getReason());
    long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - file.beganNs);
    breaker.cameLate(took <= settings.timeoutMs);
    worksAgain();
  }

  private void failed(File file, Throwable error, Settings settings) {
    file.untilMs = nowMs() + settings.retryMs;
    if (error instanceof HintdException.Refused) {
      // It works, and says no.
      counters.refused.increment();
      worksAgain();
      say("refused", "no advice for {}: {}", file.path, error.getMessage());
    } else {
      counters.failed.increment();
      if (breaker.failed(settings.breaker, nowMs())) {
        counters.breakerOpened.increment();
        say("breaker", "hintd is not asked for a while, blocks go where HDFS puts them: {}", error.getMessage());
      }
    }
  }

  /** Gives up what was not heard of: an answer is lost where its thread could not be started. */
  void giveUpLost(Settings settings, long now) {
    for (File file : asking) {
      if (now >= file.lostMs) {
        heard(file, null, new TimeoutException("nothing was heard"), settings);
      }
    }
  }

  private void worksAgain() {
    if (breaker.answered()) {
      said.clear();
      LOG.info("hintd: it answers again and is asked as before");
    }
  }

  /** No more blocks than were asked for. */
  private List<Told> racks(ReplicasResponse answer, Settings settings) {
    List<Told> racks = new ArrayList<>();
    boolean any = false;
    for (BlockAdvice block : answer.getBlocksList()) {
      if (racks.size() == settings.blocks) {
        break;
      }
      Told told = told(block);
      any |= !told.rack.isEmpty();
      racks.add(told);
    }
    return any ? racks : Collections.emptyList();
  }

  private Told told(BlockAdvice block) {
    String rack = block.getReplicasCount() == 0 ? "" : block.getReplicas(0).getRack();
    if (rack.isEmpty() || rack.length() > RACK_CHARS) {
      return Told.NOWHERE;
    }
    String third = block.getReplicasCount() < 3 ? "" : block.getReplicas(2).getRack();
    return new Told(kept(rack), !third.isEmpty() && !third.equals(rack));
  }

  /** The one string of that rack's name. More names than any cluster has racks: all that was answered is forgotten. */
  private String kept(String rack) {
    synchronized (files) {
      if (rackNames.size() >= RACKS_MAX && !rackNames.containsKey(rack)) {
        forget();
      }
      String before = rackNames.putIfAbsent(rack, rack);
      return before == null ? rack : before;
    }
  }

  private void forget() {
    synchronized (files) {
      files.clear();
      rackNames.clear();
    }
  }

  /** Says it where that kind was not said lately. */
  void say(String kind, String message, Object... of) {
    if (said.due(kind, nowMs())) {
      LOG.warn("hintd: " + message, Arrays.stream(of).map(Advisor::printable).toArray());
    }
  }

  /** What others wrote, as part of one line of the log: not long, and without what a terminal or a reader would obey. */
  static String printable(Object of) {
    String text = String.valueOf(of);
    StringBuilder printed = new StringBuilder();
    for (int at = 0; at < text.length(); at++) {
      if (printed.length() >= SAID_CHARS) {
        return printed.append("...").toString();
      }
      char next = text.charAt(at);
      if (isControl(next)) {
        printed.append(String.format("\\u%04x", (int) next));
      } else {
        printed.append(next);
      }
    }
    return printed.toString();
  }

  private static boolean isControl(char next) {
    int type = Character.getType(next);
    return type == Character.CONTROL
        || type == Character.FORMAT
        || type == Character.LINE_SEPARATOR
        || type == Character.PARAGRAPH_SEPARATOR;
  }

  /** A map that is full drops one for each that comes: of a smaller one the rest goes here. */
  private void resize(int max) {
    synchronized (files) {
      cacheMax = max;
      for (Iterator<File> eldest = files.values().iterator(); files.size() > max; ) {
        eldest.next();
        eldest.remove();
      }
    }
  }

  /** Called every second: makes a client where there is none of this address. Slow: never on a thread that clients wait for. */
  synchronized void use(Settings settings) {
    resize(settings.cache);
    giveUpLost(settings, nowMs());
    if (settings.mode == Settings.Mode.OFF) {
      close();
      return;
    }
    if (settings.address.equals(address)) {
      return;
    }
    close();
    HintdClient made = HintdClient.to(settings.address, Secret.random(), MESSAGE_BYTES);
    boolean answered;
    try {
      answered = warm(made, settings);
    } catch (Throwable wrong) {
      // The next try makes another.
      made.close();
      throw wrong;
    }
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
    forget();
  }

  private static long nowMs() {
    return System.nanoTime() / 1_000_000;
  }
}
