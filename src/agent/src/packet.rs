//! Probes and their answers: 32 bytes each way, so that nobody gets more back than was sent.

/// Bytes of a packet.
pub(crate) const BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"hintdlat";
const VERSION: u8 = 1;

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Probe,
    Answer,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) kind: Kind,
    /// Whose probe it is: who knows no instance can't answer for another host.
    pub(crate) instance: u64,
    pub(crate) sequence: u64,
}

impl Packet {
    pub(crate) fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        (bytes[8], bytes[9]) = (VERSION, u8::from(self.kind == Kind::Answer));
        bytes[16..24].copy_from_slice(&self.instance.to_be_bytes());
        bytes[24..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// `None`: it is none of ours.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != BYTES || bytes[..8] != MAGIC || bytes[8] != VERSION {
            return None;
        }
        let kind = match bytes[9] {
            0 => Kind::Probe,
            1 => Kind::Answer,
            _ => return None,
        };
        let number = |from: usize| bytes[from..from + 8].try_into().ok().map(u64::from_be_bytes);
        Some(Self { kind, instance: number(16)?, sequence: number(24)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_reads_back_as_it_was_written_and_others_are_none() {
        for kind in [Kind::Probe, Kind::Answer] {
            let packet = Packet { kind, instance: 7 << 60, sequence: u64::MAX };
            assert_eq!(Packet::read(&packet.bytes()), Some(packet));
            for at in 0..10 {
                let mut other = packet.bytes();
                other[at] ^= 0x80;
                assert_eq!(Packet::read(&other), None, "byte {at}");
            }
            assert_eq!(Packet::read(&packet.bytes()[1..]), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(Packet::read(&bytes).is_none() || bytes.len() == BYTES);
        }
    }
}
