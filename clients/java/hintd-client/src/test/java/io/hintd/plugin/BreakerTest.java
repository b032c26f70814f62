package io.hintd.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BreakerTest {
  private final Breaker.Limits settings = new Breaker.Limits(20, 3, 5_000, 60_000);
  private final Breaker breaker = new Breaker();

  @Test
  void itOpensAfterFailuresInARowAndLetsOneThroughToSee() {
    assertFalse(breaker.failed(settings, 0) || breaker.failed(settings, 0));
    breaker.answered();
    assertFalse(breaker.failed(settings, 0) || breaker.failed(settings, 0));
    assertTrue(breaker.failed(settings, 0));
    assertFalse(breaker.ask(4_999) || breaker.wait(settings));
    assertTrue(breaker.ask(5_000));
    assertFalse(breaker.ask(5_000), "one only");
    assertTrue(breaker.failed(settings, 5_100), "and stays open for twice as long");
    assertFalse(breaker.ask(15_000));
    assertTrue(breaker.ask(15_100));
    assertTrue(breaker.answered());
    assertTrue(breaker.ask(15_100) && breaker.ask(15_100) && !breaker.isOpen());
  }

  @Test
  void whoeverIsSlowIsNotWaitedForUntilItAnsweredInTime() {
    for (int i = 0; i < 5; i++) {
      assertTrue(breaker.wait(settings));
      breaker.waited(true);
    }
    assertFalse(breaker.wait(settings));
    breaker.cameLate(true);
    assertTrue(breaker.wait(settings));
  }

  @Test
  void quantilesAreWithinASixteenth() {
    Histogram histogram = new Histogram();
    for (int micros = 1; micros <= 1_000; micros++) {
      histogram.add(micros * 1_000L);
    }
    assertEquals(500, histogram.quantile(0.5), 500 / 16.0);
    assertEquals(990, histogram.quantile(0.99), 990 / 16.0);
    assertEquals(1_000, histogram.count());
    histogram.clear();
    assertEquals(0, histogram.quantile(0.5));
  }
}
