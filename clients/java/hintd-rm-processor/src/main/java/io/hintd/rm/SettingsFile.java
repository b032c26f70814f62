package io.hintd.rm;

import java.io.File;
import java.io.IOException;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Properties;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Settings read from a file, and again when it changed. A wrong file changes nothing and is logged and counted. */
final class SettingsFile {
  private static final Logger LOG = LoggerFactory.getLogger(SettingsFile.class);

  private final File file;
  private final Counters counters;
  private volatile Settings settings = Settings.of(new Properties());
  /** What was read last, right or wrong. */
  private byte[] seen;
  private boolean unreadable;

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
    byte[] text;
    try {
      text = Files.readAllBytes(file.toPath());
    } catch (IOException wrong) {
      if (!unreadable) {
        unreadable = true;
        refuse(wrong);
      }
      return;
    }
    unreadable = false;
    // Not its time and length: two writes within a tick of the clock may have both in common.
    if (Arrays.equals(text, seen)) {
      return;
    }
    seen = text;
    Properties read = new Properties();
    try {
      read.load(new StringReader(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(text)).toString()));
      settings = Settings.of(read);
      counters.reloads.increment();
      LOG.info("hintd: {} is in force", file);
    } catch (IOException | IllegalArgumentException wrong) {
      refuse(wrong);
    }
  }

  private void refuse(Exception wrong) {
    counters.reloadsRefused.increment();
    LOG.error("hintd: {} is left out, what was in force stays: {}", file, wrong.getMessage());
  }
}
