//! `pat-violations`: chains that placements break while links, switches and boxes fail (Figure 8(d)).

use crate::reproduce::hit::systems::{System, failed};
use crate::reproduce::{Experiment, Outcome, ReproduceError, Row, RunContext, Scale};
use hintd_policy::PlaceError;
use hintd_policy::sample::chains::{Breaches, Draw};

const NAME: &str = "pat-violations";

/// The experiment.
#[derive(Debug)]
pub struct Violations;

const fn draws(scale: Scale) -> u64 {
    match scale {
        Scale::Quick => 40,
        Scale::Full => 400,
    }
}

impl Experiment for Violations {
    fn name(&self) -> &'static str {
        NAME
    }

    fn paper(&self) -> &'static str {
        "002 (Yang et al.), §8.4"
    }

    fn figure(&self) -> &'static str {
        "Figure 8(d): flows that break their chain and boxes involved"
    }

    fn settings(&self, scale: Scale) -> Vec<(String, String)> {
        let rows = [
            ("draws", format!("{} a seed, as the property tests draw: tree, fat-tree, BCube or VL2 of 16 nodes with Figure 6's boxes of 40 to 399 Mbit/s, a chain of one to three types, a part of every node taken; 0 to 11 % of links, half as many switches and twice as many boxes down; 6 maps send 1 GiB to 3 reduces within 60 s", draws(scale))),
            ("broken, hit and pat", "routes are checked link by link: whole, up, loop-free between boxes, through boxes of the chain's types in order that are up and not over capacity, for all that flows send; a refused request breaks nothing and is counted".to_owned()),
            ("broken, pna", "its traffic goes to the boxes nearest on the network as it was before anything failed, whatever they carry (static paths, no chains); a flow is broken if a box of its is down, full before its turn or not reached".to_owned()),
            ("pna's figures", "the paper's are more than 12 % of chains and 8.4 % of boxes; ours is reported, whatever it is: 0 is asked of hit and pat".to_owned()),
        ];
        rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn expected_s(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Quick => 10,
            Scale::Full => 120,
        }
    }

    fn run(&self, context: &RunContext<'_>) -> Result<Outcome, ReproduceError> {
        let found = context.per_seed(|seed| {
            let all = |system| measured(system, context.scale, seed).map_err(|error| failed(NAME, error.into()));
            Ok([all(System::Hit)?, all(System::Pat)?, all(System::Pna)?])
        })?;
        let values =
            |at: usize, value: fn(&Found) -> f64| found.iter().map(|one| value(&one[at])).collect::<Vec<f64>>();
        let (mut figures, mut others) = (Vec::new(), Vec::new());
        for (at, name) in ["hit", "pat"].into_iter().enumerate() {
            let title = |what: &str| format!("{name}: {what}");
            figures.push(Row::at_most(&title("flows that break their chain"), 0.0, "%", values(at, Found::flows))?);
            figures.push(Row::at_most(&title("boxes involved"), 0.0, "%", values(at, Found::boxes))?);
            figures.push(Row::at_most(
                &title("placements beyond room or candidates"),
                0.0,
                "placements",
                values(at, |found| found.beyond as f64),
            )?);
            others.push(Row::without_figure(
                &title("requests refused for their chain"),
                "%",
                values(at, Found::refused),
            )?);
        }
        let noted = |row: Row, note: &str| Row { note: note.to_owned(), ..row };
        let flows = Row::without_figure("pna: flows that break their chain", "%", values(2, Found::flows))?;
        others.push(noted(flows, "the paper: more than 12 %"));
        let boxes = Row::without_figure("pna: boxes involved", "%", values(2, Found::boxes))?;
        others.push(noted(boxes, "the paper: 8.4 %"));
        others.push(Row::without_figure("pna: requests with a broken chain", "%", values(2, Found::touched))?);
        figures.extend(others);
        Ok(Outcome { rows: figures })
    }
}

/// Over all draws of a seed.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    sum: Breaches,
    requests: u64,
    refused: u64,
    /// Requests of which a flow is broken.
    touched: u64,
    /// Placements beyond room, candidates or bounds.
    beyond: u64,
}

impl Found {
    fn flows(&self) -> f64 {
        share(self.sum.broken, self.sum.flows)
    }

    fn boxes(&self) -> f64 {
        share(self.sum.involved, self.sum.boxes)
    }

    fn refused(&self) -> f64 {
        share(self.refused, self.requests)
    }

    fn touched(&self) -> f64 {
        share(self.touched, self.requests)
    }

    fn add(&mut self, breaches: &Breaches) {
        self.sum.flows += breaches.flows;
        self.sum.broken += breaches.broken;
        self.sum.boxes += breaches.boxes;
        self.sum.involved += breaches.involved;
        self.touched += u64::from(breaches.broken > 0);
    }
}

fn share(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

fn measured(system: System, scale: Scale, seed: u64) -> Result<Found, PlaceError> {
    let mut found = Found { requests: draws(scale), ..Found::default() };
    for number in 0..draws(scale) {
        let draw = Draw::new(1_000 * seed + number);
        if system == System::Pna {
            found.add(&draw.pna()?);
            continue;
        }
        match draw.aware(&*system.placer())? {
            Some((breaches, beyond)) => {
                found.add(&breaches);
                found.beyond += u64::from(beyond > 0);
            }
            None => found.refused += 1,
        }
    }
    Ok(found)
}
