//! `hintctl top`: links, applications, queues and rates of a running daemon, live or as one frame.
//!
//! # Code map
//! - `frame`: `Frame`, the figures between two looks.
//! - `text`: the frame as lines.
//! - `screen`: the terminal: keys as they are pressed, and lines in place of the former ones.

mod frame;
mod screen;
mod text;

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::output::Output;
use super::printable::{one_line, one_line_strings};
use clap::{Args, ValueEnum};
use frame::{Frame, Look};
use hintd_client::wire::v1;
use hintd_client::{AdminClient, ClientError};
use screen::Screen;
use serde::Serialize;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tonic::Status;

/// How long one look may take: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Users named of each link, by which an application's busiest link is found.
const USERS: u32 = 8;

/// What to show.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl top\n  hintctl top --once --rows 20\n  \
    hintctl --json top | jq -r '.links[] | select(.share > 0.8) | .id'\n\n\
    Keys: q quits, s sorts otherwise (load, rate, name). Rates are those between two looks, --every apart. An application's\n\
    busiest link is found among the eight largest users of each link. --json prints one frame, as --once does.")]
pub struct TopArgs {
    /// Print one frame and end
    #[arg(long)]
    once: bool,
    /// Seconds between two looks, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    every: f64,
    /// Rows of each table at most
    #[arg(long, default_value_t = 10)]
    rows: usize,
    /// What comes first
    #[arg(long, value_enum, default_value_t = Sort::Load)]
    sort: Sort,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// Links by the share of their capacity that is used, applications by leases
    Load,
    /// Links by bits per second, applications by requests since the last look
    Rate,
    /// All by name
    Name,
}

impl Sort {
    const fn next(self) -> Self {
        match self {
            Self::Load => Self::Rate,
            Self::Rate => Self::Name,
            Self::Name => Self::Load,
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number"))?;
    if (0.1..=3_600.0).contains(&seconds) { Ok(seconds) } else { Err(format!("{seconds} is outside 0.1 to 3600")) }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] where no daemon answers at first, or there is no terminal to show it on.
pub fn run(args: &TopArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let once = args.once || output.is_json();
    if !(once || std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        return Err(Failure::Input(
            "there is no terminal: --once prints one frame, --json one as a document".to_owned(),
        ));
    }
    block_on(async {
        let (admin, socket) = (daemon.operator().await?, daemon.socket());
        let first = look(&admin, &socket).await?;
        match once {
            true => {
                tokio::time::sleep(Duration::from_secs_f64(args.every)).await;
                let frame = Frame::of(&first, &look(&admin, &socket).await?, args.sort, args.rows);
                output.result(&frame, || text::lines(&frame).join("\n"))
            }
            false => live(args, &admin, &socket, first).await,
        }
    })
}

async fn look(admin: &AdminClient, socket: &Path) -> Result<Look, Failure> {
    let nobody = |status| unanswered(status, socket);
    let look = async {
        let links = v1::LinksRequest { users: USERS, ..v1::LinksRequest::default() };
        let status = admin.clone().status(v1::StatusRequest {}).await.map_err(nobody)?.into_inner();
        let links = admin.clone().links(links).await.map_err(nobody)?.into_inner();
        let attempts =
            admin.clone().list_attempts(v1::ListAttemptsRequest { limit: 0 }).await.map_err(nobody)?.into_inner();
        Ok::<_, Failure>(Look {
            at: Instant::now(),
            status: one_line_strings(&status),
            links: one_line_strings(&links),
            attempts: one_line_strings(&attempts),
        })
    };
    let late = |_| Failure::work(format!("the daemon does not answer within {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, look).await.map_err(late)?
}

/// A daemon's refusal is its own; that nobody is there to refuse is ours, and names the socket.
fn unanswered(status: Status, socket: &Path) -> Failure {
    match ClientError::from(status.clone()) {
        ClientError::Broken { message } => {
            let why = message.split(" (os error").next().unwrap_or_default();
            Failure::work(format!("no daemon answers at {}: {}", socket.display(), one_line(why)))
        }
        _ => Failure::from(status),
    }
}

/// Shows frames until a key ends it. A daemon that goes away is waited for: what was shown last stays, with the reason.
async fn live(args: &TopArgs, admin: &AdminClient, socket: &Path, first: Look) -> Result<(), Failure> {
    // Unheard, they would end the process before the screen is left.
    let heard = |kind| signal(kind).map_err(|error| Failure::work(format!("signals: {error}")));
    let (mut terminate, mut hang_up) = (heard(SignalKind::terminate())?, heard(SignalKind::hangup())?);
    let mut screen = Screen::open().map_err(|error| Failure::work(format!("the terminal: {error}")))?;
    let (mut before, mut now, mut sort, mut trouble) = (None, first, args.sort, None);
    let every = Duration::from_secs_f64(args.every);
    let mut next = tokio::time::Instant::now() + every;
    loop {
        let frame = Frame::of(before.as_ref().unwrap_or(&now), &now, sort, args.rows);
        let head = trouble.as_deref().unwrap_or("hintctl top: q quits, s sorts");
        screen.draw(head, &text::lines(&frame)).map_err(|error| Failure::work(format!("the terminal: {error}")))?;
        tokio::select! {
            key = screen.key() => match key {
                None | Some(b'q' | b'Q') => return Ok(()),
                Some(b's' | b'S') => sort = sort.next(),
                Some(_) => {}
            },
            _ = terminate.recv() => return Err(Failure::work("ended by SIGTERM")),
            _ = hang_up.recv() => return Err(Failure::work("ended by SIGHUP")),
            () = tokio::time::sleep_until(next) => {
                match look(admin, socket).await {
                    Ok(found) => {
                        before = Some(std::mem::replace(&mut now, found));
                        trouble = None;
                    }
                    Err(failure) => trouble = Some(failure.to_string()),
                }
                next = tokio::time::Instant::now() + every;
            }
        }
    }
}
