//! Port counters to loads of links, bits a second.

use super::graph::{End, Graph};
use super::model::{Dpid, PortAt, PortCount};
use hintd_client::wire::v1;
use std::collections::BTreeMap;
use std::time::Duration;

/// The last counters of every port.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    last: BTreeMap<PortAt, PortCount>,
    rates: BTreeMap<PortAt, Rate>,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    received: u64,
    sent: u64,
}

/// Switches read their counters at their own pace: a shorter time between two says nothing.
const LEAST: Duration = Duration::from_millis(100);

impl Counters {
    /// Takes in a switch's counters. Rates are by the switch's own clock; a counter that fell was set back, and waits
    /// for the next.
    pub fn add(&mut self, switch: Dpid, counts: &[PortCount]) {
        for count in counts {
            let at = PortAt { switch, port: count.port };
            let Some(last) = self.last.get(&at) else {
                self.last.insert(at, *count);
                continue;
            };
            let moved = (count.rx_bytes.checked_sub(last.rx_bytes), count.tx_bytes.checked_sub(last.tx_bytes));
            match (count.counted.checked_sub(last.counted), moved) {
                (Some(span), (Some(received), Some(sent))) if span >= LEAST => {
                    let rate = |bytes: u64| (bytes as f64 * 8.0 / span.as_secs_f64()) as u64; // saturates
                    self.rates.insert(at, Rate { received: rate(received), sent: rate(sent) });
                }
                (Some(span), (Some(_), Some(_))) if span > Duration::ZERO => continue,
                _ => _ = self.rates.remove(&at),
            }
            self.last.insert(at, *count);
        }
    }

    /// Loads of all links of which an end was counted twice. What a switch sends is the load towards the other end.
    #[must_use]
    pub fn loads(&self, graph: &Graph) -> Vec<v1::LinkLoad> {
        let load = |(id, link): (&String, &super::graph::LinkAt)| {
            let a = self.rates.get(&link.a);
            let b = if let End::Switch(b) = link.b { self.rates.get(&b) } else { None };
            Some(v1::LinkLoad {
                id: id.clone(),
                a_to_b_bits_per_s: a.map(|rate| rate.sent).or(b.map(|rate| rate.received))?,
                b_to_a_bits_per_s: b.map(|rate| rate.sent).or(a.map(|rate| rate.received))?,
            })
        };
        graph.links.iter().filter_map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(seconds: u64, rx_bytes: u64, tx_bytes: u64) -> PortCount {
        PortCount { port: 1, rx_bytes, tx_bytes, counted: Duration::from_secs(seconds) }
    }

    #[test]
    fn rates_are_by_the_switchs_clock_and_survive_a_reset() {
        let mut counters = Counters::default();
        let at = PortAt { switch: Dpid(1), port: 1 };
        let rate = |counters: &Counters| counters.rates.get(&at).map(|rate| (rate.received, rate.sent));
        counters.add(Dpid(1), &[count(10, 1_000, 5_000)]);
        assert_eq!(rate(&counters), None);
        counters.add(Dpid(1), &[count(12, 2_000, 5_000)]);
        assert_eq!(rate(&counters), Some((4_000, 0)));
        counters.add(Dpid(1), &[count(12, 2_000, 5_000)]);
        assert_eq!(rate(&counters), None, "the same counters again say nothing");
        counters.add(Dpid(1), &[count(1, 10, 10)]);
        assert_eq!(rate(&counters), None, "a switch that started anew has no rate yet");
        counters.add(Dpid(1), &[count(2, 20, 10)]);
        assert_eq!(rate(&counters), Some((80, 0)));
    }
}
