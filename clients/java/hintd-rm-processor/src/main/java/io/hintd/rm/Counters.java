package io.hintd.rm;

import io.hintd.plugin.Histogram;
import io.hintd.plugin.Jmx;
import java.io.IOException;
import java.io.InputStream;
import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** What the processor did, since the ResourceManager's start. */
public final class Counters implements CountersMXBean {
  final LongAdder allocates = new LongAdder();
  final LongAdder asked = new LongAdder();
  final LongAdder answered = new LongAdder();
  final LongAdder failed = new LongAdder();
  final LongAdder refused = new LongAdder();
  final LongAdder notAsked = new LongAdder();
  final LongAdder prefetched = new LongAdder();
  final LongAdder prefetchUsed = new LongAdder();
  final LongAdder waits = new LongAdder();
  final LongAdder waitsInVain = new LongAdder();
  final LongAdder rowsAdded = new LongAdder();
  final LongAdder rowsTakenBack = new LongAdder();
  final LongAdder errors = new LongAdder();
  final LongAdder resentPlain = new LongAdder();
  final LongAdder reloads = new LongAdder();
  final LongAdder reloadsRefused = new LongAdder();
  final LongAdder breakerOpened = new LongAdder();
  final LongAdder turnsAsked = new LongAdder();
  /** Containers that YARN is not asked for yet. */
  final LongAdder held = new LongAdder();
  final Histogram quiet = new Histogram();
  final Histogram asking = new Histogram();
  final Histogram waited = new Histogram();
  final Histogram yarn = new Histogram();
  private final Map<String, LongAdder> leftAlone = new ConcurrentHashMap<>();
  private final Map<String, LongAdder> over = new ConcurrentHashMap<>();
  private final Map<String, LongAdder> containers = new ConcurrentHashMap<>();
  private final Map<String, LongAdder> homes = new ConcurrentHashMap<>();
  private final Map<String, LongSupplier> gauges = new ConcurrentHashMap<>();
  private volatile BooleanSupplier breakerOpen = () -> false;
  private volatile Supplier<Map<String, String>> modes = Collections::emptyMap;
  private volatile Supplier<Map<String, Long>> delays = Collections::emptyMap;
  private final String version = version();

  void leftAlone(String why) {
    leftAlone.computeIfAbsent(why, none -> new LongAdder()).increment();
  }

  void over(String why, long count) {
    over.computeIfAbsent(why, none -> new LongAdder()).add(count);
  }

  /** Containers of hints: {@code on_hinted}, {@code on_on_host}, {@code shadow_in_rack}, ... */
  void containers(boolean used, String what, long count) {
    containers.computeIfAbsent((used ? "on_" : "shadow_") + what, none -> new LongAdder()).add(count);
  }

  /** Of jobs that stay where their input is: {@code narrowed}, {@code at_home}, {@code ended_waited}, ... */
  void homes(String what, long count) {
    homes.computeIfAbsent("homes_" + what, none -> new LongAdder()).add(count);
  }

  void gauge(String name, LongSupplier value) {
    gauges.put(name, value);
  }

  void breaker(BooleanSupplier open) {
    breakerOpen = open;
  }

  void modes(Supplier<Map<String, String>> byQueue) {
    modes = byQueue;
  }

  void delays(Supplier<Map<String, Long>> ofTheScheduler) {
    delays = ofTheScheduler;
  }

  /** Shows itself by JMX; a second one of a process takes the first one's place. */
  void register() {
    Jmx.register(this, "RmProcessor");
  }

  @Override
  public String getVersion() {
    return version;
  }

  @Override
  public Map<String, String> getModes() {
    return modes.get();
  }

  @Override
  public Map<String, Long> getDelays() {
    try {
      return delays.get();
    } catch (RuntimeException | LinkageError otherYarn) {
      return Collections.emptyMap(); // a scheduler that has no such settings does not hide the rest of the bean
    }
  }

  @Override
  public Map<String, Long> getCounts() {
    Map<String, Long> all = new TreeMap<>();
    all.put("allocates", allocates.sum());
    all.put("asked", asked.sum());
    all.put("answered", answered.sum());
    all.put("failed", failed.sum());
    all.put("refused", refused.sum());
    all.put("not_asked", notAsked.sum());
    all.put("prefetched", prefetched.sum());
    all.put("prefetch_used", prefetchUsed.sum());
    all.put("waits", waits.sum());
    all.put("waits_in_vain", waitsInVain.sum());
    all.put("rows_added", rowsAdded.sum());
    all.put("rows_taken_back", rowsTakenBack.sum());
    all.put("errors", errors.sum());
    all.put("resent_plain", resentPlain.sum());
    all.put("reloads", reloads.sum());
    all.put("reloads_refused", reloadsRefused.sum());
    all.put("breaker_opened", breakerOpened.sum());
    all.put("turns_asked", turnsAsked.sum());
    all.put("held", held.sum());
    gauges.forEach((name, value) -> all.put(name, value.getAsLong()));
    all.putAll(sums(containers));
    all.putAll(sums(homes));
    return all;
  }

  @Override
  public Map<String, Long> getLeftAlone() {
    return sums(leftAlone);
  }

  @Override
  public Map<String, Long> getOver() {
    return sums(over);
  }

  @Override
  public boolean isBreakerOpen() {
    return breakerOpen.getAsBoolean();
  }

  @Override
  public double[] getQuietAllocateMicros() {
    return quiet.quantiles();
  }

  @Override
  public double[] getAskingAllocateMicros() {
    return asking.quantiles();
  }

  @Override
  public double[] getWaitMicros() {
    return waited.quantiles();
  }

  @Override
  public double[] getYarnAllocateMicros() {
    return yarn.quantiles();
  }

  @Override
  public void clearDurations() {
    quiet.clear();
    asking.clear();
    waited.clear();
    yarn.clear();
  }

  /** Maven writes it into a file of the jar; "": there is none. */
  private static String version() {
    Properties of = new Properties();
    try (InputStream file = Counters.class.getResourceAsStream("version.properties")) {
      if (file != null) {
        of.load(file);
      }
    } catch (IOException unreadable) {
      return "";
    }
    return of.getProperty("version", "");
  }

  private static Map<String, Long> sums(Map<String, LongAdder> of) {
    Map<String, Long> sums = new TreeMap<>();
    of.forEach((name, sum) -> sums.put(name, sum.sum()));
    return sums;
  }
}
