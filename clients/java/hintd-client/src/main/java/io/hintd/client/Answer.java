package io.hintd.client;

import io.hintd.v1.HintSet;
import io.hintd.v1.Mode;
import io.hintd.v1.RequestHintsResponse;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Hints, or none and {@link #whyNone}. */
public final class Answer {
  private final HintSet wire;
  private final String token;
  private final String whyNone;
  private final List<Hint> hints;

  private Answer(HintSet wire, String token, String whyNone) {
    this.wire = wire;
    this.token = token;
    this.whyNone = whyNone;
    List<Hint> found = new ArrayList<>(wire.getHintsCount());
    wire.getHintsList().forEach(hint -> found.add(new Hint(hint)));
    this.hints = Collections.unmodifiableList(found);
  }

  static Answer of(RequestHintsResponse response) {
    return new Answer(response.getHints(), response.getToken(), "");
  }

  static Answer none(String why) {
    return new Answer(HintSet.getDefaultInstance(), "", why);
  }

  public List<Hint> hints() {
    return hints;
  }

  /** What history of the same recurring job stood in for edges that the request does not name; empty: it names some. */
  public String history() {
    return wire.getHistory();
  }

  /** Why there are no hints; empty where the daemon answered. */
  public String whyNone() {
    return whyNone;
  }

  /** Shows that who has it is the attempt's: for another process that releases its leases or follows it. */
  public String token() {
    return token;
  }

  public String decisionId() {
    return wire.getDecisionId();
  }

  public String policy() {
    return wire.getPolicy();
  }

  /** Whether the queue is in shadow mode at the daemon: computed and compared, nothing leased, not to be used. */
  public boolean shadow() {
    return wire.getMode() == Mode.MODE_SHADOW;
  }

  /** Inputs that were missing or old: no_topology, no_blocks, ... */
  public List<String> degraded() {
    return Collections.unmodifiableList(new ArrayList<>(wire.getDegradedList()));
  }

  /** Every lease of the answer. */
  public List<Long> leases() {
    List<Long> all = new ArrayList<>();
    hints.forEach(hint -> all.addAll(hint.leases()));
    return all;
  }

  /** All that the daemon said. */
  public HintSet wire() {
    return wire;
  }
}
