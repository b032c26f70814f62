//! One feed stream: what its source said of itself, its numbers, and what to acknowledge.

use super::{FeedRegistries, ItemRefusal, Reason};
use hintd_client::wire::v1;
use hintd_model::cluster::Source;
use hintd_model::units::HostName;
use std::collections::{BTreeMap, BTreeSet};

/// Refusals named in one acknowledgement; more are counted only. Streams acknowledge long before.
const NAMED_MAX: usize = 1_000;

/// What a source says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hello {
    /// Its name, for logs.
    pub source: String,
    /// `used` leaves out containers that were given away and have not started.
    pub used_is_running: bool,
    /// Heartbeats name their containers.
    pub names_containers: bool,
}

/// One stream of one source.
#[derive(Debug)]
pub struct FeedStream {
    source: Source,
    through: u64,
    hello: Option<Hello>,
    refused: Vec<v1::ItemRefusal>,
    resync: BTreeSet<String>,
    /// DataNodes that reported here, and whether their full report was asked for already.
    datanodes: BTreeMap<HostName, bool>,
}

impl FeedStream {
    /// A stream that has said nothing.
    #[must_use]
    pub const fn new(source: Source) -> Self {
        Self {
            source,
            through: 0,
            hello: None,
            refused: Vec::new(),
            resync: BTreeSet::new(),
            datanodes: BTreeMap::new(),
        }
    }

    /// What the source said of itself, if it did.
    #[must_use]
    pub const fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Every item up to this number was looked at.
    #[must_use]
    pub const fn through(&self) -> u64 {
        self.through
    }

    /// The acknowledgement of all since the last one.
    pub fn acknowledge(&mut self, registries: &FeedRegistries, instance_id: &str) -> v1::FeedAck {
        let mut wanted = Vec::new();
        for (name, asked) in &mut self.datanodes {
            let wants = registries.wants_full_report(name);
            if wants && !*asked {
                wanted.push(name.to_string());
            }
            *asked = wants;
        }
        v1::FeedAck {
            instance_id: instance_id.to_owned(),
            through: self.through,
            refused: std::mem::take(&mut self.refused),
            resync: std::mem::take(&mut self.resync).into_iter().collect(),
            full_report_wanted: wanted,
        }
    }

    /// Looks at one item, and notes what came of it.
    pub(super) fn take<T>(
        &mut self,
        registries: &FeedRegistries,
        number: u64,
        look: impl FnOnce(&mut Self) -> Result<T, ItemRefusal>,
    ) -> Result<T, ItemRefusal> {
        let looked = if number > self.through {
            self.through = number;
            look(self)
        } else {
            let message = format!("number {number} is not above the last one, {}", self.through);
            Err(ItemRefusal::new(Reason::OutOfOrder, message))
        };
        registries.count(self.source, looked.as_ref().err().map(|refusal| refusal.reason));
        if let Err(refusal) = &looked
            && self.refused.len() < NAMED_MAX
        {
            let (reason, message) = (refusal.reason.as_str().to_owned(), refusal.message.clone());
            self.refused.push(v1::ItemRefusal { number, reason, message });
        }
        looked
    }

    /// Who tells, and how what it tells is meant.
    pub(crate) fn greet(&mut self, hello: v1::FeedHello) {
        self.hello = Some(Hello {
            used_is_running: hello.used_means() == v1::UsedMeans::Running,
            source: hello.source,
            names_containers: hello.names_containers,
        });
    }

    /// The hello that every item but the first needs.
    pub(super) fn greeted(&self) -> Result<&Hello, ItemRefusal> {
        let missing = || ItemRefusal::new(Reason::HelloMissing, "the first item of a stream is its hello");
        self.hello.as_ref().ok_or_else(missing)
    }

    pub(super) fn ask_to_register(&mut self, host: &str) {
        if self.resync.len() < NAMED_MAX {
            self.resync.insert(host.to_owned());
        }
    }

    pub(super) fn note_datanode(&mut self, name: &HostName) {
        self.datanodes.entry(name.clone()).or_default();
    }
}

/// An item without content, as a newer client may send it.
pub(super) fn empty_item() -> ItemRefusal {
    ItemRefusal::new(Reason::Malformed, "the item is empty, or of a kind that this version does not know")
}
