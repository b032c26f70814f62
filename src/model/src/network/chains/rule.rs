//! Which traffic a chain is for, and when two chains may want the same flow.

use super::document::{ChainEntry, Direction, Protocol};
use std::sync::Arc;

/// What is known of a flow. What is not known matches only chains that leave it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowFacts<'a> {
    /// The application's recurring key and its id; empty: unknown.
    pub application: [&'a str; 2],
    /// Its queue.
    pub queue: Option<&'a str>,
    /// Name and role of the sending group; empty: unknown.
    pub from: [&'a str; 2],
    /// Name and role of the receiving group; empty: unknown.
    pub to: [&'a str; 2],
    /// Port of the receiver.
    pub port: Option<u16>,
    /// Transport protocol.
    pub protocol: Option<Protocol>,
}

/// What a chain asks of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    application: Option<Application>,
    queue: Option<Arc<str>>,
    group: Option<(Arc<str>, Direction)>,
    ports: Option<(u16, u16)>,
    protocol: Option<Protocol>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Application {
    Is(Arc<str>),
    Begins(Arc<str>),
}

impl Application {
    /// Whether it is an application of that key and id; what may be no key is not looked for among keys, for jobs give
    /// theirs as they like.
    fn is(&self, [key, id]: [&str; 2]) -> bool {
        let covers = |found: &str| match self {
            Self::Is(name) => &**name == found,
            Self::Begins(start) => found.starts_with(&**start),
        };
        let [may_id, may_key] = self.may_be();
        let is_key = may_key && !key.is_empty() && !key.starts_with(ID) && covers(key);
        is_key || may_id && !id.is_empty() && covers(id)
    }

    /// Whether it may be an id, and whether it may be a key: a start that is part of [`ID`] may be either.
    fn may_be(&self) -> [bool; 2] {
        match self {
            Self::Is(name) => [name.starts_with(ID), !name.starts_with(ID)],
            Self::Begins(start) => [start.starts_with(ID) || ID.starts_with(&**start), !start.starts_with(ID)],
        }
    }

    /// Whether one application may be both: by one name that both cover, or one by its id and the other by its key.
    fn meets(&self, other: &Self) -> bool {
        let one_name = match (self, other) {
            (Self::Is(a), Self::Is(b)) => a == b,
            (Self::Is(name), Self::Begins(start)) | (Self::Begins(start), Self::Is(name)) => name.starts_with(&**start),
            (Self::Begins(a), Self::Begins(b)) => a.starts_with(&**b) || b.starts_with(&**a),
        };
        let ([id, key], [its_id, its_key]) = (self.may_be(), other.may_be());
        one_name || id && its_key || key && its_id
    }
}

/// What ids of applications begin with. A key that does is known to chains by nothing.
const ID: &str = "application_";

impl Rule {
    pub(super) fn of(entry: &ChainEntry) -> Self {
        let application = entry.application.as_deref().map(|text| match text.strip_suffix('*') {
            Some(start) => Application::Begins(start.into()),
            None => Application::Is(text.into()),
        });
        Self {
            application,
            queue: entry.queue.as_deref().map(Arc::from),
            group: entry.group.as_deref().map(|group| (group.into(), entry.direction)),
            ports: entry.ports,
            protocol: entry.protocol,
        }
    }

    pub(super) fn matches(&self, flow: &FlowFacts<'_>) -> bool {
        let application = self.application.as_ref().is_none_or(|wanted| wanted.is(flow.application));
        let queue = self.queue.as_ref().is_none_or(|wanted| flow.queue.is_some_and(|found| covers(wanted, found)));
        let group = self.group.as_ref().is_none_or(|(name, direction)| {
            let (sends, receives) = (flow.from.contains(&&**name), flow.to.contains(&&**name));
            match direction {
                Direction::Out => sends,
                Direction::In => receives,
                Direction::Both => sends || receives,
            }
        });
        let port = self.ports.is_none_or(|(first, last)| flow.port.is_some_and(|port| first <= port && port <= last));
        let protocol = self.protocol.is_none_or(|wanted| flow.protocol == Some(wanted));
        application && queue && group && port && protocol
    }

    /// Whether some flow matches both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        // Two words on one side are taken for two groups; one that has both, as name and role, goes by the first chain.
        let sides =
            |a: &(Arc<str>, Direction), b: &(Arc<str>, Direction)| a.0 == b.0 || a.1 != b.1 || a.1 == Direction::Both;
        meet(self.group.as_ref(), other.group.as_ref(), sides)
            && meet(self.application.as_ref(), other.application.as_ref(), Application::meets)
            && meet(self.queue.as_ref(), other.queue.as_ref(), |a, b| covers(a, b) || covers(b, a))
            && meet(self.ports.as_ref(), other.ports.as_ref(), |a, b| a.0 <= b.1 && b.0 <= a.1)
            && meet(self.protocol.as_ref(), other.protocol.as_ref(), |a, b| a == b)
    }
}

fn meet<T>(a: Option<&T>, b: Option<&T>, both: impl Fn(&T, &T) -> bool) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => both(a, b),
        _ => true,
    }
}

/// Whether `queue` is `wanted` or lies below it.
fn covers(wanted: &str, queue: &str) -> bool {
    queue.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
