package io.hintd.racks;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.client.TestDaemon;
import io.hintd.v1.ResolveRacksRequest;
import java.io.File;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.net.DNSToSwitchMapping;
import org.apache.hadoop.util.ReflectionUtils;
import org.apache.hadoop.yarn.util.RackResolver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HintdRackMappingTest {
  private static final String FILE =
      "format = \"hintd.racks/1\"\n[racks.\"/a\"]\nhosts = [\"n1\", \"db-*\"]\n[racks.\"/b\"]\nhosts = [\"n2\", \"127.0.0.9\"]\n";

  @TempDir Path folder;

  private static Configuration conf(String address, String fallback) {
    Configuration conf = new Configuration(false);
    conf.set(HintdRackMapping.ADDRESS, address);
    conf.set(HintdRackMapping.FALLBACK, fallback);
    return conf;
  }

  /** As the NameNode makes it. */
  private static HintdRackMapping made(Configuration conf) {
    DNSToSwitchMapping made = ReflectionUtils.newInstance(HintdRackMapping.class, conf);
    return (HintdRackMapping) made;
  }

  @Test
  void theFilesRacksAreTold() throws Exception {
    try (TestDaemon hintd = new TestDaemon("on")) {
      hintd.network(FILE);
      hintd.start();
      Configuration conf = conf(hintd.address(), "/none");
      conf.setLong(HintdRackMapping.START, 60_000);
      conf.setLong(HintdRackMapping.CACHE, 1);
      try (HintdRackMapping racks = made(conf)) {
        List<String> asked = Arrays.asList("n1", "n2", "db-7", "nobody", "127.0.0.9", "n1");
        assertEquals(Arrays.asList("/a", "/b", "/a", "/none", "/b", "/a"), racks.resolve(asked));
        assertEquals(Collections.emptyList(), racks.resolve(Collections.emptyList()));
        // What was known counts on while nobody answers; a host that was never asked for is by the fallback.
        hintd.kill();
        Thread.sleep(5); // no answer of before counts as such
        assertEquals(Arrays.asList("/a", "/none"), racks.resolve(Arrays.asList("n1", "db-8")));
      }
    }
  }

  @Test
  void yarnAsksByAddressAndIsToldByName() throws Exception {
    String name = InetAddress.getByName("127.0.0.1").getCanonicalHostName();
    try (TestDaemon hintd = new TestDaemon("on")) {
      hintd.network("format = \"hintd.racks/1\"\n[racks.\"/here\"]\nhosts = [\"" + name + "\"]\n");
      hintd.start();
      Configuration conf = conf(hintd.address(), "/none");
      conf.setLong(HintdRackMapping.START, 60_000);
      conf.setClass("net.topology.node.switch.mapping.impl", HintdRackMapping.class, DNSToSwitchMapping.class);
      // As the ResourceManager does where a NodeManager registers. One for all of the process: other tests may have had it.
      forgetRacks();
      RackResolver.init(conf);
      assertEquals("/here", RackResolver.resolve("127.0.0.1").getNetworkLocation());
    } finally {
      forgetRacks();
    }
  }

  private static void forgetRacks() throws Exception {
    Method reset = RackResolver.class.getDeclaredMethod("reset"); // for Hadoop's own tests
    reset.setAccessible(true);
    reset.invoke(null);
  }

  @Test
  void whatHangsHoldsNobodyUpForLongerThanItMay() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    AtomicInteger asked = new AtomicInteger();
    HintdRackMapping racks =
        new HintdRackMapping() {
          @Override
          List<String> resolved(ResolveRacksRequest request, long patienceMs) throws Exception {
            asked.incrementAndGet();
            end.await(60, TimeUnit.SECONDS);
            return Collections.emptyList();
          }
        };
    Configuration conf = conf("127.0.0.1:1", "/none");
    conf.setLong(HintdRackMapping.START, 200);
    conf.setLong(HintdRackMapping.TIMEOUT, 10);
    racks.setConf(conf);
    try {
      long began = System.nanoTime();
      for (int at = 0; at < 200; at++) {
        assertEquals(Collections.singletonList("/none"), racks.resolve(Collections.singletonList("n" + at)));
      }
      assertTrue(asked.get() <= 4, asked + " threads");
      // 200 ms and 199 times 10 ms, had each waited: a busy machine is given twenty times as much.
      assertTrue(System.nanoTime() - began < TimeUnit.SECONDS.toNanos(45));
    } finally {
      end.countDown();
      racks.close();
    }
  }

  @Test
  void oneThatIsSlowIsNotWaitedForUntilItAnswersInTime() throws Exception {
    long timeoutMs = 50;
    Semaphore may = new Semaphore(0);
    AtomicInteger answered = new AtomicInteger();
    HintdRackMapping racks =
        new HintdRackMapping() {
          @Override
          List<String> resolved(ResolveRacksRequest request, long patienceMs) throws Exception {
            assertTrue(may.tryAcquire(60, TimeUnit.SECONDS));
            answered.incrementAndGet();
            return Collections.singletonList("/a");
          }
        };
    Configuration conf = conf("127.0.0.1:1", "/none");
    conf.setLong(HintdRackMapping.START, 1);
    conf.setLong(HintdRackMapping.TIMEOUT, timeoutMs);
    racks.setConf(conf);
    try {
      for (int at = 0; at < 12; at++) {
        String name = "n" + at;
        assertEquals(Collections.singletonList("/none"), racks.resolve(Collections.singletonList(name)));
        Thread.sleep(timeoutMs + 10);
        may.release(); // it answers, always too late
        int expected = at + 1;
        until(() -> answered.get() == expected);
      }
      assertEquals(1 + 5, racks.waits(), "the first question, and as many as the breaker takes");
      may.release(1_000_000);
      int[] more = {0};
      until(() -> !racks.resolve(Collections.singletonList("m" + more[0]++)).isEmpty() && racks.waits() > 1 + 5);
    } finally {
      racks.close();
    }
  }

  private interface Check {
    boolean holds() throws Exception;
  }

  private static void until(Check check) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!check.holds()) {
      assertTrue(System.nanoTime() < end, "in time");
      Thread.sleep(10);
    }
  }

  @Test
  void aScriptThatHangsIsNotAskedAgainAndWhatItSaidCounts() throws Exception {
    File script = folder.resolve("racks.sh").toFile();
    File ran = folder.resolve("ran").toFile();
    File hang = folder.resolve("hang").toFile();
    Files.write(
        script.toPath(),
        Arrays.asList("#!/bin/sh", "echo \"$@\" >>" + ran, "while [ -e " + hang + " ]; do sleep 0.1; done", "echo /script"));
    assertTrue(script.setExecutable(true));
    Configuration conf = conf("127.0.0.1:1", "script");
    conf.set("net.topology.script.file.name", script.toString());
    conf.setLong(HintdRackMapping.SCRIPT, 3_000);
    try (HintdRackMapping racks = made(conf)) {
      until(() -> racks.resolve(Collections.singletonList("10.0.0.1")).get(0).equals("/script"));
      assertTrue(hang.createNewFile());
      until(() -> {
        assertEquals(Collections.singletonList("/default-rack"), racks.resolve(Collections.singletonList("10.0.0.2")));
        return Files.readAllLines(ran.toPath()).contains("10.0.0.2");
      });
      long waits = racks.scriptWaits();
      for (int at = 3; at < 6; at++) {
        assertEquals(
            Arrays.asList("/script", "/default-rack"), racks.resolve(Arrays.asList("10.0.0.1", "10.0.0." + at)));
      }
      assertEquals(waits, racks.scriptWaits(), "nobody waits for it again");
      assertTrue(hang.delete());
      until(() -> racks.resolve(Collections.singletonList("10.0.0.2")).get(0).equals("/script"));
      assertEquals(Arrays.asList("10.0.0.1", "10.0.0.2"), Files.readAllLines(ran.toPath()), "once each");
      until(() -> racks.resolve(Collections.singletonList("10.0.0.3")).get(0).equals("/script"));
    } finally {
      hang.delete();
    }
  }

  @Test
  void whatIsNoRackIsLeftOutAndWhatFailsIsAskedAgain() throws Exception {
    List<List<String>> answers = new ArrayList<>();
    answers.add(Arrays.asList("rack", "/a b", "/ok", "/x/"));
    HintdRackMapping racks =
        new HintdRackMapping() {
          @Override
          List<String> resolved(ResolveRacksRequest request, long patienceMs) {
            if (answers.isEmpty()) {
              throw new IllegalStateException("silent\nFAKE");
            }
            return answers.remove(0);
          }
        };
    Configuration conf = conf("127.0.0.1:1", "/none");
    conf.setLong(HintdRackMapping.CACHE, 1);
    conf.setLong(HintdRackMapping.START, 60_000);
    conf.setLong(HintdRackMapping.TIMEOUT, 10_000);
    racks.setConf(conf);
    try {
      assertEquals(Arrays.asList("/none", "/none", "/ok", "/none"), racks.resolve(Arrays.asList("a", "b", "c", "d")));
      Thread.sleep(5);
      assertEquals(Collections.singletonList("/ok"), racks.resolve(Collections.singletonList("c")), "it is kept");
      racks.reloadCachedMappings();
      assertEquals(Collections.singletonList("/none"), racks.resolve(Collections.singletonList("c")));
    } finally {
      racks.close();
    }
  }

  @Test
  void theScriptIsAskedForWhatHintdDoesNotSay() throws Exception {
    File script = folder.resolve("racks.sh").toFile();
    Files.write(script.toPath(), Arrays.asList("#!/bin/sh", "for host in \"$@\"; do echo /script; done"));
    assertTrue(script.setExecutable(true));
    Configuration conf = conf("127.0.0.1:1", "script");
    conf.set("net.topology.script.file.name", script.toString());
    conf.setLong(HintdRackMapping.SCRIPT, 60_000);
    try (HintdRackMapping racks = made(conf)) {
      assertEquals(Arrays.asList("/script", "/script"), racks.resolve(Arrays.asList("n1", "n2")));
    }
    conf.unset("net.topology.script.file.name");
    try (HintdRackMapping racks = made(conf)) {
      assertEquals(Collections.singletonList("/default-rack"), racks.resolve(Collections.singletonList("n1")));
    }
  }

  @Test
  void wrongSettingsAreNamed() {
    assertThrows(RuntimeException.class, () -> made(conf("127.0.0.1:1", "rack")));
    Configuration conf = conf("127.0.0.1:1", "script");
    conf.setLong(HintdRackMapping.TIMEOUT, 0);
    assertThrows(RuntimeException.class, () -> made(conf));
  }
}
