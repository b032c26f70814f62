package io.hintd.rm;

import io.hintd.client.Attempt;
import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.service.Service;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.ApplicationMasterService;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.Queue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerApplicationAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.YarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;
import org.apache.hadoop.yarn.util.resource.ResourceCalculator;
import org.apache.hadoop.yarn.util.resource.Resources;

/** The ResourceManager that the processor runs in. */
final class RmCluster implements Cluster {
  private final RMContext rm;
  private final boolean withPort;
  private final Preemption preemption;
  private volatile Map<String, String> racks = new HashMap<>();
  /** Of nodes that take containers without a label: what they have in all. */
  private volatile Map<String, Resource> usable = new HashMap<>();

  RmCluster(RMContext rm, Configuration conf) {
    this(rm, conf, new Preemption());
  }

  RmCluster(RMContext rm, Configuration conf, Preemption preemption) {
    this.rm = rm;
    this.preemption = preemption;
    this.withPort =
        conf.getBoolean(
            YarnConfiguration.RM_SCHEDULER_INCLUDE_PORT_IN_NODE_NAME,
            YarnConfiguration.DEFAULT_RM_SCHEDULER_USE_PORT_FOR_NODE_NAME);
  }

  /** A ResourceManager that goes to standby stops its services, and makes others with a context and a processor of their own. */
  @Override
  public boolean over() {
    ApplicationMasterService service = rm.getApplicationMasterService();
    return service != null && service.isInState(Service.STATE.STOPPED);
  }

  @Override
  public App app(ApplicationAttemptId id) {
    RMApp app = rm.getRMApps().get(id.getApplicationId());
    if (app == null) {
      return null;
    }
    RMAppAttempt attempt = app.getRMAppAttempt(id);
    Container master = attempt == null ? null : attempt.getMasterContainer();
    // An unmanaged ApplicationMaster runs outside the cluster.
    String amHost = master == null || master.getNodeId() == null ? "" : master.getNodeId().getHost();
    Set<String> tags = app.getApplicationTags();
    return new App(
        app.getQueue(), app.getUser(), text(app.getApplicationType()), text(app.getName()), amHost, labelled(app),
        tags == null ? Collections.<String>emptySet() : tags);
  }

  private boolean labelled(RMApp app) {
    ApplicationSubmissionContext submitted = app.getApplicationSubmissionContext();
    if (submitted != null && !text(submitted.getNodeLabelExpression()).isEmpty()) {
      return true;
    }
    try {
      return !text(rm.getScheduler().getQueueInfo(app.getQueue(), false, false).getDefaultNodeLabelExpression())
          .isEmpty();
    } catch (IOException noQueue) {
      return false;
    }
  }

  @Override
  public boolean alive(ApplicationAttemptId id) {
    RMApp app = rm.getRMApps().get(id.getApplicationId());
    RMAppAttempt present = app == null ? null : app.getCurrentAppAttempt();
    return present != null && present.getAppAttemptId().equals(id) && !app.isAppInCompletedStates();
  }

  @Override
  public String nodeName(NodeId node) {
    return withPort ? node.toString() : node.getHost();
  }

  @Override
  public Map<String, String> racks() {
    return racks;
  }

  @Override
  public Predicate<String> takes(Resource size) {
    Map<String, Resource> nodes = usable;
    YarnScheduler scheduler = rm.getScheduler();
    if (size == null || scheduler == null) {
      return nodes::containsKey;
    }
    // As the scheduler rounds it up, and by what it goes by: memory alone, or cores as well.
    Resource rounded = scheduler.getNormalizedResource(size, scheduler.getMaximumResourceCapability());
    ResourceCalculator calculator = scheduler.getResourceCalculator();
    return node -> nodes.containsKey(node) && Resources.fitsIn(calculator, rounded, nodes.get(node));
  }

  @Override
  public boolean reserved(Attempt attempt, Key key) {
    SchedulerApplicationAttempt known = scheduled(attempt);
    return known != null && known.getNumReservedContainers(key.atScheduler()) > 0;
  }

  @Override
  public int outstanding(Attempt attempt, Key key) {
    SchedulerApplicationAttempt known = scheduled(attempt);
    return known == null ? -1 : known.getOutstandingAsksCount(key.atScheduler());
  }

  @Override
  public boolean preemptsFor(Attempt attempt) {
    SchedulerApplicationAttempt known = scheduled(attempt);
    Queue queue = known == null ? null : known.getQueue();
    return queue instanceof CSQueue && preemption.isNear((CSQueue) queue, monotonicMs());
  }

  private static long monotonicMs() {
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
  }

  /** Null: the scheduler doesn't have it, or doesn't say. */
  private SchedulerApplicationAttempt scheduled(Attempt attempt) {
    if (!(rm.getScheduler() instanceof AbstractYarnScheduler)) {
      return null;
    }
    ApplicationAttemptId id =
        ApplicationAttemptId.newInstance(ApplicationId.fromString(attempt.applicationId()), attempt.number());
    return ((AbstractYarnScheduler<?, ?>) rm.getScheduler()).getApplicationAttempt(id);
  }

  /** How long YARN waits for hosts and racks, in heartbeats of nodes, as it is now; empty: another scheduler. */
  Map<String, Long> delays() {
    Map<String, Long> delays = new HashMap<>();
    if (rm.getScheduler() instanceof CapacityScheduler) {
      // Another object after each -refreshQueues; what is not set has the scheduler's own default.
      CapacitySchedulerConfiguration conf = ((CapacityScheduler) rm.getScheduler()).getConfiguration();
      delays.put("node_locality_delay", (long) conf.getNodeLocalityDelay());
      delays.put("rack_locality_additional_delay", (long) conf.getRackLocalityAdditionalDelay());
    }
    return delays;
  }

  /** Takes in nodes, and how queues stand; now and then. */
  void refresh() {
    lookAtNodes();
    if (rm.getScheduler() instanceof CapacityScheduler) {
      preemption.look((CapacityScheduler) rm.getScheduler(), monotonicMs());
    }
  }

  private void lookAtNodes() {
    Map<String, String> found = new HashMap<>();
    Map<String, Resource> running = new HashMap<>();
    for (RMNode node : rm.getRMNodes().values()) {
      found.put(nodeName(node.getNodeID()), node.getRackName());
      if (node.getState() == NodeState.RUNNING && !labelled(node)) {
        running.put(nodeName(node.getNodeID()), node.getTotalCapability());
      }
    }
    usable = running;
    if (!found.equals(racks)) {
      racks = found;
    }
  }

  private static boolean labelled(RMNode node) {
    Set<String> labels = node.getNodeLabels();
    return labels != null && labels.stream().anyMatch(label -> !label.isEmpty());
  }

  private static String text(String text) {
    return text == null ? "" : text;
  }
}
