package io.hintd.mini;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * How long an application waits for containers when hosts it is hinted to are full: {@code BusyBench QUEUE COUNT ROUNDS
 * HOST...}.
 *
 * <p>One unmanaged ApplicationMaster fills the hosts to their last container, with strict asks. Another then asks for COUNT
 * containers anywhere, ROUNDS times under a new priority each, with a heartbeat every 200 ms. Prints milliseconds from the
 * ask to each round's last container, and how many came on which host.
 */
public final class BusyBench {
  private static final int MB = 256;
  private static final long HEARTBEAT_MS = 200;
  private static final long PATIENCE_MS = 30_000;

  public static void main(String[] arguments) throws Exception {
    Configuration conf = new YarnConfiguration();
    List<String> hosts = Arrays.asList(arguments).subList(3, arguments.length);
    Unmanaged filler = Unmanaged.start(conf, "busy-filler", arguments[0]);
    int filled = fill(filler, hosts);
    System.out.printf("filled %s with %d containers%n", hosts, filled);
    Unmanaged asker = Unmanaged.start(conf, "busy-bench", arguments[0]);
    List<Long> times = new ArrayList<>();
    Map<String, Integer> where = new TreeMap<>();
    for (int round = 0; round < Integer.parseInt(arguments[2]); round++) {
      times.add(round(asker, filler, 100 + round, Integer.parseInt(arguments[1]), where));
    }
    Collections.sort(times);
    System.out.printf(
        "busy n=%d p50=%d max=%d on=%s%n", times.size(), times.get(times.size() / 2), times.get(times.size() - 1), where);
    asker.finish();
    filler.finish();
    System.exit(0);
  }

  private static int fill(Unmanaged filler, List<String> hosts) throws Exception {
    int filled = 0;
    for (int at = 0; at < hosts.size(); at++) {
      // One priority a host: a strict ask for the next would not be told from it.
      List<ResourceRequest> asks = new ArrayList<>();
      asks.add(row(1 + at, hosts.get(at), 64, true));
      asks.add(row(1 + at, rack(hosts.get(at)), 64, false));
      asks.add(row(1 + at, "*", 64, false));
      long quiet = System.currentTimeMillis();
      while (System.currentTimeMillis() - quiet < 4_000) {
        int came = filler.allocate(asks, Collections.<ContainerId>emptyList()).getAllocatedContainers().size();
        asks = Collections.emptyList();
        filled += came;
        quiet = came > 0 ? System.currentTimeMillis() : quiet;
        Thread.sleep(HEARTBEAT_MS);
      }
      filler.allocate(Arrays.asList(row(1 + at, hosts.get(at), 0, true), row(1 + at, rack(hosts.get(at)), 0, false),
          row(1 + at, "*", 0, false)), Collections.<ContainerId>emptyList());
    }
    return filled;
  }

  private static long round(Unmanaged asker, Unmanaged filler, int priority, int count, Map<String, Integer> where)
      throws Exception {
    List<ResourceRequest> asks = Collections.singletonList(row(priority, "*", count, true));
    List<ContainerId> came = new ArrayList<>();
    long began = System.currentTimeMillis();
    while (came.size() < count && System.currentTimeMillis() - began < PATIENCE_MS) {
      for (Container container : asker.allocate(asks, Collections.<ContainerId>emptyList()).getAllocatedContainers()) {
        came.add(container.getId());
        where.merge(container.getNodeId().getHost(), 1, Integer::sum);
      }
      asks = Collections.emptyList();
      filler.allocate(asks, Collections.<ContainerId>emptyList()); // alive
      if (came.size() < count) {
        Thread.sleep(HEARTBEAT_MS);
      }
    }
    long took = System.currentTimeMillis() - began;
    asker.allocate(Collections.singletonList(row(priority, "*", 0, true)), came);
    Thread.sleep(HEARTBEAT_MS);
    asker.allocate(Collections.<ResourceRequest>emptyList(), Collections.<ContainerId>emptyList());
    return took;
  }

  private static ResourceRequest row(int priority, String name, int count, boolean relax) {
    return ResourceRequest.newInstance(Priority.newInstance(priority), name, Resource.newInstance(MB, 1), count, relax);
  }

  /** As the cluster of mini-hadoop has them: two nodes a rack. */
  private static String rack(String host) {
    return "/rack" + (Integer.parseInt(host.substring(1)) + 1) / 2;
  }

  private BusyBench() {}
}
