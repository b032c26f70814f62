package io.hintd.rm;

import io.hintd.client.Attempt;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;

/** What the processor must know of the ResourceManager. */
interface Cluster {
  /** An application attempt. */
  final class App {
    final String queue;
    final String user;
    final String type;
    final String name;
    /** Where the ApplicationMaster runs; empty: unknown. */
    final String amHost;
    /** The application or its queue asks for labelled nodes by default. */
    final boolean labelled;

    App(String queue, String user, String type, String name, String amHost, boolean labelled) {
      this.queue = queue;
      this.user = user;
      this.type = type;
      this.name = name;
      this.amHost = amHost;
      this.labelled = labelled;
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
}
