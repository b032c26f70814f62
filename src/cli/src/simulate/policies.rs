//! The policies that are compared, and how each becomes a dispatcher.

use super::super::failure::Failure;
use super::super::policy;
use hintd_policy::adapt::dispatcher_of;
use hintd_policy::baselines::capacity;
use hintd_policy::registry;
use hintd_policy::{DynDispatch, PlaceData, Planner, Policy};
use hintd_simulator::capacity::{Delays, HintedYarn};
use hintd_simulator::deployed::Deployed;
use hintd_simulator::yarn::SimCluster;
use hintd_simulator::{Authority, SimSettings};
use std::collections::BTreeMap;

/// A policy with its parameters.
pub(crate) struct Chosen {
    /// As it was asked for.
    pub(crate) name: &'static str,
    /// Its parameters, defaults too.
    pub(crate) params: String,
    policy: Box<dyn Policy>,
    /// What the guard compares hints with.
    baseline: Box<dyn Policy>,
}

/// The policies of these names, each with those of `params` (`POLICY.KEY=VALUE`) that are its.
pub(crate) fn choose(names: &[String], params: &[String]) -> Result<Vec<Chosen>, Failure> {
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    let mut tables: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for param in params {
        let split = param.split_once('=').and_then(|(path, value)| Some((path.split_once('.')?, value)));
        let Some(((name, key), value)) = split else {
            return Err(Failure::Input(format!("--param {param}: not of the form POLICY.KEY=VALUE")));
        };
        if !names.contains(&name) {
            let message = format!("--param {param}: \"{name}\" is not among the policies of --policy");
            return Err(Failure::Input(message));
        }
        tables.entry(name).or_default().push((key, value));
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    for name in names {
        policy::check(name)?;
        if chosen.iter().any(|before| before.name == name) {
            return Err(Failure::Input(format!("--policy: \"{name}\" is given twice")));
        }
        let policy = policy::built(name, &tables.remove(name).unwrap_or_default(), |key| format!("{name}.{key}"))?;
        policy.prepare();
        let baseline = registry::with_defaults(capacity::NAME).expect("the registry has the policy that it names");
        chosen.push(Chosen { name: policy.name(), params: policy.params_toml(), policy, baseline });
    }
    Ok(chosen)
}

/// Whether every policy can run.
pub(crate) fn check(chosen: &[Chosen]) -> Result<(), Failure> {
    chosen.iter().try_for_each(|policy| policy.dispatcher().map(|_| ()))
}

impl Chosen {
    /// The policy, as it answers a node that offers room.
    ///
    /// # Errors
    /// [`Failure::Input`] where it has nothing to say to one.
    pub(crate) fn dispatcher(&self) -> Result<impl DynDispatch + '_, Failure> {
        let none = || Failure::Input(format!("policy \"{}\" neither schedules nor places", self.name));
        dispatcher_of(&*self.policy).ok_or_else(none)
    }

    /// Whether it places whole requests and does not schedule: the daemon can ask it.
    pub(crate) fn is_asked(&self) -> bool {
        self.policy.as_place().is_some() && self.policy.as_dispatch().is_none()
    }

    /// The policy, where it plans.
    pub(crate) fn planner(&self) -> Option<&dyn Planner> {
        self.policy.as_plan()
    }

    /// The policy, where it says where data goes.
    pub(crate) fn places(&self) -> Option<&dyn PlaceData> {
        self.policy.as_place_data()
    }

    /// It is to say where data goes, by `option`, and can't.
    pub(crate) fn places_no_data(&self, option: &str) -> Failure {
        let places = |name: &&str| registry::with_defaults(name).is_some_and(|policy| policy.as_place_data().is_some());
        let known: Vec<&str> = registry::entries().iter().map(|entry| entry.name).filter(places).collect();
        let known = known.join(", ");
        Failure::Input(format!(
            "{option}: policy \"{}\" does not say where data goes (those that do: {known})",
            self.name
        ))
    }

    /// YARN and hintd as deployed, where that is asked for.
    ///
    /// # Errors
    /// [`Failure::Input`] for a policy that places no whole requests: nobody would ask it.
    pub(crate) fn deployed<'d>(
        &'d self,
        cluster: &'d SimCluster,
        settings: &SimSettings,
    ) -> Result<Option<Deployed<'d>>, Failure> {
        if settings.authority != Authority::Deployed {
            return Ok(None);
        }
        let alone = self.name == capacity::NAME;
        if !alone && !self.is_asked() {
            let message =
                format!("policy \"{}\" schedules: --authority deployed is for policies that place", self.name);
            return Err(Failure::Input(message));
        }
        let hintd = (!alone).then_some((&*self.policy, &*self.baseline));
        // All that it draws are phases.
        let drawn_by = SimSettings { seed: settings.seed_of_phases(), ..settings.clone() };
        Ok(Some(Deployed::new(cluster, hintd, &drawn_by)))
    }

    /// YARN between the policy and the nodes, where the policy does not schedule by itself: `capacity` is YARN's own.
    pub(crate) fn yarn<'d>(&self, dispatch: &'d dyn DynDispatch, settings: &SimSettings) -> Option<HintedYarn<'d>> {
        let by_yarn = settings.authority == Authority::Hints || self.name == capacity::NAME;
        by_yarn.then(|| HintedYarn::new(self.name, dispatch, Delays::of(settings)))
    }
}
