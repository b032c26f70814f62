package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.TestDaemon;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.apache.log4j.AppenderSkeleton;
import org.apache.log4j.Level;
import org.apache.log4j.Logger;
import org.apache.log4j.spi.LoggingEvent;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the ResourceManager's log says of hintd; hintd is real. */
class DaemonTest {
  private static final Logger LOG = Logger.getLogger(Daemon.class);

  private final List<String> lines = new CopyOnWriteArrayList<>();
  private final AppenderSkeleton appender =
      new AppenderSkeleton() {
        @Override
        protected void append(LoggingEvent event) {
          lines.add(event.getRenderedMessage());
        }

        @Override
        public void close() {}

        @Override
        public boolean requiresLayout() {
          return false;
        }
      };

  @BeforeEach
  void listen() {
    LOG.setLevel(Level.INFO);
    LOG.addAppender(appender);
  }

  @AfterEach
  void stop() {
    LOG.removeAppender(appender);
  }

  @Test
  void thatItDoesNotAnswerYetIsCorrectedOnceThoughNobodyAsks() throws Exception {
    Properties properties = new Properties();
    try (TestDaemon hintd = new TestDaemon("on");
        Daemon daemon = new Daemon(new Counters())) {
      properties.setProperty("address", hintd.address());
      Settings settings = Settings.of(properties);
      daemon.use(settings);
      String about = "hintd: " + hintd.address();
      assertEquals(Arrays.asList(about + " does not answer yet"), lines);
      daemon.use(settings);
      TimeUnit.MILLISECONDS.sleep(100);
      assertEquals(1, lines.size(), "it is as it was: " + lines);
      hintd.start();
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (lines.size() < 2) {
        assertTrue(System.nanoTime() < end, lines::toString);
        daemon.use(settings); // as every second
        TimeUnit.MILLISECONDS.sleep(20);
      }
      for (int again = 0; again < 10; again++) {
        daemon.use(settings);
        TimeUnit.MILLISECONDS.sleep(20);
      }
      assertEquals(Arrays.asList(about + " does not answer yet", about + " answers"), lines);
    }
  }
}
