package io.hintd.plugin;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Which kinds of trouble the log has lately: each is in it once in ten minutes, whoever meets it, and however often. */
public final class SaidOnce {
  private static final long AGAIN_MS = 600_000;
  /** Kinds that are remembered; while there are so many, no other is said. */
  static final int KINDS_MAX = 1_000;

  private final Map<String, Long> said = new ConcurrentHashMap<>();

  /** Whether to say it. Of threads that ask together one is told so. */
  public boolean due(String kind, long nowMs) {
    if (said.size() >= KINDS_MAX) {
      said.values().removeIf(at -> nowMs - at >= AGAIN_MS);
      if (said.size() >= KINDS_MAX && !said.containsKey(kind)) {
        return false;
      }
    }
    boolean[] due = new boolean[1];
    said.compute(kind, (same, before) -> {
      due[0] = before == null || nowMs - before >= AGAIN_MS;
      return due[0] ? (Long) nowMs : before;
    });
    return due[0];
  }

  /** What comes next is said, whatever was. */
  public void clear() {
    said.clear();
  }
}
