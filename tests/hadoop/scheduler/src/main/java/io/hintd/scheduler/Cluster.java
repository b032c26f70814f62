package io.hintd.scheduler;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
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
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.ContainerAllocationExpirer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.constraint.AllocationTagsManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAttemptAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppAttemptRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.AppRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.security.AMRMTokenSecretManager;
import org.apache.hadoop.yarn.server.resourcemanager.security.ClientToAMTokenSecretManagerInRM;
import org.apache.hadoop.yarn.server.resourcemanager.security.NMTokenSecretManagerInRM;
import org.apache.hadoop.yarn.server.resourcemanager.security.RMContainerTokenSecretManager;
import org.apache.hadoop.yarn.util.Records;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;

/** A ResourceManager of which only the scheduler is real: no services, no network, nothing that happens by itself. */
final class Cluster implements AutoCloseable {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final int PORT = 8041;

    private final RMContextImpl context;
    private final WatchedScheduler scheduler;
    private final Map<String, RMNode> nodes = new HashMap<>();
    private ArrayNode decided = JSON.arrayNode();

    Cluster(JsonNode scenario) throws Exception {
        Configuration configuration = configuration(scenario);
        // Smallest and largest sizes are kept for the whole program otherwise.
        ResourceUtils.resetResourceTypes(configuration);
        Dispatcher nobody = new Dispatcher() {
            @Override
            public EventHandler<Event> getEventHandler() {
                return event -> { };
            }

            @Override
            public void register(Class<? extends Enum> type, EventHandler handler) {
            }
        };
        context = new RMContextImpl(nobody, new ContainerAllocationExpirer(nobody), null, null, null,
            new AMRMTokenSecretManager(configuration, null), new RMContainerTokenSecretManager(configuration),
            new NMTokenSecretManagerInRM(configuration), new ClientToAMTokenSecretManagerInRM());
        context.setYarnConfiguration(configuration);
        context.setSystemMetricsPublisher(new NoOpSystemMetricPublisher());
        RMApplicationHistoryWriter writer = new RMApplicationHistoryWriter();
        writer.init(configuration);
        context.setRMApplicationHistoryWriter(writer);
        context.setAllocationTagsManager(new AllocationTagsManager(context));
        context.getContainerTokenSecretManager().rollMasterKey();
        context.getNMTokenSecretManager().rollMasterKey();
        RMNodeLabelsManager labels = new RMNodeLabelsManager();
        labels.init(configuration);
        context.setNodeLabelManager(labels);
        scheduler = new WatchedScheduler();
        scheduler.setConf(configuration);
        scheduler.setRMContext(context);
        context.setScheduler(scheduler);
        scheduler.init(configuration);
        scheduler.start();
    }

    private static Configuration configuration(JsonNode scenario) {
        Configuration to = new YarnConfiguration(new Configuration(false));
        JsonNode settings = scenario.get("settings");
        String prefix = "yarn.scheduler.capacity.";
        boolean dominant = settings.path("calculator").asText().equals("dominant");
        to.set(prefix + "resource-calculator", "org.apache.hadoop.yarn.util.resource."
            + (dominant ? "DominantResourceCalculator" : "DefaultResourceCalculator"));
        size(settings.path("minimum"), to, "yarn.scheduler.minimum-allocation-");
        size(settings.path("maximum"), to, "yarn.scheduler.maximum-allocation-");
        String[][] keys = {{"node_locality_delay", "node-locality-delay"},
            {"rack_locality_additional_delay", "rack-locality-additional-delay"},
            {"rack_locality_full_reset", "rack-locality-full-reset"},
            {"multiple_assignments", "per-node-heartbeat.multiple-assignments-enabled"},
            {"maximum_container_assignments", "per-node-heartbeat.maximum-container-assignments"},
            {"maximum_offswitch_assignments", "per-node-heartbeat.maximum-offswitch-assignments"},
            {"reservations_continue_looking", "reservations-continue-look-all-nodes"}};
        for (String[] key : keys) {
            if (settings.has(key[0])) {
                to.set(prefix + key[1], settings.get(key[0]).asText());
            }
        }
        for (JsonNode queue : scenario.get("queues")) {
            queue(queue, scenario.get("queues"), to);
        }
        // Else asks above the largest node that reports are cut for a while.
        to.setLong(YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS, Integer.MAX_VALUE);
        to.setBoolean(YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_ENABLED, false);
        return to;
    }

    private static void size(JsonNode size, Configuration to, String prefix) {
        if (!size.isMissingNode()) {
            to.set(prefix + "mb", size.get("memory_mb").asText());
            to.set(prefix + "vcores", size.get("vcores").asText());
        }
    }

    private static void queue(JsonNode queue, JsonNode all, Configuration to) {
        String path = queue.get("path").asText();
        String prefix = "yarn.scheduler.capacity." + path + ".";
        List<String> children = new ArrayList<>();
        for (JsonNode other : all) {
            String name = other.get("path").asText();
            if (name.startsWith(path + ".") && name.indexOf('.', path.length() + 1) < 0) {
                children.add(name.substring(path.length() + 1));
            }
        }
        if (!children.isEmpty()) {
            to.set(prefix + "queues", String.join(",", children));
            to.set(prefix + "ordering-policy",
                queue.path("children").asText("utilization").replace("priority_utilization", "priority-utilization"));
        } else {
            to.set(prefix + "ordering-policy", queue.path("ordering").asText("fifo"));
        }
        String[][] keys = {{"capacity", "capacity"}, {"maximum_capacity", "maximum-capacity"},
            {"user_limit", "minimum-user-limit-percent"}, {"user_limit_factor", "user-limit-factor"},
            {"maximum_am_share", "maximum-am-resource-percent"}, {"priority", "priority"}};
        to.set(prefix + "capacity", "100");
        for (String[] key : keys) {
            if (queue.has(key[0])) {
                to.set(prefix + key[1], queue.get(key[0]).asText());
            }
        }
    }

    /** What was decided since the last call. */
    ArrayNode decided() {
        ArrayNode since = decided;
        decided = JSON.arrayNode();
        return since;
    }

    ObjectNode used(String queue) {
        return size(scheduler.getQueue(queue).getQueueResourceUsage().getUsed());
    }

    static ObjectNode size(Resource size) {
        return JSON.objectNode().put("memory_mb", size.getMemorySize()).put("vcores", size.getVirtualCores());
    }

    private static Resource size(JsonNode size) {
        return Resource.newInstance(size.get("memory_mb").asLong(), size.get("vcores").asInt());
    }

    void step(JsonNode step) throws Exception {
        String what = step.fieldNames().next();
        JsonNode with = step.get(what);
        switch (what) {
            case "submit": submit(with); break;
            case "ask": ask(with); break;
            case "beat": beat(with.asText()); break;
            case "release": release(with); break;
            case "finish": finish(with.asInt()); break;
            case "add": add(with); break;
            case "remove": scheduler.handle(new NodeRemovedSchedulerEvent(nodes.remove(with.asText()))); break;
            case "avoid": avoid(with); break;
            default: throw new IllegalArgumentException("no such step: " + step);
        }
    }

    /** ApplicationMasters hear of their containers at once: one that ends unheard of would be asked for again. */
    private void beat(String host) {
        scheduler.handle(new NodeUpdateSchedulerEvent(nodes.get(host)));
        Set<Integer> served = new TreeSet<>();
        decided.forEach(commit -> served.add(commit.get("app").asInt()));
        for (int app : served) {
            allocate(app, new ArrayList<>(), Collections.emptyList(), Oracle.none(), Oracle.none());
        }
    }

    void add(JsonNode node) {
        String host = node.get("host").asText();
        NodeId id = NodeId.newInstance(host, PORT);
        Map<String, Object> answers = new HashMap<>();
        answers.put("getNodeID", id);
        answers.put("getHostName", host);
        answers.put("getNodeAddress", host + ":" + PORT);
        answers.put("getHttpAddress", host + ":8042");
        answers.put("getRackName", node.get("rack").asText());
        answers.put("getTotalCapability", size(node.get("size")));
        answers.put("getState", NodeState.RUNNING);
        answers.put("getNodeLabels", Collections.emptySet());
        answers.put("getAllNodeAttributes", Collections.emptySet());
        answers.put("pullContainerUpdates", Collections.emptyList());
        answers.put("pullNewlyIncreasedContainers", Collections.emptyList());
        answers.put("getRMContext", context);
        answers.put("isUpdatedCapability", false);
        RMNode mock = mock(RMNode.class, answers);
        nodes.put(host, mock);
        context.getRMNodes().put(id, mock);
        scheduler.handle(new NodeAddedSchedulerEvent(mock));
    }

    /** An interface that answers these methods, equals and hashCode by identity, and null or 0 to the rest. */
    private static <T> T mock(Class<T> of, Map<String, Object> answers) {
        return of.cast(Proxy.newProxyInstance(of.getClassLoader(), new Class<?>[] {of}, (self, method, given) -> {
            switch (method.getName()) {
                case "equals": return self == given[0];
                case "hashCode": return System.identityHashCode(self);
                case "toString": return of.getSimpleName();
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

    private static ApplicationId application(int number) {
        return ApplicationId.newInstance(1, number);
    }

    private static ApplicationAttemptId attempt(int number) {
        return ApplicationAttemptId.newInstance(application(number), 1);
    }

    private void submit(JsonNode with) throws InterruptedException {
        int number = with.get("app").asInt();
        Resource master = size(with.get("master"));
        Priority priority = Priority.newInstance(with.path("priority").asInt(0));
        ResourceRequest request = ResourceRequest.newInstance(Priority.newInstance(0), "*", master, 1);
        Map<String, Object> answers = new HashMap<>();
        answers.put("getApplicationId", application(number));
        answers.put("getUser", with.get("user").asText());
        answers.put("getQueue", with.get("queue").asText());
        answers.put("getAMResourceRequests", Collections.singletonList(request));
        answers.put("getApplicationSchedulingEnvs", new HashMap<String, String>());
        answers.put("getApplicationPriority", priority);
        answers.put("getState", RMAppState.RUNNING);
        context.getRMApps().put(application(number), mock(RMApp.class, answers));
        ApplicationSubmissionContext submission = Records.newRecord(ApplicationSubmissionContext.class);
        submission.setApplicationId(application(number));
        submission.setQueue(with.get("queue").asText());
        submission.setPriority(priority);
        scheduler.handle(new AppAddedSchedulerEvent(with.get("user").asText(), submission, false, priority));
        // Fair ordering looks at when applications started, in milliseconds.
        Thread.sleep(2);
        scheduler.handle(new AppAttemptAddedSchedulerEvent(attempt(number), false));
        if (master.getMemorySize() > 0) {
            allocate(number, Collections.singletonList(ResourceRequest.clone(request)),
                Collections.emptyList(), Oracle.none(), Oracle.none());
        }
    }

    private void allocate(int app, List<ResourceRequest> asks, List<ContainerId> releases, List<String> avoids,
            List<String> avoidsNoMore) {
        scheduler.allocate(attempt(app), asks, null, releases, avoids, avoidsNoMore, new ContainerUpdates());
    }

    private void ask(JsonNode with) {
        List<ResourceRequest> asks = new ArrayList<>();
        for (JsonNode row : with.get("rows")) {
            ResourceRequest request = ResourceRequest.newInstance(Priority.newInstance(row.get("priority").asInt()),
                row.get("name").asText(), size(row.get("size")), row.get("count").asInt(),
                row.path("relax").asBoolean(true));
            request.setAllocationRequestId(row.path("allocation_request_id").asLong(-1));
            asks.add(request);
        }
        allocate(with.get("app").asInt(), asks, Collections.emptyList(), Oracle.none(), Oracle.none());
    }

    private void avoid(JsonNode with) {
        int number = with.get("app").asInt();
        List<String> names = new ArrayList<>();
        with.get("names").forEach(name -> names.add(name.asText()));
        List<String> before = new ArrayList<>(
            scheduler.getApplicationAttempt(attempt(number)).getAppSchedulingInfo().getBlackListCopy());
        allocate(number, new ArrayList<>(), Collections.emptyList(), Oracle.none(), before);
        allocate(number, new ArrayList<>(), Collections.emptyList(), names, Oracle.none());
    }

    private void release(JsonNode with) {
        int app = with.get("app").asInt();
        ContainerId container = ContainerId.newContainerId(attempt(app), with.get("container").asLong());
        allocate(app, new ArrayList<>(), Collections.singletonList(container), Oracle.none(), Oracle.none());
    }

    /** Containers end in the order of their numbers, so that shares are summed in a known order. */
    private void finish(int app) {
        FiCaSchedulerApp attempt = scheduler.getApplicationAttempt(attempt(app));
        TreeSet<ContainerId> live = new TreeSet<>();
        for (RMContainer container : attempt.getLiveContainers()) {
            live.add(container.getContainerId());
        }
        for (ContainerId container : live) {
            allocate(app, new ArrayList<>(), Collections.singletonList(container), Oracle.none(), Oracle.none());
        }
        scheduler.handle(new AppAttemptRemovedSchedulerEvent(attempt(app), RMAppAttemptState.FINISHED, false));
        scheduler.handle(new AppRemovedSchedulerEvent(application(app), RMAppState.FINISHED));
        context.getRMApps().remove(application(app));
    }

    @Override
    public void close() {
        scheduler.stop();
    }

    /** Hadoop's, which tells of everything that it tries to commit. */
    private final class WatchedScheduler
            extends org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler {
        @Override
        public boolean tryCommit(Resource cluster,
                org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest request,
                boolean updatePending) {
            Commit commit = new Commit(request);
            boolean done = super.tryCommit(cluster, request, updatePending);
            decided.add(commit.toJson(done));
            return done;
        }
    }
}
