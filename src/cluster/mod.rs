//! The model of the cluster and its snapshot.
