//! Packed paths of one attachment switch to others.

use super::links::Links;
use super::search::Found;
use super::wiring::Wiring;
use smallvec::SmallVec;

/// The paths of one end, its owner, to the ends 0, 1, … in turn, as bytes: for each path the number of its links
/// and then the number of the port taken at each switch, seven bits a byte. A port is one byte up to 128 ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// By other end, and one more: where its bytes start.
    starts: Box<[u32]>,
    /// By other end: links of the longest path, [`UNBOUNDED`] where a longer one would be taken too.
    worst: Box<[u8]>,
    bytes: Box<[u8]>,
}

/// A pair with fewer than k paths, with longer ones than the byte holds, or whose search came near its bound: that hangs on
/// all that the search has seen.
const UNBOUNDED: u8 = u8::MAX;

/// A pair's packed paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    bytes: SmallVec<[u8; 64]>,
    worst: u8,
}

impl Packed {
    /// Packs what was found; `from_owner` says whether it leads from the row's owner or towards it.
    pub(super) fn of(wiring: &Wiring, owner: u32, found: &Found, k: usize, from_owner: bool) -> Self {
        let mut bytes = SmallVec::new();
        for links in &found.paths {
            push(&mut bytes, links.len());
            let mut here = owner;
            for n in 0..links.len() {
                let link = links[if from_owner { n } else { links.len() - 1 - n }];
                let port = wiring.port_of(here, link);
                push(&mut bytes, port);
                here = wiring.ports(here)[port].to;
            }
        }
        let longest = found.paths.last().filter(|_| found.paths.len() == k && !found.strained).map(Links::len);
        let worst = longest.and_then(|links| u8::try_from(links).ok()).unwrap_or(UNBOUNDED);
        Self { bytes, worst }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[cfg(test)]
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), worst: UNBOUNDED }
    }

    /// Links of the longest path; `None` where a path of any length would be taken too.
    pub(super) fn worst(&self) -> Option<u32> {
        bounded(self.worst)
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + if self.bytes.spilled() { self.bytes.capacity() } else { 0 }
    }
}

impl Row {
    pub(super) fn of(pairs: impl IntoIterator<Item = Packed>) -> Self {
        let (mut starts, mut worst, mut bytes) = (vec![0], Vec::new(), Vec::new());
        for packed in pairs {
            bytes.extend_from_slice(&packed.bytes);
            worst.push(packed.worst);
            starts.push(bytes.len() as u32);
        }
        Self { starts: starts.into(), worst: worst.into(), bytes: bytes.into() }
    }

    /// The row with other paths for some ends; `changed` is in the order of ends.
    pub(super) fn with(&self, changed: &[(u32, Packed)]) -> Self {
        let mut changed = changed.iter().peekable();
        let ends = 0..self.worst.len();
        Self::of(ends.map(|end| match changed.next_if(|(of, _)| *of as usize == end) {
            Some((_, packed)) => packed.clone(),
            None => self.packed(end),
        }))
    }

    /// The paths to an end as they are packed.
    pub(super) fn packed(&self, end: usize) -> Packed {
        Packed { bytes: SmallVec::from_slice(self.bytes(end)), worst: self.worst[end] }
    }

    /// The packed paths to an end.
    pub(super) fn bytes(&self, end: usize) -> &[u8] {
        &self.bytes[self.starts[end] as usize..self.starts[end + 1] as usize]
    }

    /// Links of the longest path to an end; `None` where a path of any length would be taken too.
    pub(super) fn worst(&self, end: usize) -> Option<u32> {
        bounded(self.worst[end])
    }

    /// Bytes held.
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.starts) + size_of_val(&*self.worst) + self.bytes.len()
    }
}

fn bounded(worst: u8) -> Option<u32> {
    Some(worst).filter(|&worst| worst != UNBOUNDED).map(u32::from)
}

fn push(bytes: &mut SmallVec<[u8; 64]>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number; `None` at the end of the bytes.
fn pull(bytes: &mut &[u8]) -> Option<usize> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Reads the next path, from the owner onwards: calls `hop` with each link and the row at its far end. `None` when
/// there is no other path.
pub(super) fn next_path(
    wiring: &Wiring,
    owner: u32,
    bytes: &mut &[u8],
    mut hop: impl FnMut(u32, u32),
) -> Option<usize> {
    let length = pull(bytes)?;
    let mut here = owner;
    for _ in 0..length {
        let port = wiring.ports(here)[pull(bytes)?];
        hop(port.link, port.to);
        here = port.to;
    }
    Some(length)
}

/// The links of all paths, each once, in order.
pub(super) fn links(wiring: &Wiring, owner: u32, mut bytes: &[u8], into: &mut Vec<u32>) {
    into.clear();
    while next_path(wiring, owner, &mut bytes, |link, _| into.push(link)).is_some() {}
    into.sort_unstable();
    into.dedup();
}
