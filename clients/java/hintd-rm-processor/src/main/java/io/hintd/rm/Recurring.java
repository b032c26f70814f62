package io.hintd.rm;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What recurring jobs asked for first, the last time: bounded, the least recently used go. */
final class Recurring {
  private static final int JOBS = 1_000;

  private final Map<String, List<AskTable.Wanted>> first =
      new LinkedHashMap<String, List<AskTable.Wanted>>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, List<AskTable.Wanted>> eldest) {
          return size() > JOBS;
        }
      };

  synchronized List<AskTable.Wanted> of(String key) {
    return first.getOrDefault(key, Collections.<AskTable.Wanted>emptyList());
  }

  synchronized void remember(String key, List<AskTable.Wanted> asked) {
    first.put(key, new ArrayList<>(asked));
  }
}
