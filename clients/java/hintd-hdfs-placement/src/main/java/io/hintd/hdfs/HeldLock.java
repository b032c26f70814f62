package io.hintd.hdfs;

import java.lang.reflect.Field;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockManager;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicy;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault;
import org.apache.hadoop.hdfs.server.namenode.Namesystem;

/**
 * Whether this thread holds the NameNode's lock, for reading or writing. HDFS chooses targets of new blocks without it, but no
 * interface promises that, so each question makes sure. A policy is given no namesystem: it is that of the DatanodeManager
 * around the policy's statistics, in Hadoop 3.3 and 3.4.
 */
final class HeldLock {
  private final Namesystem namesystem;

  private HeldLock(Namesystem namesystem) {
    this.namesystem = namesystem;
  }

  /** Whether the policy is that of a NameNode: the balancer's, the mover's and fsck's have no statistics. */
  static boolean isInNameNode(BlockPlacementPolicyDefault policy) {
    try {
      return stats(policy) != null;
    } catch (ReflectiveOperationException | RuntimeException other) {
      return true; // it does not say; then there is no lock to be sure of either
    }
  }

  /** Of the policy's NameNode; null: it does not say, and nothing may be asked. */
  static HeldLock of(BlockPlacementPolicyDefault policy) {
    try {
      Object manager = manager(policy);
      Object found = field(manager.getClass(), "namesystem").get(manager);
      return found instanceof Namesystem ? new HeldLock((Namesystem) found) : null;
    } catch (ReflectiveOperationException | RuntimeException other) {
      return null;
    }
  }

  /**
   * The policy that its NameNode asks for replicas; null: the NameNode has none yet, or does not say. Another object of the same
   * class may be asked for erasure-coded files, and no block says which it is.
   */
  static BlockPlacementPolicy ofReplicas(BlockPlacementPolicyDefault policy) {
    try {
      Object manager = manager(policy);
      return ((BlockManager) field(manager.getClass(), "blockManager").get(manager)).getBlockPlacementPolicy();
    } catch (ReflectiveOperationException | RuntimeException other) {
      return null;
    }
  }

  private static Object manager(BlockPlacementPolicyDefault policy) throws ReflectiveOperationException {
    Object stats = stats(policy);
    return field(stats.getClass(), "this$0").get(stats);
  }

  private static Object stats(BlockPlacementPolicyDefault policy) throws ReflectiveOperationException {
    return field(BlockPlacementPolicyDefault.class, "stats").get(policy);
  }

  private static Field field(Class<?> of, String name) throws NoSuchFieldException {
    Field field = of.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  boolean isHeld() {
    return namesystem.hasReadLock() || namesystem.hasWriteLock();
  }
}
