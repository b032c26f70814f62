package io.hintd.client;

import com.google.protobuf.ByteString;
import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.AbstractStub;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import io.hintd.v1.ExplainRequest;
import io.hintd.v1.ExplainResponse;
import io.hintd.v1.FeedGrpc;
import io.hintd.v1.HintSet;
import io.hintd.v1.InputHomesRequest;
import io.hintd.v1.InputHomesResponse;
import io.hintd.v1.PlacementGrpc;
import io.hintd.v1.ReleaseRequest;
import io.hintd.v1.ReplicasRequest;
import io.hintd.v1.ReplicasResponse;
import io.hintd.v1.RequestHintsResponse;
import io.hintd.v1.ResolveRacksRequest;
import io.hintd.v1.ResolveRacksResponse;
import io.hintd.v1.ShuffleTurnRequest;
import io.hintd.v1.ShuffleTurnResponse;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.logging.Level;
import java.util.logging.Logger;

/** A daemon, as applications see it. May be shared by threads; close it. */
public final class HintdClient implements AutoCloseable {
  /** Questions that nobody waits for, so that the first real one does not run in the interpreter alone. */
  private static final int WARM_ASKS = 20;

  private static final Logger LOG = Logger.getLogger(HintdClient.class.getName());
  /** Answers of 100,000 hints stay below it. */
  private static final int MESSAGE_BYTES = 64 << 20;

  /** Decisions whose application is remembered, so that they can be explained. */
  private static final int DECISIONS_NOTED = 1_024;

  private static final Metadata.Key<String> TRACEPARENT = Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);

  private final ManagedChannel channel;
  private final Secret secret;
  private final Map<String, String> decisions =
      Collections.synchronizedMap(
          new LinkedHashMap<String, String>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, String> eldest) {
              return size() > DECISIONS_NOTED;
            }
          });

  private HintdClient(Secret secret, ManagedChannel channel) {
    this.secret = secret;
    this.channel = channel;
  }

  /** A client of the daemon at {@code host:port}; connects when it is first used. No other is the same to the daemon. */
  public static HintdClient to(String address) {
    return to(address, Secret.random());
  }

  /** As {@link #to(String)}: the same client to the daemon as every other of this secret. */
  public static HintdClient to(String address, Secret secret) {
    return to(address, secret, MESSAGE_BYTES);
  }

  /** As {@link #to(String, Secret)}; answers of more than {@code messageBytes} are not read, and count as refused. */
  public static HintdClient to(String address, Secret secret, int messageBytes) {
    return new HintdClient(
        secret,
        NettyChannelBuilder.forTarget(address)
            .usePlaintext()
            .maxInboundMessageSize(messageBytes)
            // Repeats are ours: they know the caller's patience and what the daemon asked for.
            .disableRetry()
            .build());
  }

  /**
   * Asks, and again while the daemon is overloaded or restarts, within {@code patience}. Asking again with the same
   * request is safe, also after {@link HintdException.OutOfTime}.
   */
  public Answer requestHints(HintRequest request, Duration patience) throws HintdException {
    return Repeat.until(
        patience.toNanos(),
        left -> {
          RequestHintsResponse response =
              traced(PlacementGrpc.newBlockingStub(fresh()), request)
                  .withDeadlineAfter(left, TimeUnit.NANOSECONDS)
                  .requestHints(request.toWire(TimeUnit.NANOSECONDS.toMillis(left), secret));
          return noted(request, Answer.of(response));
        });
  }

  /**
   * As {@link #requestHints}, but never throws for the daemon's sake: hints are advice, and an application that gets
   * none asks YARN as it would without hintd.
   */
  public Answer hintsOrNone(HintRequest request, Duration patience) {
    try {
      return requestHints(request, patience);
    } catch (HintdException.OutOfTime late) {
      LOG.log(Level.INFO, "no hints for {0}: {1}", new Object[] {request.attempt(), late.getMessage()});
      return Answer.none(late.getMessage());
    } catch (HintdException refused) {
      LOG.log(Level.WARNING, "no hints for {0}: {1}", new Object[] {request.attempt(), refused.getMessage()});
      return Answer.none(refused.getMessage());
    }
  }

  /**
   * Asks once and does not wait. The future fails with {@link HintdException}; it is completed on a thread of the
   * connection's, so nothing that blocks may hang on it.
   */
  public CompletableFuture<Answer> ask(HintRequest request, Duration deadline) {
    CompletableFuture<Answer> answer = new CompletableFuture<>();
    long began = System.nanoTime();
    traced(PlacementGrpc.newStub(fresh()), request)
        .withDeadlineAfter(deadline.toNanos(), TimeUnit.NANOSECONDS)
        .requestHints(
            request.toWire(deadline.toMillis(), secret),
            new One<RequestHintsResponse>(
                response -> answer.complete(noted(request, Answer.of(response))),
                error -> answer.completeExceptionally(Repeat.of(error, System.nanoTime() - began))));
    return answer;
  }

  /**
   * Whether receivers of an attempt's shuffle should be asked for now. As {@link #ask} it asks once and does not wait; who
   * gets no answer asks YARN as before. The client's nonce is added.
   */
  public CompletableFuture<ShuffleTurnResponse> shuffleTurn(ShuffleTurnRequest.Builder request, Duration deadline) {
    ShuffleTurnRequest whole = request.setNonce(nonce(request.getApplicationId())).build();
    return once(deadline, (stub, told) -> stub.shuffleTurn(whole, told));
  }

  /**
   * Where replicas of new data should go. As {@link #ask} it asks once and does not wait; who gets no answer leaves it to HDFS.
   */
  public CompletableFuture<ReplicasResponse> replicas(ReplicasRequest request, Duration deadline) {
    return once(deadline, (stub, told) -> stub.replicas(request, told));
  }

  /**
   * Racks to which an attempt's input was sent, and for how long its tasks are best waited for there ({@code patience_ms}, at
   * 0 30 s). As {@link #ask} it asks once and does not wait; who gets no answer asks YARN as before. The client's nonce is added.
   */
  public CompletableFuture<InputHomesResponse> inputHomes(InputHomesRequest.Builder request, Duration deadline) {
    InputHomesRequest whole = request.setNonce(nonce(request.getApplicationId())).build();
    return once(deadline, (stub, told) -> stub.inputHomes(whole, told));
  }

  /**
   * The racks that the daemon's network file puts hosts in, in the order of the question; empty: it does not say. Asks once and
   * does not wait; at most 1,000 hosts.
   */
  public CompletableFuture<ResolveRacksResponse> resolveRacks(ResolveRacksRequest request, Duration deadline) {
    return once(deadline, (stub, told) -> stub.resolveRacks(request, told));
  }

  private <T> CompletableFuture<T> once(Duration deadline, BiConsumer<PlacementGrpc.PlacementStub, StreamObserver<T>> call) {
    CompletableFuture<T> answer = new CompletableFuture<>();
    long began = System.nanoTime();
    call.accept(
        PlacementGrpc.newStub(fresh()).withDeadlineAfter(deadline.toNanos(), TimeUnit.NANOSECONDS),
        new One<>(answer::complete, error -> answer.completeExceptionally(Repeat.of(error, System.nanoTime() - began))));
    return answer;
  }

  private static <S extends AbstractStub<S>> S traced(S stub, HintRequest request) {
    if (request.traceparent().isEmpty()) {
      return stub;
    }
    Metadata headers = new Metadata();
    headers.put(TRACEPARENT, request.traceparent());
    return stub.withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  private Answer noted(HintRequest request, Answer answer) {
    if (!answer.decisionId().isEmpty()) {
      decisions.put(answer.decisionId(), request.attempt().applicationId());
    }
    return answer;
  }

  /**
   * Gives leases back (none named: all of the attempt's); returns how many were still held. {@code token}: needed for what
   * another client asked for, else "".
   */
  public int release(Attempt attempt, String token, Collection<Long> leases, Duration patience) throws HintdException {
    return Repeat.until(
        patience.toNanos(),
        left ->
            PlacementGrpc.newBlockingStub(fresh())
                .withDeadlineAfter(left, TimeUnit.NANOSECONDS)
                .release(releaseOf(attempt, token, leases))
                .getReleased());
  }

  /** Gives leases back and does not wait; one that is not given back ends by itself. */
  public void releaseLater(Attempt attempt, String token, Collection<Long> leases, Duration deadline) {
    PlacementGrpc.newStub(fresh())
        .withDeadlineAfter(deadline.toNanos(), TimeUnit.NANOSECONDS)
        .release(
            releaseOf(attempt, token, leases),
            new One<>(
                response -> {},
                error -> LOG.log(Level.FINE, "leases of {0} were not given back: {1}", new Object[] {attempt, error})));
  }

  /** Why a decision came out as it did: one of the last that this client was given. */
  public ExplainResponse explain(String decisionId, Duration patience) throws HintdException {
    return Repeat.until(
        patience.toNanos(),
        left ->
            PlacementGrpc.newBlockingStub(fresh())
                .withDeadlineAfter(left, TimeUnit.NANOSECONDS)
                .explain(explainOf(decisionId)));
  }

  /**
   * Follows an attempt: advice down, task events up. {@code token}: needed for what another client asked for, else "";
   * {@code after}: the last number seen before, or 0.
   */
  public Following follow(Attempt attempt, String token, long after, Following.Listener listener) {
    ByteString nonce = token.isEmpty() ? nonce(attempt.applicationId()) : ByteString.EMPTY;
    return new Following(
        () -> PlacementGrpc.newStub(fresh()), attempt, token, nonce, after, listener,
        message -> decisions.put(message.getHints().getDecisionId(), attempt.applicationId()));
  }

  /** What shows that this is the client which asked for the application. */
  ByteString nonce(String applicationId) {
    return ByteString.copyFrom(secret.nonce(applicationId));
  }

  private ExplainRequest explainOf(String decisionId) {
    String application = decisions.get(decisionId);
    ByteString nonce = application == null ? ByteString.EMPTY : nonce(application);
    return ExplainRequest.newBuilder().setDecisionId(decisionId).setNonce(nonce).build();
  }

  /**
   * Connects, and loads the classes that asking needs, which takes a second or more in a fresh process: for whoever asks
   * on a thread that must not wait. Blocks for at most {@code patience}; returns whether the daemon answered.
   */
  public boolean warm(Duration patience) {
    HintRequest request = new HintRequest(new Attempt("", 1)).group(new Group("", 1, 1, 1)).policy("warm");
    try {
      // What an answer with hints is read by, too: refusals have none.
      HintSet hints = HintSet.newBuilder().addHints(io.hintd.v1.Hint.newBuilder().setHost("h").setGroup("g")).build();
      Answer.of(RequestHintsResponse.parseFrom(RequestHintsResponse.newBuilder().setHints(hints).build().toByteArray()));
      long end = System.nanoTime() + patience.toNanos();
      for (int again = 0; again < WARM_ASKS; again++) {
        warmOnce(request, Math.max(end - System.nanoTime(), 1));
      }
      return true;
    } catch (com.google.protobuf.InvalidProtocolBufferException own) {
      throw new IllegalStateException("what was written is read", own);
    } catch (java.util.concurrent.ExecutionException | java.util.concurrent.TimeoutException silent) {
      return false;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Returns where the daemon refused, as it is to. */
  private void warmOnce(HintRequest request, long nanos)
      throws InterruptedException, java.util.concurrent.ExecutionException, java.util.concurrent.TimeoutException {
    try {
      // No attempt has this name: the daemon refuses it at once, and remembers nothing.
      ask(request, Duration.ofNanos(nanos)).get(nanos, TimeUnit.NANOSECONDS);
    } catch (java.util.concurrent.ExecutionException refused) {
      if (!(refused.getCause() instanceof HintdException.Refused)) {
        throw refused;
      }
    }
  }

  /** Opens feeds. */
  FeedGrpc.FeedStub feeds() {
    return FeedGrpc.newStub(fresh());
  }

  @Override
  public void close() {
    channel.shutdownNow();
    try {
      channel.awaitTermination(5, TimeUnit.SECONDS);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * The channel, which tries to connect now if it last failed to. By itself it would wait for up to two minutes, while
   * a daemon that is back should be found by the next call; how often calls come is limited by who makes them.
   */
  private ManagedChannel fresh() {
    if (channel.getState(false) == ConnectivityState.TRANSIENT_FAILURE) {
      channel.resetConnectBackoff();
    }
    return channel;
  }

  private ReleaseRequest releaseOf(Attempt attempt, String token, Collection<Long> leases) {
    return ReleaseRequest.newBuilder()
        .setApplicationId(attempt.applicationId())
        .setAttempt(attempt.number())
        .setToken(token)
        .setNonce(token.isEmpty() ? nonce(attempt.applicationId()) : ByteString.EMPTY)
        .addAllLeaseIds(leases)
        .build();
  }

  /** One answer or one error. */
  private static final class One<T> implements StreamObserver<T> {
    private final java.util.function.Consumer<T> answered;
    private final java.util.function.Consumer<StatusRuntimeException> failed;

    One(java.util.function.Consumer<T> answered, java.util.function.Consumer<StatusRuntimeException> failed) {
      this.answered = answered;
      this.failed = failed;
    }

    @Override
    public void onNext(T value) {
      answered.accept(value);
    }

    @Override
    public void onError(Throwable error) {
      failed.accept(io.grpc.Status.fromThrowable(error).asRuntimeException(io.grpc.Status.trailersFromThrowable(error)));
    }

    @Override
    public void onCompleted() {}
  }
}
