/**
 * hintd in the NameNode: {@link io.hintd.hdfs.HintdBlockPlacementPolicy} puts one replica of each new block of recurring data into
 * a home rack of the job that reads it. {@link io.hintd.hdfs.Advisor} asks, once a file; {@link io.hintd.hdfs.FinalPath} says
 * which path a file will have; {@link io.hintd.hdfs.HeldLock} keeps it from asking under the NameNode's lock. Whatever fails,
 * blocks go where HDFS puts them.
 */
package io.hintd.hdfs;
