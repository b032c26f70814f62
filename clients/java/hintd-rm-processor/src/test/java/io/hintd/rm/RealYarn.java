package io.hintd.rm;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceOption;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.ahs.RMApplicationHistoryWriter;
import org.apache.hadoop.yarn.server.resourcemanager.metrics.NoOpSystemMetricPublisher;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppState;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.event.RMAppAttemptContainerFinishedEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.ContainerAllocationExpirer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerState;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNodeResourceUpdateEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.constraint.AllocationTagsManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAttemptAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.ContainerPreemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeResourceUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEventType;
import org.apache.hadoop.yarn.server.resourcemanager.security.AMRMTokenSecretManager;
import org.apache.hadoop.yarn.server.resourcemanager.security.ClientToAMTokenSecretManagerInRM;
import org.apache.hadoop.yarn.server.resourcemanager.security.NMTokenSecretManagerInRM;
import org.apache.hadoop.yarn.server.resourcemanager.security.RMContainerTokenSecretManager;
import org.apache.hadoop.yarn.util.Records;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;

/**
 * A ResourceManager of which the CapacityScheduler is Hadoop's, and what preempts for it: no services, no network, nothing that
 * happens by itself.
 */
final class RealYarn implements AutoCloseable {
  private static final int PORT = 8041;

  private final RMContextImpl context;
  final CapacityScheduler scheduler = new CapacityScheduler();
  private final ProportionalCapacityPreemptionPolicy preemption = new ProportionalCapacityPreemptionPolicy();
  /** What the scheduler and its containers tell others of; these hear of it when a call is over. */
  private final Queue<Event<?>> events = new ConcurrentLinkedQueue<>();
  /** Of containers that ended, until their application asks. */
  private final Map<ApplicationAttemptId, List<ContainerStatus>> ended = new HashMap<>();
  private final Map<String, RMNode> nodes = new HashMap<>();
  private final Map<String, NodeState> states = new HashMap<>();
  private final Map<String, Map<String, Object>> answers = new HashMap<>();
  /** As the processor sees it. */
  final RmCluster cluster;

  RealYarn() throws Exception {
    this("q");
  }

  /** Queues with equal shares, each of which may have all. */
  RealYarn(String... queues) throws Exception {
    SecurityUtil.setTokenServiceUseIp(false); // else containers' tokens need hosts that can be looked up
    Configuration conf = new YarnConfiguration(new Configuration(false));
    conf.set("yarn.scheduler.capacity.root.queues", String.join(",", queues));
    conf.set("yarn.scheduler.capacity.root.capacity", "100");
    for (String queue : queues) {
      conf.set("yarn.scheduler.capacity.root." + queue + ".capacity", Float.toString(100f / queues.length));
      conf.set("yarn.scheduler.capacity.root." + queue + ".user-limit-factor", "100");
      conf.set("yarn.scheduler.capacity.root." + queue + ".maximum-am-resource-percent", "1");
    }
    conf.setBoolean(YarnConfiguration.RM_SCHEDULER_ENABLE_MONITORS, true); // else no queue may be preempted
    conf.set(YarnConfiguration.RM_SCHEDULER_MONITOR_POLICIES, ""); // and no thread does it
    // All that a queue lacks is taken at once: told in one look, killed in the next.
    conf.set(CapacitySchedulerConfiguration.PREEMPTION_MAX_IGNORED_OVER_CAPACITY, "0");
    conf.set(CapacitySchedulerConfiguration.PREEMPTION_NATURAL_TERMINATION_FACTOR, "1");
    conf.set(CapacitySchedulerConfiguration.TOTAL_PREEMPTION_PER_ROUND, "1");
    conf.set(CapacitySchedulerConfiguration.PREEMPTION_WAIT_TIME_BEFORE_KILL, "0");
    conf.set("yarn.scheduler.capacity.rack-locality-additional-delay", "20");
    // Else asks above the largest node that reports are cut for a while.
    conf.setLong(YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS, Integer.MAX_VALUE);
    conf.setBoolean(YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_ENABLED, false);
    ResourceUtils.resetResourceTypes(conf);
    Dispatcher nobody =
        new Dispatcher() {
          @Override
          @SuppressWarnings("rawtypes")
          public EventHandler<Event> getEventHandler() {
            return event -> events.add(event);
          }

          @Override
          @SuppressWarnings("rawtypes")
          public void register(Class<? extends Enum> type, EventHandler handler) {}
        };
    context =
        new RMContextImpl(
            nobody, new ContainerAllocationExpirer(nobody), null, null, null, new AMRMTokenSecretManager(conf, null),
            new RMContainerTokenSecretManager(conf), new NMTokenSecretManagerInRM(conf), new ClientToAMTokenSecretManagerInRM());
    context.setYarnConfiguration(conf);
    context.setSystemMetricsPublisher(new NoOpSystemMetricPublisher());
    RMApplicationHistoryWriter writer = new RMApplicationHistoryWriter();
    writer.init(conf);
    context.setRMApplicationHistoryWriter(writer);
    context.setAllocationTagsManager(new AllocationTagsManager(context));
    context.getContainerTokenSecretManager().rollMasterKey();
    context.getNMTokenSecretManager().rollMasterKey();
    RMNodeLabelsManager labels = new RMNodeLabelsManager();
    labels.init(conf);
    context.setNodeLabelManager(labels);
    scheduler.setConf(conf);
    scheduler.setRMContext(context);
    context.setScheduler(scheduler);
    scheduler.init(conf);
    scheduler.start();
    preemption.init(conf, context, scheduler);
    cluster = new RmCluster(context, conf, new Preemption(any -> true)); // whoever runs the test is the monitor
  }

  /** A node with room for so many containers of 1 GB. */
  void node(String host, String rack, int containers) {
    NodeId id = NodeId.newInstance(host, PORT);
    Map<String, Object> answers = new HashMap<>();
    answers.put("getNodeID", id);
    answers.put("getHostName", host);
    answers.put("getNodeAddress", host + ":" + PORT);
    answers.put("getHttpAddress", host + ":8042");
    answers.put("getRackName", rack);
    answers.put("getTotalCapability", Resource.newInstance(1024L * containers, containers));
    answers.put("getNodeLabels", Collections.emptySet());
    answers.put("getAllNodeAttributes", Collections.emptySet());
    answers.put("pullContainerUpdates", Collections.emptyList());
    answers.put("pullNewlyIncreasedContainers", Collections.emptyList());
    answers.put("getRMContext", context);
    answers.put("isUpdatedCapability", false);
    states.put(host, NodeState.RUNNING);
    this.answers.put(host, answers);
    RMNode node = mock(RMNode.class, answers, host);
    nodes.put(host, node);
    context.getRMNodes().put(id, node);
    scheduler.handle(new NodeAddedSchedulerEvent(node));
    cluster.refresh();
  }

  /** What the ResourceManager knows of the node; the scheduler goes on, but gives none of a node that is being decommissioned any more. */
  void state(String host, NodeState state) {
    states.put(host, state);
    if (state == NodeState.DECOMMISSIONING) {
      Resource inUse = scheduler.getSchedulerNode(nodes.get(host).getNodeID()).getAllocatedResource();
      scheduler.handle(new NodeResourceUpdateSchedulerEvent(nodes.get(host), ResourceOption.newInstance(inUse, 0)));
    }
    cluster.refresh();
  }

  /** As {@link #state}. */
  void label(String host, String label) {
    answers.get(host).put("getNodeLabels", Collections.singleton(label));
    cluster.refresh();
  }

  /** An interface that answers these methods, equals and hashCode by identity, and null or 0 to the rest. */
  private <T> T mock(Class<T> of, Map<String, Object> answers, String host) {
    return of.cast(
        Proxy.newProxyInstance(
            of.getClassLoader(), new Class<?>[] {of},
            (self, method, given) -> {
              switch (method.getName()) {
                case "equals":
                  return self == given[0];
                case "hashCode":
                  return System.identityHashCode(self);
                case "toString":
                  return of.getSimpleName();
                case "getState":
                  return host == null ? RMAppState.RUNNING : states.get(host);
                default:
              }
              Object answer = answers.get(method.getName());
              Class<?> type = method.getReturnType();
              if (answer != null || !type.isPrimitive() || type == void.class) {
                return answer;
              }
              return type == boolean.class ? (Object) false : type == long.class ? (Object) 0L
                  : type == float.class ? (Object) 0f : type == double.class ? (Object) 0d : (Object) 0;
            }));
  }

  ApplicationAttemptId submit(ApplicationId id) throws InterruptedException {
    return submit(id, "q");
  }

  ApplicationAttemptId submit(ApplicationId id, String queue) throws InterruptedException {
    Priority priority = Priority.newInstance(0);
    Map<String, Object> answers = new HashMap<>();
    answers.put("getApplicationId", id);
    answers.put("getUser", "ann");
    answers.put("getQueue", queue);
    ResourceRequest master = ResourceRequest.newInstance(priority, "*", Resource.newInstance(0, 0), 1);
    answers.put("getAMResourceRequests", Collections.singletonList(master));
    answers.put("getApplicationSchedulingEnvs", new HashMap<String, String>());
    answers.put("getApplicationPriority", priority);
    context.getRMApps().put(id, mock(RMApp.class, answers, null));
    ApplicationSubmissionContext submission = Records.newRecord(ApplicationSubmissionContext.class);
    submission.setApplicationId(id);
    submission.setQueue(queue);
    submission.setPriority(priority);
    scheduler.handle(new AppAddedSchedulerEvent("ann", submission, false, priority));
    Thread.sleep(2); // the order of applications goes by milliseconds
    ApplicationAttemptId attempt = ApplicationAttemptId.newInstance(id, 1);
    scheduler.handle(new AppAttemptAddedSchedulerEvent(attempt, false));
    return attempt;
  }

  /** Containers that were given since. */
  List<Container> allocate(ApplicationAttemptId attempt, List<ResourceRequest> asks, List<ContainerId> releases) {
    List<ResourceRequest> own = new ArrayList<>();
    asks.forEach(row -> own.add(ResourceRequest.clone(row))); // YARN changes what it is given
    List<Container> given =
        scheduler
            .allocate(attempt, own, null, releases, new ArrayList<>(), new ArrayList<>(), new ContainerUpdates())
            .getContainers();
    hear();
    return given;
  }

  /** What became of containers since, as the application is told. */
  List<ContainerStatus> ended(ApplicationAttemptId attempt) {
    List<ContainerStatus> since = ended.remove(attempt);
    return since == null ? new ArrayList<>() : since;
  }

  /** It ended well. */
  void finish(ContainerId container) {
    ContainerStatus status = ContainerStatus.newInstance(container, ContainerState.COMPLETE, "", ContainerExitStatus.SUCCESS);
    scheduler.completedContainer(scheduler.getRMContainer(container), status, RMContainerEventType.FINISHED);
    hear();
  }

  /** Takes back what queues with more than their share have and others lack: containers of its choice. */
  void preempt() {
    for (int look = 0; look < 2; look++) {
      preemption.editSchedule();
      hear();
    }
  }

  /** Takes away one container of a key that the application has not heard of; whether there was any. */
  boolean preemptUnheard(ApplicationAttemptId attempt, Key key) {
    for (RMContainer container : scheduler.getApplicationAttempt(attempt).getLiveContainers()) {
      boolean ofKey = Key.of(container.getContainer()).equals(key);
      if (ofKey && container.getState() == RMContainerState.ALLOCATED) {
        preempt(attempt, container);
        return true;
      }
    }
    return false;
  }

  /** Takes away that container. */
  void preempt(ApplicationAttemptId attempt, ContainerId container) {
    preempt(attempt, scheduler.getRMContainer(container));
  }

  private void preempt(ApplicationAttemptId attempt, RMContainer container) {
    scheduler.handle(new ContainerPreemptEvent(attempt, container, SchedulerEventType.MARK_CONTAINER_FOR_KILLABLE));
    hear();
  }

  /** As the dispatcher of a ResourceManager, for what is of use here. */
  private void hear() {
    for (Event<?> event = events.poll(); event != null; event = events.poll()) {
      if (event instanceof ContainerPreemptEvent) {
        scheduler.handle((ContainerPreemptEvent) event);
      } else if (event instanceof RMNodeResourceUpdateEvent) {
        RMNodeResourceUpdateEvent update = (RMNodeResourceUpdateEvent) event;
        scheduler.handle(
            new NodeResourceUpdateSchedulerEvent(context.getRMNodes().get(update.getNodeId()), update.getResourceOption()));
      } else if (event instanceof RMAppAttemptContainerFinishedEvent) {
        RMAppAttemptContainerFinishedEvent of = (RMAppAttemptContainerFinishedEvent) event;
        ended.computeIfAbsent(of.getApplicationAttemptId(), none -> new ArrayList<>()).add(of.getContainerStatus());
      }
    }
  }

  void beat() {
    nodes.keySet().stream().sorted().forEach(this::beat);
  }

  void beat(String host) {
    scheduler.handle(new NodeUpdateSchedulerEvent(nodes.get(host)));
    hear();
  }

  @Override
  public void close() {
    scheduler.stop();
  }
}
