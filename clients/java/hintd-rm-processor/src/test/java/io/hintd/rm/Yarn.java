package io.hintd.rm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;

/**
 * YARN's table of one application, by the rules of AppSchedulingInfo and LocalityAppPlacementAllocator (Hadoop 3.4.2),
 * written down a second time: puts, what an allocation takes off, and when rows go.
 */
final class Yarn {
  final TreeMap<Key, TreeMap<String, Integer>> keys = new TreeMap<>();

  void put(List<ResourceRequest> asks) {
    TreeMap<Key, List<ResourceRequest>> byKey = new TreeMap<>();
    asks.forEach(row -> byKey.computeIfAbsent(Key.of(row), none -> new ArrayList<>()).add(row));
    byKey.forEach(
        (key, rows) -> {
          TreeMap<String, Integer> table = keys.computeIfAbsent(key, none -> new TreeMap<>());
          boolean any = false;
          for (ResourceRequest row : rows) {
            table.put(row.getResourceName(), row.getNumContainers());
            any |= row.getResourceName().equals("*");
          }
          if (any && table.get("*") <= 0) {
            keys.remove(key);
          }
        });
  }

  int count(Key key, String name) {
    return keys.getOrDefault(key, new TreeMap<>()).getOrDefault(name, 0);
  }

  /** Gives a container as near as the rows allow; in the rack it may come off-switch, {@code byChance}. */
  void allocate(Key key, String host, String rack, boolean byChance) {
    TreeMap<String, Integer> table = keys.get(key);
    if (count(key, rack) > 0 && (!byChance || count(key, host) > 0)) {
      if (count(key, host) > 0) {
        less(table, host);
      }
      less(table, rack);
    }
    less(table, "*");
    if (table.isEmpty()) {
      keys.remove(key);
    }
  }

  private static void less(Map<String, Integer> table, String name) {
    table.compute(name, (same, count) -> count == 1 ? null : count - 1);
  }

  static ResourceRequest row(Key key, String name, int count) {
    ResourceRequest row =
        ResourceRequest.newInstance(Priority.newInstance(key.priority), name, Resource.newInstance(1024, 1), count, true);
    row.setAllocationRequestId(key.allocationRequestId);
    return row;
  }
}
