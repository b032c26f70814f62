package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.junit.jupiter.api.Test;

/** Asks that wait for their turn, in cases and at random. */
class TurnsTest {
  private static final Key REDUCES = new Key(10, -1);

  private final Turns turns = new Turns();

  private static ResourceRequest row(int priority, String place, int count) {
    return ResourceRequest.newInstance(Priority.newInstance(priority), place, Resource.newInstance(1024, 1), count, true);
  }

  private String send(ResourceRequest... rows) {
    List<ResourceRequest> asks = Arrays.asList(rows);
    turns.came(asks, key -> key.priority == 10);
    return told(turns.pass(asks));
  }

  private static String told(List<ResourceRequest> rows) {
    List<String> text = new ArrayList<>();
    rows.forEach(row -> text.add(row.getPriority().getPriority() + ":" + row.getResourceName() + "=" + row.getNumContainers()));
    return String.join(" ", text);
  }

  @Test
  void whatWaitsGoesLaterAndTheApplicationsOwnRowStaysAsItIs() {
    assertEquals("", send());
    ResourceRequest own = row(10, "*", 9);
    turns.came(Collections.singletonList(own), key -> true);
    turns.most(REDUCES, 0);
    assertEquals("", told(turns.pass(Collections.singletonList(own))));
    assertEquals(9, turns.held());
    turns.most(REDUCES, 4);
    assertEquals("10:*=4", send());
    assertEquals(9, own.getNumContainers());
    turns.delivered(REDUCES);
    turns.delivered(REDUCES);
    assertEquals("", send(), "two run, and two are asked for");
    turns.ended(REDUCES, false);
    assertEquals("10:*=3", send());
    turns.most(REDUCES, 0);
    assertEquals("", send(), "what stands is not taken back");
    turns.most(REDUCES, Turns.ALL);
    assertEquals("10:*=7", send());
    assertEquals(0, turns.held());
  }

  @Test
  void whatWasOnItsWayWhenTheApplicationAskedAgainIsNotGivenTwice() {
    turns.came(Collections.singletonList(row(10, "*", 9)), key -> true);
    turns.most(REDUCES, 4);
    assertEquals("10:*=4", told(turns.pass(Collections.singletonList(row(10, "*", 9)))));
    turns.delivered(REDUCES);
    turns.delivered(REDUCES);
    // YARN gave all four before it was told of two more.
    assertEquals("10:*=2", send(row(10, "*", 7)));
    turns.delivered(REDUCES);
    turns.delivered(REDUCES);
    assertEquals("10:*=0", send(row(10, "*", 5)), "so it has two that nobody is to get now");
    assertEquals("", send(row(10, "*", 5)), "and knows it");
    assertEquals(5, turns.held());
  }

  @Test
  void anApplicationThatCancelsIsObeyed() {
    send(row(10, "*", 9));
    turns.most(REDUCES, 4);
    assertEquals("10:*=0", send(row(10, "*", 0)));
    turns.most(REDUCES, 0);
    assertEquals("", send(row(10, "*", 5)), "it is a new ask");
    assertEquals(5, turns.held());
  }

  @Test
  void mapsAndKeysWithPlacesOfTheirOwnPass() {
    List<ResourceRequest> maps = Arrays.asList(row(20, "*", 3), row(20, "h1", 3));
    turns.came(maps, key -> key.priority == 10);
    turns.most(new Key(20, -1), 0);
    assertSame(maps, turns.pass(maps));
    assertEquals("10:h1=2 10:/r=2 10:*=2", send(row(10, "h1", 2), row(10, "/r", 2), row(10, "*", 2)));
    turns.most(REDUCES, 0);
    assertEquals("10:*=4", send(row(10, "*", 4)), "for good");
    assertTrue(turns.open().isEmpty());
  }

  @Test
  void whatIsGivenUpIsSentWhole() {
    send(row(10, "*", 9));
    turns.most(REDUCES, 2);
    turns.came(Collections.emptyList(), key -> true);
    assertEquals("10:*=9", told(turns.passAll(Collections.emptyList())));
    assertEquals(0, turns.held());
  }

  /** Beside a table as YARN keeps it. */
  @Test
  void yarnIsAskedForNoMoreThanTheApplicationWantsAndForAllOfItInTheEnd() {
    int heldInAll = 0;
    for (int seed = 0; seed < 2_000; seed++) {
      heldInAll += run(new Random(seed), new Turns());
    }
    assertTrue(heldInAll > 5_000, "the test holds: " + heldInAll);
  }

  private static int run(Random random, Turns turns) {
    int wish = 0;
    int yarn = 0;
    int running = 0;
    int most = Turns.ALL;
    int held = 0;
    for (int step = 0; step < 40; step++) {
      boolean cancels = false;
      List<ResourceRequest> asks = new ArrayList<>();
      if (random.nextInt(3) == 0) {
        int next = random.nextInt(12);
        cancels = next < wish;
        wish = next;
        asks.add(row(10, "*", wish));
      }
      if (random.nextInt(3) == 0) {
        most = random.nextInt(4) == 0 ? Turns.ALL : random.nextInt(8);
      }
      turns.came(asks, key -> true);
      turns.most(REDUCES, most);
      int before = yarn;
      for (ResourceRequest row : turns.pass(asks)) {
        yarn = row.getNumContainers();
      }
      assertTrue(yarn <= wish, "of " + wish + " wanted " + yarn + " stand");
      assertTrue(cancels || yarn >= before, "what stood is taken back");
      assertTrue(yarn <= before || most == Turns.ALL || running + yarn <= most, "beyond " + most);
      assertTrue(most != Turns.ALL || yarn == wish, "held for nothing");
      assertEquals(wish - yarn, turns.held());
      held += wish - yarn;
      for (int given = random.nextInt(yarn + 1); given > 0; given--) {
        turns.delivered(REDUCES);
        wish--;
        yarn--;
        running++;
      }
      for (int ended = random.nextInt(running + 1); ended > 0; ended--) {
        turns.ended(REDUCES, random.nextBoolean());
        running--;
      }
    }
    return held;
  }
}
