//! Hosts that are named twice, in two spellings.

use std::collections::{BTreeMap, btree_map};
use std::net::IpAddr;
use std::sync::Arc;

/// What is said of hosts, by YARN's name of each.
#[derive(Debug)]
pub(super) struct Named<'d, T> {
    said: BTreeMap<Arc<str>, (&'d str, T)>,
    /// Hosts that were named twice, and which spelling counts.
    pub(super) twice: Vec<String>,
}

impl<T> Default for Named<'_, T> {
    fn default() -> Self {
        Self { said: BTreeMap::new(), twice: Vec::new() }
    }
}

impl<'d, T> Named<'d, T> {
    /// Takes what is said of a host under a name. Of two names YARN's own counts, else the one before.
    pub(super) fn add(&mut self, host: Arc<str>, name: &'d str, said: T) {
        match self.said.entry(host) {
            btree_map::Entry::Vacant(free) => _ = free.insert((name, said)),
            btree_map::Entry::Occupied(mut known) => {
                let (counts, other) =
                    if **known.key() == *name { (name, known.get().0) } else { (known.get().0, name) };
                self.twice.push(format!("{other} is {counts}, whose row counts"));
                if counts == name {
                    known.insert((name, said));
                }
            }
        }
    }

    pub(super) fn get(&self, host: &str) -> Option<&T> {
        self.said.get(host).map(|(_, said)| said)
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &Arc<str>> {
        self.said.keys()
    }
}

/// Names that were seen.
#[derive(Debug, Default)]
pub struct Spellings<'d> {
    /// In small letters.
    whole: BTreeMap<String, &'d str>,
    /// Names with a domain, by what stands before it.
    begins: BTreeMap<String, &'d str>,
}

impl<'d> Spellings<'d> {
    /// Takes a name; the name seen before that is another spelling of the same host: in other letters, or one has a domain
    /// and the other none.
    pub fn other(&mut self, name: &'d str) -> Option<&'d str> {
        let lower = name.to_lowercase();
        let (first, has_domain) = match lower.split_once('.') {
            Some((first, _)) if lower.parse::<IpAddr>().is_err() => (first, true),
            _ => (lower.as_str(), false),
        };
        let same = self.whole.get(&lower).copied();
        let found = same.or_else(|| if has_domain { self.whole.get(first) } else { self.begins.get(&lower) }.copied());
        if has_domain {
            self.begins.entry(first.to_owned()).or_insert(name);
        }
        self.whole.entry(lower.clone()).or_insert(name);
        found.filter(|found| *found != name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spellings_of_one_host_are_told_from_two_hosts() {
        let mut seen = Spellings::default();
        for name in ["n1", "n2.a.com", "n3.a.com", "n3.b.com", "10.0.0.1", "10", "n1"] {
            assert_eq!(seen.other(name), None, "{name}");
        }
        assert_eq!(seen.other("N1"), Some("n1"));
        assert_eq!(seen.other("n1.a.com"), Some("n1"));
        assert_eq!(seen.other("n2"), Some("n2.a.com"));
        assert_eq!(seen.other("N2.A.com"), Some("n2.a.com"));
    }

    #[test]
    fn of_two_names_yarns_counts_and_else_the_first() {
        let mut named = Named::default();
        for (name, said) in [("10.0.0.1", 1), ("n1", 2), ("n1.a.com", 3)] {
            named.add("n1".into(), name, said);
        }
        assert_eq!(named.get("n1"), Some(&2));
        assert_eq!(named.twice, ["10.0.0.1 is n1, whose row counts", "n1.a.com is n1, whose row counts"]);
    }
}
