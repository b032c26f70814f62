package io.hintd.rm;

import java.util.Map;

/** {@code hintd:name=RmProcessor} by JMX, so at {@code http://rm:8088/jmx?qry=hintd:name=RmProcessor}. */
public interface CountersMXBean {
  /** Of this jar: hintd's doctor compares it with the daemon's. */
  String getVersion();

  /** {@code OFF}, {@code SHADOW} or {@code ON} by queue, as in the file of settings; {@code *}: all others. */
  Map<String, String> getModes();

  /**
   * What makes YARN wait for hinted hosts, as the CapacityScheduler has it now: {@code node_locality_delay} and {@code
   * rack_locality_additional_delay}. Empty with other schedulers. {@code /conf} does not show capacity-scheduler.xml.
   */
  Map<String, Long> getDelays();

  /** By name; see docs/yarn.md. */
  Map<String, Long> getCounts();

  /** Asks that were not hinted, by reason. */
  Map<String, Long> getLeftAlone();

  /** Containers whose hints were over before they came, by reason. */
  Map<String, Long> getOver();

  /** Whether hintd is not asked for the moment. */
  boolean isBreakerOpen();

  /** Microseconds that the processor itself takes of an allocate without new asks: p50, p99, p999. */
  double[] getQuietAllocateMicros();

  /** Of one with new asks, waits for hints included. */
  double[] getAskingAllocateMicros();

  /** Of these, the waits. */
  double[] getWaitMicros();

  /** What the rest of the ResourceManager takes of an allocate. */
  double[] getYarnAllocateMicros();

  /** Begins all durations anew. */
  void clearDurations();
}
