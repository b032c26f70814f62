//! What the new job's sinks get, by groups (000, Algorithm 1): inlets first, then along the dataflow until nothing
//! falls any more.

use super::SearchState;
use crate::flow_index::FlowIndex;
use hintd_model::cluster::EdgePattern;

impl SearchState<'_, '_> {
    /// The new job's part.
    pub(in crate::cross_layer) fn own(&mut self) -> f64 {
        let mut rates = std::mem::take(&mut self.rates);
        let sum = self.own_in(&self.index, &mut rates);
        self.rates = rates;
        sum
    }

    /// The new job's part with another index's rates, which has the same rows.
    pub(in crate::cross_layer) fn own_in(&self, index: &FlowIndex, rates: &mut [Vec<f64>]) -> f64 {
        let compiled = self.compiled;
        for (rates, used) in rates.iter_mut().zip(&self.used) {
            rates.clear();
            rates.resize(used.len(), f64::INFINITY);
        }
        let reached = self.reached();
        for (at, edge) in compiled.edges.iter().enumerate().filter(|(_, edge)| reached[edge.from.at()]) {
            self.inlets(index, at, edge.from.at(), edge.to.at(), rates);
        }
        while self.pass_on(&reached, rates) {}
        let sinks = (0..compiled.own.sink.len()).filter(|&group| compiled.own.sink[group] && reached[group]);
        let mut sum = 0.0;
        for group in sinks {
            for (&slot, &rate) in self.used[group].iter().zip(&rates[group]).filter(|(_, rate)| rate.is_finite()) {
                sum += f64::from(self.count(group, slot)) * rate;
            }
        }
        sum
    }

    /// Groups that a root leads to, among those with containers.
    fn reached(&self) -> Vec<bool> {
        let compiled = self.compiled;
        let mut reached: Vec<bool> =
            self.used.iter().zip(&compiled.own.root).map(|(used, root)| *root && !used.is_empty()).collect();
        loop {
            let mut grown = false;
            for edge in &compiled.edges {
                let (from, to) = (edge.from.at(), edge.to.at());
                if reached[from] && !reached[to] && !self.used[to].is_empty() {
                    (reached[to], grown) = (true, true);
                }
            }
            if !grown {
                return reached;
            }
        }
    }

    /// What every task of `to` gets over one edge.
    fn inlets(&self, index: &FlowIndex, edge: usize, from: usize, to: usize, rates: &mut [Vec<f64>]) {
        let all = self.compiled.edges[edge].pattern == EdgePattern::AllToAll;
        if !all {
            for &(a, b) in &self.each[edge] {
                let place = self.used[to].binary_search(&b).expect("a task's slot is used");
                rates[to][place] = rates[to][place].min(self.rate(index, a, b));
            }
            return;
        }
        for (place, &b) in self.used[to].iter().enumerate() {
            let mut least = rates[to][place];
            for &a in &self.used[from] {
                // Within a group a task does not send to itself.
                if a != b || from != to || self.count(to, b) > 1 {
                    least = least.min(self.rate(index, a, b));
                }
            }
            rates[to][place] = least;
        }
    }

    fn rate(&self, index: &FlowIndex, from: u32, to: u32) -> f64 {
        if from == to {
            return index.nic(self.compiled.slots[from as usize].node);
        }
        let at = self.cells[from as usize * self.compiled.slots.len() + to as usize];
        index.rate_of(self.talks[at as usize].row)
    }

    /// What those before a task get bounds what it gets; whether anything changed.
    fn pass_on(&self, reached: &[bool], rates: &mut [Vec<f64>]) -> bool {
        let mut changed = false;
        for (at, edge) in self.compiled.edges.iter().enumerate().filter(|(_, edge)| reached[edge.from.at()]) {
            let (from, to) = (edge.from.at(), edge.to.at());
            if edge.pattern == EdgePattern::AllToAll {
                let least = rates[from].iter().copied().fold(f64::INFINITY, f64::min);
                for rate in rates[to].iter_mut().filter(|rate| least < **rate) {
                    (*rate, changed) = (least, true);
                }
                continue;
            }
            for &(a, b) in &self.each[at] {
                let [a, b] = [(from, a), (to, b)].map(|(group, slot)| (group, self.used[group].binary_search(&slot)));
                let (Ok(a), Ok(b)) = ((a.1), (b.1)) else { continue };
                if rates[from][a] < rates[to][b] {
                    (rates[to][b], changed) = (rates[from][a], true);
                }
            }
        }
        changed
    }
}
