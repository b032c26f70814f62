package io.hintd.client;

import com.google.protobuf.ByteString;
import io.grpc.Context;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import io.hintd.v1.FollowMessage;
import io.hintd.v1.FollowRequest;
import io.hintd.v1.FollowStart;
import io.hintd.v1.PlacementGrpc;
import io.hintd.v1.TaskEvent;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * An attempt followed over restarts of the daemon: a stream that breaks is opened again after the last number seen.
 *
 * <p>Events that were on their way when a stream broke may be lost; the daemon learns of containers from heartbeats,
 * too.
 */
public final class Following implements AutoCloseable {
  /** Hears the daemon's advice, on one thread at a time; it must not block for long. */
  public interface Listener {
    /** A message with {@code gap} says that advice was lost: ask for hints again. */
    void advice(FollowMessage message);

    /** The attempt is done ({@code null}), or following it makes no sense, as with another attempt's token. */
    void ended(HintdException why);
  }

  // A process that was killed leaves CANCELLED, INTERNAL or UNKNOWN behind, by how its connection broke.
  private static final Set<Status.Code> BROKEN =
      EnumSet.of(Status.Code.UNAVAILABLE, Status.Code.CANCELLED, Status.Code.INTERNAL, Status.Code.UNKNOWN);

  private final Supplier<PlacementGrpc.PlacementStub> stub;
  private final Attempt attempt;
  /** Token and nonce: one of the two. */
  private final String token;
  private final ByteString nonce;
  private final Listener listener;
  private final Consumer<FollowMessage> noted;
  private final ScheduledExecutorService later =
      Executors.newSingleThreadScheduledExecutor(Threads.daemon("hintd-follow"));
  private final Object lock = new Object();
  private long last;
  private long pause = Repeat.FIRST_PAUSE;
  private StreamObserver<FollowRequest> up;
  private Context.CancellableContext call;
  private boolean closed;

  Following(
      Supplier<PlacementGrpc.PlacementStub> stub, Attempt attempt, String token, ByteString nonce, long after,
      Listener listener, Consumer<FollowMessage> noted) {
    this.stub = stub;
    this.attempt = attempt;
    this.token = token;
    this.nonce = nonce;
    this.last = after;
    this.listener = listener;
    this.noted = noted;
    open();
  }

  /** The last number seen: what to give {@link HintdClient#follow} later. */
  public long last() {
    synchronized (lock) {
      return last;
    }
  }

  /** Tells what happened to tasks; false: there is no stream at the moment, and nothing was told. */
  public boolean tell(List<TaskEvent> events) {
    synchronized (lock) {
      if (up == null) {
        return false;
      }
      up.onNext(FollowRequest.newBuilder().addAllEvents(events).build());
      return true;
    }
  }

  @Override
  public void close() {
    synchronized (lock) {
      closed = true;
      up = null;
      if (call != null) {
        call.cancel(null);
      }
    }
    later.shutdownNow();
  }

  private void open() {
    synchronized (lock) {
      if (closed) {
        return;
      }
      call = Context.ROOT.withCancellation();
      Context before = call.attach();
      try {
        up = stub.get().follow(new Down());
      } finally {
        call.detach(before);
      }
      FollowStart start =
          FollowStart.newBuilder()
              .setApplicationId(attempt.applicationId())
              .setAttempt(attempt.number())
              .setToken(token)
              .setNonce(nonce)
              .setResumeAfter(last)
              .build();
      up.onNext(FollowRequest.newBuilder().setStart(start).build());
    }
  }

  private final class Down implements StreamObserver<FollowMessage> {
    @Override
    public void onNext(FollowMessage message) {
      synchronized (lock) {
        last = message.getNumber();
        pause = Repeat.FIRST_PAUSE;
      }
      noted.accept(message);
      listener.advice(message);
    }

    @Override
    public void onError(Throwable error) {
      StatusRuntimeException status =
          Status.fromThrowable(error).asRuntimeException(Status.trailersFromThrowable(error));
      boolean broken = BROKEN.contains(status.getStatus().getCode());
      synchronized (lock) {
        up = null;
        if (closed) {
          return;
        }
        if (broken) {
          long wait = Repeat.jittered(Math.max(pause, Repeat.askedFor(status)));
          pause = Math.min(pause * 2, Repeat.LONGEST_PAUSE);
          try {
            later.schedule(Following.this::open, wait, TimeUnit.NANOSECONDS);
            return;
          } catch (RejectedExecutionException closing) {
            return;
          }
        }
        closed = true;
      }
      later.shutdown();
      listener.ended(Repeat.of(status, 0));
    }

    @Override
    public void onCompleted() {
      synchronized (lock) {
        up = null;
        closed = true;
      }
      later.shutdown();
      listener.ended(null);
    }
  }
}
