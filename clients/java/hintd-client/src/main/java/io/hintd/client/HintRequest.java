package io.hintd.client;

import com.google.protobuf.ByteString;
import io.hintd.v1.Constraints;
import io.hintd.v1.EdgePattern;
import io.hintd.v1.Gang;
import io.hintd.v1.GroupEdge;
import io.hintd.v1.RequestHintsRequest;
import io.hintd.yarn.ResourceRequestProto;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.UUID;

/**
 * What an application asks for. Not changed once it was sent.
 *
 * <p>The request id makes repeats safe: the same id and content give the same answer and take nothing twice. It is
 * drawn when the object is made, so keep the object for repeats, and make a new one for a new question.
 */
public final class HintRequest {
  private final Attempt attempt;
  private final List<Group> groups = new ArrayList<>();
  private final RequestHintsRequest.Builder wire = RequestHintsRequest.newBuilder();
  private String traceparent = "";

  public HintRequest(Attempt attempt) {
    this.attempt = attempt;
    wire.setRequestId(UUID.randomUUID().toString())
        .setApplicationId(attempt.applicationId())
        .setAttempt(attempt.number())
        .setGang(Gang.GANG_UP_TO);
  }

  public HintRequest requestId(String value) {
    wire.setRequestId(value);
    return this;
  }

  public HintRequest queue(String value) {
    wire.setQueue(value);
    return this;
  }

  public HintRequest user(String value) {
    wire.setUser(value);
    return this;
  }

  /** mapreduce, spark, flink, storm, ... */
  public HintRequest framework(String value) {
    wire.setFramework(value);
    return this;
  }

  public HintRequest group(Group group) {
    groups.add(group);
    wire.addGroups(group.toWire(groups.size()));
    return this;
  }

  /** What one group's tasks send another's, all together, every task to every task; a group may send to itself. */
  public HintRequest edge(String from, String to, long bytes) {
    wire.addEdges(edge(from, to, EdgePattern.EDGE_PATTERN_ALL_TO_ALL, bytes));
    return this;
  }

  /** As {@link #edge}, from task i to task i modulo the other's count. */
  public HintRequest oneToOneEdge(String from, String to, long bytes) {
    wire.addEdges(edge(from, to, EdgePattern.EDGE_PATTERN_ONE_TO_ONE, bytes));
    return this;
  }

  /** Input of the application; a group's own paths win for that group. */
  public HintRequest inputPath(String path) {
    wire.addInputPaths(path);
    return this;
  }

  /** The daemon's choice for the queue and the framework, if left out. */
  public HintRequest policy(String value) {
    wire.setPolicy(value);
    return this;
  }

  /** All containers at once or none, in place of as many as fit. */
  public HintRequest allOrNone() {
    wire.setGang(Gang.GANG_ALL);
    return this;
  }

  /** Names the job that runs again and again. */
  public HintRequest recurringJobKey(String value) {
    wire.setRecurringJobKey(value);
    return this;
  }

  /** Where the ApplicationMaster runs. */
  public HintRequest amHost(String value) {
    wire.setAmHost(value);
    return this;
  }

  /** Hosts that none of it should go to. */
  public HintRequest avoidHosts(Collection<String> hosts) {
    wire.setConstraints(Constraints.newBuilder().addAllAvoidHosts(hosts));
    return this;
  }

  /** YARN's ask table, where the answer's {@code asks} should replace it. */
  public HintRequest asks(Collection<ResourceRequestProto> rows) {
    wire.addAllAsks(rows);
    return this;
  }

  /**
   * The caller's place in a trace, as W3C's Trace Context writes it ({@code 00-<trace>-<span>-<flags>}); what the daemon does for
   * the request then belongs to that trace, where the daemon sends any ({@code [tracing]}). "": none.
   */
  public HintRequest traceparent(String value) {
    traceparent = value;
    return this;
  }

  String traceparent() {
    return traceparent;
  }

  public Attempt attempt() {
    return attempt;
  }

  /** In the order in which they were added. */
  public List<Group> groups() {
    return new ArrayList<>(groups);
  }

  RequestHintsRequest toWire(long deadlineMs, Secret secret) {
    ByteString nonce = ByteString.copyFrom(secret.nonce(attempt.applicationId()));
    return wire.clone().setNonce(nonce).setDeadlineMs((int) Math.max(1, Math.min(deadlineMs, Integer.MAX_VALUE))).build();
  }

  private static GroupEdge edge(String from, String to, EdgePattern pattern, long bytes) {
    return GroupEdge.newBuilder().setFrom(from).setTo(to).setPattern(pattern).setBytes(bytes).build();
  }
}
