//! The policies there are: one line each.

use super::baselines::{capacity, delay, fair, pna, random, shufflewatcher, spread};
use super::params::{self, ParamError, PolicyTable};
use super::{Definition, Policy, container, cross_layer, hit, jobpacker, joint, nas, nomora, pat, scale_up_out};

/// One policy of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// As configuration and requests spell it.
    pub name: &'static str,
    /// One sentence, with the paper where there is one.
    pub summary: &'static str,
    /// [`build`] of its type.
    pub build: fn(PolicyTable<'_>) -> Result<Box<dyn Policy>, ParamError>,
    /// [`Definition::deployed`] of its type.
    pub deployed: fn(PolicyTable<'_>) -> PolicyTable<'_>,
}

/// Decides where neither request, queue, framework nor configuration names a policy (docs/decisions.md).
pub const DEFAULT: &str = joint::NAME;

// A static, not a constant: each crate that names a constant compiles all that it points to once more, here every policy's
// parameters, their reader and its methods.
static ENTRIES: &[Entry] = &[
    Entry::of::<random::Random>(),
    Entry::of::<spread::Spread>(),
    Entry::of::<capacity::Capacity>(),
    Entry::of::<fair::Fair>(),
    Entry::of::<delay::Delay>(),
    Entry::of::<shufflewatcher::ShuffleWatcher>(),
    Entry::of::<pna::Pna>(),
    Entry::of::<joint::Joint>(),
    Entry::of::<container::Container>(),
    Entry::of::<cross_layer::CrossLayer>(),
    Entry::of::<hit::Hit>(),
    Entry::of::<jobpacker::JobPacker>(),
    Entry::of::<jobpacker::Corral>(),
    Entry::of::<nas::Nas>(),
    Entry::of::<nomora::Nomora>(),
    Entry::of::<pat::Pat>(),
    Entry::of::<scale_up_out::ScaleUpOut>(),
];

impl Entry {
    const fn of<P: Definition>() -> Self {
        Self { name: P::NAME, summary: P::SUMMARY, build: build::<P>, deployed: P::deployed }
    }
}

/// Makes a policy from its configuration table.
///
/// # Errors
/// [`ParamError`] for an unknown key, a value of a wrong type, or one that [`Params::validate`](params::Params::validate)
/// refuses.
pub fn build<P: Definition>(table: PolicyTable<'_>) -> Result<Box<dyn Policy>, ParamError> {
    Ok(Box::new(P::new(params::read(P::NAME, table)?)))
}

/// Every policy that is available.
#[must_use]
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

/// The policy of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.name == name)
}

/// The policy of that name with every parameter at its default.
#[must_use]
pub fn with_defaults(name: &str) -> Option<Box<dyn Policy>> {
    find(name).map(|entry| (entry.build)(params::no_params()).expect("defaults are checked by a test"))
}

/// Names of those that plan recurring jobs, ascending.
#[must_use]
pub fn planners() -> Vec<&'static str> {
    let plans = |name: &&str| with_defaults(name).is_some_and(|policy| policy.as_plan().is_some());
    let mut names: Vec<_> = entries().iter().map(|entry| entry.name).filter(plans).collect();
    names.sort_unstable();
    names
}

/// The name that `name` was probably meant to be, whatever its case.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    hintd_model::solve::nearest(&name.to_lowercase(), entries().iter().map(|entry| entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn build(name: &str, text: &str) -> Result<Box<dyn Policy>, ParamError> {
        (find(name).unwrap().build)(DeTable::parse(text).unwrap())
    }

    #[test]
    fn every_policy_is_built_from_defaults_and_from_its_own_parameters_written_down() {
        for entry in entries() {
            let policy = with_defaults(entry.name).unwrap();
            assert_eq!((policy.name(), policy.summary()), (entry.name, entry.summary));
            let again = build(entry.name, &policy.params_toml()).unwrap();
            assert_eq!(again.params_toml(), policy.params_toml());
        }
    }

    #[test]
    fn jobpacker_and_corral_plan() {
        assert_eq!(planners(), ["corral", "jobpacker"]);
    }

    #[test]
    fn a_misspelt_policy_gets_the_name_that_was_meant() {
        assert_eq!(nearest("contaner"), Some("container"));
        assert_eq!(nearest("Spread"), Some("spread"));
        assert_eq!(nearest("ramdon"), Some("random"));
        assert_eq!(nearest("tetris"), None);
        assert_eq!(nearest(""), None);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_place_in_the_file() {
        let error = build("capacity", "node_locality_delay = 40\nwieghts = 3\n").err().unwrap();
        assert_eq!(error.key.as_deref(), Some("wieghts"));
        assert_eq!(error.span, Some(25..32));
        assert!(error.to_string().starts_with("policies.capacity.wieghts: unknown field"), "{error}");
    }

    #[test]
    fn weights_that_do_not_sum_are_refused_with_all_three_and_the_sum() {
        let text = "rounds = 3\nweights = { togetherness = 0.5, locality = 0.25, balance = 0.125 }\n";
        let error = build("container", text).err().unwrap();
        assert_eq!(error.key.as_deref(), Some("weights"));
        assert_eq!(&text[error.span.clone().unwrap()], "{ togetherness = 0.5, locality = 0.25, balance = 0.125 }");
        let message = "togetherness = 0.5, locality = 0.25, balance = 0.125 sum to 0.875, not to 1";
        assert_eq!(error.to_string(), format!("policies.container.weights: {message}"));
    }

    #[test]
    fn weights_that_can_not_be_meant_are_refused() {
        for (text, part) in [
            ("weights = { togetherness = nan, locality = 0.5, balance = 0.5 }", "togetherness = NaN"),
            ("weights = { togetherness = 1.5, locality = -0.5, balance = 0 }", "togetherness = 1.5"),
            ("weights = { togetherness = 1.5, locality = -0.5 }", "missing field `balance`"),
            ("weights = { togetherness = 1.0, locality = 0.0, balance = 0.0, x = 1 }", "unknown field `x`"),
            ("weights = \"guessed\"", "expected \"calibrated\""),
            ("weights = 3", "expected \"calibrated\""),
        ] {
            let error = build("container", text).err().unwrap();
            assert_eq!(error.key.as_deref(), Some("weights"), "{text}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        for text in ["end_temperature = 1.0", "start_temperature = -1.0", "rounds = 0", "shortlist = 0"] {
            assert!(build("container", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_type_is_refused_with_its_place_in_the_file() {
        let text = "node_locality_delay = \"many\"\n";
        let error = build("capacity", text).err().unwrap();
        assert_eq!(error.key.as_deref(), Some("node_locality_delay"));
        assert_eq!(&text[error.span.unwrap()], "\"many\"");
    }
}
