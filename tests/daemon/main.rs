//! The real daemon, in this process or as a child, over real sockets and a real disk.

#![allow(clippy::unwrap_used)] // a test that panics is a test that fails

mod adherence;
mod bad_feeds;
mod bad_requests;
mod chains;
mod circuits;
mod client;
mod contention;
mod crash;
mod dispatch;
mod doctor;
mod fault_clients;
mod fault_clock;
mod fault_feeds;
mod fault_logs;
mod fault_overload;
mod fault_reload;
mod fault_restart;
mod fault_stop;
mod fault_store;
mod flows;
mod hadoop_server;
mod history_server;
mod hostile;
mod job_progress;
mod lifecycle;
mod limits;
mod lists;
mod load;
mod name_node;
mod network_file;
mod plans;
mod plans_kept;
mod program;
mod replay;
mod resource_manager;
mod resource_manager_apps;
mod searches;
mod streams;
mod tokens;
mod turns;
mod upgrade;
mod world;
mod worth;
