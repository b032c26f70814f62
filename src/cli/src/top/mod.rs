//! `hintctl top`: links, applications, queues and rates of a running daemon, live or as one frame.
//!
//! # Code map
//! - `frame`: `Frame`, the figures between two looks.
//! - `text`: the frame as lines; `panes`: as much of it as a terminal has lines for.

mod frame;
mod panes;
#[cfg(test)]
mod tests;
mod text;

use super::connect::{DaemonArgs, block_on};
use super::failure::Failure;
use super::output::Output;
use super::printable::{one_line, one_line_strings};
use super::screen::{self, Live, live};
use super::scroll::Key;
use super::view::PlainViewArgs;
use super::width;
use clap::{Args, ValueEnum};
use frame::{Frame, Look};
use hintd_client::wire::v1;
use hintd_client::{AdminClient, ClientError};
use panes::Panes;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};
use tonic::Status;

/// How long one look may take: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rows of each table of one frame, unless told otherwise.
const ROWS: usize = 10;
/// Users named of each link, by which an application's busiest link is found.
const USERS: u32 = 8;

/// What to show.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hintctl top\n  hintctl top --once --rows 20\n  \
    hintctl --json top | jq -r '.links[] | select(.share > 0.8) | .id'\n\n\
    Keys: q quits, s sorts otherwise (load, rate, leases, name), Tab chooses the table (>) that Up, Down, PgUp, PgDn, j and k scroll;\n\
    g and G go to its first and last row. Applications come by the load of the busiest link that they send\n\
    over, then by what they send over it, those whose traffic is on no link last. An application's busiest link is found among the\n\
    eight largest users of each link, its load is that of the direction in which the application sends (of both the more loaded\n\
    one), and so is what it sends there; files that it reads or writes are no traffic of its own there. Where a terminal has no room\n\
    for both directions of a link, the more loaded one is shown, and whose that load is: the largest user with its part, and what is\n\
    unknown (no flow that hintd knows of: files read or written, or others). ~ is modelled; >100 %: more than is measured.\n\
    Rates are those between two looks, --every apart. --json prints one frame, as --once does.")]
pub struct TopArgs {
    /// Print one frame and end
    #[arg(long)]
    once: bool,
    /// Seconds between two looks, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = screen::seconds)]
    every: f64,
    /// Rows of each table at most; live, the others are scrolled to [default: 10 of one frame; live, as many as have room]
    #[arg(long)]
    rows: Option<usize>,
    /// What comes first
    #[arg(long, value_enum, default_value_t = Sort::Load)]
    sort: Sort,
    #[command(flatten)]
    view: PlainViewArgs,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// Links by the share of their capacity that is used, applications by that of the busiest link that they send over
    Load,
    /// Links by bits per second, applications by requests since the last look
    Rate,
    /// Applications by leases, links by the share of their capacity that is used
    Leases,
    /// All by name
    Name,
}

impl Sort {
    const fn next(self) -> Self {
        match self {
            Self::Load => Self::Rate,
            Self::Rate => Self::Leases,
            Self::Leases => Self::Name,
            Self::Name => Self::Load,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] where no daemon answers at first, or there is no terminal to show it on.
pub fn run(args: &TopArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let output = args.view.output(output)?;
    let once = args.once || output.is_json();
    if !once {
        screen::terminal("--once prints one frame, --json one as a document")?;
    }
    block_on(async {
        let (admin, socket) = (daemon.operator().await?, daemon.socket()?);
        let first = look(&admin, &socket).await?;
        match once {
            true => {
                tokio::time::sleep(Duration::from_secs_f64(args.every)).await;
                let frame = Frame::of(&first, &look(&admin, &socket).await?, args.sort, args.rows.unwrap_or(ROWS));
                output.result(&frame, || text::lines(&frame, width::in_force()).join("\n"))
            }
            false => {
                let (admin, socket, sort) = (&admin, &*socket, args.sort);
                let panes = Panes::default();
                let mut shown = Shown { args, admin, socket, before: None, now: first, sort, panes };
                live(&mut shown, Duration::from_secs_f64(args.every)).await
            }
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

/// Frames of two looks.
struct Shown<'a> {
    args: &'a TopArgs,
    admin: &'a AdminClient,
    socket: &'a Path,
    before: Option<Look>,
    now: Look,
    sort: Sort,
    panes: Panes,
}

impl Live for Shown<'_> {
    fn head(&self) -> String {
        "hintctl top: q quits, s sorts, Tab chooses a table, Up, Down, PgUp, PgDn scroll".to_owned()
    }

    fn lines(&mut self, room: (usize, usize)) -> Vec<String> {
        let before = self.before.as_ref().unwrap_or(&self.now);
        // All rows: which are shown is the tables' own matter, which lay out no others.
        self.panes.lines(
            &Frame::of(before, &self.now, self.sort, usize::MAX),
            room,
            self.args.rows.unwrap_or(usize::MAX),
        )
    }

    async fn look(&mut self) -> Result<(), Failure> {
        let found = look(self.admin, self.socket).await?;
        self.before = Some(std::mem::replace(&mut self.now, found));
        Ok(())
    }

    fn key(&mut self, key: Key) {
        match key {
            Key::Letter(b's' | b'S') => self.sort = self.sort.next(),
            key => self.panes.key(key),
        }
    }
}
