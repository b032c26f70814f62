//! Fields drawn for benchmarks: many containers whose flows pass boxes of a fat-tree.

use super::field::{Field, InOrder, Mover, Run};
use hintd_model::network::build::{BuildError, FatTreeSpec, fat_tree};
use hintd_model::network::chains::HopTable;
use hintd_model::network::chains::sample::{TYPES, figure6, sequences};
use hintd_model::units::{BitsPerSec, VertexIdx};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Room of a server, in containers.
const ROOM: u64 = 16;

/// A field.
#[derive(Debug, Clone)]
pub struct Drawn(Field<1>);

/// What playing a field took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Played {
    /// Messages of all machines.
    pub messages: u64,
    /// Containers moved, each time counted.
    pub moves: u64,
    /// Second checks that were rejected.
    pub races: u64,
    /// Cost at the start, bit/s × links.
    pub before: u128,
    /// Cost at the end.
    pub after: u128,
}

/// `containers` on `servers` of 16 each, evenly at random as far as there is room; a pruned fat-tree with Figure 6's
/// boxes. Each container sends one flow and receives one, of 1 to 100 Mbit/s, each under a chain of one to three types,
/// through boxes drawn among those of a type.
///
/// # Errors
/// [`BuildError`] for numbers of servers that no fat-tree of up to 128 ports has.
///
/// # Panics
/// If there is no room for that many containers.
pub fn drawn(containers: usize, servers: usize, seed: u64) -> Result<Drawn, BuildError> {
    assert!(containers as u64 <= servers as u64 * ROOM, "{containers} containers do not fit on {servers} servers");
    let k = (2..=128).step_by(2).find(|k| k * k * k / 4 >= servers).unwrap_or(128);
    let network = fat_tree(&FatTreeSpec { k, hosts: Some(servers), ..FatTreeSpec::default() })?.network;
    let boxes = figure6(&network, BitsPerSec(1));
    let places: Vec<VertexIdx> = boxes.iter().filter_map(|entry| network.vertex(&entry.at)).collect();
    let hosts = network.vertices().filter(|(_, vertex)| vertex.is_host()).map(|(host, _)| host);
    let above: Vec<VertexIdx> = hosts.filter_map(|host| network.attachment(host)).collect();
    let mut switches = above.clone();
    switches.sort_unstable();
    switches.dedup();
    let switch_of = above.iter().map(|at| switches.binary_search(at).expect("it is among them") as u32).collect();
    let table = HopTable::new(&network, &places, &switches);
    let of_type: Vec<Vec<u32>> = TYPES
        .iter()
        .map(|kind| (0_u32..).zip(&boxes).filter(|(_, entry)| entry.kind == *kind).map(|(at, _)| at).collect())
        .collect();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut left = vec![ROOM; servers];
    let chains = sequences(2 * containers, seed);
    let end = |kind: &String, random: &mut ChaCha8Rng| {
        let row = TYPES.iter().position(|known| known == kind).expect("sequences are of these types");
        (of_type[row][random.random_range(0..of_type[row].len())], random.random_range(1..=100) * 1_000_000_u64)
    };
    let mut mover = |at: usize| {
        let server = loop {
            let server = random.random_range(0..servers);
            if left[server] > 0 {
                break server;
            }
        };
        left[server] -= 1;
        let (sent, received) = (&chains[2 * at], &chains[2 * at + 1]);
        let pulls = vec![end(&sent[0], &mut random), end(&received[received.len() - 1], &mut random)];
        Mover { size: [1], server: server as u32, pulls, set: 0 }
    };
    let tasks = (0..containers).map(&mut mover).collect();
    let hops = (0..places.len()).map(|place| table.row(place).to_vec()).collect();
    Ok(Drawn(Field { switch_of, rooms: vec![[ROOM]; servers], tasks, hops, allowed: Vec::new() }))
}

impl Drawn {
    /// Plays it until all is quiet, messages in the order sent, `window` containers at a time.
    #[must_use]
    pub fn play(&self, window: usize) -> Played {
        let mut run = Run::new(&self.0);
        let before = run.cost();
        let ran = run.play(window, &mut InOrder::default(), || true);
        Played { messages: ran.messages, moves: ran.moves, races: ran.races, before, after: run.cost() }
    }
}
