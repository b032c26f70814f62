package io.hintd.client;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;

/**
 * Hints as {@code AMRMClient} takes them, one request a container.
 *
 * <p>Always with relaxed locality: a hint never strands a container, and all requests of a scheduler key must agree
 * on it. Racks are named beside the hosts, because YARN heeds a host's row only where its rack's row counts, and the
 * ApplicationMaster's own process may resolve other racks than the ResourceManager does. Groups with a node label get
 * no locality: YARN refuses a label beside hosts or racks.
 */
public final class ContainerRequests {
  private ContainerRequests() {}

  /** Requests for every container of the request's groups, in the groups' order: hinted ones first, then the rest. */
  public static List<ContainerRequest> of(HintRequest request, Answer answer) {
    List<ContainerRequest> all = new ArrayList<>();
    int position = 0;
    for (Group group : request.groups()) {
      position++;
      int left = group.count();
      for (Hint hint : answer.hints()) {
        if (hint.group().equals(group.name()) && group.label().isEmpty() && !answer.shadow()) {
          for (int i = 0; i < hint.count() && left > 0; i++, left--) {
            all.add(request(group, position, hosts(hint), hint.racks()));
          }
        }
      }
      for (; left > 0; left--) {
        all.add(request(group, position, null, null));
      }
    }
    return all;
  }

  /** YARN can't rank hosts: where room is leased on the best one, it is not offered a second choice. */
  private static Set<String> hosts(Hint hint) {
    Set<String> hosts = new LinkedHashSet<>();
    hosts.add(hint.host());
    if (hint.leases().isEmpty()) {
      hosts.addAll(hint.fallbacks());
    }
    return hosts;
  }

  private static ContainerRequest request(Group group, int position, Set<String> hosts, List<String> racks) {
    Resource size = Resource.newInstance(group.memoryMb(), group.vcores());
    group.resources().forEach(size::setResourceValue);
    ContainerRequest.ContainerRequestBuilder builder =
        ContainerRequest.newBuilder()
            .capability(size)
            .priority(Priority.newInstance(group.priorityAt(position)))
            .relaxLocality(true);
    if (group.allocationRequestId() != -1) {
      builder.allocationRequestId(group.allocationRequestId());
    }
    if (!group.label().isEmpty()) {
      builder.nodeLabelsExpression(group.label());
    }
    if (hosts != null) {
      builder.nodes(hosts.toArray(new String[0])).racks(new LinkedHashSet<>(racks).toArray(new String[0]));
    }
    return builder.build();
  }
}
