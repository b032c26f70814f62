//! The resource manager in virtual time: heartbeats, containers, HDFS's replicas, shuffle, failures.
