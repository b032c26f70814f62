package io.hintd.racks;

import io.hintd.client.HintdClient;
import io.hintd.client.Secret;
import io.hintd.plugin.Breaker;
import io.hintd.plugin.SaidOnce;
import io.hintd.v1.ResolveRacksRequest;
import io.hintd.v1.ResolveRacksResponse;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.net.DNSToSwitchMapping;
import org.apache.hadoop.net.ScriptBasedMapping;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Racks that hintd's network file puts hosts in. What the file does not say, and everything while hintd does not answer, is by the
 * fallback: {@code net.topology.script.file.name} as Hadoop runs it, or one rack. Whoever asks waits for a bounded time: see {@link
 * #TIMEOUT}, {@link #START} and {@link #SCRIPT}; nobody waits for a hintd that was slow five times on end, until it answers in
 * time, nor for a script that is overdue. Not a {@code CachedDNSToSwitchMapping}: a NameNode asks those by address.
 */
public class HintdRackMapping implements DNSToSwitchMapping, Configurable, AutoCloseable {
  /** hintd's gRPC address: {@code 127.0.0.1:8470}. */
  public static final String ADDRESS = "hintd.racks.address";
  /** The longest that a question waits for hintd, ms: 100. */
  public static final String TIMEOUT = "hintd.racks.timeout-ms";
  /**
   * How long after the first question began hintd is waited for until it has answered or failed for the first time, ms: 5,000. A
   * process that starts asks for all its nodes.
   */
  public static final String START = "hintd.racks.start-timeout-ms";
  /** How long an answer counts, ms: 60,000. */
  public static final String CACHE = "hintd.racks.cache-ms";
  /** {@code script}, or the path of one rack: {@code script}. */
  public static final String FALLBACK = "hintd.racks.fallback";
  /** The longest that a question waits for the script, ms: 10,000. */
  public static final String SCRIPT = "hintd.racks.script-timeout-ms";

  private static final Logger LOG = LoggerFactory.getLogger(HintdRackMapping.class);
  /** Hosts in a question. */
  private static final int BATCH = 1_000;
  private static final int CACHED_MAX = 100_000;
  private static final int WAITING_MAX = 64;
  private static final int THREADS = 4;
  private static final int MESSAGE_BYTES = 4 << 20;
  private static final int NAME_BYTES = 255;
  private static final int SAID_CHARS = 300;
  private static final Pattern RACK = Pattern.compile("(/[^/\\s\\p{Cntrl}]+){1,16}");
  private static final Pattern ADDRESSES = Pattern.compile("[0-9.]+|[0-9a-fA-F:]*:[0-9a-fA-F:.]*");

  /** What hintd said of a host, and until when it counts. */
  private static final class Known {
    /** Empty: the file does not say. */
    final String rack;

    final long untilMs;

    Known(String rack, long untilMs) {
      this.rack = rack;
      this.untilMs = untilMs;
    }
  }

  private final Map<String, Known> cache = bounded();
  /** What the script said last; it counts while the script is overdue. */
  private final Map<String, String> scripted = bounded();

  private final SaidOnce said = new SaidOnce();
  private final Breaker breaker = new Breaker();
  /** Asks hintd and names servers; no thread of Hadoop's waits for either without a bound. */
  private final ThreadPoolExecutor askers = threads("hintd racks", THREADS);
  /** Runs the script. Its own: one that hangs is not in hintd's way. */
  private final ThreadPoolExecutor scripts = threads("hintd racks script", 1);

  private Configuration conf;
  private String address;
  private long timeoutMs;
  private long startMs;
  private long cacheMs;
  private long scriptMs;
  private String fallback;
  private DNSToSwitchMapping script;
  private Breaker.Limits limits;
  private HintdClient client;
  /** hintd answered, or did not in {@link #START}. */
  private volatile boolean tried;
  /** When {@link #START} is over: all questions that begin before the first one's end share it; 0: none began. */
  private final AtomicLong startUntilMs = new AtomicLong();
  /** A question to the script was not waited for to its end. */
  private volatile boolean scriptLate;
  /** Questions for which hintd was waited for. */
  private final AtomicLong waits = new AtomicLong();
  /** The same of the script. */
  private final AtomicLong scriptWaits = new AtomicLong();

  @Override
  public synchronized void setConf(Configuration given) {
    conf = given;
    if (given == null) {
      return;
    }
    closeClient();
    address = given.getTrimmed(ADDRESS, "127.0.0.1:8470");
    timeoutMs = bounded(given, TIMEOUT, 100, 10_000);
    startMs = bounded(given, START, 5_000, 60_000);
    cacheMs = bounded(given, CACHE, 60_000, 86_400_000);
    scriptMs = bounded(given, SCRIPT, 10_000, 60_000);
    fallback = given.getTrimmed(FALLBACK, "script");
    if (!fallback.equals("script") && !RACK.matcher(fallback).matches()) {
      throw new IllegalArgumentException(FALLBACK + "=" + printable(fallback) + ": neither script nor a rack as /default-rack");
    }
    limits = new Breaker.Limits(timeoutMs, 3, 5_000, 60_000);
    script = fallback.equals("script") ? new ScriptBasedMapping(given) : null;
    LOG.info("hintd: racks are asked of {}, fallback {}", address, fallback);
  }

  private static long bounded(Configuration given, String key, long otherwise, long most) {
    long value = given.getLong(key, otherwise);
    if (value < 1 || value > most) {
      throw new IllegalArgumentException(key + "=" + value + ": not a whole number from 1 to " + most);
    }
    return value;
  }

  @Override
  public Configuration getConf() {
    return conf;
  }

  /** A rack for each name, in their order; never null, and none of them is. */
  @Override
  public List<String> resolve(List<String> names) {
    if (names == null || names.isEmpty()) {
      return new ArrayList<>();
    }
    Map<String, String> racks = new LinkedHashMap<>();
    Set<String> unknown = new LinkedHashSet<>();
    long now = nowMs();
    for (String name : names) {
      Known known = cache.get(name);
      if (known == null || now >= known.untilMs) {
        unknown.add(name);
      }
    }
    if (!unknown.isEmpty()) {
      ask(new ArrayList<>(unknown));
    }
    Set<String> left = new LinkedHashSet<>();
    for (String name : names) {
      // A rack that was known counts on while hintd is silent: HDFS would move its blocks' racks otherwise.
      Known known = cache.get(name);
      if (known != null && !known.rack.isEmpty()) {
        racks.put(name, known.rack);
      } else if (!racks.containsKey(name)) {
        left.add(name);
      }
    }
    racks.putAll(fallback(new ArrayList<>(left)));
    List<String> found = new ArrayList<>(names.size());
    for (String name : names) {
      found.add(racks.getOrDefault(name, NetworkDefault.RACK));
    }
    return found;
  }

  /** Hadoop's own word for no rack. */
  private static final class NetworkDefault {
    static final String RACK = org.apache.hadoop.net.NetworkTopology.DEFAULT_RACK;
  }

  /** Asks hintd and waits for what the settings allow; what comes later is there for the next question. */
  private void ask(List<String> names) {
    if (!breaker.ask(nowMs())) {
      return;
    }
    boolean first = !tried;
    long began = nowMs();
    long patience = first ? startMs : Math.max(timeoutMs, 1_000);
    Future<?> asked;
    try {
      asked = askers.submit(() -> askInTime(names, patience, began));
    } catch (RejectedExecutionException full) {
      failed("busy", full);
      return;
    }
    if (first) {
      startUntilMs.compareAndSet(0, began + startMs);
      await(asked, Math.max(startUntilMs.get() - began, timeoutMs));
      tried = true;
    } else if (breaker.wait(limits)) {
      breaker.waited(!await(asked, timeoutMs));
    }
  }

  /** False: it was waited for in vain. */
  private boolean await(Future<?> asked, long forMs) {
    waits.incrementAndGet();
    try {
      asked.get(forMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException late) {
      say("late", "no racks within {} ms: the fallback counts, or what was known", forMs);
      return false;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException wrong) {
      failed("error", wrong.getCause());
    }
    return true;
  }

  /** For tests. */
  long waits() {
    return waits.get();
  }

  /** For tests. */
  long scriptWaits() {
    return scriptWaits.get();
  }

  /** On a thread of our own. */
  private void askInTime(List<String> names, long patienceMs, long beganMs) {
    try {
      for (int from = 0; from < names.size(); from += BATCH) {
        askBatch(names.subList(from, Math.min(from + BATCH, names.size())), patienceMs);
      }
      breaker.cameLate(nowMs() - beganMs <= timeoutMs);
      if (breaker.answered()) {
        said.clear();
        LOG.info("hintd: it answers again");
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    } catch (Throwable wrong) {
      // Errors, too: gRPC starts threads, and there may be none to be had.
      failed("silent", wrong instanceof ExecutionException ? wrong.getCause() : wrong);
    }
  }

  private void askBatch(List<String> names, long patienceMs) throws Exception {
    ResolveRacksRequest.Builder request = ResolveRacksRequest.newBuilder();
    List<String> shortOnes = new ArrayList<>();
    for (String name : names) {
      if (name != null && name.getBytes(StandardCharsets.UTF_8).length <= NAME_BYTES) {
        shortOnes.add(name);
        request.addHosts(name);
      }
    }
    List<String> racks = resolved(request.build(), patienceMs);
    for (int at = 0; at < shortOnes.size() && at < racks.size(); at++) {
      String rack = racks.get(at);
      if (rack.isEmpty() && ADDRESSES.matcher(shortOnes.get(at)).matches()) {
        rack = byName(shortOnes.get(at), patienceMs);
      }
      if (!rack.isEmpty() && (rack.length() > 1_000 || !RACK.matcher(rack).matches())) {
        say("bad", "{} is no rack: it is left out", rack);
        rack = "";
      }
      cache.put(shortOnes.get(at), new Known(rack, nowMs() + cacheMs));
    }
  }

  /** The rack of the host that an address is of, where the file has names and Hadoop asks by address. */
  private String byName(String literal, long patienceMs) throws Exception {
    String name;
    try {
      name = InetAddress.getByName(literal).getCanonicalHostName();
    } catch (UnknownHostException none) {
      return "";
    }
    if (name.equals(literal) || name.getBytes(StandardCharsets.UTF_8).length > NAME_BYTES) {
      return "";
    }
    ResolveRacksRequest.Builder request = ResolveRacksRequest.newBuilder().addHosts(name);
    int dot = name.indexOf('.');
    if (dot > 0) {
      request.addHosts(name.substring(0, dot));
    }
    for (String rack : resolved(request.build(), patienceMs)) {
      if (!rack.isEmpty()) {
        return rack;
      }
    }
    return "";
  }

  /** Asks by the client; tests answer in its place. */
  List<String> resolved(ResolveRacksRequest request, long patienceMs) throws Exception {
    ResolveRacksResponse answer =
        client().resolveRacks(request, Duration.ofMillis(patienceMs)).get(patienceMs * 2, TimeUnit.MILLISECONDS);
    return new ArrayList<>(answer.getRacksList());
  }

  private synchronized HintdClient client() {
    if (client == null) {
      client = HintdClient.to(address, Secret.random(), MESSAGE_BYTES);
    }
    return client;
  }

  private Map<String, String> fallback(List<String> names) {
    Map<String, String> racks = new LinkedHashMap<>();
    if (names.isEmpty()) {
      return racks;
    }
    if (script == null) {
      names.forEach(name -> racks.put(name, fallback));
      return racks;
    }
    // One that hangs, or is slow, is not asked again before it ends; what it says in the end is there for the next question.
    if (!scriptLate || scripts.getActiveCount() == 0) {
      scriptLate = false;
      runScript(names);
    }
    for (String name : names) {
      String rack = scripted.get(name);
      if (rack != null) {
        racks.put(name, rack);
      }
    }
    return racks;
  }

  private void runScript(List<String> names) {
    Future<?> asked = null;
    scriptWaits.incrementAndGet();
    try {
      asked = scripts.submit(() -> take(names, script.resolve(names)));
      asked.get(scriptMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException | RejectedExecutionException late) {
      scriptLate = true;
      if (asked != null) {
        // One that waits need not run any more. One that runs can't be interrupted as it reads, and would lose what it read.
        asked.cancel(false);
      }
      say("script", "the topology script did not answer within {} ms: what it said before counts, or {}", scriptMs, NetworkDefault.RACK);
    } catch (ExecutionException wrong) {
      say("script", "the topology script failed: {}", wrong.getCause());
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  private void take(List<String> names, List<String> found) {
    for (int at = 0; found != null && at < names.size() && at < found.size(); at++) {
      if (found.get(at) != null) {
        scripted.put(names.get(at), found.get(at));
      }
    }
  }

  private void failed(String kind, Throwable why) {
    breaker.failed(limits, nowMs());
    say(kind, "no racks: the fallback counts, or what was known: {}", why.getMessage() == null ? why : why.getMessage());
  }

  private void say(String kind, String message, Object... of) {
    if (said.due(kind, nowMs())) {
      Object[] shown = new Object[of.length];
      for (int at = 0; at < of.length; at++) {
        shown[at] = printable(of[at]);
      }
      LOG.warn("hintd: " + message, shown);
    }
  }

  /** What others wrote: not long, on one line. */
  private static String printable(Object of) {
    String text = String.valueOf(of).replaceAll("[\\p{Cntrl}\\p{Cf}\\u2028\\u2029]", "?");
    return text.length() > SAID_CHARS ? text.substring(0, SAID_CHARS) + "..." : text;
  }

  @Override
  public void reloadCachedMappings() {
    cache.clear();
    scripted.clear();
    if (script != null) {
      script.reloadCachedMappings();
    }
  }

  @Override
  public void reloadCachedMappings(List<String> names) {
    names.forEach(cache::remove);
    names.forEach(scripted::remove);
    if (script != null) {
      script.reloadCachedMappings(names);
    }
  }

  @Override
  public void close() {
    askers.shutdownNow();
    scripts.shutdownNow();
    closeClient();
  }

  private synchronized void closeClient() {
    if (client != null) {
      client.close();
      client = null;
    }
  }

  /** By last use. */
  private static <T> Map<String, T> bounded() {
    return Collections.synchronizedMap(
        new LinkedHashMap<String, T>(16, 0.75f, true) {
          @Override
          protected boolean removeEldestEntry(Map.Entry<String, T> eldest) {
            return size() > CACHED_MAX;
          }
        });
  }

  private static ThreadPoolExecutor threads(String name, int most) {
    ThreadPoolExecutor made =
        new ThreadPoolExecutor(
            most, most, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(WAITING_MAX), work -> {
              Thread thread = new Thread(work, name);
              thread.setDaemon(true);
              return thread;
            });
    made.allowCoreThreadTimeOut(true);
    return made;
  }

  private static long nowMs() {
    return System.nanoTime() / 1_000_000;
  }
}
