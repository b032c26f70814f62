package io.hintd.mini;

import io.hintd.client.FeedStream;
import io.hintd.client.HintdClient;
import io.hintd.v1.Dataset;
import io.hintd.v1.DatasetBlock;
import io.hintd.v1.DatasetItem;
import io.hintd.v1.FeedAck;
import io.hintd.v1.FeedHello;
import io.hintd.v1.HeartbeatItem;
import io.hintd.v1.NetworkGraph;
import io.hintd.v1.NetworkHost;
import io.hintd.v1.NetworkLink;
import io.hintd.v1.NetworkSwitch;
import io.hintd.v1.NodeGone;
import io.hintd.v1.NodeHeartbeat;
import io.hintd.v1.RegisterNode;
import io.hintd.v1.TopologyItem;
import io.hintd.v1.UsedMeans;
import io.hintd.yarn.ResourceProto;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Tells hintd of a cluster by its Feed: nodes and racks from the ResourceManager once a second, a network of one switch
 * a rack below one core switch, and blocks of the paths named.
 *
 * <p>A stand-in, for trials: the daemon's own adapters for the ResourceManager and the NameNode are to do this.
 *
 * <p>{@code Feeder HINTD_HOST:PORT [PATH]...}; runs until killed.
 */
public final class Feeder {
  private static final long GBIT = 1_000_000_000L;

  private final FeedStream<HeartbeatItem> heartbeats;
  private final FeedStream<TopologyItem> topology;
  private final FeedStream<DatasetItem> datasets;
  /** Nodes that were registered at the present stream, with their rack. */
  private final Map<String, String> known = new ConcurrentHashMap<>();
  private volatile boolean tellAll = true;
  private int beat;

  private Feeder(HintdClient client) {
    FeedHello hello =
        FeedHello.newBuilder().setSource("mini-feeder").setUsedMeans(UsedMeans.USED_MEANS_ALLOCATED).build();
    heartbeats = FeedStream.heartbeats(client, hello, 10_000, () -> tellAll = true, this::heard);
    topology = FeedStream.topology(client, hello, 100, () -> tellAll = true, Feeder::complain);
    datasets = FeedStream.datasets(client, hello, 10_000, () -> tellAll = true, Feeder::complain);
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = new YarnConfiguration();
    List<String> paths = Arrays.asList(arguments).subList(1, arguments.length);
    YarnClient yarn = YarnClient.createYarnClient();
    yarn.init(conf);
    yarn.start();
    Feeder feeder = new Feeder(HintdClient.to(arguments[0]));
    for (int round = 0; ; round++) {
      boolean all = feeder.tellAll;
      feeder.tellAll = false;
      if (all) {
        feeder.known.clear();
      }
      boolean changed = feeder.nodes(yarn.getNodeReports(NodeState.RUNNING));
      if (changed) {
        feeder.network();
      }
      if (all || round % 30 == 0) {
        feeder.blocks(FileSystem.get(conf), paths);
      }
      Thread.sleep(1_000);
    }
  }

  private boolean nodes(List<NodeReport> reports) {
    beat++;
    boolean changed = false;
    TreeSet<String> gone = new TreeSet<>(known.keySet());
    for (NodeReport report : reports) {
      String host = report.getNodeId().getHost();
      gone.remove(host);
      if (known.put(host, report.getRackName()) == null) {
        changed = true;
        RegisterNode.Builder register =
            RegisterNode.newBuilder()
                .setHost(host)
                .setPort(report.getNodeId().getPort())
                .setRack(report.getRackName())
                .setTotal(size(report.getCapability()));
        heartbeats.tell(number -> HeartbeatItem.newBuilder().setNumber(number).setRegister(register).build());
      }
      NodeHeartbeat.Builder told =
          NodeHeartbeat.newBuilder().setHost(host).setResponseId(beat).setUsed(size(report.getUsed()));
      heartbeats.tell(number -> HeartbeatItem.newBuilder().setNumber(number).setHeartbeat(told).build());
    }
    for (String host : gone) {
      known.remove(host);
      changed = true;
      heartbeats.tell(
          number -> HeartbeatItem.newBuilder().setNumber(number).setGone(NodeGone.newBuilder().setHost(host)).build());
    }
    return changed;
  }

  private void network() {
    NetworkGraph.Builder graph = NetworkGraph.newBuilder().addSwitches(tier("core", "core"));
    new TreeSet<>(known.values()).forEach(
        rack -> {
          graph.addSwitches(tier("tor" + rack, "edge"));
          graph.addLinks(link("tor" + rack, "core"));
        });
    new TreeMap<>(known).forEach(
        (host, rack) -> {
          graph.addHosts(NetworkHost.newBuilder().setName(host));
          graph.addLinks(link(host, "tor" + rack));
        });
    topology.tell(number -> TopologyItem.newBuilder().setNumber(number).setFull(graph).build());
  }

  private void blocks(FileSystem files, List<String> paths) {
    for (String path : paths) {
      try {
        Dataset.Builder dataset = Dataset.newBuilder().setPath(path);
        RemoteIterator<LocatedFileStatus> found = files.listFiles(new Path(path), true);
        while (found.hasNext()) {
          LocatedFileStatus file = found.next();
          for (BlockLocation block : file.getBlockLocations()) {
            dataset.addBlocks(
                DatasetBlock.newBuilder()
                    .setBlockId((file.getPath() + "@" + block.getOffset()).hashCode() & 0xffffffffL)
                    .setBytes(block.getLength())
                    .addAllHosts(Arrays.asList(block.getHosts())));
          }
        }
        datasets.tell(number -> DatasetItem.newBuilder().setNumber(number).setPut(dataset).build());
      } catch (java.io.IOException none) {
        System.err.println(path + ": " + none.getMessage());
      }
    }
  }

  private void heard(FeedAck ack) {
    complain(ack);
    ack.getResyncList().forEach(known::remove);
  }

  private static void complain(FeedAck ack) {
    ack.getRefusedList().forEach(refusal -> System.err.println("refused: " + refusal.getReason() + " " + refusal.getMessage()));
  }

  private static ResourceProto size(Resource size) {
    long memory = size == null ? 0 : size.getMemorySize();
    int vcores = size == null ? 0 : size.getVirtualCores();
    return ResourceProto.newBuilder().setMemory(memory).setVirtualCores(vcores).build();
  }

  private static NetworkSwitch.Builder tier(String name, String tier) {
    return NetworkSwitch.newBuilder().setName(name).setTier(tier);
  }

  private static NetworkLink.Builder link(String a, String b) {
    return NetworkLink.newBuilder().setId(a + "-" + b).setA(a).setB(b).setBitsPerS(GBIT);
  }
}
