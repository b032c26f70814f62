//! The part of PromQL that can be judged by what gauges say now: selectors, `sum without (…)`, `/`, comparisons with a
//! number, `or`, parentheses. What looks back in time (`rate`, `increase`, `changes`) is Prometheus's to judge.

use super::samples::{Labels, Sample, quoted};
use std::collections::BTreeMap;

/// An expression, as far as it is understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Series(Selector),
    /// Of series that differ in these labels alone.
    Sum(Vec<String>, Box<Expression>),
    Ratio(Box<Expression>, Box<Expression>),
    Compared(Box<Expression>, Comparison, f64),
    Either(Vec<Expression>),
    /// Not to be judged here.
    Elsewhere,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selector {
    name: String,
    /// Label, and the values that it may have.
    labels: Vec<(String, Vec<String>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Above,
    Below,
    Equal,
}

/// Series by their labels: those that are left of an expression are those that it is true of.
pub(super) type Vector = BTreeMap<Labels, f64>;

/// Words that what follows them looks back in time, or joins series in a way that is not known here.
const BACK: [&str; 4] = [" and ", " unless ", " offset ", "["];

/// Reads an expression; what it may name are gauges.
pub(super) fn read(text: &str, is_gauge: impl Fn(&str) -> bool) -> Expression {
    let mut reader = Reader { rest: text.trim(), is_gauge: &is_gauge };
    let found = reader.either();
    match found {
        Some(found) if reader.rest.is_empty() => found,
        // What of it can be judged by itself still is: `a or b` is true where one of them is.
        _ => Expression::Either(parts(text).into_iter().map(|part| whole(part, &is_gauge)).collect()),
    }
}

/// A part alone, or nothing of it.
fn whole(text: &str, is_gauge: &dyn Fn(&str) -> bool) -> Expression {
    let mut reader = Reader { rest: text.trim(), is_gauge };
    let found = reader.compared();
    found.filter(|_| reader.rest.is_empty()).unwrap_or(Expression::Elsewhere)
}

/// What an `or` outside parentheses and quotes joins: of PromQL's words it binds least.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_i32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        depth += match letter {
            '(' | '{' | '[' => 1,
            ')' | '}' | ']' => -1,
            _ => 0,
        };
        if depth == 0 && text[at..].starts_with(" or ") {
            found.push(&text[from..at]);
            from = at + " or ".len();
        }
    }
    found.push(&text[from..]);
    found
}

struct Reader<'t> {
    rest: &'t str,
    is_gauge: &'t dyn Fn(&str) -> bool,
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.rest.strip_prefix(word);
        self.rest = found.unwrap_or(self.rest).trim_start();
        found.is_some()
    }

    fn either(&mut self) -> Option<Expression> {
        let mut found = vec![self.compared()?];
        while self.take("or ") {
            found.push(self.compared()?);
        }
        Some(if found.len() == 1 { found.remove(0) } else { Expression::Either(found) })
    }

    fn compared(&mut self) -> Option<Expression> {
        let mut left = self.value()?;
        if self.take("/") {
            left = Expression::Ratio(Box::new(left), Box::new(self.value()?));
        }
        let signs = [("==", Comparison::Equal), (">", Comparison::Above), ("<", Comparison::Below)];
        let Some((_, comparison)) = signs.into_iter().find(|(sign, _)| self.take(sign)) else { return Some(left) };
        Some(Expression::Compared(Box::new(left), comparison, self.number()?))
    }

    fn value(&mut self) -> Option<Expression> {
        if self.take("sum without (") {
            let (labels, rest) = self.rest.split_once(')')?;
            let without = labels.split(',').map(|label| label.trim().to_owned()).collect();
            self.rest = rest.trim_start();
            return self.value().map(|of| Expression::Sum(without, Box::new(of)));
        }
        if self.take("(") {
            let found = self.either()?;
            return self.take(")").then_some(found);
        }
        self.selector().map(Expression::Series)
    }

    fn number(&mut self) -> Option<f64> {
        let ends = self.rest.find([' ', ')']).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(ends);
        self.rest = rest.trim_start();
        number.parse().ok()
    }

    fn selector(&mut self) -> Option<Selector> {
        let ends = self.rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)));
        let (name, rest) = self.rest.split_at(ends.unwrap_or(self.rest.len()));
        if !(self.is_gauge)(name) {
            return None;
        }
        self.rest = rest;
        let labels = if self.take("{") { self.labels()? } else { Vec::new() };
        self.rest = self.rest.trim_start();
        // A range, or what is set back in time, is no value of now.
        (!BACK.iter().any(|word| self.rest.starts_with(word.trim())))
            .then(|| Selector { name: name.to_owned(), labels })
    }

    fn labels(&mut self) -> Option<Vec<(String, Vec<String>)>> {
        let mut found = Vec::new();
        while !self.take("}") {
            self.take(",");
            let (name, rest) = self.rest.split_once('=')?;
            let (name, alternatives) = (name.trim().to_owned(), rest.starts_with('~'));
            if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                return None; // `!=`
            }
            let (value, rest) = quoted(rest.trim_start_matches('~').strip_prefix('"')?)?;
            self.rest = rest.trim_start();
            // Of regular expressions only a choice of words.
            let plain = |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            let values: Vec<String> = match alternatives {
                true => value.split('|').map(str::to_owned).collect(),
                false => vec![value],
            };
            if alternatives && !values.iter().all(|value| plain(value)) {
                return None;
            }
            // Prometheus adds it: all that is exported here is of that job.
            if name != "job" {
                found.push((name, values));
            }
        }
        Some(found)
    }
}

impl Expression {
    /// Whether all of it can be judged, and whether any part of it can.
    pub(super) fn can_be_judged(&self) -> (bool, bool) {
        match self {
            Self::Elsewhere => (false, false),
            Self::Either(parts) => {
                let parts = parts.iter().map(Self::can_be_judged);
                parts.fold((true, false), |(all, any), part| (all && part.0, any || part.1))
            }
            Self::Series(_) | Self::Sum(..) | Self::Ratio(..) | Self::Compared(..) => (true, true),
        }
    }

    /// Whether a series that it names is exported; else nothing can be said by it.
    pub(super) fn has_series(&self, samples: &[Sample]) -> bool {
        match self {
            Self::Elsewhere => false,
            Self::Series(selector) => samples.iter().any(|sample| sample.name == selector.name),
            Self::Sum(_, of) | Self::Compared(of, ..) => of.has_series(samples),
            Self::Ratio(one, other) => one.has_series(samples) && other.has_series(samples),
            Self::Either(parts) => parts.iter().any(|part| part.has_series(samples)),
        }
    }

    /// Series that it is true of, with their values.
    pub(super) fn judge(&self, samples: &[Sample]) -> Vector {
        match self {
            Self::Elsewhere => Vector::new(),
            Self::Series(selector) => {
                let chosen = samples.iter().filter(|sample| selector.takes(sample));
                chosen.map(|sample| (sample.labels.clone(), sample.value)).collect()
            }
            Self::Sum(without, of) => {
                let mut sums = Vector::new();
                for (mut labels, value) in of.judge(samples) {
                    labels.retain(|label, _| !without.contains(label));
                    *sums.entry(labels).or_default() += value;
                }
                sums
            }
            Self::Ratio(one, other) => {
                let (mut one, other) = (one.judge(samples), other.judge(samples));
                one.retain(|labels, value| other.get(labels).map(|by| *value /= by).is_some());
                one
            }
            Self::Compared(of, comparison, with) => {
                let mut of = of.judge(samples);
                of.retain(|_, value| comparison.holds(*value, *with));
                of
            }
            Self::Either(parts) => {
                // Of series that several have, the first has it.
                parts.iter().rev().flat_map(|part| part.judge(samples)).collect()
            }
        }
    }
}

impl Selector {
    fn takes(&self, sample: &Sample) -> bool {
        let has = |(label, values): &(String, Vec<String>)| {
            values.iter().any(|value| sample.labels.get(label).map_or("", String::as_str) == value)
        };
        sample.name == self.name && self.labels.iter().all(has)
    }
}

impl Comparison {
    #[allow(clippy::float_cmp)] // it is what `==` means there
    fn holds(self, value: f64, with: f64) -> bool {
        match self {
            Self::Above => value > with,
            Self::Below => value < with,
            Self::Equal => value == with,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::samples;
    use super::*;

    const EXPORTED: &str = "up_now 0\nage{source=\"a\"} 70\nage{source=\"b\"} +Inf\nage{source=\"c\"} 5\n\
                            nodes{state=\"RUNNING\"} 8\nnodes{state=\"LOST\"} 2\nratio{queue=\"q\"} NaN\n";

    fn gauge(name: &str) -> bool {
        ["up_now", "age", "nodes", "ratio", "gone"].contains(&name)
    }

    fn judged(text: &str) -> Vec<(String, f64)> {
        let found = read(text, gauge).judge(&samples(EXPORTED));
        let name = |labels: Labels| labels.into_values().collect::<Vec<_>>().join(",");
        found.into_iter().map(|(labels, value)| (name(labels), value)).collect()
    }

    #[test]
    fn what_gauges_say_is_judged_as_prometheus_does() {
        assert_eq!(judged("up_now == 0"), [(String::new(), 0.0)]);
        assert_eq!(judged("up_now == 1"), []);
        assert_eq!(judged("age{source=\"b\"} > 30"), [("b".to_owned(), f64::INFINITY)]);
        assert_eq!(judged("age > 60"), [("a".to_owned(), 70.0), ("b".to_owned(), f64::INFINITY)]);
        assert_eq!(judged("(age{source=~\"a|c\"} > 60 or age{source=\"b\"} > 60) < Inf"), [("a".to_owned(), 70.0)]);
        assert_eq!(judged("ratio > 1"), [], "what is no number is above nothing");
        let share = "sum without (state) (nodes{state=~\"STALE|LOST\"}) / sum without (state) (nodes) > 0.1";
        assert_eq!(judged(share), [(String::new(), 0.2)]);
        assert_eq!(judged(&share.replace("0.1", "0.2")), []);
        let sums = [("a".to_owned(), 70.0), ("b".to_owned(), f64::INFINITY)];
        assert_eq!(judged("sum without (state, mode) (age) > 60"), sums, "other labels stay");
        assert_eq!(judged("up_now{job=\"hintd\"} == 0").len(), 1, "the label of Prometheus's own is no condition here");
        assert_eq!(judged("up_now / up_now == 0"), [], "0 / 0 is no number");
        assert_eq!(judged("gone == 0"), [], "what is not exported is not judged");
        assert!(
            !read("gone == 0", gauge).has_series(&samples(EXPORTED))
                && read(share, gauge).has_series(&samples(EXPORTED))
        );
    }

    #[test]
    fn what_looks_back_is_left_to_prometheus() {
        for text in [
            "rate(age[5m]) > 0",
            "histogram_quantile(0.99, sum by (instance, le) (rate(age[5m]))) > 0.05",
            "up{job=\"hintd\"} == 0",
            "age offset 15m > 1",
            "age unless up_now",
            "up_now == 0 and age > 1",
            "changes(up_now[2m]) == 0 and on (instance) rate(age[2m]) > 0",
            "increase(age[15m]) > 0 or up_now == 0 unless up_now offset 15m",
            "sum by (instance) (rate(age[5m])) > 1",
            "age{source=~\"a.*\"} > 1",
            "age{source!=\"a\"} > 1",
            "age >= 1",
            "",
        ] {
            assert_eq!(read(text, gauge).can_be_judged(), (false, false), "{text}");
            assert_eq!(judged(text), [], "{text}");
        }
        let half = "up_now == 0 or increase(age[2m]) > 2";
        assert_eq!((read(half, gauge).can_be_judged(), judged(half).len()), ((false, true), 1));
        let joined = "up_now == 0 or (increase(age[2m]) > 2 and up_now == 0)";
        assert_eq!((read(joined, gauge).can_be_judged(), judged(joined).len()), ((false, true), 1));
    }
}
