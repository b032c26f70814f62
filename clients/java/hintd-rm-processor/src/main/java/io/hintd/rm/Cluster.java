package io.hintd.rm;

import io.hintd.client.Attempt;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;

/** What the processor must know of the ResourceManager. */
interface Cluster {
  /** An application attempt. */
  final class App {
    private static final Pattern TRACEPARENT =
        Pattern.compile("traceparent:[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}");

    final String queue;
    final String user;
    final String type;
    final String name;
    /** Where the ApplicationMaster runs; empty: unknown. */
    final String amHost;
    /** The application or its queue asks for labelled nodes by default. */
    final boolean labelled;
    /** Of whoever submitted it, by a tag; empty: none. */
    final String traceparent;

    App(String queue, String user, String type, String name, String amHost, boolean labelled) {
      this(queue, user, type, name, amHost, labelled, Collections.emptySet());
    }

    App(String queue, String user, String type, String name, String amHost, boolean labelled, Set<String> tags) {
      this.queue = queue;
      this.user = user;
      this.type = type;
      this.name = name;
      this.amHost = amHost;
      this.labelled = labelled;
      this.traceparent = traceparent(tags);
    }

    /** Of the tag {@code traceparent:00-<trace>-<span>-<flags>}; the first of several, by their order as texts. */
    private static String traceparent(Set<String> tags) {
      return tags.stream()
          .filter(tag -> TRACEPARENT.matcher(tag).matches())
          .sorted()
          .map(tag -> tag.substring(tag.indexOf(':') + 1))
          .findFirst()
          .orElse("");
    }

    /** As hintd's configuration names frameworks. */
    String framework() {
      return type.toLowerCase(java.util.Locale.ROOT);
    }

    /** The same for runs that differ in numbers only, such as dates. */
    String recurringKey() {
      return framework() + ":" + user + ":" + name.replaceAll("\\d+", "#");
    }
  }

  /** Null: unknown. */
  App app(ApplicationAttemptId attempt);

  /** Whether it has ended, and whoever serves it is to end too. */
  default boolean over() {
    return false;
  }

  /** Whether this attempt is its application's present one, and not over. */
  boolean alive(ApplicationAttemptId attempt);

  /** As asks name the node. */
  String nodeName(NodeId node);

  /** Rack by node name, of all nodes. */
  Map<String, String> racks();

  /**
   * Nodes that take containers of that size, without a label, sooner or later: they are there, healthy, not being
   * decommissioned, in no partition of labelled nodes, and large enough when they are empty.
   */
  Predicate<String> takes(Resource size);

  /** Whether the scheduler has reserved a node for a container of the key; one that does not say has not. */
  boolean reserved(Attempt attempt, Key key);

  /** Containers of a key that the scheduler has outstanding now; -1: it doesn't say. */
  int outstanding(Attempt attempt, Key key);

  /**
   * Whether the scheduler is about to kill containers of other queues for what the attempt's queue has outstanding, on whatever
   * node they are.
   */
  default boolean preemptsFor(Attempt attempt) {
    return false;
  }
}
