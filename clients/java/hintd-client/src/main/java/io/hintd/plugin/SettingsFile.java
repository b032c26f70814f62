package io.hintd.plugin;

import java.io.File;
import java.io.IOException;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Settings read from a file, and again when it changed. A wrong file changes nothing and is logged and counted. */
public final class SettingsFile<S> {
  private static final Logger LOG = LoggerFactory.getLogger(SettingsFile.class);

  private final File file;
  private final Function<Properties, S> reader;
  private final LongAdder reloads;
  private final LongAdder refused;
  private volatile S settings;
  /** What was read last, right or wrong. */
  private byte[] seen;
  private boolean unreadable;

  /**
   * {@code file} may be null or missing: then all is as by default. {@code reader} throws {@link IllegalArgumentException} that
   * names every key that is wrong; {@code reloads} and {@code refused} count.
   */
  public SettingsFile(File file, Function<Properties, S> reader, LongAdder reloads, LongAdder refused) {
    this.file = file;
    this.reader = reader;
    this.reloads = reloads;
    this.refused = refused;
    settings = reader.apply(new Properties());
    look();
  }

  /** What is in force. */
  public S now() {
    return settings;
  }

  /** Reads the file if it changed; called every second, on one thread. */
  public void look() {
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
      settings = reader.apply(read);
      reloads.increment();
      LOG.info("hintd: {} is in force", file);
    } catch (IOException | IllegalArgumentException wrong) {
      refuse(wrong);
    }
  }

  private void refuse(Exception wrong) {
    refused.increment();
    LOG.error("hintd: {} is left out, what was in force stays: {}", file, wrong.getMessage());
  }
}
