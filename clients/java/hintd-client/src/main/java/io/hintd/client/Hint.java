package io.hintd.client;

import java.util.Collections;
import java.util.List;

/** {@code count} containers of {@code group}, the first of them its container {@code firstIndex}, should go to {@code host}. */
public final class Hint {
  private final io.hintd.v1.Hint wire;

  Hint(io.hintd.v1.Hint wire) {
    this.wire = wire;
  }

  public String group() {
    return wire.getGroup();
  }

  public String host() {
    return wire.getHost();
  }

  public int count() {
    return wire.getCount();
  }

  public int firstIndex() {
    return wire.getFirstIndex();
  }

  /** Next best hosts, best first. */
  public List<String> fallbacks() {
    return Collections.unmodifiableList(wire.getFallbacksList());
  }

  /** Racks of host and fallbacks, the host's first. */
  public List<String> racks() {
    return Collections.unmodifiableList(wire.getRacksList());
  }

  /** One for each container; empty: no room is held. */
  public List<Long> leases() {
    return Collections.unmodifiableList(wire.getLeaseIdsList());
  }

  /** 0 to 1: falls with the age of what the hint was worked out from. */
  public double confidence() {
    return wire.getConfidence();
  }

  @Override
  public String toString() {
    return group() + ": " + count() + " on " + host();
  }
}
