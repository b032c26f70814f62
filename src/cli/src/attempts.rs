//! `hintctl attempts`, `end` and `release`: who holds what, and giving it back.

use super::connect::{DaemonArgs, TokenArgs, block_on};
use super::failure::Failure;
use super::output::{self, Output};
use super::sorting::{Column, SortArgs};
use super::view::ViewArgs;
use clap::Args;
use hintd_client::wire::v1;
use serde::Serialize;

/// Attempts to list.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl attempts\n  \
    hintctl --json attempts | jq -r '.attempts[] | select(.legacy) | .application_id'\n\n\
    Over the admin socket. An unprotected attempt's client is of version 0.1.0: any local user can act for it.")]
pub struct AttemptsArgs {
    /// So many at most; 0: all
    #[arg(long, default_value_t = 0)]
    limit: u32,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    view: ViewArgs,
}

/// An attempt to end.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  hintctl end application_1700000000000_0007\n\n\
    Over the admin socket, for operators: leases are given back, its Follow stream ends, its token is worth nothing any\n\
    more. A request of the attempt begins anew.")]
pub struct EndArgs {
    /// The application, as YARN names it
    application: String,
    /// Which attempt
    #[arg(long, default_value_t = 1)]
    attempt: u32,
}

/// Leases to give back.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  hintctl release application_1700000000000_0007\n  \
    hintctl release application_1700000000000_0007 --lease 7711258148085956609\n\n\
    For what the same user's `hintctl request` was given, or whoever has the attempt's token.")]
pub struct ReleaseArgs {
    /// The application, as YARN names it
    application: String,
    /// Which attempt
    #[arg(long, default_value_t = 1)]
    attempt: u32,
    /// A lease; left out: all of the attempt
    #[arg(long, value_name = "ID")]
    lease: Vec<u64>,
    #[command(flatten)]
    token: TokenArgs,
}

const ATTEMPT_COLUMNS: &[Column<v1::AttemptView>] = &[
    ("application", |row| (&*row.application_id).into()),
    ("attempt", |row| row.attempt.into()),
    ("leases", |row| row.leases.into()),
    ("requests", |row| row.requests.into()),
    ("asked", |row| row.asked_ms.into()),
];

/// `hintctl attempts`.
///
/// # Errors
/// [`Failure`] where no daemon answers.
pub fn list(args: &AttemptsArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let order = args.sort.of(ATTEMPT_COLUMNS, args.limit)?;
    let asked = v1::ListAttemptsRequest { limit: order.asks() };
    let ask = async |mut admin: hintd_client::AdminClient| {
        let found = admin.list_attempts(asked).await.map_err(Failure::from);
        order.answer(found, |found| (&mut found.attempts, found.total.into()))
    };
    let text = |found: &v1::ListAttemptsResponse, _| {
        let protected = |attempt: &v1::AttemptView| if attempt.legacy { "unprotected" } else { "" };
        let rows = found.attempts.iter().map(|attempt| {
            let v1::AttemptView { application_id, attempt: number, leases, requests, .. } = attempt;
            [
                application_id.clone(),
                number.to_string(),
                leases.to_string(),
                requests.to_string(),
                super::lists::asked(attempt.asked_ms, attempt.asked_before_start),
                protected(attempt).to_owned(),
            ]
        });
        let table = output::table(["application", "attempt", "leases", "requests", "asked", ""], 1, rows);
        format!("{} attempts\n{table}", found.total)
    };
    args.view.show(daemon, output, ask, text).map(drop)
}

/// `hintctl end`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it does not know the attempt.
pub fn end(args: &EndArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Ended<'a> {
        application_id: &'a str,
        attempt: u32,
        ended: bool,
    }
    let (application_id, attempt) = (args.application.clone(), args.attempt);
    let asked = v1::EndAttemptRequest { application_id, attempt };
    daemon.ask(async |mut admin| admin.end_attempt(asked).await)?;
    let ended = Ended { application_id: &args.application, attempt, ended: true };
    output.sorted(&ended, || format!("{}, attempt {attempt}, is over", args.application))
}

/// `hintctl release`.
///
/// # Errors
/// [`Failure`] where no daemon answers, or it refuses.
pub fn release(args: &ReleaseArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Released {
        released: u32,
        not_held: Vec<String>,
    }
    let asked = v1::ReleaseRequest {
        application_id: args.application.clone(),
        attempt: args.attempt,
        token: args.token.token(),
        lease_ids: args.lease.clone(),
        nonce: Vec::new(),
    };
    let done = block_on(async { Ok(daemon.client().await?.release(asked).await?) })?;
    let not_held = done.not_held.iter().map(u64::to_string).collect();
    let done = Released { released: done.released, not_held };
    output.sorted(&done, || {
        let not_held = match &done.not_held[..] {
            [] => String::new(),
            ended => format!("; not held any more: {}", ended.join(", ")),
        };
        format!("{} given back{not_held}", output::count(done.released.into(), "lease"))
    })
}
