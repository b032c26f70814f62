//! What a message takes once it is read, worked out before it is: two bytes may become a few hundred, an empty task group
//! for one, so that a message of a tenth of the memory there is could take all of it.
//!
//! Which fields are messages is known from the services' own descriptors. Bytes that are no message are left to the codec,
//! which says so.

use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorSet};
use std::collections::{BTreeMap, HashMap};

/// A message within another, about: the largest ones take so much.
const MESSAGE: usize = 256;
/// A text or a list of numbers, beside its bytes.
const TEXT: usize = 24;
/// Messages within messages, as the codec bounds them.
const DEPTH_MAX: usize = 100;

/// Messages by the calls that take them.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    by_call: HashMap<String, usize>,
    /// By number of a field that is a message: which.
    messages: Vec<BTreeMap<u64, usize>>,
}

/// One kind of message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'s> {
    of: &'s Shapes,
    message: usize,
}

impl Shapes {
    /// Those of all services in a set of descriptors, as a build writes it.
    pub(super) fn new(descriptors: &[u8]) -> Self {
        let files = FileDescriptorSet::decode(descriptors).map(|set| set.file).unwrap_or_default();
        let mut all: Vec<(String, DescriptorProto)> = Vec::new();
        for file in &files {
            collect(&format!(".{}", file.package()), &file.message_type, &mut all);
        }
        let places: HashMap<&str, usize> = all.iter().enumerate().map(|(at, (name, _))| (&**name, at)).collect();
        let fields = |message: &DescriptorProto| {
            let nested = message.field.iter().filter(|field| field.r#type() == Type::Message);
            let field = |field: &prost_types::FieldDescriptorProto| {
                let number = u64::try_from(field.number()).ok()?;
                Some((number, *places.get(field.type_name())?))
            };
            nested.filter_map(field).collect()
        };
        let messages = all.iter().map(|(_, message)| fields(message)).collect();
        let mut by_call = HashMap::new();
        for (file, service) in files.iter().flat_map(|file| file.service.iter().map(move |service| (file, service))) {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                by_call.extend(places.get(method.input_type()).map(|&place| (path, place)));
            }
        }
        Self { by_call, messages }
    }

    /// What a call takes; `None`: a call of another service.
    pub(super) fn of(&self, path: &str) -> Option<Shape<'_>> {
        self.by_call.get(path).map(|&message| Shape { of: self, message })
    }
}

fn collect(prefix: &str, messages: &[DescriptorProto], into: &mut Vec<(String, DescriptorProto)>) {
    for message in messages {
        let name = format!("{prefix}.{}", message.name());
        collect(&name, &message.nested_type, into);
        into.push((name, message.clone()));
    }
}

impl Shape<'_> {
    /// Whether a message takes no more than `most` bytes once it is read.
    pub(super) fn fits(self, message: &[u8], most: usize) -> bool {
        let mut left = most.saturating_sub(message.len());
        self.weigh(message, &mut left, DEPTH_MAX).is_some()
    }

    /// `None`: there is not so much left.
    fn weigh(self, mut rest: &[u8], left: &mut usize, depth: usize) -> Option<()> {
        let Some(depth) = depth.checked_sub(1) else { return Some(()) };
        while let Some((number, value)) = next_field(&mut rest) {
            let Value::Bytes(bytes) = value else { continue };
            let message = self.of.messages[self.message].get(&number);
            *left = left.checked_sub(if message.is_some() { MESSAGE } else { TEXT })?;
            if let Some(&message) = message {
                Shape { message, ..self }.weigh(bytes, left, depth)?;
            }
        }
        Some(())
    }
}

enum Value<'b> {
    Bytes(&'b [u8]),
    /// A number, in its own place.
    Number,
}

/// The next field's number and value; `None`: there is none, or these are no fields.
fn next_field<'b>(rest: &mut &'b [u8]) -> Option<(u64, Value<'b>)> {
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => varint(rest).map(|_| Value::Number)?,
        1 => skip(rest, 8).map(|_| Value::Number)?,
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Value::Bytes(skip(rest, length)?)
        }
        5 => skip(rest, 4).map(|_| Value::Number)?,
        _ => return None, // groups, which no message here has
    };
    Some((tag >> 3, value))
}

fn skip<'b>(rest: &mut &'b [u8], bytes: usize) -> Option<&'b [u8]> {
    let (skipped, after) = rest.split_at_checked(bytes)?;
    *rest = after;
    Some(skipped)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_client::wire::{DESCRIPTORS, v1};

    const HINTS: &str = "/hintd.v1.Placement/RequestHints";
    const TOPOLOGY: &str = "/hintd.v1.Feed/Topology";
    const MIB: usize = 1 << 20;

    #[test]
    fn empty_groups_by_the_million_are_too_much_and_names_of_as_many_bytes_are_not() {
        let shapes = Shapes::new(DESCRIPTORS);
        let hints = shapes.of(HINTS).unwrap();
        let groups = [0x42, 0].repeat(2 * MIB); // field 8, nothing in it
        assert!(!hints.fits(&groups, 256 * MIB) && hints.fits(&groups, 600 * MIB));
        let named = v1::RequestHintsRequest { user: "u".repeat(4 * MIB), ..Default::default() };
        assert!(hints.fits(&named.encode_to_vec(), 5 * MIB));
        assert!(hints.fits(&groups[..1_001], MIB), "what is cut off is the codec's to say");
        assert!(shapes.of("/grpc.health.v1.Health/Check").is_none());
    }

    #[test]
    fn what_is_nested_is_counted_and_a_large_network_is_not_too_much() {
        let shapes = Shapes::new(DESCRIPTORS);
        let link = |n: usize| v1::NetworkLink {
            id: format!("link-{n:06}"),
            a: format!("switch-{n:06}"),
            b: format!("node-{n:06}"),
            bits_per_s: 10_000_000_000,
            up: None,
        };
        let item = |links: Vec<v1::NetworkLink>| {
            let full = v1::NetworkGraph { links, ..Default::default() };
            v1::TopologyItem { number: 1, item: Some(v1::topology_item::Item::Full(full)) }.encode_to_vec()
        };
        let topology = shapes.of(TOPOLOGY).unwrap();
        assert!(topology.fits(&item((0..200_000).map(link).collect()), 256 * MIB));
        assert!(!topology.fits(&item(vec![v1::NetworkLink::default(); 2 * MIB]), 256 * MIB));
    }

    #[test]
    fn any_bytes_are_looked_through_to_an_end() {
        let shapes = Shapes::new(DESCRIPTORS);
        let hints = shapes.of(HINTS).unwrap();
        for seed in 0..2_000_u32 {
            let bytes: Vec<u8> =
                (0..64_u32).map(|at| (seed.wrapping_mul(2_654_435_761).rotate_left(at) >> 7) as u8).collect();
            assert!(hints.fits(&bytes, MIB));
        }
        let mut deep = Vec::new();
        for _ in 0..200 {
            deep = [vec![0x42], vec![u8::try_from(deep.len() % 100).unwrap()], deep].concat();
        }
        assert!(hints.fits(&deep, MIB));
    }
}
