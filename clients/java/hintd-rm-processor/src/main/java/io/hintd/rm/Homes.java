package io.hintd.rm;

import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

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

  /** Rack by host, of those hosts that take containers and are not blacklisted. */
  TreeMap<String, String> usable(Collection<String> blacklisted) {
    look();
    TreeMap<String, String> usable = new TreeMap<>(hosts);
    usable.keySet().removeIf(host -> blacklisted.contains(host) || !cluster.usable(host));
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
