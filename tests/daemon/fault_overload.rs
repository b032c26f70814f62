//! Ten times as many requests as it can place: searches get shorter, then callers are told when to come again; memory
//! stays flat, whoever is taken is answered in time, and afterwards all is as before.

use crate::program::{Program, say, write_config_with};
use crate::world::request;
use hintd_client::wire::v1;
use std::time::{Duration, Instant};
use tonic::Code;
use tonic::transport::Channel;
use v1::placement_client::PlacementClient;

/// How many times what it can place is offered, and for how long.
const TIMES: u32 = 10;
const LASTS: Duration = Duration::from_secs(3);
/// Records that are kept, as it is configured; and the journal's pages in memory, 8 MiB and a quarter for the allocator.
const RECORDS: u64 = 4 << 20;
const PAGES: u64 = 10 << 20;
/// What an accepted request of 24 containers keeps for as long as its leases run: 24 leases of some 440 bytes with their
/// places in four indexes, its answer, its attempt, and, of the last 64, what is watched.
const EACH: u64 = 16 << 10;
/// What searches, connections and calls under way leave with the allocator, in the first storm: its arenas grow to what the
/// machine makes of it, so this is coarse (71 MiB were seen beside other work).
const WARM: u64 = 128 << 20;
/// The same for all later storms together, 17 MiB with all that is accounted for beside other work. Of 2,700 requests that two storms
/// refuse, 16 KiB each would show.
const LEFT: u64 = 24 << 20;
/// All of this but [`EACH`] is filled once. A request that is refused leaves nothing.
const STORMS: u32 = 3;
/// Where the machine halts for a while, whoever waits comes too late: so many storms to see one that it does not disturb.
const STORMS_MAX: u32 = 5;

/// Workers that all talk to each other: a search that uses its steps.
fn job(id: u32, deadline_ms: u32) -> v1::RequestHintsRequest {
    let mut wire = request(&format!("o{id}"), id, 24, 1_024);
    wire.edges = vec![v1::GroupEdge {
        from: "g".to_owned(),
        to: "g".to_owned(),
        pattern: v1::EdgePattern::AllToAll.into(),
        bytes: 1 << 30,
    }];
    wire.deadline_ms = deadline_ms;
    wire.policy = "container".to_owned();
    wire
}

/// What became of one request.
struct Found {
    took: Duration,
    /// Steps of its search, or the code of its refusal.
    steps: Result<u64, Code>,
}

async fn ask(mut client: PlacementClient<Channel>, wire: v1::RequestHintsRequest) -> Found {
    let began = Instant::now();
    let steps = match client.request_hints(wire).await {
        Ok(answer) => Ok(answer.into_inner().hints.unwrap().steps),
        Err(status) => {
            if status.code() == Code::Unavailable {
                let delay = status.metadata().get("retry-after-ms").expect("it says when to come again");
                assert!(delay.to_str().unwrap().parse::<u64>().unwrap() > 0);
            }
            Err(status.code())
        }
    };
    Found { took: began.elapsed(), steps }
}

fn refused(found: &[Found], code: Code) -> usize {
    found.iter().filter(|found| found.steps == Err(code)).count()
}

/// A program with one thread that searches, and room for so many that wait.
struct Storm {
    _folder: tempfile::TempDir,
    program: Program,
    client: PlacementClient<Channel>,
    deadline_ms: u32,
    next: u32,
    /// Memory before the first storm, later after it, and requests accepted since then.
    base: u64,
    accepted: u64,
    /// The first storm is over.
    warm: bool,
    /// Time and steps of a request that is alone.
    usual: Duration,
    steps: u64,
}

impl Storm {
    /// Requests have `patience` times the time that one takes alone.
    async fn new(queue: &str, patience: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let records = format!("bytes = {RECORDS}");
        let further = [
            ("placer", "threads = 1"),
            ("placer", queue),
            ("placer", "steps = 3000"),
            ("placer", "baseline = false"),
            ("limits", "decisions_watched = 64"),
            // Its flows are kept of whoever runs, some 60 KB each of these jobs: bounded by pairs, and tested there.
            ("routes", "pairs_max = 0"),
            ("records", records.as_str()),
            // A fast machine fills the cluster in a storm: by the next question its leases are over.
            ("leases", "time_to_live = \"10s\""),
        ];
        let port = write_config_with(folder.path(), &further);
        let program = Program::start(folder.path(), port).await;
        let client = PlacementClient::connect(format!("http://{}", program.address)).await.unwrap();
        let (usual, steps) = (Duration::ZERO, u64::MAX);
        let mut storm = Self {
            _folder: folder,
            program,
            client,
            deadline_ms: 30_000,
            next: 0,
            base: 0,
            warm: false,
            accepted: 0,
            usual,
            steps,
        };
        for number in 0..6 {
            let found = storm.ask().await;
            storm.steps = storm.steps.min(found.steps.expect("nothing else is asked"));
            storm.usual += if number < 2 { Duration::ZERO } else { found.took / 4 };
        }
        storm.base = storm.program.resident();
        storm.deadline_ms = u32::try_from((storm.usual * patience).as_millis()).unwrap().clamp(200, 30_000);
        storm
    }

    fn ask(&mut self) -> impl Future<Output = Found> + use<> {
        self.next += 1;
        ask(self.client.clone(), job(self.next, self.deadline_ms))
    }

    /// Blows until somebody is refused: what a machine that others use too can do changes from second to second.
    async fn blow(&mut self) -> (Vec<Found>, u64) {
        loop {
            let (found, grew) = self.gust().await;
            if found.iter().any(|found| found.steps == Err(Code::Unavailable)) {
                return (found, grew);
            }
            assert!(self.usual > Duration::from_millis(1), "nobody is ever refused");
            self.usual /= 4;
        }
    }

    /// Offers ten times what one after the other could be answered; starts are planned, whatever comes back. Returns
    /// what became of each, and by how much memory grew since the first storm began, later since it was over.
    async fn gust(&mut self) -> (Vec<Found>, u64) {
        let gap = self.usual / TIMES;
        let (began, mut calls, mut most) = (Instant::now(), Vec::new(), self.base);
        while began.elapsed() < LASTS {
            let due = (began.elapsed().as_secs_f64() / gap.as_secs_f64()) as usize;
            while calls.len() < due {
                calls.push(tokio::spawn(self.ask()));
            }
            most = most.max(self.program.resident());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut found = Vec::new();
        for call in calls {
            found.push(call.await.unwrap());
        }
        self.accepted += found.iter().filter(|found| found.steps.is_ok()).count() as u64;
        (found, most.max(self.program.resident()).saturating_sub(self.base))
    }

    /// Several storms, in one of which at least most of the refused are refused at once; returns how long the slowest
    /// accepted took in the best of them.
    async fn blow_again(&mut self) -> Duration {
        let (mut slowest, mut in_time) = (Duration::MAX, false);
        for storm in 0..STORMS_MAX {
            if storm >= STORMS && in_time {
                break;
            }
            let (found, grew) = self.blow().await;
            slowest = slowest.min(self.check(&found, grew).await);
            in_time |= refused(&found, Code::DeadlineExceeded) <= refused(&found, Code::Unavailable) / 4;
        }
        assert!(in_time, "too many come too late in every storm: they were to be refused at once");
        slowest
    }

    /// What holds in every storm; returns how long the slowest accepted took.
    async fn check(&mut self, found: &[Found], grew: u64) -> Duration {
        let accepted: Vec<_> = found.iter().filter_map(|found| Some((found.took, found.steps.ok()?))).collect();
        let (told, late) = (refused(found, Code::Unavailable), refused(found, Code::DeadlineExceeded));
        let slowest = accepted.iter().map(|found| found.0).max().unwrap();
        let shortest = accepted.iter().map(|found| found.1).min().unwrap();
        let (offered, steps) = (found.len(), self.steps);
        say(&format!(
            "{offered} requests offered in {LASTS:?}, one of which takes {:?} alone: {} accepted, slowest {slowest:?}, \
             steps {shortest} to {steps}; {told} told when to come again, {late} too late; memory grew by {} MiB since the start",
            self.usual,
            accepted.len(),
            grew >> 20
        ));
        assert_eq!(accepted.len() + told + late, offered, "no other refusal");
        // Most of the load is borne by shorter searches.
        assert!(told > 0, "of {offered} some are told when to come again");
        assert!(shortest <= steps / 4, "searches are cut before requests are refused: {shortest} of {steps} steps");
        let most = if self.warm { LEFT } else { WARM } + RECORDS + PAGES + EACH * self.accepted;
        assert!(grew < most, "memory grew by {grew}, where {most} are accounted for");
        if !self.warm {
            (self.warm, self.base, self.accepted) = (true, self.program.resident(), 0);
        }
        // In a full cluster nothing is searched until leases end.
        let mut after = 0;
        for _ in 0..40 {
            after = match self.ask().await.steps {
                Ok(steps) => steps,
                Err(Code::DeadlineExceeded) => 0, // the machine halted for as long
                Err(code) => panic!("the storm is over: {code:?}"),
            };
            if after >= steps {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(after >= steps, "searches are whole again: {after} of {steps}");
        assert!(self.program.status().await.ready);
        slowest
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_ten_times_its_capacity_a_short_queue_answers_in_time_and_stays_small() {
    let mut storm = Storm::new("queue = 16", 200).await;
    let usual = storm.usual;
    let slowest = storm.blow_again().await;
    // A full queue of usual searches, three times over for a machine that is shared; searches are shorter by then.
    assert!(slowest < usual * 48 + Duration::from_secs(1), "{slowest:?} where one takes {usual:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_ten_times_its_capacity_a_long_queue_refuses_at_once_whose_turn_would_come_too_late() {
    let mut storm = Storm::new("queue = 1024", 30).await;
    let slowest = storm.blow_again().await;
    let deadline = Duration::from_millis(storm.deadline_ms.into());
    assert!(slowest < deadline + Duration::from_secs(1), "{slowest:?}, where {deadline:?} was asked for");
}
