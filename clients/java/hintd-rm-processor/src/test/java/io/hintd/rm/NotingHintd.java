package io.hintd.rm;

import io.hintd.shaded.grpc.Metadata;
import io.hintd.shaded.grpc.Server;
import io.hintd.shaded.grpc.ServerCall;
import io.hintd.shaded.grpc.ServerCallHandler;
import io.hintd.shaded.grpc.ServerInterceptor;
import io.hintd.shaded.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.hintd.shaded.grpc.stub.StreamObserver;
import io.hintd.v1.HintSet;
import io.hintd.v1.PlacementGrpc;
import io.hintd.v1.RequestHintsRequest;
import io.hintd.v1.RequestHintsResponse;
import io.hintd.v1.ShuffleTurnRequest;
import io.hintd.v1.ShuffleTurnResponse;
import io.hintd.v1.TaskGroup;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;

/** In place of hintd, for what it is told: notes the groups that hints are asked for, hints nothing, and lets as many receivers go as it is set to. */
final class NotingHintd extends PlacementGrpc.PlacementImplBase implements AutoCloseable {
  private final List<TaskGroup> asked = new CopyOnWriteArrayList<>();
  /** Of each call that brought one. */
  private final List<String> traceparents = new CopyOnWriteArrayList<>();
  private final Server server;
  private volatile int atMost;

  NotingHintd() throws IOException {
    InetSocketAddress free = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    server = NettyServerBuilder.forAddress(free).addService(this).intercept(new Headers()).build().start();
  }

  String address() {
    return "127.0.0.1:" + server.getPort();
  }

  /** Containers that receivers may hold and ask for. */
  void atMost(int containers) {
    atMost = containers;
  }

  /** What was asked of the group so far, in order. */
  List<TaskGroup> asked(String group) {
    return asked.stream().filter(of -> of.getName().equals(group)).collect(Collectors.toList());
  }

  List<String> traceparents() {
    return traceparents;
  }

  private final class Headers implements ServerInterceptor {
    @Override
    public <Q, A> ServerCall.Listener<Q> interceptCall(ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
      String said = headers.get(Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER));
      if (said != null) {
        traceparents.add(said);
      }
      return next.startCall(call, headers);
    }
  }

  @Override
  public void requestHints(RequestHintsRequest request, StreamObserver<RequestHintsResponse> told) {
    asked.addAll(request.getGroupsList());
    told.onNext(RequestHintsResponse.newBuilder().setHints(HintSet.getDefaultInstance()).build());
    told.onCompleted();
  }

  @Override
  public void shuffleTurn(ShuffleTurnRequest request, StreamObserver<ShuffleTurnResponse> told) {
    told.onNext(ShuffleTurnResponse.newBuilder().setAtMost(atMost).setAgainAfterMs(100).setReason("turn").build());
    told.onCompleted();
  }

  @Override
  public void close() {
    server.shutdownNow();
  }
}
