//! The resource manager in virtual time: heartbeats, containers, HDFS's replicas, shuffle, failures.

pub mod fabric;
pub mod hdfs;
