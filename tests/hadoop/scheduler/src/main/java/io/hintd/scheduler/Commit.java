package io.hintd.scheduler;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainerState;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ContainerAllocationProposal;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.SchedulerContainer;

/** One thing that the scheduler decided, as fixtures have it. */
final class Commit {
    private final ResourceCommitRequest<?, ?> request;
    private final boolean again;
    private final RMContainer givenUp;

    /** Before it is committed: states change with that. */
    Commit(ResourceCommitRequest<?, ?> request) {
        this.request = request;
        ContainerAllocationProposal<?, ?> first = request.getFirstAllocatedOrReservedContainer();
        again = first != null
            && first.getAllocatedOrReservedContainer().getRmContainer().getState() == RMContainerState.RESERVED;
        SchedulerContainer<?, ?> released = null;
        if (first == null) {
            released = request.getContainersToRelease().get(0);
        } else if (first.getToRelease() != null && !first.getToRelease().isEmpty()) {
            released = first.getToRelease().get(0);
        }
        givenUp = released == null ? null : released.getRmContainer();
    }

    ObjectNode toJson(boolean done) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        ContainerAllocationProposal<?, ?> first = request.getFirstAllocatedOrReservedContainer();
        if (first == null) {
            json.put("verdict", done ? "given_up" : "refused");
            describe(json, givenUp, true);
            return json;
        }
        RMContainer container = first.getAllocatedOrReservedContainer().getRmContainer();
        boolean allocates = first.getAllocatedOrReservedContainer().isAllocated();
        String verdict = allocates ? first.getAllocateFromReservedContainer() != null ? "from_reservation" : "allocated"
            : again ? "reserved_again" : "reserved";
        json.put("verdict", done ? verdict : "refused");
        describe(json, container, done);
        json.put("kind", first.getAllocationLocalityType().name().toLowerCase(Locale.ROOT));
        if (done && givenUp != null) {
            json.put("unreserved", givenUp.getReservedNode().getHost());
        }
        return json;
    }

    private static void describe(ObjectNode json, RMContainer container, boolean done) {
        int app = container.getApplicationAttemptId().getApplicationId().getId();
        json.put("app", app);
        json.put("container", done ? container.getContainer().getId().getContainerId() : 0L);
        json.put("node", container.getContainer().getNodeId().getHost());
        json.put("priority", container.getContainer().getPriority().getPriority());
        json.put("allocation_request_id", container.getContainer().getAllocationRequestId());
        json.set("size", Cluster.size(container.getContainer().getResource()));
    }
}
