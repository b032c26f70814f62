//! Agents that measure latency: where they answer probes, and whom each should measure.
//!
//! # Invariants
//! - A host has one agent. One that starts later takes over, for it is mostly the same one started again; the one before it is refused
//!   for as long as the later one lives, so that two of one name do not take turns.
//! - Agents are of registered hosts, so that there are at most as many.
//! - However many come at once, as after a start, the plan is made once in [`PLAN_FOR`]: who comes in between asks again soon.
//! - Who answers on a loopback address is named only to others that do: elsewhere that address leads back to who asks.

use hintd_engine::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::network::latency::probes::{Fanout, Graph, ProbePlan};
use hintd_model::units::{HostName, Micros, NodeIdx, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An agent asks again after so long.
pub const REFRESH: Micros = Micros::from_secs(20);
/// One that has not asked for so long is gone.
const SILENT: Micros = Micros::from_secs(60);
/// Agents of one host that were replaced and are remembered; beyond, the one replaced the longest ago may take over again.
const REPLACED: usize = 8;
/// How long a plan is used before agents that came and went since are looked at.
const PLAN_FOR: Micros = Micros::from_secs(2);
/// The hosts that are drawn change after so long.
const DRAWN_FOR: Micros = Micros::from_secs(600);

#[derive(Debug)]
struct Agent {
    address: SocketAddr,
    instance: u64,
    seen: Timestamp,
    replaced: VecDeque<u64>,
}

impl Agent {
    const fn lives(&self, now: Timestamp) -> bool {
        now.since(self.seen).0 <= SILENT.0
    }

    const fn is_local(&self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }
}

#[derive(Debug, Default)]
struct State {
    agents: BTreeMap<HostName, Agent>,
    plan: Option<(Timestamp, Arc<ProbePlan>)>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Agents(Mutex<State>);

/// An agent that asks whom to measure.
#[derive(Debug, Clone, Copy)]
pub struct AskingAgent<'a> {
    /// Its host.
    pub host: &'a str,
    /// Where it answers.
    pub address: SocketAddr,
    /// The number that it drew when it started.
    pub instance: u64,
}

/// Whom an agent should measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its host.
    pub host: HostName,
    /// Where it answers.
    pub address: SocketAddr,
    /// Why.
    pub graph: Graph,
}

impl Agents {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an agent of a host and says whom it should measure.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] host; [`Refusal::Unavailable`] for an agent that a later one of its host has replaced.
    pub fn ask(
        &self,
        agent: AskingAgent<'_>,
        snapshot: &Snapshot,
        fanout: &Fanout,
        now: Timestamp,
    ) -> Result<Vec<Target>, Refusal> {
        let AskingAgent { host, address, instance } = agent;
        let unknown = || Refusal::Unknown { what: "host", name: host.to_owned(), nearest: None };
        let node = snapshot.statics.find(host).ok_or_else(unknown)?;
        let mut state = self.state();
        note(&mut state, snapshot.host(node), (address, instance), now)?;
        let plan = plan(&mut state, snapshot, now);
        let targets = plan.targets((node, snapshot.rack(node)), fanout, now.0 / DRAWN_FOR.0);
        let local = address.ip().to_canonical().is_loopback();
        let target = |(node, graph): (NodeIdx, Graph)| {
            let host = snapshot.host(node);
            let agent = state.agents.get(host).filter(|agent| agent.lives(now) && agent.is_local() == local)?;
            Some(Target { host: host.clone(), address: agent.address, graph })
        };
        Ok(targets.into_iter().filter_map(target).collect())
    }

    /// Whether another agent has replaced this one of its host.
    #[must_use]
    pub fn is_replaced(&self, host: &HostName, instance: u64, now: Timestamp) -> bool {
        let state = self.state();
        state.agents.get(host).is_some_and(|agent| agent.lives(now) && agent.replaced.contains(&instance))
    }

    /// Agents that live.
    #[must_use]
    pub fn count(&self, now: Timestamp) -> usize {
        self.state().agents.values().filter(|agent| agent.lives(now)).count()
    }
}

fn note(
    state: &mut State,
    host: &HostName,
    (address, instance): (SocketAddr, u64),
    now: Timestamp,
) -> Result<(), Refusal> {
    let Some(known) = state.agents.get_mut(host) else {
        let agent = Agent { address, instance, seen: now, replaced: VecDeque::new() };
        state.agents.insert(host.clone(), agent);
        return Ok(());
    };
    if known.instance != instance {
        if known.lives(now) && known.replaced.contains(&instance) {
            // The same words each time: who repeats them says them once.
            let message = format!("another agent of \"{host}\" has taken over, at {}", known.address);
            return Err(Refusal::Unavailable { message, retry_after: SILENT });
        }
        known.replaced.retain(|replaced| *replaced != instance);
        known.replaced.push_back(known.instance);
        if known.replaced.len() > REPLACED {
            known.replaced.pop_front();
        }
        known.instance = instance;
    }
    (known.address, known.seen) = (address, now);
    Ok(())
}

fn plan(state: &mut State, snapshot: &Snapshot, now: Timestamp) -> Arc<ProbePlan> {
    if let Some((made, plan)) = &state.plan
        && now.since(*made) <= PLAN_FOR
    {
        return Arc::clone(plan);
    }
    state.agents.retain(|_, agent| agent.lives(now));
    let nodes = state.agents.keys().filter_map(|host| snapshot.statics.find(host.as_str()));
    let plan = Arc::new(ProbePlan::new(nodes.map(|node| (node, snapshot.rack(node)))));
    state.plan = Some((now, Arc::clone(&plan)));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::cluster::{Change, Model, NamedResource, NodeState, Registration};
    use hintd_model::units::Bytes;

    const T: Timestamp = Timestamp(1_000_000_000);

    fn snapshot(hosts: &[(&str, &str)]) -> Arc<Snapshot> {
        let mut model = Model::default();
        for (host, rack) in hosts {
            let registration = Registration {
                host: (*host).into(),
                rack: (*rack).into(),
                total: NamedResource::default(),
                labels: Vec::new(),
                attributes: BTreeMap::new(),
                class: "".into(),
                aliases: Vec::new(),
                disk_read: Bytes::ZERO,
                state: NodeState::Running,
            };
            model.apply(Change::Register(registration), T).unwrap();
        }
        model.publish(T)
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    const fn agent(host: &str, address: SocketAddr, instance: u64) -> AskingAgent<'_> {
        AskingAgent { host, address, instance }
    }

    #[test]
    fn agents_are_told_of_each_other_until_they_fall_silent() {
        let (agents, snapshot) = (Agents::default(), snapshot(&[("a", "/r1"), ("b", "/r1"), ("c", "/r2")]));
        let ask = |host, port, now| agents.ask(agent(host, address(port), 1), &snapshot, &Fanout::default(), now);
        assert_eq!(ask("a", 1, T), Ok(vec![]));
        assert_eq!(ask("b", 2, T), Ok(vec![]), "the plan is of before");
        let soon = T.plus(Micros(PLAN_FOR.0 + 1));
        assert_eq!(
            ask("b", 2, soon).unwrap(),
            [Target { host: "a".into(), address: address(1), graph: Graph::InRack }]
        );
        ask("c", 3, soon).unwrap();
        let soon = soon.plus(Micros(PLAN_FOR.0 + 1));
        let found = ask("c", 3, soon).unwrap();
        assert!(found.iter().all(|target| target.graph != Graph::InRack) && !found.is_empty(), "{found:?}");
        assert_eq!(ask("a", 1, soon).unwrap().len(), 2);
        assert_eq!(ask("x", 1, T).unwrap_err().to_string(), "host \"x\" is unknown");
        let later = soon.plus(Micros::from_secs(61));
        assert_eq!((ask("a", 9, later), agents.count(later)), (Ok(vec![]), 1), "the others are silent");
        ask("b", 2, later).unwrap();
        let later = later.plus(Micros(PLAN_FOR.0 + 1));
        assert_eq!(ask("b", 2, later).unwrap()[0].address, address(9), "where it answers now");
    }

    #[test]
    fn the_plan_is_made_once_for_all_that_come_together() {
        let names: Vec<String> = (0..200).map(|at| format!("n{at}")).collect();
        let hosts: Vec<_> = names.iter().map(|name| (name.as_str(), "/r")).collect();
        let (agents, snapshot) = (Agents::default(), snapshot(&hosts));
        let ask = |host: &str, now| agents.ask(agent(host, address(1), 1), &snapshot, &Fanout::default(), now).unwrap();
        let plan = || Arc::clone(&agents.state().plan.as_ref().unwrap().1);
        ask("n0", T);
        let first = plan();
        names.iter().for_each(|host| assert_eq!(ask(host, T.plus(PLAN_FOR)), []));
        assert!(Arc::ptr_eq(&first, &plan()), "200 came, and it is the same one");
        assert!(ask("n7", T.plus(Micros(PLAN_FOR.0 + 1))).len() >= 8);
    }

    #[test]
    fn who_answers_on_loopback_alone_is_named_only_to_those_who_do() {
        let (agents, snapshot) =
            (Agents::default(), snapshot(&[("a", "/r1"), ("b", "/r1"), ("c", "/r1"), ("d", "/r1")]));
        let far = |last| SocketAddr::from(([192, 0, 2, last], 8471));
        let places = [("a", address(1)), ("b", address(2)), ("c", far(3)), ("d", far(4))];
        let ask = |at: usize, now| {
            let asking = agent(places[at].0, places[at].1, 1);
            let found = agents.ask(asking, &snapshot, &Fanout::default(), now).unwrap();
            found.iter().map(|target| target.host.to_string()).collect::<Vec<_>>()
        };
        (0..4).for_each(|at| assert_eq!(ask(at, T), Vec::<String>::new()));
        let soon = T.plus(Micros(PLAN_FOR.0 + 1));
        assert_eq!([0, 1, 2, 3].map(|at| ask(at, soon)), [["b"], ["a"], ["d"], ["c"]]);
    }

    #[test]
    fn of_two_agents_of_a_host_the_later_one_takes_over_and_the_other_is_refused_while_it_lives() {
        let (agents, snapshot) = (Agents::default(), snapshot(&[("a", "/r1"), ("b", "/r1")]));
        let ask =
            |port, instance, now| agents.ask(agent("a", address(port), instance), &snapshot, &Fanout::default(), now);
        ask(1, 11, T).unwrap();
        let soon = T.plus(Micros::from_secs(5));
        ask(2, 22, soon).unwrap();
        let refused = ask(1, 11, soon.plus(Micros::from_secs(5))).unwrap_err();
        assert_eq!(refused.to_string(), "another agent of \"a\" has taken over, at 127.0.0.1:2");
        assert!(agents.is_replaced(&"a".into(), 11, soon) && !agents.is_replaced(&"a".into(), 22, soon));
        let later = soon.plus(Micros::from_secs(61));
        assert!(!agents.is_replaced(&"a".into(), 11, later));
        ask(1, 11, later).expect("the later one is gone");
        assert_eq!(ask(2, 22, later).unwrap_err().token(), "unavailable");
        for instance in 100..200 {
            ask(3, instance, later).expect("one that was never seen takes over");
        }
        assert_eq!(agents.state().agents[&HostName::from("a")].replaced.len(), REPLACED);
    }
}
