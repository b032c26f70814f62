//! `hintd.script/1`: what fails and returns in a simulated run, and traffic of others.

use super::super::failure::Failure;
use super::super::files;
use hintd_model::cluster::Snapshot;
use hintd_model::network::optical::ports as ports_of;
use hintd_model::solve::nearest;
use hintd_model::units::Micros;
use hintd_simulator::{Background, Scripted, ScriptedEvent, SimSettings};
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

/// What `format` must say.
const FORMAT: &str = "hintd.script/1";
/// A century: later times would not be seconds.
const MOST_S: f64 = 100.0 * 366.0 * 86_400.0;

/// A script as it stands in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    format: String,
    #[serde(default)]
    events: Vec<Event>,
    #[serde(default)]
    background: Vec<Stream>,
}

/// One of the six beside the time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    at_s: f64,
    node_down: Option<String>,
    node_up: Option<String>,
    link_down: Option<String>,
    link_up: Option<String>,
    port_stuck: Option<String>,
    port_loose: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    from_rack: String,
    to_rack: String,
    streams: u32,
    #[serde(default)]
    start_s: f64,
    end_s: Option<f64>,
}

/// Reads and checks a script for a cluster.
///
/// # Errors
/// [`Failure::Input`] with the file and the entry that is wrong.
pub(super) fn read(path: &Path, cluster: &Snapshot) -> Result<Script, Failure> {
    let text = files::read_text(path)?;
    Script::from_text(&text, cluster).map_err(|message| Failure::Input(format!("{}: {message}", path.display())))
}

impl Script {
    /// Reads and checks a script for a cluster.
    ///
    /// # Errors
    /// The entry that is wrong, and how.
    pub fn from_text(text: &str, cluster: &Snapshot) -> Result<Self, String> {
        let script: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if script.format != FORMAT {
            return Err(format!("format is \"{}\", not \"{FORMAT}\"", script.format));
        }
        for (at, event) in script.events.iter().enumerate() {
            event.check(cluster).map_err(|message| format!("events[{at}]: {message}"))?;
        }
        for (at, stream) in script.background.iter().enumerate() {
            stream.check(cluster).map_err(|message| format!("background[{at}]: {message}"))?;
        }
        Ok(script)
    }

    /// Gives its events and streams to a run's settings.
    pub fn into_settings(self, settings: &mut SimSettings) {
        settings.script = self.events.into_iter().map(Event::scripted).collect();
        settings.script.sort_by_key(|event| event.at);
        settings.background = self.background.into_iter().map(Stream::background).collect();
    }
}

impl Event {
    fn check(&self, cluster: &Snapshot) -> Result<(), String> {
        time("at_s", self.at_s)?;
        let nodes: Vec<&String> = self.node_down.iter().chain(&self.node_up).collect();
        let links: Vec<&String> = self.link_down.iter().chain(&self.link_up).collect();
        let ports: Vec<&String> = self.port_stuck.iter().chain(&self.port_loose).collect();
        if nodes.len() + links.len() + ports.len() != 1 {
            let words = "node_down, node_up, link_down, link_up, port_stuck, port_loose";
            return Err(format!("one of {words} must stand there"));
        }
        let statics = &cluster.statics;
        if let Some(name) = nodes.first().filter(|name| statics.find(name).is_none()) {
            let hosts = statics.host.iter().map(|host| host.as_str());
            return Err(format!("no node \"{name}\"{}", meant(name, hosts)));
        }
        let network = cluster.topology.network.as_deref();
        if let Some(name) = links.first().filter(|name| network.is_none_or(|network| network.link(name).is_none())) {
            return Err(format!("no link \"{name}\" (hintctl topology names them)"));
        }
        let is_port = |name: &str| {
            let network = network?;
            let (link, section) = (network.link(name)?, network.optical()?);
            let switch = network.vertex(&section.switch)?;
            ports_of(network, switch).0.iter().find(|port| port.link == link).copied()
        };
        if let Some(name) = ports.first().filter(|name| is_port(name).is_none()) {
            return Err(format!(
                "no optical port \"{name}\": ports are links of the switch that an optical section names"
            ));
        }
        Ok(())
    }

    fn scripted(self) -> ScriptedEvent {
        let node = self.node_down.map(|host| Scripted::NodeDown(host.as_str().into()));
        let node = node.or(self.node_up.map(|host| Scripted::NodeUp(host.as_str().into())));
        let link = self.link_down.map(|link| Scripted::LinkDown(link.as_str().into()));
        let link = link.or(self.link_up.map(|link| Scripted::LinkUp(link.as_str().into())));
        let port = self.port_stuck.map(|port| Scripted::PortStuck(port.as_str().into()));
        let port = port.or(self.port_loose.map(|port| Scripted::PortLoose(port.as_str().into())));
        let what = node.or(link).or(port).expect("one of the six was checked to be there");
        ScriptedEvent { at: micros(self.at_s), what }
    }
}

impl Stream {
    fn check(&self, cluster: &Snapshot) -> Result<(), String> {
        time("start_s", self.start_s)?;
        if let Some(end_s) = self.end_s {
            time("end_s", end_s)?;
            if end_s < self.start_s {
                return Err(format!("end_s = {end_s} lies before start_s = {}", self.start_s));
            }
        }
        if self.streams == 0 {
            return Err("streams is 0".to_owned());
        }
        let racks = || cluster.statics.racks.iter().map(|rack| rack.as_str());
        match [&self.from_rack, &self.to_rack].into_iter().find(|name| racks().all(|rack| rack != name.as_str())) {
            Some(name) => Err(format!("no rack \"{name}\"{}", meant(name, racks()))),
            None => Ok(()),
        }
    }

    fn background(self) -> Background {
        let end = self.end_s.map(micros);
        let (from_rack, to_rack): (Arc<str>, Arc<str>) = (self.from_rack.into(), self.to_rack.into());
        Background { from_rack, to_rack, streams: self.streams, start: micros(self.start_s), end }
    }
}

fn time(key: &str, seconds: f64) -> Result<(), String> {
    if (0.0..=MOST_S).contains(&seconds) { Ok(()) } else { Err(format!("{key} = {seconds}: seconds from 0 on")) }
}

fn micros(seconds: f64) -> Micros {
    Micros((seconds * 1e6).round() as u64)
}

fn meant<'n>(name: &str, all: impl Iterator<Item = &'n str>) -> String {
    nearest(name, all).map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default()
}
