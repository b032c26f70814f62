package io.hintd.rm;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** What is left of a hint: {@code remaining} containers that should go to one host. */
final class Piece {
  final String host;
  /** The host and, where no room is leased on it, the next best. */
  private final Set<String> hosts;
  private final Set<String> racks;
  private final Deque<Long> leases;
  private final String token;
  private final boolean used;
  private final long since;
  private int remaining;

  /**
   * A hint for {@code count} containers at {@code host}.
   *
   * @param fallbacks next best hosts
   * @param rackOf YARN's racks of the hosts; hosts that it does not have are left out
   * @param used false: compared only, in shadow
   * @param since milliseconds, of the clock that the table is told
   */
  Piece(
      String host, Collection<String> fallbacks, Map<String, String> rackOf, int count, Collection<Long> leases,
      String token, boolean used, long since) {
    this.host = host;
    this.hosts = new LinkedHashSet<>();
    this.racks = new LinkedHashSet<>();
    hosts.add(host);
    if (leases.isEmpty()) {
      hosts.addAll(fallbacks);
    }
    hosts.removeIf(name -> !rackOf.containsKey(name));
    hosts.forEach(name -> racks.add(rackOf.get(name)));
    this.leases = new ArrayDeque<>(leases);
    this.token = token;
    this.used = used;
    this.since = since;
    this.remaining = count;
  }

  int remaining() {
    return remaining;
  }

  boolean used() {
    return used;
  }

  long since() {
    return since;
  }

  String token() {
    return token;
  }

  boolean inRack(String rack) {
    return racks.contains(rack);
  }

  /** One container was given; returns its lease, 0: none. */
  long give(boolean onHost) {
    remaining--;
    Long lease = leases.poll();
    if (lease != null && !onHost) {
      leases.push(lease); // the room it holds was not used
      return 0;
    }
    return lease == null ? 0 : lease;
  }

  /** {@code count} containers less are to come. */
  void trim(int count) {
    remaining -= count;
  }

  /** Leases of containers that will not come, to be given back. */
  List<Long> surplus() {
    List<Long> surplus = new ArrayList<>();
    while (leases.size() > remaining) {
      surplus.add(leases.removeLast());
    }
    return surplus.isEmpty() ? Collections.<Long>emptyList() : surplus;
  }

  /** Adds this piece's rows: with its hosts, or racks alone. */
  void addRows(TreeMap<String, Integer> rows, boolean withHosts) {
    if (withHosts) {
      hosts.forEach(name -> rows.merge(name, remaining, Integer::sum));
    }
    racks.forEach(name -> rows.merge(name, remaining, Integer::sum));
  }
}
