//! The policies that are compared, and how each becomes a dispatcher.

use super::super::failure::Failure;
use super::super::policy;
use crate::policy::adapt::dispatcher_of;
use crate::policy::{DynDispatch, Policy, registry};
use crate::sim::Authority;
use std::collections::BTreeMap;
use toml::de::DeTable;

/// A policy with its parameters.
pub(super) struct Chosen {
    /// As it was asked for.
    pub(super) name: &'static str,
    /// Its parameters, defaults too.
    pub(super) params: String,
    policy: Box<dyn Policy>,
}

/// The policies of these names, each with those of `params` (`POLICY.KEY=VALUE`) that are its.
pub(super) fn choose(names: &[String], params: &[String]) -> Result<Vec<Chosen>, Failure> {
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for param in params {
        let split = param.split_once('=').and_then(|(path, value)| Some((path.split_once('.')?, value)));
        let Some(((name, key), value)) = split else {
            return Err(Failure::Input(format!("--param {param}: not of the form POLICY.KEY=VALUE")));
        };
        if !names.iter().any(|chosen| chosen == name) {
            let message = format!("--param {param}: \"{name}\" is not among the policies of --policy");
            return Err(Failure::Input(message));
        }
        let table = tables.entry(name).or_default();
        table.push_str(&format!("{key} = {}\n", toml_value(value)));
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    for name in names {
        policy::check(name)?;
        if chosen.iter().any(|before| before.name == name) {
            return Err(Failure::Input(format!("--policy: \"{name}\" stands there twice")));
        }
        chosen.push(build(name, tables.get(name.as_str()).map_or("", String::as_str))?);
    }
    Ok(chosen)
}

/// Whether every policy can run under every authority.
pub(super) fn check(chosen: &[Chosen], authorities: &[Authority]) -> Result<(), Failure> {
    for &authority in authorities {
        for policy in chosen {
            policy.dispatcher(authority)?;
        }
    }
    Ok(())
}

impl Chosen {
    /// What allocates in a run of this policy under `authority`: the one place where that is decided.
    ///
    /// # Errors
    /// [`Failure::Input`] where the policy has nothing to say to a node that offers room.
    pub(super) fn dispatcher(&self, authority: Authority) -> Result<Box<dyn DynDispatch + '_>, Failure> {
        match authority {
            Authority::Policy => match dispatcher_of(&*self.policy) {
                Some(dispatcher) => Ok(Box::new(dispatcher)),
                None => Err(Failure::Input(format!("policy \"{}\" neither schedules nor places", self.name))),
            },
            Authority::Hints => {
                Err(Failure::Input("--authority hints: not there yet; --authority policy is".to_owned()))
            }
        }
    }
}

fn build(name: &str, table: &str) -> Result<Chosen, Failure> {
    let entry = registry::find(name).expect("checked by the caller");
    let wrong = |message: String| Failure::Input(format!("--param {name}: {message}"));
    let table = DeTable::parse(table).map_err(|error| wrong(error.message().trim_end().to_owned()))?;
    let policy = (entry.build)(table).map_err(|error| {
        let key = error.key.as_ref().map(|key| format!(".{key}")).unwrap_or_default();
        Failure::Input(format!("--param {name}{key}: {}", error.message))
    })?;
    Ok(Chosen { name: entry.name, params: policy.params_toml(), policy })
}

/// As TOML would write the value: what is no number, truth value, list or table is a text.
fn toml_value(value: &str) -> String {
    let plain = DeTable::parse(&format!("value = {value}\n")).is_ok_and(|table| table.get_ref().len() == 1);
    if plain { value.to_owned() } else { toml::Value::from(value).to_string() }
}
