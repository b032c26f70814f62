package io.hintd.rm;

import io.hintd.plugin.Breaker;
import io.hintd.plugin.SettingsReader;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

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
  /** What opens the breaker. */
  final Breaker.Limits breaker;
  /** Tell hintd of containers. */
  final boolean events;
  /** Ask at registration for what a recurring job asked for first the last time. */
  final boolean prefetch;
  /** An attempt's receivers are held for no longer in all, ms. */
  final long holdMaxMs;
  /** Maps and reduces are asked for in the homes of the input alone until none came for as long as hintd says; for so long at most, ms. */
  final long homesWaitMs;
  /** Maps whose input has no homes are asked for on hosts of their blocks alone until none came for so long, ms; 0: not at all. */
  final long blocksForMs;
  /** And then, until none came for so much longer, in racks of their blocks alone, ms; 0: not at all. */
  final long blockRacksForMs;
  /** Jobs that hintd gathers in a few racks go there, though their input lies elsewhere as well. */
  final boolean gathers;
  private final boolean homes;
  private final Map<String, Boolean> homesOf;
  private final boolean hold;
  private final Map<String, Boolean> holds;
  private final Mode mode;
  private final Map<String, Mode> queues;

  private Settings(SettingsReader from) {
    address = from.text("address", "127.0.0.1:8470");
    secretFile = from.text("secret-file", "");
    waitMs = from.number("wait-ms", 20, 0, 1_000);
    waiting = (int) from.number("waiting", 8, 0, 1_000);
    deadlineMs = from.number("deadline-ms", 1_000, 1, 30_000);
    hostsForMs = from.number("hosts-for-ms", 3_000, 0, 3_600_000);
    racksForMs = from.number("racks-for-ms", 3_000, 0, 3_600_000);
    besideOwn = from.flag("beside-own-locality", false);
    containersMax = (int) from.number("containers-max", 10_000, 1, 100_000);
    breaker = Breaker.Limits.read(from, waitMs);
    events = from.flag("events", true);
    prefetch = from.flag("prefetch", true);
    mode = from.word("mode", Mode.SHADOW);
    holdMaxMs = from.number("hold-max-ms", 3_600_000, 0, 86_400_000);
    homesWaitMs = from.number("homes-wait-ms", 3_600_000, 0, 3_600_000);
    blocksForMs = from.number("blocks-for-ms", 1_000, 0, 60_000);
    blockRacksForMs = from.number("block-racks-for-ms", 4_000, 0, 60_000);
    gathers = from.flag("gathers", true);
    homes = from.flag("homes", true);
    homesOf = from.each("homes.", key -> from.flag(key, true));
    hold = from.flag("hold", false);
    holds = from.each("hold.", key -> from.flag(key, false));
    queues = from.each("mode.", key -> from.word(key, Mode.SHADOW));
    from.finish();
  }

  /**
   * From the lines of a properties file.
   *
   * @throws IllegalArgumentException naming every key that is wrong
   */
  static Settings of(Properties properties) {
    return new Settings(new SettingsReader(properties));
  }

  /** Of {@code root.a.b}, or a leaf's name alone: its own, its nearest ancestor's, the default. */
  Mode mode(String queue) {
    return of(queue, queues, mode);
  }

  /** Modes by name as {@link #mode} takes them; {@code *}: the default. */
  Map<String, String> modes() {
    Map<String, String> all = new TreeMap<>();
    all.put("*", mode.name());
    queues.forEach((queue, of) -> all.put(queue, of.name()));
    return all;
  }

  /** Whether receivers of heavy shuffles of the queue wait for their turn; names as in {@link #mode}. */
  boolean holds(String queue) {
    return of(queue, holds, hold);
  }

  /** Whether jobs of the queue stay where hintd sent their input; names as in {@link #mode}. */
  boolean homes(String queue) {
    return of(queue, homesOf, homes);
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
}
