package io.hintd.rm;

import java.io.File;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Properties;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Settings read from a file, and again when it changed. A wrong file changes nothing and is logged and counted. */
final class SettingsFile {
  private static final Logger LOG = LoggerFactory.getLogger(SettingsFile.class);

  private final File file;
  private final Counters counters;
  private volatile Settings settings = Settings.of(new Properties());
  private long seen = -1;

  /** {@code file} may be null or missing: then all is as by default, in shadow. */
  SettingsFile(File file, Counters counters) {
    this.file = file;
    this.counters = counters;
    look();
  }

  Settings now() {
    return settings;
  }

  /** Reads the file if it changed; called every second, on one thread. */
  void look() {
    if (file == null || !file.canRead()) {
      return;
    }
    // Two writes within a clock tick differ in length, most likely.
    long stamp = file.lastModified() * 31 + file.length();
    if (stamp == seen) {
      return;
    }
    seen = stamp;
    Properties read = new Properties();
    try (Reader text = Files.newBufferedReader(file.toPath(), StandardCharsets.UTF_8)) {
      read.load(text);
      settings = Settings.of(read);
      counters.reloads.increment();
      LOG.info("hintd: {} is in force", file);
    } catch (IOException | IllegalArgumentException wrong) {
      counters.reloadsRefused.increment();
      LOG.error("hintd: {} is left out, what was in force stays: {}", file, wrong.getMessage());
    }
  }
}
