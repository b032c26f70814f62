package io.hintd.rm;

import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;

/** What the processor is told to do. Unknown keys and wrong values are refused, all at once. */
final class Settings {
  /** Of a queue. */
  enum Mode {
    /** Requests pass; hintd is not asked. */
    OFF,
    /** hintd is asked and where containers come is compared; requests pass as they came. */
    SHADOW,
    /** Requests carry hints. */
    ON
  }

  /** hintd's gRPC address. */
  final String address;
  /**
   * Holds the secret by which hintd knows this processor, the same at each ResourceManager of a highly available pair; "":
   * one is drawn at each start, and attempts that were hinted before a failover get no hints after it.
   */
  final String secretFile;
  /** The longest that an allocate with new asks waits for hints, ms. */
  final long waitMs;
  /** Allocates that may wait at one time. */
  final int waiting;
  /** hintd's time for an answer, ms; one that comes too late for its allocate goes with the next. */
  final long deadlineMs;
  /** Rows of hosts stay in YARN's table for so long, ms; rows of racks for so much longer. */
  final long hostsForMs;
  final long racksForMs;
  /** Hint keys for which the application names hosts or racks itself, too. */
  final boolean besideOwn;
  /** Containers of one key that are hinted at once. */
  final int containersMax;
  /** Failures in a row that open the breaker, and for how long at first and at most, ms. */
  final int failures;
  final long openMs;
  final long openMaxMs;
  /** Tell hintd of containers. */
  final boolean events;
  /** Ask at registration for what a recurring job asked for first the last time. */
  final boolean prefetch;
  /** An attempt's receivers are held for no longer in all, ms. */
  final long holdMaxMs;
  private final boolean hold;
  private final Map<String, Boolean> holds;
  private final Mode mode;
  private final Map<String, Mode> queues;

  private Settings(Reader from) {
    address = from.text("address", "127.0.0.1:8470");
    secretFile = from.text("secret-file", "");
    waitMs = from.number("wait-ms", 20, 0, 1_000);
    waiting = (int) from.number("waiting", 8, 0, 1_000);
    deadlineMs = from.number("deadline-ms", 1_000, 1, 30_000);
    hostsForMs = from.number("hosts-for-ms", 3_000, 0, 3_600_000);
    racksForMs = from.number("racks-for-ms", 3_000, 0, 3_600_000);
    besideOwn = from.flag("beside-own-locality", false);
    containersMax = (int) from.number("containers-max", 10_000, 1, 100_000);
    failures = (int) from.number("breaker-failures", 3, 1, 1_000);
    openMs = from.number("breaker-open-ms", 5_000, 1, 3_600_000);
    openMaxMs = from.number("breaker-open-max-ms", 60_000, 1, 3_600_000);
    events = from.flag("events", true);
    prefetch = from.flag("prefetch", true);
    mode = from.mode("mode", Mode.SHADOW);
    holdMaxMs = from.number("hold-max-ms", 3_600_000, 0, 86_400_000);
    hold = from.flag("hold", false);
    holds = from.holds();
    queues = from.queues();
    from.finish();
  }

  /**
   * From the lines of a properties file.
   *
   * @throws IllegalArgumentException naming every key that is wrong
   */
  static Settings of(Properties properties) {
    return new Settings(new Reader(properties));
  }

  /** Of {@code root.a.b}, or a leaf's name alone: its own, its nearest ancestor's, the default. */
  Mode mode(String queue) {
    return of(queue, queues, mode);
  }

  /** Whether receivers of heavy shuffles of the queue wait for their turn; names as in {@link #mode}. */
  boolean holds(String queue) {
    return of(queue, holds, hold);
  }

  private static <T> T of(String queue, Map<String, T> queues, T otherwise) {
    for (String name = queue; !name.isEmpty(); name = name.contains(".") ? name.substring(0, name.lastIndexOf('.')) : "") {
      if (queues.containsKey(name)) {
        return queues.get(name);
      }
    }
    T leaf = queues.get(queue.substring(queue.lastIndexOf('.') + 1));
    return leaf == null ? otherwise : leaf;
  }

  private static final class Reader {
    private final TreeMap<String, String> left = new TreeMap<>();
    private final TreeSet<String> wrong = new TreeSet<>();

    Reader(Properties properties) {
      properties.stringPropertyNames().forEach(name -> left.put(name, properties.getProperty(name).trim()));
    }

    String text(String key, String otherwise) {
      String value = left.remove(key);
      return value == null || value.isEmpty() ? otherwise : value;
    }

    long number(String key, long otherwise, long least, long most) {
      String value = text(key, Long.toString(otherwise));
      try {
        long number = Long.parseLong(value);
        if (number >= least && number <= most) {
          return number;
        }
      } catch (NumberFormatException none) {
        // told below
      }
      wrong.add(key + "=" + value + ": not a whole number from " + least + " to " + most);
      return otherwise;
    }

    boolean flag(String key, boolean otherwise) {
      String value = text(key, Boolean.toString(otherwise));
      if (!value.equals("true") && !value.equals("false")) {
        wrong.add(key + "=" + value + ": neither true nor false");
      }
      return value.equals("true");
    }

    Mode mode(String key, Mode otherwise) {
      String value = text(key, otherwise.name());
      for (Mode mode : Mode.values()) {
        if (mode.name().equalsIgnoreCase(value)) {
          return mode;
        }
      }
      wrong.add(key + "=" + value + ": none of off, shadow, on");
      return otherwise;
    }

    Map<String, Mode> queues() {
      Map<String, Mode> queues = new TreeMap<>();
      for (String key : new TreeSet<>(left.keySet())) {
        if (key.startsWith("mode.")) {
          queues.put(key.substring("mode.".length()), mode(key, Mode.SHADOW));
        }
      }
      return queues;
    }

    Map<String, Boolean> holds() {
      Map<String, Boolean> holds = new TreeMap<>();
      for (String key : new TreeSet<>(left.keySet())) {
        if (key.startsWith("hold.")) {
          holds.put(key.substring("hold.".length()), flag(key, false));
        }
      }
      return holds;
    }

    void finish() {
      left.keySet().forEach(key -> wrong.add(key + ": no such key"));
      if (!wrong.isEmpty()) {
        throw new IllegalArgumentException(String.join("; ", wrong));
      }
    }
  }
}
