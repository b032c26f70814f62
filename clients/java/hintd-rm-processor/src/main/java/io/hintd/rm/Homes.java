package io.hintd.rm;

import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.hadoop.yarn.api.records.Resource;

/** Home racks of an application, and their hosts as the ResourceManager has them. */
final class Homes {
  private final Cluster cluster;
  private TreeSet<String> racks = new TreeSet<>();
  /** Of the homes, made of {@link #from}: racks and hosts, and rack by host. */
  private Set<String> names = new HashSet<>();
  private TreeMap<String, String> hosts = new TreeMap<>();
  private Map<String, String> from;

  Homes(Cluster cluster) {
    this.cluster = cluster;
  }

  void are(TreeSet<String> found) {
    if (!found.equals(racks)) {
      racks = found;
      from = null;
    }
  }

  boolean none() {
    return racks.isEmpty();
  }

  TreeSet<String> racks() {
    return new TreeSet<>(racks);
  }

  /** Whether the host is in one of them. */
  boolean has(String host) {
    look();
    return hosts.containsKey(host);
  }

  boolean hasRack(String rack) {
    return racks.contains(rack);
  }

  /** The racks and all their hosts. Not to be changed. */
  Set<String> names() {
    look();
    return names;
  }

  /** Rack by host, of those hosts that take containers of that size, and neither they nor their racks are blacklisted. */
  TreeMap<String, String> usable(Collection<String> blacklisted, Resource size) {
    look();
    TreeMap<String, String> usable = new TreeMap<>();
    if (!hosts.isEmpty()) {
      Predicate<String> takes = cluster.takes(size);
      hosts.forEach((host, rack) -> {
        if (!blacklisted.contains(host) && !blacklisted.contains(rack) && takes.test(host)) {
          usable.put(host, rack);
        }
      });
    }
    return usable;
  }

  /** Nodes seldom change. */
  private void look() {
    Map<String, String> all = cluster.racks();
    if (from == all) {
      return;
    }
    TreeMap<String, String> found = new TreeMap<>();
    if (!racks.isEmpty()) { // of most applications nothing was sent home
      all.forEach((host, rack) -> {
        if (racks.contains(rack)) {
          found.put(host, rack);
        }
      });
    }
    hosts = found;
    names = new HashSet<>(hosts.keySet());
    names.addAll(racks);
    from = all;
  }

  @Override
  public String toString() {
    return racks.toString();
  }
}
