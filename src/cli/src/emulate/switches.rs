//! The rules of an SDN controller's switches, and what packets do by them.

use hintd_client::wire::v1;
use hintd_client::wire::v1::rule_change::Action;
use std::collections::{BTreeMap, BTreeSet};

/// Sender and receiver.
type Pair = (String, String);

/// What packets of a pair do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ForwardingResult {
    /// They reach the receiver, over these links.
    Arrives(Vec<String>),
    /// They come to a switch without a rule: default forwarding carries them on.
    Default,
    /// They come to this switch again.
    Loops(String),
}

/// The rules of all switches.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    /// By switch and pair: the link, and the vertex at its other end.
    rules: BTreeMap<String, BTreeMap<Pair, (String, String)>>,
    /// By pair: the first switch of its route.
    ingress: BTreeMap<Pair, String>,
    routes: BTreeMap<Pair, Vec<String>>,
}

impl Tables {
    /// Applies an update's rules in their order. What went wrong on the way: packets that would have looped, and routes
    /// that are not what the rules make of them.
    pub fn apply(&mut self, update: &v1::RouteUpdate) -> Vec<String> {
        let mut wrong = Vec::new();
        if update.snapshot {
            *self = Self::default();
        }
        for pair in &update.removed {
            self.routes.remove(&(pair.src.clone(), pair.dst.clone()));
        }
        // Packets enter where they did until the last rule of the new route is there.
        let mut entries: BTreeMap<Pair, String> = BTreeMap::new();
        for route in &update.routes {
            let (Some(pair), Some(first)) = (&route.pair, route.vertices.get(1)) else { continue };
            entries.insert((pair.src.clone(), pair.dst.clone()), first.clone());
        }
        for rule in &update.rules {
            let pair = self.change(rule);
            let looked_at = entries.get(&pair).or_else(|| self.ingress.get(&pair)).cloned();
            if let Some(ForwardingResult::Loops(at)) = looked_at.map(|entry| self.walk(&pair, &entry)) {
                wrong.push(format!("update {}: packets from {} to {} loop at {at}", update.number, pair.0, pair.1));
            }
        }
        self.ingress.extend(entries);
        for route in &update.routes {
            wrong.extend(self.check(route, update.number));
        }
        wrong
    }

    /// The link of `links` that most pairs with rules are sent over, and how many.
    #[must_use]
    pub fn busiest(&self, links: &[String]) -> Option<(String, usize)> {
        let mut pairs: BTreeMap<&str, BTreeSet<&Pair>> = BTreeMap::new();
        for (pair, (link, _)) in self.rules.values().flatten() {
            pairs.entry(link).or_default().insert(pair);
        }
        let found = links.iter().filter_map(|link| Some((link.clone(), pairs.get(link.as_str())?.len())));
        found.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))
    }

    /// Pairs with a route.
    #[must_use]
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Rules of all switches.
    #[must_use]
    pub fn rules(&self) -> usize {
        self.rules.values().map(BTreeMap::len).sum()
    }

    /// Pairs whose route has the link.
    #[must_use]
    pub fn on(&self, link: &str) -> usize {
        self.routes.values().filter(|links| links.iter().any(|on| on == link)).count()
    }

    fn change(&mut self, rule: &v1::RuleChange) -> Pair {
        let pair = rule.pair.clone().unwrap_or_default();
        let pair = (pair.src, pair.dst);
        let table = self.rules.entry(rule.switch.clone()).or_default();
        match &rule.action {
            Some(Action::Install(install)) => {
                table.insert(pair.clone(), (install.link.clone(), install.next.clone()));
            }
            _ => drop(table.remove(&pair)),
        }
        pair
    }

    fn check(&mut self, route: &v1::Route, number: u64) -> Option<String> {
        let pair = route.pair.clone().unwrap_or_default();
        let pair = (pair.src, pair.dst);
        if route.links.is_empty() {
            self.routes.remove(&pair);
            return None;
        }
        self.routes.insert(pair.clone(), route.links.clone());
        // The sender's own link needs no rule.
        let walk = self.walk(&pair, &route.vertices[1]);
        let wanted = ForwardingResult::Arrives(route.links[1..].to_vec());
        (walk != wanted).then(|| {
            format!("update {number}: rules from {} to {} make {walk:?}, the route is {wanted:?}", pair.0, pair.1)
        })
    }

    fn walk(&self, pair: &Pair, entry: &str) -> ForwardingResult {
        let (mut at, mut seen, mut links) = (entry, BTreeSet::new(), Vec::new());
        while at != pair.1 {
            if !seen.insert(at) {
                return ForwardingResult::Loops(at.to_owned());
            }
            let Some((link, next)) = self.rules.get(at).and_then(|table| table.get(pair)) else {
                return ForwardingResult::Default;
            };
            links.push(link.clone());
            at = next;
        }
        ForwardingResult::Arrives(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Option<v1::HostPair> {
        Some(v1::HostPair { src: "a".into(), dst: "b".into(), class: String::new() })
    }

    fn rule(switch: &str, link: &str, next: &str) -> v1::RuleChange {
        let install = v1::InstallRule { link: link.into(), next: next.into() };
        v1::RuleChange { switch: switch.into(), pair: pair(), action: Some(Action::Install(install)) }
    }

    fn update(number: u64, path: &str, rules: Vec<v1::RuleChange>) -> v1::RouteUpdate {
        let vertices: Vec<String> = path.split(' ').map(str::to_owned).collect();
        let links = vertices.windows(2).map(|ends| ends.join("-")).collect();
        let routes = vec![v1::Route { pair: pair(), vertices, links, stops: vec![] }];
        v1::RouteUpdate { number, snapshot: number == 1, routes, rules, ..v1::RouteUpdate::default() }
    }

    #[test]
    fn rules_in_the_wrong_order_are_seen_to_loop_and_in_the_right_one_not() {
        let mut tables = Tables::default();
        let first = update(1, "a s t b", vec![rule("t", "t-b", "b"), rule("s", "s-t", "t")]);
        assert_eq!(tables.apply(&first), Vec::<String>::new());
        assert_eq!((tables.routes(), tables.rules(), tables.on("s-t")), (1, 2, 1));
        assert_eq!(tables.busiest(&["s-t".into(), "x".into()]), Some(("s-t".into(), 1)));
        // From s by t to b, to: from t by s to b, where the sender now enters at t.
        let turned = |rules| update(2, "a t s b", rules);
        let wrong = tables.clone().apply(&turned(vec![rule("t", "t-s", "s"), rule("s", "s-b", "b")]));
        assert!(wrong[0].contains("loop at"), "{wrong:?}");
        let right = tables.apply(&turned(vec![rule("s", "s-b", "b"), rule("t", "t-s", "s")]));
        assert_eq!(right, Vec::<String>::new());
        let half = tables.apply(&update(3, "a s u b", vec![rule("s", "s-u", "u")]));
        assert!(half[0].contains("Default"), "{half:?}");
    }
}
