package io.hintd.rm;

import java.util.Comparator;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;

/** A scheduler key, as applications know it: priority and allocation request. */
final class Key implements Comparable<Key> {
  private static final Comparator<Key> ORDER =
      Comparator.<Key>comparingInt(key -> key.priority).thenComparingLong(key -> key.allocationRequestId);

  final int priority;
  final long allocationRequestId;

  Key(int priority, long allocationRequestId) {
    this.priority = priority;
    this.allocationRequestId = allocationRequestId;
  }

  static Key of(ResourceRequest row) {
    return new Key(row.getPriority() == null ? 0 : row.getPriority().getPriority(), row.getAllocationRequestId());
  }

  static Key of(Container container) {
    return new Key(
        container.getPriority() == null ? 0 : container.getPriority().getPriority(),
        container.getAllocationRequestId());
  }

  SchedulerRequestKey atScheduler() {
    return new SchedulerRequestKey(Priority.newInstance(priority), allocationRequestId, null);
  }

  /** The group's name at hintd: as the daemon itself names groups of an ask table. */
  String group() {
    return allocationRequestId == -1 ? "p" + priority : "p" + priority + "." + allocationRequestId;
  }

  @Override
  public int compareTo(Key other) {
    return ORDER.compare(this, other);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Key && compareTo((Key) other) == 0;
  }

  @Override
  public int hashCode() {
    return priority * 31 + Long.hashCode(allocationRequestId);
  }

  @Override
  public String toString() {
    return group();
  }
}
