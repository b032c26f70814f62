package io.hintd.rm;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.ahs.RMApplicationHistoryWriter;
import org.apache.hadoop.yarn.server.resourcemanager.metrics.NoOpSystemMetricPublisher;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.ContainerAllocationExpirer;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.constraint.AllocationTagsManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAttemptAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.security.AMRMTokenSecretManager;
import org.apache.hadoop.yarn.server.resourcemanager.security.ClientToAMTokenSecretManagerInRM;
import org.apache.hadoop.yarn.server.resourcemanager.security.NMTokenSecretManagerInRM;
import org.apache.hadoop.yarn.server.resourcemanager.security.RMContainerTokenSecretManager;
import org.apache.hadoop.yarn.util.Records;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;

/** A ResourceManager of which the CapacityScheduler is Hadoop's: no services, no network, nothing that happens by itself. */
final class RealYarn implements AutoCloseable {
  private static final int PORT = 8041;

  private final RMContextImpl context;
  private final CapacityScheduler scheduler = new CapacityScheduler();
  private final Map<String, RMNode> nodes = new HashMap<>();
  private final Map<String, NodeState> states = new HashMap<>();
  private final Map<String, Map<String, Object>> answers = new HashMap<>();
  /** As the processor sees it. */
  final RmCluster cluster;

  RealYarn() throws Exception {
    SecurityUtil.setTokenServiceUseIp(false); // else containers' tokens need hosts that can be looked up
    Configuration conf = new YarnConfiguration(new Configuration(false));
    conf.set("yarn.scheduler.capacity.root.queues", "q");
    conf.set("yarn.scheduler.capacity.root.capacity", "100");
    conf.set("yarn.scheduler.capacity.root.q.capacity", "100");
    conf.set("yarn.scheduler.capacity.root.q.user-limit-factor", "100");
    conf.set("yarn.scheduler.capacity.root.q.maximum-am-resource-percent", "1");
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
            return event -> {};
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
    cluster = new RmCluster(context, conf);
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

  /** What the ResourceManager knows of the node; the scheduler goes on. */
  void state(String host, NodeState state) {
    states.put(host, state);
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
    Priority priority = Priority.newInstance(0);
    Map<String, Object> answers = new HashMap<>();
    answers.put("getApplicationId", id);
    answers.put("getUser", "ann");
    answers.put("getQueue", "q");
    ResourceRequest master = ResourceRequest.newInstance(priority, "*", Resource.newInstance(0, 0), 1);
    answers.put("getAMResourceRequests", Collections.singletonList(master));
    answers.put("getApplicationSchedulingEnvs", new HashMap<String, String>());
    answers.put("getApplicationPriority", priority);
    context.getRMApps().put(id, mock(RMApp.class, answers, null));
    ApplicationSubmissionContext submission = Records.newRecord(ApplicationSubmissionContext.class);
    submission.setApplicationId(id);
    submission.setQueue("q");
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
    return scheduler
        .allocate(attempt, own, null, releases, new ArrayList<>(), new ArrayList<>(), new ContainerUpdates())
        .getContainers();
  }

  void beat() {
    nodes.keySet().stream().sorted().forEach(this::beat);
  }

  void beat(String host) {
    scheduler.handle(new NodeUpdateSchedulerEvent(nodes.get(host)));
  }

  @Override
  public void close() {
    scheduler.stop();
  }
}
