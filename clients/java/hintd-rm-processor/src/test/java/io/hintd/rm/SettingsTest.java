package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.plugin.SettingsFile;
import io.hintd.rm.Settings.Mode;
import java.io.File;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SettingsTest {
  @Test
  void aQueueHasItsOwnModeOrItsNearestAncestors() throws IOException {
    Settings settings = of("mode=off\nmode.root.etl=on\nmode.root.etl.late=shadow\nmode.adhoc=shadow\n");
    assertEquals(Mode.ON, settings.mode("root.etl"));
    assertEquals(Mode.ON, settings.mode("root.etl.daily"));
    assertEquals(Mode.SHADOW, settings.mode("root.etl.late"));
    assertEquals(Mode.SHADOW, settings.mode("root.users.adhoc"), "by its leaf's name");
    assertEquals(Mode.OFF, settings.mode("root.etlx"));
    assertEquals(Mode.SHADOW, of("").mode("default"), "it starts in shadow");
  }

  @Test
  void aQueueHoldsAsItIsToldOrAsItsNearestAncestorIs() throws IOException {
    Settings settings = of("hold.root.etl=true\nhold.root.etl.late=false\n");
    assertTrue(settings.holds("root.etl.daily"));
    assertFalse(settings.holds("root.etl.late") || settings.holds("root.q"));
    assertTrue(of("hold=true").holds("root.q"));
    String wrong = assertThrows(IllegalArgumentException.class, () -> of("hold.root.q=yes\nhold-max-ms=-1")).getMessage();
    assertTrue(wrong.contains("hold.root.q=yes") && wrong.contains("hold-max-ms=-1"), wrong);
  }

  @Test
  void mapsStayWithTheirInputUnlessAQueueIsToldOtherwise() throws IOException {
    Settings settings = of("homes.root.etl=false\nhomes.root.etl.late=true\nhomes-wait-ms=500\n");
    assertFalse(settings.homes("root.etl.daily"));
    assertTrue(settings.homes("root.etl.late") && settings.homes("root.q"));
    assertEquals(500, settings.homesWaitMs);
    assertEquals(3_600_000, of("").homesWaitMs);
    assertFalse(of("homes=false").homes("root.q"));
  }

  @Test
  void everyWrongKeyIsNamed() {
    String wrong = assertThrows(IllegalArgumentException.class, () -> of("wait-ms=soon\nmod=on\nmode.a=yes\nevents=1")).getMessage();
    for (String key : new String[] {"wait-ms=soon", "mod:", "mode.a=yes", "events=1"}) {
      assertTrue(wrong.contains(key), wrong);
    }
  }

  @Test
  void theFileIsReadAgainWhenItChangedAndAWrongOneChangesNothing(@TempDir Path folder) throws IOException {
    Path path = folder.resolve("settings");
    Counters counters = new Counters();
    SettingsFile<Settings> file =
        new SettingsFile<>(path.toFile(), Settings::of, counters.reloads, counters.reloadsRefused);
    assertEquals(Mode.SHADOW, file.now().mode("a"), "not there yet");
    write(path, "mode=on");
    file.look();
    assertEquals(Mode.ON, file.now().mode("a"));
    write(path, "mode=onn");
    file.look();
    assertEquals(Mode.ON, file.now().mode("a"));
    write(path, "mode=off");
    file.look();
    assertEquals(Mode.OFF, file.now().mode("a"));
    assertEquals(1, counters.reloadsRefused.sum());
    assertEquals(2, counters.reloads.sum());
    file.look();
    assertEquals(2, counters.reloads.sum(), "nothing changed");
    FileTime then = Files.getLastModifiedTime(path);
    write(path, "mode= on");
    Files.setLastModifiedTime(path, then);
    file.look();
    assertEquals(Mode.ON, file.now().mode("a"), "as long and as old as before");
    assertEquals(Mode.SHADOW, new SettingsFile<>((File) null, Settings::of, counters.reloads, counters.reloadsRefused).now().mode("a"));
  }

  private static void write(Path path, String text) throws IOException {
    Files.write(path, text.getBytes());
  }

  private static Settings of(String text) throws IOException {
    Properties properties = new Properties();
    properties.load(new StringReader(text));
    return Settings.of(properties);
  }
}
