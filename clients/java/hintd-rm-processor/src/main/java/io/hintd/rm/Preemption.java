package io.hintd.rm;

import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.DEFAULT_PREEMPTION_MAX_IGNORED_OVER_CAPACITY;
import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.DEFAULT_PREEMPTION_MONITORING_INTERVAL;
import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.DEFAULT_PREEMPTION_OBSERVE_ONLY;
import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.DEFAULT_PREEMPTION_WAIT_TIME_BEFORE_KILL;
import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.PREEMPTION_MAX_IGNORED_OVER_CAPACITY;
import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.PREEMPTION_MONITORING_INTERVAL;
import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.PREEMPTION_OBSERVE_ONLY;
import static org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration.PREEMPTION_WAIT_TIME_BEFORE_KILL;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.SchedulingMonitor;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;
import org.apache.hadoop.yarn.util.resource.ResourceCalculator;
import org.apache.hadoop.yarn.util.resource.Resources;

/**
 * For which queues a CapacityScheduler with {@link ProportionalCapacityPreemptionPolicy} is about to kill containers of others.
 *
 * <p>The policy gives a queue that has less than its capacity what it has pending, wherever that may go: first what is free, then
 * what queues hold beyond theirs. It looks each {@code monitoring_interval}, kills what it chose {@code max_wait_before_kill}
 * before, and remembers whom it chose for twice as long. A lazy one kills on nodes only of which it then gives to the queue.
 * Preemption within a queue, or beyond capacities to balance them, is not looked at; nor are user limits, and what maximum
 * capacities leave unused: where queues are nested it may be near though YARN kills nobody, and the reverse.
 */
final class Preemption {
  /** Looks of ours and heartbeats of applications come within so long. */
  private static final long LEAD_MS = 3_000;

  private static final class Need {
    final long since;
    long last;

    Need(long now) {
      since = now;
      last = now;
    }
  }

  /** Whether the scheduler has somebody who preempts. */
  private final Predicate<CapacityScheduler> runs;
  /** By path of a leaf queue. One thread at a time. */
  private final Map<String, Need> needs = new HashMap<>();
  /** When kills may begin by path of a leaf queue, for those that others are to be killed for. */
  private volatile Map<String, Long> from = new HashMap<>();

  Preemption() {
    this(Preemption::runs);
  }

  Preemption(Predicate<CapacityScheduler> runs) {
    this.runs = runs;
  }

  private static boolean runs(CapacityScheduler scheduler) {
    SchedulingMonitor monitor = scheduler.getSchedulingMonitorManager().getAvailableSchedulingMonitor();
    return monitor != null && monitor.getSchedulingEditPolicy() instanceof ProportionalCapacityPreemptionPolicy;
  }

  /** Whether it kills for what the leaf queue has pending before that is asked for elsewhere, if it is not now. */
  boolean isNear(CSQueue leaf, long now) {
    Long begins = from.get(leaf.getQueuePath());
    return begins != null && now >= begins;
  }

  /** Takes in how queues stand; now and then. Where it can't, nobody is near. */
  void look(CapacityScheduler scheduler, long now) {
    Map<String, Long> begins = Collections.emptyMap();
    try {
      begins = begins(scheduler, now);
    } finally {
      from = begins;
    }
  }

  private Map<String, Long> begins(CapacityScheduler scheduler, long now) {
    CapacitySchedulerConfiguration conf = scheduler.getConfiguration(); // another one after each -refreshQueues
    boolean kills =
        runs.test(scheduler)
            && !conf.getBoolean(PREEMPTION_OBSERVE_ONLY, DEFAULT_PREEMPTION_OBSERVE_ONLY)
            && !conf.getLazyPreemptionEnabled();
    long wait = conf.getLong(PREEMPTION_WAIT_TIME_BEFORE_KILL, DEFAULT_PREEMPTION_WAIT_TIME_BEFORE_KILL);
    long interval = conf.getLong(PREEMPTION_MONITORING_INTERVAL, DEFAULT_PREEMPTION_MONITORING_INTERVAL);
    Map<String, Long> begins = new HashMap<>();
    for (CSQueue leaf : kills ? needy(scheduler, conf) : new ArrayList<CSQueue>()) {
      Need need = needs.computeIfAbsent(leaf.getQueuePath(), none -> new Need(now));
      need.last = now;
      begins.put(leaf.getQueuePath(), need.since + wait - Math.max(interval, LEAD_MS));
    }
    needs.values().removeIf(need -> now - need.last > 2 * wait);
    return begins;
  }

  /** Leaf queues of which what is pending takes more than is free, while another one can be made to give. */
  private static List<CSQueue> needy(CapacityScheduler scheduler, CapacitySchedulerConfiguration conf) {
    double ignored = conf.getDouble(PREEMPTION_MAX_IGNORED_OVER_CAPACITY, DEFAULT_PREEMPTION_MAX_IGNORED_OVER_CAPACITY);
    ResourceCalculator calculator = scheduler.getResourceCalculator();
    CSQueue root = scheduler.getRootQueue();
    Resource all = root.getEffectiveCapacity(RMNodeLabelsManager.NO_LABEL);
    List<CSQueue> leaves = new ArrayList<>();
    leaves(root, leaves);
    List<CSQueue> needy = new ArrayList<>();
    List<CSQueue> giving = new ArrayList<>();
    Resource claimed = Resource.newInstance(0, 0);
    for (CSQueue leaf : leaves) {
      Resource claim = claim(leaf, calculator, all);
      if (Resources.greaterThan(calculator, all, claim, Resources.none())) {
        needy.add(leaf);
        Resources.addTo(claimed, claim);
      }
      if (!leaf.getPreemptionDisabled() && leaf.getAbsoluteUsedCapacity() > leaf.getAbsoluteCapacity() * (1 + ignored)) {
        giving.add(leaf);
      }
    }
    Resource free = Resources.subtractNonNegative(all, root.getQueueResourceUsage().getUsed());
    if (giving.isEmpty() || Resources.fitsIn(calculator, claimed, free)) {
      return new ArrayList<>();
    }
    needy.removeIf(leaf -> giving.size() == 1 && giving.contains(leaf)); // nobody gives to himself
    return needy;
  }

  private static void leaves(CSQueue queue, List<CSQueue> into) {
    List<CSQueue> below = queue.getChildQueues();
    if (below == null || below.isEmpty()) {
      into.add(queue);
    } else {
      below.forEach(child -> leaves(child, into));
    }
  }

  /** Of what is pending, as much as the leaf or a queue above it has less than its capacity, by what the scheduler counts. */
  private static Resource claim(CSQueue leaf, ResourceCalculator calculator, Resource all) {
    Resource lacks = Resource.newInstance(0, 0);
    for (CSQueue queue = leaf; queue.getParent() != null; queue = queue.getParent()) {
      Resource capacity = queue.getEffectiveCapacity(RMNodeLabelsManager.NO_LABEL);
      Resource used = queue.getQueueResourceUsage().getUsed();
      if (Resources.lessThan(calculator, all, used, capacity)) {
        lacks = Resources.componentwiseMax(lacks, Resources.subtractNonNegative(capacity, used));
      }
    }
    return Resources.componentwiseMin(leaf.getQueueResourceUsage().getPending(), lacks);
  }
}
