package io.hintd.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class SaidOnceTest {
  private final SaidOnce said = new SaidOnce();

  @Test
  void aKindIsDueOnceInTenMinutesAndAfterAllIsWellAgain() {
    assertTrue(said.due("a", 0));
    assertFalse(said.due("a", 599_999));
    assertTrue(said.due("b", 599_999));
    assertTrue(said.due("a", 600_000));
    assertFalse(said.due("a", 600_001));
    said.clear();
    assertTrue(said.due("a", 600_001));
  }

  @Test
  void kindsWithoutEndNeitherFillTheLogNorTheMemory() {
    int due = 0;
    for (int kind = 0; kind < 5_000; kind++) {
      due += said.due("kind-" + kind, 0) ? 1 : 0;
    }
    assertEquals(SaidOnce.KINDS_MAX, due);
    assertTrue(said.due("kind-4999", 600_000), "those of before are forgotten");
  }

  @Test
  void ofThreadsThatAskTogetherOneIsTold() throws Exception {
    int threads = 4;
    int kinds = 500;
    CyclicBarrier together = new CyclicBarrier(threads);
    AtomicInteger due = new AtomicInteger();
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      List<Future<Void>> askers = new ArrayList<>();
      for (int thread = 0; thread < threads; thread++) {
        askers.add(
            pool.submit(
                () -> {
                  for (int kind = 0; kind < kinds; kind++) {
                    together.await(60, TimeUnit.SECONDS);
                    due.addAndGet(said.due("kind-" + kind, 0) ? 1 : 0);
                  }
                  return null;
                }));
      }
      for (Future<Void> asker : askers) {
        asker.get(120, TimeUnit.SECONDS);
      }
    } finally {
      pool.shutdownNow();
    }
    assertEquals(kinds, due.get());
  }
}
