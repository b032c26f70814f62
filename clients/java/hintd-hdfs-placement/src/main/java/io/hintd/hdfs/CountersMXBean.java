package io.hintd.hdfs;

import java.util.Map;

/** See {@link Counters}. */
public interface CountersMXBean {
  /** By name; docs/hdfs.md says what each counts. */
  Map<String, Long> getCounts();

  /** New blocks that were left to HDFS, by why. */
  Map<String, Long> getLeftAlone();

  /** Answers by hintd's reason. */
  Map<String, Long> getReasons();

  /** Whether hintd is not asked for the moment. */
  boolean isBreakerOpen();

  /** What waiting added to new blocks that asked: half, 99 % and 99.9 % of them took no longer, µs. */
  double[] getWaitMicros();

  /** Forgets durations. */
  void clearDurations();
}
