package io.hintd.hdfs;

import io.hintd.plugin.Histogram;
import io.hintd.plugin.Jmx;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;

/** What the policy did, since the NameNode's start. */
public final class Counters implements CountersMXBean {
  /** Blocks of new files that HDFS asked targets for. */
  final LongAdder newBlocks = new LongAdder();
  final LongAdder asked = new LongAdder();
  final LongAdder answered = new LongAdder();
  final LongAdder refused = new LongAdder();
  final LongAdder failed = new LongAdder();
  final LongAdder late = new LongAdder();
  /** Blocks of files whose answer was there. */
  final LongAdder remembered = new LongAdder();
  /** Blocks with a home: how many have a replica there, by mode, and why others have none. */
  final LongAdder placed = new LongAdder();
  final LongAdder homeFull = new LongAdder();
  final LongAdder fellBack = new LongAdder();
  final LongAdder shadowAtHome = new LongAdder();
  final LongAdder shadowElsewhere = new LongAdder();
  final LongAdder errors = new LongAdder();
  final LongAdder reloads = new LongAdder();
  final LongAdder reloadsRefused = new LongAdder();
  final LongAdder breakerOpened = new LongAdder();
  final Histogram waited = new Histogram();
  private final Map<String, LongAdder> leftAlone = new ConcurrentHashMap<>();
  private final Map<String, LongAdder> reasons = new ConcurrentHashMap<>();
  private volatile BooleanSupplier breakerOpen = () -> false;

  void leftAlone(String why) {
    leftAlone.computeIfAbsent(why, none -> new LongAdder()).increment();
  }

  /** hintd's reasons are few and short; what is no token of its is not kept apart. */
  void reason(String reason) {
    boolean known = reasons.containsKey(reason) || reasons.size() < 64 && reason.length() <= 64;
    String named = known ? reason : "(other)";
    reasons.computeIfAbsent(named, none -> new LongAdder()).increment();
  }

  void breaker(BooleanSupplier open) {
    breakerOpen = open;
  }

  void register() {
    Jmx.register(this, "HdfsPlacement");
  }

  @Override
  public Map<String, Long> getCounts() {
    Map<String, Long> all = new TreeMap<>();
    all.put("new_blocks", newBlocks.sum());
    all.put("asked", asked.sum());
    all.put("answered", answered.sum());
    all.put("refused", refused.sum());
    all.put("failed", failed.sum());
    all.put("late", late.sum());
    all.put("remembered", remembered.sum());
    all.put("placed", placed.sum());
    all.put("home_full", homeFull.sum());
    all.put("fell_back", fellBack.sum());
    all.put("shadow_at_home", shadowAtHome.sum());
    all.put("shadow_elsewhere", shadowElsewhere.sum());
    all.put("errors", errors.sum());
    all.put("reloads", reloads.sum());
    all.put("reloads_refused", reloadsRefused.sum());
    all.put("breaker_opened", breakerOpened.sum());
    return all;
  }

  @Override
  public Map<String, Long> getLeftAlone() {
    return sums(leftAlone);
  }

  @Override
  public Map<String, Long> getReasons() {
    return sums(reasons);
  }

  @Override
  public boolean isBreakerOpen() {
    return breakerOpen.getAsBoolean();
  }

  @Override
  public double[] getWaitMicros() {
    return waited.quantiles();
  }

  @Override
  public void clearDurations() {
    waited.clear();
  }

  private static Map<String, Long> sums(Map<String, LongAdder> of) {
    Map<String, Long> sums = new TreeMap<>();
    of.forEach((name, sum) -> sums.put(name, sum.sum()));
    return sums;
  }
}
