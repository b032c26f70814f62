package io.hintd.hdfs;

import io.hintd.plugin.Breaker;
import io.hintd.plugin.SettingsReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** What the policy is told to do. Unknown keys and wrong values are refused, all at once. */
final class Settings {
  /** What comes of advice. */
  enum Mode {
    /** hintd is not asked; all is HDFS's. */
    OFF,
    /** hintd is asked, and where HDFS puts the block is compared. */
    SHADOW,
    /** One replica goes where hintd says. */
    ON
  }

  final Mode mode;
  /** hintd's gRPC address. */
  final String address;
  /** The longest that a new block waits for an answer, ms. */
  final long timeoutMs;
  /** Questions under way at one time, so handlers that wait, too. */
  final int waiting;
  /** hintd's time for an answer, ms; one that comes too late for its block is there for the next. */
  final long deadlineMs;
  /** Files remembered, and for how long, ms; those without an answer for so long. */
  final int cache;
  final long cacheMs;
  final long retryMs;
  /** Blocks of a file that are asked for at once; further ones go by turns. */
  final int blocks;
  /** Folders whose files are asked for, and those of them that are not. */
  final List<String> paths;
  final List<String> skip;
  /** What opens the breaker. */
  final Breaker.Limits breaker;

  private Settings(SettingsReader from) {
    mode = from.word("mode", Mode.SHADOW);
    address = from.text("address", "127.0.0.1:8470");
    timeoutMs = from.number("timeout-ms", 20, 0, 1_000);
    waiting = (int) from.number("waiting", 4, 0, 1_000);
    deadlineMs = from.number("deadline-ms", 1_000, 1, 30_000);
    cache = (int) from.number("cache", 10_000, 1, 1_000_000);
    cacheMs = from.number("cache-ms", 600_000, 1, 86_400_000);
    retryMs = from.number("retry-ms", 10_000, 1, 86_400_000);
    blocks = (int) from.number("blocks", 16, 1, 1_000);
    paths = folders(from, "paths", "/");
    skip = folders(from, "skip", "/tmp,/app-logs,/mr-history,/system");
    breaker = Breaker.Limits.read(from, timeoutMs);
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

  /** Whether files of that final path are asked for: hidden ones and markers never are. */
  boolean concerns(String path) {
    if (path.contains("/.") || path.startsWith("_", path.lastIndexOf('/') + 1)) {
      return false;
    }
    return within(path, paths) && !within(path, skip);
  }

  private static boolean within(String path, List<String> folders) {
    for (String folder : folders) {
      if (path.startsWith(folder) && (path.length() == folder.length() || path.charAt(folder.length()) == '/')) {
        return true;
      }
    }
    return false;
  }

  /** Without the slash at their ends. */
  private static List<String> folders(SettingsReader from, String key, String otherwise) {
    List<String> folders = new ArrayList<>();
    for (String folder : from.text(key, otherwise).split(",")) {
      String named = folder.trim();
      if (named.startsWith("/")) {
        folders.add(named.replaceAll("/+$", ""));
      } else if (!named.isEmpty()) {
        from.wrong(key + "=" + named + ": not from the root");
      }
    }
    return folders;
  }
}
