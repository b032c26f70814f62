//! Racks of hosts: who believes what, and what the network file says.

use super::Daemon;
use super::network_file::known_hosts;
use hintd_engine::Refusal;
use hintd_model::network::racks::{HostRacks, audit};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Hosts whose racks by HDFS are kept.
const HOSTS_MAX: usize = 100_000;
/// Hosts in one question for racks, and bytes of a name.
const ASKED_MAX: usize = 1_000;
const NAME_BYTES: usize = 255;

/// Racks of DataNodes, as answers of NameNodes had them last.
#[derive(Debug, Default)]
pub struct HdfsRacks(Mutex<BTreeMap<Arc<str>, Arc<str>>>);

impl HdfsRacks {
    /// Takes racks by host. Where there is no room for a host that was not heard of, it is left out.
    pub fn heard(&self, racks: BTreeMap<String, String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (host, rack) in racks {
            let room = known.len() < HOSTS_MAX;
            match known.get_mut(host.as_str()) {
                Some(before) if **before == *rack => {}
                Some(before) => *before = rack.into(),
                None if room => _ = known.insert(host.into(), rack.into()),
                None => {}
            }
        }
    }

    fn all(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Daemon {
    /// Racks of DataNodes, to be told of.
    #[must_use]
    pub fn hdfs_racks(&self) -> Arc<HdfsRacks> {
        Arc::clone(&self.0.hdfs_racks)
    }

    /// Racks of hosts by YARN, by HDFS as far as heard, and by the network. Takes a while where there are many hosts.
    #[must_use]
    pub fn rack_audit(&self) -> Vec<HostRacks> {
        let generation = self.generation();
        let settings = self.settings();
        let switches = settings.network.as_ref().map(|source| source.file.racks_of_switches()).unwrap_or_default();
        let network = generation.snapshot.topology.network.as_deref();
        audit(network, &known_hosts(&generation.snapshot), &self.0.hdfs_racks.all(), &switches)
    }

    /// The racks that the network file puts hosts in, in the order of the question; empty: it does not say. Never what YARN
    /// or HDFS says: these are those who ask. An address is found where YARN's nodes tell whose it is.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] for too many hosts; [`Refusal::Invalid`] for names that are too long.
    pub fn racks_said(&self, hosts: &[String]) -> Result<Vec<String>, Refusal> {
        if hosts.len() > ASKED_MAX {
            let message = format!("{} hosts: at most {ASKED_MAX}", hosts.len());
            return Err(Refusal::TooLarge { field: "hosts".to_owned(), message, blocked: Vec::new() });
        }
        if let Some((at, name)) = hosts.iter().enumerate().find(|(_, name)| name.len() > NAME_BYTES) {
            let message = format!("a name of {} bytes: at most {NAME_BYTES}", name.len());
            return Err(Refusal::Invalid { field: format!("hosts[{at}]"), message });
        }
        let settings = self.settings();
        let Some(source) = &settings.network else { return Ok(vec![String::new(); hosts.len()]) };
        let generation = self.generation();
        let nodes = &generation.snapshot.statics;
        let rack = |name: &String| {
            let by_node = || source.racks.of(nodes.host[nodes.find(name)?.at()].as_str());
            source.racks.of(name).or_else(by_node).unwrap_or_default().to_owned()
        };
        Ok(hosts.iter().map(rack).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_of_hdfs_are_kept_in_bounds_and_as_heard_last() {
        let racks = HdfsRacks::default();
        racks.heard((0..=HOSTS_MAX).map(|at| (format!("n{at}"), "/a".to_owned())).collect());
        assert_eq!(racks.all().len(), HOSTS_MAX);
        racks.heard([("n1".to_owned(), "/b".to_owned())].into());
        assert_eq!(racks.all().get("n1").map(|rack| &**rack), Some("/b"));
    }
}
