//! `hintctl demo --keep`: after the story the daemon goes on, and its cluster with the same jobs under new ids, until Ctrl-C.

use super::super::connect;
use super::super::failure::Failure;
use super::super::interrupt::Interrupts;
use super::super::output::Output;
use super::host::Host;
use super::{DemoArgs, LOAD, cluster, read_trace};
use crate::emulate::hdfs::Namespace;
use crate::emulate::shared::Behavior;
use crate::emulate::{Emulation, Workload};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{SignalKind, signal};

/// Longer than anybody waits for Ctrl-C.
const KEEP: Duration = Duration::from_secs(365 * 86_400);

/// All nodes report again and no link is down; says how to reach the daemon.
///
/// # Errors
/// [`Failure::Work`] where the daemon can't be fed any more.
pub(super) async fn until_interrupted(host: &Host, args: &DemoArgs, output: Output) -> Result<Interrupts, Failure> {
    let mut interrupts = Interrupts::hear()?;
    let terminated = signal(SignalKind::terminate());
    let mut terminated = terminated.map_err(|error| Failure::work(format!("signals: {error}")))?;
    let (trace, jobs) = read_trace(args)?;
    let (cluster, mut namespace) = (cluster(args)?, Namespace::new(args.seed));
    let workload = Workload::new(&jobs, &cluster, &mut namespace, Duration::from_secs(args.seconds), LOAD)
        .map_err(|error| Failure::Input(format!("{trace}: {:#}", anyhow::Error::from(error))))?;
    let behaviour =
        Behavior { seed: args.seed, policy: Some(args.policy.clone()), limit: KEEP, keep: true, ..Behavior::default() };
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = u64::try_from(started.as_millis()).unwrap_or(0);
    let client = connect::client(&host.address()).await?;
    let emulation = Emulation::start(client, cluster, workload, namespace, behaviour, Vec::new(), began).await;
    let (emulation, mut happenings) = emulation.map_err(|error| Failure::Work(error.into()))?;
    for line in how_to_reach(&host.socket().display().to_string(), &host.address(), std::process::id()) {
        output.progress(&line);
    }
    tokio::select! {
        ended = emulation.finish() => { ended.map_err(|error| Failure::Work(error.into()))?; }
        () = async { while happenings.recv().await.is_some() {} } => {} // nothing happens any more
        () = interrupts.came() => {}
        _ = terminated.recv() => {} // by the command above
    }
    output.progress("Stopping.");
    Ok(interrupts)
}

/// How to ask the daemon from elsewhere, in lines to be copied, and how to stop it.
fn how_to_reach(socket: &str, address: &str, process: u32) -> Vec<String> {
    vec![
        "\nThe daemon and its cluster go on, with the same jobs as new applications. In another terminal:".to_owned(),
        format!("  hintctl --admin-socket {socket} status"),
        "or, for all that follows there:".to_owned(),
        format!("  export HINTD_ADMIN_SOCKET={socket} HINTD_ADDRESS={address}"),
        "  hintctl top         hintctl doctor         hintctl applications         hintctl links --sort -load"
            .to_owned(),
        format!("Ctrl-C here or `kill {process}` stops it; its folder goes with it."),
    ]
}
