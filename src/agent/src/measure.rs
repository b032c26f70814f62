//! The socket: probes out, answers in, and answers to others' probes.

use super::packet::{BYTES, Kind, Packet};
use super::probes::{Ended, Probes};
use super::{Measured, Wanted, say};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

/// How long a socket that fails is left alone.
const PAUSE: Duration = Duration::from_millis(10);

/// What may still be done in the running second.
#[derive(Debug)]
struct PerSecond {
    most: u32,
    since: Instant,
    done: u32,
}

impl PerSecond {
    fn new(most: u32, now: Instant) -> Self {
        Self { most, since: now, done: 0 }
    }

    fn take(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.done) = (now, 0);
        }
        let there = self.done < self.most;
        self.done += u32::from(there);
        there
    }
}

/// Until nobody wants it any more.
pub(super) async fn run(
    socket: UdpSocket,
    instance: u64,
    most: u32,
    mut wants: watch::Receiver<Wanted>,
    reports: watch::Sender<Measured>,
) {
    let mut probes = Probes::default();
    let mut answers = PerSecond::new(most, Instant::now());
    let mut buffer = [0; BYTES + 1];
    let mut wanted = wants.borrow_and_update().clone();
    let mut due = tokio::time::Instant::now();
    let mut report = every(wanted.report);
    let mut losses = Losses::default();
    loop {
        tokio::select! {
            got = socket.recv_from(&mut buffer) => match got {
                Ok((bytes, from)) => {
                    let now = Instant::now();
                    if let Some(back) = received(&mut probes, instance, &buffer[..bytes], from, now) && answers.take(now) {
                        // A packet that can't be sent is one that was lost.
                        let _ = socket.try_send_to(&back, from);
                    }
                }
                // As when a peer's port is closed: nothing that waiting would not mend.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            () = sleep_until(due) => {
                if let Some((sequence, to)) = probes.next(Instant::now()) {
                    let packet = Packet { kind: Kind::Probe, instance, sequence };
                    let _ = socket.try_send_to(&packet.bytes(), to);
                }
                due = tokio::time::Instant::now() + gap(wanted.interval, probes.targets(), most);
            }
            _ = report.tick() => {
                let (found, ended) = probes.take();
                if let Some(words) = losses.look(ended) {
                    say(&words);
                }
                if !found.is_empty() {
                    // The one before, where the daemon was away, counts no more.
                    reports.send_replace(Measured { report: found, at: Some(Instant::now()) });
                }
            }
            changed = wants.changed() => {
                if changed.is_err() {
                    return;
                }
                let next = wants.borrow_and_update().clone();
                if next.report != wanted.report {
                    report = every(next.report);
                }
                probes.set_targets(next.targets.clone());
                due = due.min(tokio::time::Instant::now() + gap(next.interval, probes.targets(), most));
                wanted = next;
            }
        }
    }
}

/// Fewer probes that came to an end say nothing of how many are lost.
const JUDGED_BY: u64 = 20;

/// Whether most probes are lost, as where a firewall drops them: said once as it begins, and once as fewer than one in four
/// are. It is judged each time that enough probes have come to their end, in however many reports.
#[derive(Debug, Default)]
struct Losses {
    most: bool,
    since: Ended,
}

impl Losses {
    fn look(&mut self, ended: Ended) -> Option<String> {
        let Ended { answered, lost } = self.since + ended;
        let of = answered + lost;
        if of < JUDGED_BY {
            self.since = Ended { answered, lost };
            return None;
        }
        self.since = Ended::default();
        let turned = if self.most { lost * 4 < of } else { lost * 2 > of };
        if !turned {
            return None;
        }
        self.most = !self.most;
        Some(match self.most {
            true => format!("{lost} of the last {of} probes got no answer: is UDP let through between the hosts?"),
            false => format!("{answered} of the last {of} probes got their answers again"),
        })
    }
}

fn every(time: Duration) -> tokio::time::Interval {
    let mut ticks = interval(time.max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Between two probes, so that each of so many has its turn once in `interval`, and no more than `most` go out a second.
fn gap(interval: Duration, targets: usize, most: u32) -> Duration {
    let share = interval / u32::try_from(targets.max(1)).unwrap_or(u32::MAX);
    share.max(Duration::from_secs(1) / most)
}

/// What is to be sent back, if anything.
fn received(probes: &mut Probes, instance: u64, bytes: &[u8], from: SocketAddr, now: Instant) -> Option<[u8; BYTES]> {
    let packet = Packet::read(bytes)?;
    match packet.kind {
        // One's own, as where another host gives an address that leads back here: its answer would say nothing of that host.
        Kind::Probe if packet.instance == instance => None,
        Kind::Probe => Some(Packet { kind: Kind::Answer, ..packet }.bytes()),
        Kind::Answer if packet.instance == instance => {
            probes.answered(packet.sequence, from, now);
            None
        }
        Kind::Answer => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_packets_go_out_than_the_bound_however_many_others_there_are() {
        let second = Duration::from_secs(1);
        assert_eq!(gap(second, 20, 200), Duration::from_millis(50));
        assert_eq!(gap(second, 4_000, 200), Duration::from_millis(5));
        assert_eq!(gap(second, 0, 200), second);
        let start = Instant::now();
        let mut bound = PerSecond::new(3, start);
        let taken = (0..1_000).filter(|at| bound.take(start + Duration::from_millis(2) * *at)).count();
        assert_eq!(taken, 6, "in two seconds");
    }

    #[test]
    fn lost_probes_are_told_of_once_as_they_begin_and_once_as_they_end() {
        let mut losses = Losses::default();
        let mut said = |answered, lost| losses.look(Ended { answered, lost });
        assert_eq!([said(0, 0), said(10, 10)], [None, None]);
        assert_eq!(
            said(8, 12).unwrap(),
            "12 of the last 20 probes got no answer: is UDP let through between the hosts?"
        );
        assert_eq!([said(0, 30), said(0, 0), said(15, 5)], [None, None, None], "it was said, and is not over");
        assert_eq!(said(19, 1).unwrap(), "19 of the last 20 probes got their answers again");
        assert_eq!(said(19, 1), None);
    }

    #[test]
    fn a_few_lost_probes_are_no_sign_before_there_are_enough_of_them() {
        let mut losses = Losses::default();
        let mut said = |answered, lost| losses.look(Ended { answered, lost });
        assert_eq!([said(0, 1), said(1, 9), said(0, 8)], [None, None, None], "19 in all");
        assert_eq!(
            said(0, 1).unwrap(),
            "19 of the last 20 probes got no answer: is UDP let through between the hosts?"
        );
        assert_eq!([said(10, 0), said(9, 0)], [None, None], "19 since");
        assert_eq!(said(1, 0).unwrap(), "20 of the last 20 probes got their answers again");
    }

    #[test]
    fn a_probe_is_answered_with_as_many_bytes_and_an_answer_never() {
        let (mut probes, now, from) = (Probes::default(), Instant::now(), SocketAddr::from(([127, 0, 0, 1], 1)));
        let probe = Packet { kind: Kind::Probe, instance: 9, sequence: 4 };
        let back = received(&mut probes, 1, &probe.bytes(), from, now).unwrap();
        assert_eq!(Packet::read(&back), Some(Packet { kind: Kind::Answer, ..probe }));
        assert_eq!(received(&mut probes, 9, &probe.bytes(), from, now), None, "nor one's own");
        assert_eq!(received(&mut probes, 9, &back, from, now), None);
        assert_eq!(received(&mut probes, 9, b"anything else", from, now), None);
    }
}
