package io.hintd.mini;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Times Allocate as an ApplicationMaster sees it, with an unmanaged one: {@code AllocateBench QUEUE QUIET ASKING}.
 *
 * <p>QUIET allocates that ask for nothing, then ASKING that ask for a container of a new priority (and, in between,
 * take the ask back and give back what came). Prints microseconds.
 */
public final class AllocateBench {
  private final Unmanaged master;

  private AllocateBench(Unmanaged master) {
    this.master = master;
  }

  public static void main(String[] arguments) throws Exception {
    Unmanaged master = Unmanaged.start(new YarnConfiguration(), "allocate-bench", arguments[0]);
    new AllocateBench(master).run(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
    System.exit(0);
  }

  private void run(int quiet, int asking) throws Exception {
    List<Long> times = new ArrayList<>();
    for (int i = 0; i < quiet; i++) {
      long began = System.nanoTime();
      master.allocate(Collections.<ResourceRequest>emptyList(), Collections.<ContainerId>emptyList());
      if (i >= quiet / 4) { // the first are of code that is not compiled yet
        times.add(System.nanoTime() - began);
      }
    }
    print("quiet", times);
    times.clear();
    for (int i = 0; i < asking; i++) {
      long began = System.nanoTime();
      AllocateResponse response = master.allocate(ask(100 + i, 1), Collections.<ContainerId>emptyList());
      times.add(System.nanoTime() - began);
      List<ContainerId> came = new ArrayList<>();
      response.getAllocatedContainers().forEach((Container container) -> came.add(container.getId()));
      response = master.allocate(ask(100 + i, 0), came);
      came.clear();
      response.getAllocatedContainers().forEach((Container container) -> came.add(container.getId()));
      master.allocate(Collections.<ResourceRequest>emptyList(), came);
    }
    print("asking", times);
    master.finish();
  }

  private static List<ResourceRequest> ask(int priority, int count) {
    return Arrays.asList(
        ResourceRequest.newInstance(Priority.newInstance(priority), "*", Resource.newInstance(256, 1), count, true));
  }

  private static void print(String what, List<Long> nanos) {
    if (nanos.isEmpty()) {
      return;
    }
    Collections.sort(nanos);
    System.out.printf(
        "%s n=%d p50=%d p99=%d max=%d%n", what, nanos.size(), at(nanos, 0.5), at(nanos, 0.99), at(nanos, 1));
  }

  private static long at(List<Long> sorted, double share) {
    int rank = (int) Math.ceil(sorted.size() * share) - 1;
    return TimeUnit.NANOSECONDS.toMicros(sorted.get(Math.max(rank, 0)));
  }
}
