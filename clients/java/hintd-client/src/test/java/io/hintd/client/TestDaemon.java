package io.hintd.client;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.v1.ApplicationDone;
import io.hintd.v1.EventItem;
import io.hintd.v1.FeedHello;
import io.hintd.v1.HeartbeatItem;
import io.hintd.v1.NodeHeartbeat;
import io.hintd.v1.RegisterNode;
import io.hintd.v1.TaskEvent;
import io.hintd.v1.TaskFinished;
import io.hintd.v1.UsedMeans;
import io.hintd.yarn.ResourceProto;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;

/** A real hintd in a folder of its own: {@code start}, {@code kill} and {@code stop} as often as you like. */
public final class TestDaemon implements AutoCloseable {
  private final Path folder;
  private final int port;
  private Process process;

  /** Skips the test, and says so, where {@code HINTD_BIN} names no daemon. */
  public TestDaemon(String mode) throws IOException {
    String program = System.getenv("HINTD_BIN");
    if (program == null || !Files.isExecutable(Paths.get(program))) {
      System.err.println("SKIPPED: HINTD_BIN=PATH names the hintd to test with; it is " + program);
    }
    Assumptions.assumeTrue(
        program != null && Files.isExecutable(Paths.get(program)), "SKIPPED: HINTD_BIN names no hintd to test with");
    folder = Files.createTempDirectory("hintd-java");
    try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = free.getLocalPort();
    }
    configure(mode);
  }

  /** Takes effect at the next start. */
  public void configure(String mode) throws IOException {
    configure(mode, "spread");
  }

  /** The same, with another policy. */
  public void configure(String mode, String policy) throws IOException {
    List<String> lines =
        java.util.Arrays.asList(
            "listen = { grpc = \"" + address() + "\", admin_socket = \"" + folder + "/admin.sock\", metrics = \"\" }",
            "store = { path = \"" + folder + "/journal.redb\" }",
            "policy = { default = \"" + policy + "\" }",
            "placer = { guard = false }",
            // Nodes report once; a machine may be as busy as it likes.
            "model = { stale_after = \"10m\", lost_after = \"20m\", max_age = { heartbeats = \"30m\" } }",
            // Whoever asks for a turn: everything from 1 MB on is heavy.
            // Half of a home rack, so that a test sees whether the rack or the cluster caps it.
            "hold = { heavy = \"1ms\", home_share = 0.5 }",
            "queues = { \"*\" = { mode = \"" + mode + "\", hold = true } }");
    Files.write(folder.resolve("hintd.toml"), lines);
  }

  /** A job asks for its tasks, tells that four of each group ran, and ends: hintd knows a run of it then. */
  public static void run(HintdClient client, HintRequest request, String maps, String reduces) throws Exception {
    Answer answer = client.requestHints(request, Duration.ofSeconds(20));
    FeedStream<EventItem> events = FeedStream.events(client, FeedHello.newBuilder().setSource("test").build(), 100);
    for (String group : Arrays.asList(maps, maps, maps, maps, reduces, reduces, reduces, reduces, "")) {
      TaskEvent.Builder event =
          TaskEvent.newBuilder()
              .setApplicationId(request.attempt().applicationId())
              .setAttempt(1)
              .setGroup(group)
              .setToken(answer.token());
      TaskFinished.Builder finished =
          TaskFinished.newBuilder().setHost(Nodes.host(0)).setDurationMs(1_000).setInputBytes(1 << 30);
      TaskEvent told =
          group.isEmpty()
              ? event.setDone(ApplicationDone.getDefaultInstance()).build()
              : event.setFinished(finished.setOutputBytes(1 << 30)).build();
      events.tell(number -> EventItem.newBuilder().setNumber(number).setEvent(told).build());
    }
    assertTrue(events.settled(20, TimeUnit.SECONDS));
    events.close();
  }

  /** Racks from a network file; to be called before the start. */
  public void network(String text) throws IOException {
    Path file = folder.resolve("network.toml");
    Files.write(file, text.getBytes(UTF_8));
    String line = "network = { file = \"" + file + "\" }\n";
    Files.write(folder.resolve("hintd.toml"), line.getBytes(UTF_8), java.nio.file.StandardOpenOption.APPEND);
  }

  public String address() {
    return "127.0.0.1:" + port;
  }

  public TestDaemon start() throws IOException, InterruptedException {
    process =
        new ProcessBuilder(System.getenv("HINTD_BIN"), "--config", folder.resolve("hintd.toml").toString())
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile()))
            .start();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (true) {
      try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
        return this;
      } catch (IOException notYet) {
        assertTrue(process.isAlive() && System.nanoTime() < end, () -> "hintd does not start: " + log());
        Thread.sleep(20);
      }
    }
  }

  public void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  /** Stops it in its tracks (SIGSTOP), or lets it go on: a daemon that hangs. */
  public void hang(boolean hang) throws IOException, InterruptedException {
    long pid = pid();
    assertEquals(0, new ProcessBuilder("kill", hang ? "-STOP" : "-CONT", Long.toString(pid)).start().waitFor());
  }

  /** Nodes of 8 GB and 8 vcores that have reported; racks of two. */
  public Nodes nodes(HintdClient client, int count) throws IOException, InterruptedException {
    return nodes(client, count, 0);
  }

  /** The same, the first of them scale-up machines. */
  public Nodes nodes(HintdClient client, int count, int big) throws IOException, InterruptedException {
    return new Nodes(this, client, count, big);
  }

  /** Waits until hints are computed on so many nodes: an acknowledged item is in the next published model only. */
  private void awaitUsable(int count) throws IOException, InterruptedException {
    Pattern enough = Pattern.compile("\"nodes_usable\": *" + count + "\\b");
    String status;
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!enough.matcher(status = status()).find()) {
      assertTrue(System.nanoTime() < end, count + " usable nodes, by " + status);
      Thread.sleep(5);
    }
  }

  /** What {@code hintctl}, which lies beside the daemon, says of it. */
  private String status() throws IOException, InterruptedException {
    Path hintctl = Paths.get(System.getenv("HINTD_BIN")).resolveSibling("hintctl");
    Process asks =
        new ProcessBuilder(hintctl.toString(), "--json", "status", "--admin-socket", folder + "/admin.sock")
            .redirectErrorStream(true)
            .start();
    StringBuilder said = new StringBuilder();
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(asks.getInputStream(), UTF_8))) {
      lines.lines().forEach(line -> said.append(line).append('\n'));
    }
    asks.waitFor();
    return said.toString();
  }

  /** Closes what a test came to have, in this order; what it has not, as where it was skipped, is null. */
  public static void closeAll(AutoCloseable... held) throws Exception {
    for (AutoCloseable one : held) {
      if (one != null) {
        one.close();
      }
    }
  }

  @Override
  public void close() throws IOException, InterruptedException {
    if (process != null) {
      process.destroyForcibly().waitFor();
    }
    try (java.util.stream.Stream<Path> files = Files.walk(folder)) {
      files.sorted(Collections.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }

  private long pid() {
    try {
      // Process.pid is of Java 9.
      return ((Number) Process.class.getMethod("pid").invoke(process)).longValue();
    } catch (ReflectiveOperationException old) {
      throw new AssertionError(old);
    }
  }

  private String log() {
    try {
      return new String(Files.readAllBytes(folder.resolve("log")));
    } catch (IOException none) {
      return "";
    }
  }

  /** See {@link #nodes}. */
  public static final class Nodes implements AutoCloseable {
    /** Of this object only once the constructor has it; the stream may open before. */
    private volatile FeedStream<HeartbeatItem> feed;
    private final TestDaemon daemon;
    private final int count;
    private final int big;
    private int beats;

    private Nodes(TestDaemon daemon, HintdClient client, int count, int big) throws IOException, InterruptedException {
      this.daemon = daemon;
      this.count = count;
      this.big = big;
      FeedHello hello =
          FeedHello.newBuilder().setSource("test").setUsedMeans(UsedMeans.USED_MEANS_ALLOCATED).build();
      feed = FeedStream.heartbeats(client, hello, 10_000, this::register, ack -> {});
      beat();
    }

    public static String host(int node) {
      return "node-" + node;
    }

    public static String rack(int node) {
      return "/rack" + node / 2;
    }

    public void beat() throws IOException, InterruptedException {
      beats++;
      tellBeats(beats);
      assertTrue(feed.settled(60, TimeUnit.SECONDS));
      daemon.awaitUsable(count);
    }

    private void register() {
      while (feed == null) {
        Thread.yield();
      }
      for (int i = 0; i < count; i++) {
        int node = i;
        feed.tell(
            number ->
                HeartbeatItem.newBuilder()
                    .setNumber(number)
                    .setRegister(
                        RegisterNode.newBuilder()
                            .setHost(host(node))
                            .setPort(45454)
                            .setRack(rack(node))
                            .setMachineClass(node < big ? "scale-up" : "")
                            .setTotal(size(8192, 8)))
                    .build());
      }
      tellBeats(beats);
    }

    private void tellBeats(int beat) {
      for (int i = 0; i < count; i++) {
        int node = i;
        feed.tell(
            number ->
                HeartbeatItem.newBuilder()
                    .setNumber(number)
                    .setHeartbeat(
                        NodeHeartbeat.newBuilder().setHost(host(node)).setResponseId(beat).setUsed(size(0, 0)))
                    .build());
      }
    }

    private static ResourceProto size(long memory, int vcores) {
      return ResourceProto.newBuilder().setMemory(memory).setVirtualCores(vcores).build();
    }

    @Override
    public void close() {
      feed.close();
    }
  }
}
