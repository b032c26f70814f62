package io.hintd.hdfs;

import io.hintd.plugin.SettingsFile;
import java.io.File;
import java.lang.ref.WeakReference;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.AddBlockFlag;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.net.Node;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * HDFS's default policy, but for one replica of each new block of data that a recurring job reads: that goes into a home rack of
 * the job, as hintd says. {@code dfs.block.replicator.classname}.
 *
 * <p>Where a DataNode writes, the home takes the place of the remote rack that HDFS would draw, so that the pipeline crosses
 * no more racks than it would; where none does, or there is one replica only, the place of the first. Everything else is the default's: which node, the
 * other replicas, two racks, storage types, nodes without room. Replication, balancing, favored nodes and appends know no
 * home. Whatever goes wrong here or at hintd, the default chooses as if nobody had asked.
 */
public class HintdBlockPlacementPolicy extends BlockPlacementPolicyDefault implements Configurable {
  /** Names the file of settings; without it all is as by default, in shadow. */
  public static final String FILE = "hintd.hdfs-placement.file";

  private static final Logger LOG = LoggerFactory.getLogger(HintdBlockPlacementPolicy.class);

  private final Counters counters = new Counters();
  private final Advisor advisor = new Advisor(counters);
  private final ThreadLocal<Home> home = new ThreadLocal<>();
  private Configuration conf;
  /** Null: not started, or no NameNode's. */
  private volatile SettingsFile<Settings> settings;
  private volatile HeldLock lock;
  /** Looks that found no NameNode around it, or another policy that is asked for replicas. Only one thread looks. */
  private int looksOutside;
  private int looksBeside;
  /** Asked for replicas, where this one is asked for erasure-coded files; null: this one is, or that is none of ours. */
  private volatile HintdBlockPlacementPolicy beside;
  private Thread upkeep;

  /** The block that this thread chooses targets for. */
  private static final class Home {
    final String rack;
    /** One replica there is enough. */
    final boolean once;
    final int replicas;

    Home(Advisor.Told told, int replicas) {
      rack = told.rack;
      once = told.once;
      this.replicas = replicas;
    }

    boolean isHome(DatanodeStorageInfo target) {
      return rack.equals(target.getDatanodeDescriptor().getNetworkLocation());
    }

    boolean isAmong(List<DatanodeStorageInfo> targets) {
      return targets.stream().anyMatch(this::isHome);
    }
  }

  @Override
  public Configuration getConf() {
    return conf;
  }

  /**
   * Called right after the constructor, before HDFS initializes the policy: {@code initialize} itself names a class that only
   * HDFS's own package may.
   */
  @Override
  public void setConf(Configuration given) {
    conf = given;
    if (given == null || upkeep != null) {
      return;
    }
    // A NameNode that takes another policy drops this one: then the thread ends.
    WeakReference<HintdBlockPlacementPolicy> policy = new WeakReference<>(this);
    upkeep = new Thread(() -> keepUp(policy, advisor), "hintd-hdfs-upkeep");
    upkeep.setDaemon(true);
    upkeep.start();
  }

  private static void keepUp(WeakReference<HintdBlockPlacementPolicy> policy, Advisor advisor) {
    try {
      boolean goesOn = true;
      while (goesOn) {
        goesOn = look(policy.get());
        Thread.sleep(1_000);
      }
    } catch (InterruptedException stopped) {
      // it ends
    } finally {
      advisor.close();
    }
  }

  /** Whether to look again in a second. */
  static boolean look(HintdBlockPlacementPolicy policy) {
    if (policy == null) {
      return false;
    }
    try {
      if (policy.clusterMap == null) {
        return true; // not initialized yet
      }
      SettingsFile<Settings> file = policy.settings;
      if (file == null) {
        if (!HeldLock.isInNameNode(policy)) {
          // HDFS sets the fields without a lock, so this thread may see some before others: one look does not decide.
          return ++policy.looksOutside < 2;
        }
        return policy.start();
      }
      file.look();
      policy.advisor.use(file.now());
    } catch (Throwable wrong) {
      // Errors, too, as when there is no thread to be had: without this one nothing would be asked until a restart.
      policy.failed(wrong);
    }
    return true;
  }

  private boolean start() {
    BlockPlacementPolicy replicas = HeldLock.ofReplicas(this);
    if (replicas != this && ++looksBeside < 2) {
      return true; // the NameNode has not set it yet
    }
    if (replicas != this && replicas != null) {
      beside = replicas instanceof HintdBlockPlacementPolicy ? (HintdBlockPlacementPolicy) replicas : null;
      LOG.warn(
          "hintd: dfs.block.placement.ec.classname names {}: erasure-coded files know no home, and go where HDFS's default puts "
              + "replicas; left out, HDFS spreads them evenly over racks", getClass().getName());
      return false;
    }
    String name = conf.get(FILE, "");
    File file = name.isEmpty() ? null : new File(name);
    lock = HeldLock.of(this);
    counters.register();
    SettingsFile<Settings> read = new SettingsFile<>(file, Settings::of, counters.reloads, counters.reloadsRefused);
    advisor.use(read.now());
    settings = read;
    LOG.info("hintd: new blocks pass through {}, settings in {}", getClass().getName(), name);
    if (lock == null) {
      LOG.error("hintd: this Hadoop does not say who holds the NameNode's lock: hintd is never asked");
    }
    return true;
  }

  Counters counters() {
    return counters;
  }

  /** For tests. */
  boolean isConnected() {
    return advisor.isConnected();
  }

  /** For tests: as the NameNode's end. */
  void stop() {
    if (upkeep != null) {
      upkeep.interrupt();
    }
  }

  @Override
  public DatanodeStorageInfo[] chooseTarget(
      String path,
      int replicas,
      Node writer,
      List<DatanodeStorageInfo> chosen,
      boolean returnChosen,
      Set<Node> excluded,
      long blockSize,
      BlockStoragePolicy storagePolicy,
      EnumSet<AddBlockFlag> flags) {
    // Only addBlock has flags and nothing chosen: replication has replicas, favored nodes are chosen, WebHDFS has no flags.
    Home advised = flags != null && chosen.isEmpty() && !returnChosen ? advised(path, replicas) : null;
    if (advised != null && settings.now().mode == Settings.Mode.ON) {
      DatanodeStorageInfo[] targets =
          atHome(advised, path, replicas, writer, chosen, excluded, blockSize, storagePolicy, flags);
      if (targets != null) {
        return targets;
      }
      counters.fellBack.increment();
    }
    DatanodeStorageInfo[] targets =
        super.chooseTarget(path, replicas, writer, chosen, returnChosen, excluded, blockSize, storagePolicy, flags);
    if (advised != null && settings.now().mode == Settings.Mode.SHADOW) {
      boolean atHome = advised.isAmong(java.util.Arrays.asList(targets));
      (atHome ? counters.shadowAtHome : counters.shadowElsewhere).increment();
    }
    return targets;
  }

  /** The home of a new block; null: none is known, or nobody may ask. */
  private Home advised(String written, int replicas) {
    HintdBlockPlacementPolicy counting = beside;
    if (counting != null) {
      counting.countErasureCoded();
      return null;
    }
    SettingsFile<Settings> file = settings;
    if (file == null || file.now().mode == Settings.Mode.OFF || written == null || replicas < 1) {
      return null;
    }
    try {
      counters.newBlocks.increment();
      Settings now = file.now();
      String path = FinalPath.of(written);
      String why = leftAlone(path, now);
      if (why != null) {
        counters.leftAlone(why);
        return null;
      }
      Advisor.Told told = advisor.rack(path, now);
      if (told == null) {
        return null;
      }
      if (clusterMap.getNode(told.rack) == null) {
        counters.leftAlone("unknown_rack");
        advisor.say("unknown_rack", "{} should go to {}, which HDFS has no DataNode in", path, told.rack);
        return null;
      }
      return new Home(told, replicas);
    } catch (Throwable wrong) {
      // Errors, too: no block may fail for hintd's sake.
      failed(wrong);
      return null;
    }
  }

  private void countErasureCoded() {
    SettingsFile<Settings> file = settings;
    if (file != null && file.now().mode != Settings.Mode.OFF) {
      counters.newBlocks.increment();
      counters.leftAlone("erasure_coded");
    }
  }

  private String leftAlone(String path, Settings now) {
    if (!now.concerns(path)) {
      return "path";
    }
    if (lock == null) {
      return "lock_unknown";
    }
    if (lock.isHeld()) {
      advisor.say("lock_held", "a block of {} was asked for under the NameNode's lock: hintd is not asked", path);
      return "lock_held";
    }
    return clusterMap.getNumOfRacks() < 2 ? "one_rack" : null;
  }

  /** Null: not all replicas found a place, or they lie in one rack. Nothing that the caller handed over is changed then. */
  private DatanodeStorageInfo[] atHome(
      Home advised,
      String path,
      int replicas,
      Node writer,
      List<DatanodeStorageInfo> chosen,
      Set<Node> excluded,
      long blockSize,
      BlockStoragePolicy storagePolicy,
      EnumSet<AddBlockFlag> flags) {
    Set<Node> copy = excluded == null ? new HashSet<>() : new HashSet<>(excluded);
    home.set(advised);
    try {
      DatanodeStorageInfo[] targets =
          super.chooseTarget(path, replicas, writer, chosen, false, copy, blockSize, storagePolicy, flags);
      if (targets.length < replicas || replicas > 1 && racks(targets) < 2) {
        return null;
      }
      if (advised.isAmong(java.util.Arrays.asList(targets))) {
        counters.placed.increment();
      }
      return targets;
    } catch (Throwable wrong) { // as above
      failed(wrong);
      return null;
    } finally {
      home.remove();
    }
  }

  private static long racks(DatanodeStorageInfo[] targets) {
    return java.util.Arrays.stream(targets)
        .map(target -> target.getDatanodeDescriptor().getNetworkLocation())
        .distinct()
        .count();
  }

  private void failed(Throwable wrong) {
    try {
      counters.errors.increment();
      advisor.say("error", "blocks go where HDFS puts them: {}", wrong.toString());
    } catch (Throwable unsaid) {
      // where memory is short even this may fail; the block still goes where HDFS puts it
    }
  }

  @Override
  protected Node chooseTargetInOrder(
      int replicas,
      Node writer,
      Set<Node> excluded,
      long blockSize,
      int maxPerRack,
      List<DatanodeStorageInfo> results,
      boolean avoidStale,
      boolean newBlock,
      EnumMap<StorageType, Integer> types)
      throws NotEnoughReplicasException {
    Home advised = home.get();
    boolean first = advised != null && results.isEmpty() && replicas > 0;
    if (first && (advised.replicas == 1 || !(writer instanceof DatanodeDescriptor))) {
      DatanodeStorageInfo found = one(advised, excluded, blockSize, maxPerRack, results, avoidStale, types);
      if (found != null && replicas == 1) {
        return writer instanceof DatanodeDescriptor ? writer : found.getDatanodeDescriptor();
      }
      replicas -= found == null ? 0 : 1;
    }
    return super.chooseTargetInOrder(
        replicas, writer, excluded, blockSize, maxPerRack, results, avoidStale, newBlock, types);
  }

  @Override
  protected void chooseRemoteRack(
      int replicas,
      DatanodeDescriptor local,
      Set<Node> excluded,
      long blockSize,
      int maxPerRack,
      List<DatanodeStorageInfo> results,
      boolean avoidStale,
      EnumMap<StorageType, Integer> types)
      throws NotEnoughReplicasException {
    Home advised = home.get();
    boolean wanted = advised != null && replicas > 0 && !advised.isAmong(results);
    boolean found = wanted && one(advised, excluded, blockSize, maxPerRack, results, avoidStale, types) != null;
    if (!found || replicas > 1) {
      int left = found ? replicas - 1 : replicas;
      super.chooseRemoteRack(left, local, excluded, blockSize, maxPerRack, results, avoidStale, types);
    }
  }

  /** HDFS puts the third replica beside the second; where that came home and one there is enough, beside the first. */
  @Override
  protected DatanodeStorageInfo chooseLocalRack(
      Node near,
      Set<Node> excluded,
      long blockSize,
      int maxPerRack,
      List<DatanodeStorageInfo> results,
      boolean avoidStale,
      EnumMap<StorageType, Integer> types)
      throws NotEnoughReplicasException {
    Home advised = home.get();
    if (advised != null
        && advised.once
        && results.size() == 2
        && advised.isHome(results.get(1))
        && !advised.isHome(results.get(0))) {
      near = results.get(0).getDatanodeDescriptor();
    }
    return super.chooseLocalRack(near, excluded, blockSize, maxPerRack, results, avoidStale, types);
  }

  /** One replica at home; null: no node there takes it. */
  private DatanodeStorageInfo one(
      Home advised,
      Set<Node> excluded,
      long blockSize,
      int maxPerRack,
      List<DatanodeStorageInfo> results,
      boolean avoidStale,
      EnumMap<StorageType, Integer> types) {
    try {
      return chooseRandom(advised.rack, excluded, blockSize, maxPerRack, results, avoidStale, types);
    } catch (NotEnoughReplicasException full) {
      counters.homeFull.increment();
      return null;
    }
  }
}
