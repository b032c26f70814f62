package io.hintd.client;

import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import io.grpc.stub.StreamObserver;
import io.hintd.v1.DatasetItem;
import io.hintd.v1.EventItem;
import io.hintd.v1.FeedAck;
import io.hintd.v1.FeedGrpc;
import io.hintd.v1.FeedHello;
import io.hintd.v1.HeartbeatItem;
import io.hintd.v1.TaskEvent;
import io.hintd.v1.TopologyItem;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.UnaryOperator;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * One feed, told by a thread of its own and opened again when it breaks. Telling never blocks: beyond the bound, and
 * while the daemon is away, items are dropped and counted.
 *
 * @param <I> the items of the feed
 */
public final class FeedStream<I> implements AutoCloseable {
  private interface Open<I> {
    StreamObserver<I> with(FeedGrpc.FeedStub stub, StreamObserver<FeedAck> acks);
  }

  private static final Logger LOG = Logger.getLogger(FeedStream.class.getName());

  private final HintdClient client;
  private final Open<I> open;
  private final LongFunction<I> hello;
  private final UnaryOperator<I> shown;
  private final BlockingQueue<LongFunction<I>> waiting;
  private final Consumer<FeedAck> onAck;
  private final Runnable onOpen;
  private volatile Stream current;
  private final AtomicLong sent = new AtomicLong();
  private final AtomicLong acknowledged = new AtomicLong();
  private final AtomicLong dropped = new AtomicLong();
  private final AtomicLong refused = new AtomicLong();
  private final Thread teller;
  private volatile boolean closed;

  private FeedStream(
      HintdClient client, String name, int bound, Open<I> open, LongFunction<I> hello, UnaryOperator<I> shown,
      Runnable onOpen, Consumer<FeedAck> onAck) {
    this.client = client;
    this.open = open;
    this.hello = hello;
    this.shown = shown;
    this.onOpen = onOpen;
    this.onAck = onAck;
    this.waiting = new ArrayBlockingQueue<>(bound);
    this.teller = Threads.daemon("hintd-feed-" + name).newThread(this::run);
    teller.start();
  }

  /** Containers allocated and completed, applications done. */
  public static FeedStream<EventItem> events(HintdClient client, FeedHello hello, int bound) {
    return new FeedStream<>(
        client, "events", bound, FeedGrpc.FeedStub::events,
        number -> EventItem.newBuilder().setNumber(number).setHello(hello).build(), item -> shown(client, item),
        () -> {}, ack -> {});
  }

  /** With what shows that this client may tell of the application, unless its caller has put a token there. */
  private static EventItem shown(HintdClient client, EventItem item) {
    TaskEvent event = item.getEvent();
    if (!item.hasEvent() || !event.getToken().isEmpty() || !event.getNonce().isEmpty()) {
      return item;
    }
    return item.toBuilder()
        .setEvent(event.toBuilder().setNonce(client.nonce(event.getApplicationId())))
        .build();
  }

  /** Nodes. {@code onOpen} runs whenever a stream opens: register everything again. */
  public static FeedStream<HeartbeatItem> heartbeats(
      HintdClient client, FeedHello hello, int bound, Runnable onOpen, Consumer<FeedAck> onAck) {
    return new FeedStream<>(
        client, "heartbeats", bound, FeedGrpc.FeedStub::heartbeats,
        number -> HeartbeatItem.newBuilder().setNumber(number).setHello(hello).build(), item -> item, onOpen, onAck);
  }

  /** Paths with their blocks. */
  public static FeedStream<DatasetItem> datasets(
      HintdClient client, FeedHello hello, int bound, Runnable onOpen, Consumer<FeedAck> onAck) {
    return new FeedStream<>(
        client, "datasets", bound, FeedGrpc.FeedStub::datasets,
        number -> DatasetItem.newBuilder().setNumber(number).setHello(hello).build(), item -> item, onOpen, onAck);
  }

  /** The network. */
  public static FeedStream<TopologyItem> topology(
      HintdClient client, FeedHello hello, int bound, Runnable onOpen, Consumer<FeedAck> onAck) {
    return new FeedStream<>(
        client, "topology", bound, FeedGrpc.FeedStub::topology,
        number -> TopologyItem.newBuilder().setNumber(number).setHello(hello).build(), item -> item, onOpen, onAck);
  }

  /** Queues an item, made with its number when it leaves; false: dropped. */
  public boolean tell(LongFunction<I> item) {
    boolean taken = !closed && waiting.offer(item);
    if (!taken) {
      dropped.incrementAndGet();
    }
    return taken;
  }

  /** Items handed to streams that took them, greetings left out: what is lost with a stream counts no more. */
  public long sent() {
    return sent.get();
  }

  /** Items that the daemon looked at; below {@link #sent} by what is on its way. */
  public long acknowledged() {
    return acknowledged.get();
  }

  /** Items for which there was no room. */
  public long dropped() {
    return dropped.get();
  }

  /** Items that the daemon refused. */
  public long refused() {
    return refused.get();
  }

  /**
   * Whether, within the time, a stream is open that all told so far has left by, and the daemon has looked at it. What was
   * lost with an earlier stream is {@code onOpen}'s to tell again.
   */
  public boolean settled(long timeout, TimeUnit unit) throws InterruptedException {
    long end = System.nanoTime() + unit.toNanos(timeout);
    while (!(isOpen() && waiting.isEmpty() && acknowledged.get() >= sent.get())) {
      if (System.nanoTime() > end) {
        return false;
      }
      Thread.sleep(5);
    }
    return true;
  }

  @Override
  public void close() {
    closed = true;
    teller.interrupt();
  }

  private boolean isOpen() {
    Stream stream = current;
    return stream != null && stream.opened && stream.heard && !stream.ended;
  }

  private void run() {
    long pause = Repeat.FIRST_PAUSE;
    while (!closed) {
      Stream stream = new Stream();
      current = stream;
      try {
        if (told(stream)) {
          pause = Repeat.FIRST_PAUSE;
        }
        TimeUnit.NANOSECONDS.sleep(Repeat.jittered(pause));
        pause = Math.min(pause * 2, Repeat.LONGEST_PAUSE);
      } catch (InterruptedException stopped) {
        stream.end();
        stream.forget();
      }
    }
  }

  /** Whether the daemon answered at all. A mistake of {@code onOpen} or of an item ends this stream and not the feed. */
  private boolean told(Stream stream) throws InterruptedException {
    try {
      return stream.tellAll();
    } catch (RuntimeException wrong) {
      LOG.log(Level.WARNING, "a stream of a feed is given up", wrong);
      stream.end();
      stream.forget();
      return false;
    }
  }

  /** One life of the stream. Numbers begin anew with each. */
  private final class Stream implements ClientResponseObserver<I, FeedAck> {
    private volatile ClientCallStreamObserver<I> up;
    private volatile boolean ended;
    private volatile boolean heard;
    private volatile boolean opened;
    /** Of the item sent last, and of the last one looked at; guarded by this. */
    private long number = 1;
    private long through = 1;
    private boolean forgotten;

    /** Returns whether the daemon answered at all. */
    boolean tellAll() throws InterruptedException {
      open.with(client.feeds(), this);
      up.onNext(hello.apply(1));
      onOpen.run();
      opened = true;
      while (!ended && !closed) {
        // What waits at a stream that is not ready would pile up in memory without a bound.
        if (!awaitReady()) {
          continue;
        }
        LongFunction<I> next = waiting.poll(100, TimeUnit.MILLISECONDS);
        if (next != null && !ended) {
          up.onNext(shown.apply(next.apply(count())));
        }
      }
      end();
      forget();
      return heard;
    }

    /** Waits a little until gRPC takes more; whether it does. */
    private synchronized boolean awaitReady() throws InterruptedException {
      if (!up.isReady() && !ended) {
        wait(100);
      }
      return up.isReady() && !ended;
    }

    private synchronized void wake() {
      notifyAll();
    }

    private synchronized long count() {
      sent.incrementAndGet();
      return ++number;
    }

    /** What nobody looked at is lost; acknowledgements that still come count no more. */
    synchronized void forget() {
      if (!forgotten) {
        forgotten = true;
        sent.addAndGet(through - number);
      }
    }

    void end() {
      if (up != null && !ended) {
        ended = true;
        up.onCompleted();
      }
    }

    @Override
    public void beforeStart(ClientCallStreamObserver<I> stream) {
      up = stream;
      stream.setOnReadyHandler(this::wake);
    }

    @Override
    public void onNext(FeedAck ack) {
      heard = true;
      refused.addAndGet(ack.getRefusedCount());
      synchronized (this) {
        if (!forgotten && ack.getThrough() > through) {
          acknowledged.addAndGet(ack.getThrough() - through);
          through = ack.getThrough();
        }
      }
      onAck.accept(ack);
    }

    @Override
    public void onError(Throwable error) {
      ended = true;
      wake();
    }

    @Override
    public void onCompleted() {
      ended = true;
      wake();
    }
  }
}
