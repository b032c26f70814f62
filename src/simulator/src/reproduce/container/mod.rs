//! Paper 001 (Renner, Thamsen, Kao: *Network-Aware Resource Management for Scalable Data Analytics Frameworks*).
//!
//! # Code map
//! - `workload`: the testbed, the datasets, and the job model of the iterative applications.
//! - `table1`: Table I, sums of run times of `container` against YARN's default.

mod table1;
mod workload;

pub use table1::TABLE1;
