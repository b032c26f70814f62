//! Jobs that shuffle and end, ports that fail: whatever happens, wanted circuits are a matching of working ports.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Shuffle(usize, usize, u64),
    Over(usize),
    /// How each port is, and whether the controller has set what is wanted.
    Report(Vec<u8>, bool),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_usize..4, 0_usize..4, 1_u64..40).prop_map(|(from, to, units)| Step::Shuffle(from, to, units * ELEPHANT / 4)),
        1 => (0_usize..20).prop_map(Step::Over),
        2 => (prop::collection::vec(0_u8..6, 4), any::<bool>()).prop_map(|(states, sets)| Step::Report(states, sets)),
        3 => (50_u64..2_500).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happens_wanted_circuits_are_a_matching_of_working_ports_and_versions_count_up(
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut harness = lit(4);
        watches(&mut harness, "ocs");
        let (mut number, mut version, mut bad) = (0, 0, BTreeSet::new());
        let mut set: Vec<(usize, usize)> = Vec::new();
        harness.pass(SECOND);
        for step in steps {
            match step {
                Step::Shuffle(from, to, bytes) => {
                    number += 1;
                    shuffles(&mut harness, number, (from, to), bytes);
                }
                Step::Over(which) if which < number as usize => {
                    tell(&mut harness, which as u32 + 1, "", 0, TaskWhat::Done { failed: false });
                }
                Step::Over(_) => {}
                Step::Report(states, sets) => {
                    let ports: Vec<(usize, PortState)> = states.iter().enumerate().filter_map(|(rack, state)| match state {
                        0 => Some((rack, PortState::Failed)),
                        1 => Some((rack, PortState::Stuck)),
                        _ => None,
                    }).collect();
                    if sets {
                        set = pairs(&view(&harness).wanted);
                    }
                    let failed = |rack| ports.contains(&(rack, PortState::Failed));
                    set.retain(|&(from, to)| !failed(from) && !failed(to));
                    bad = ports.iter().map(|(rack, _)| *rack).collect();
                    report(&mut harness, &set, &ports).unwrap();
                }
                Step::Pass(ms) => harness.pass(Micros::from_millis(ms)),
            }
            let mut news = told(&mut harness);
            news.push(view(&harness).wanted);
            for wanted in &news {
                let found = pairs(wanted);
                let inputs: BTreeSet<usize> = found.iter().map(|(from, _)| *from).collect();
                let outputs: BTreeSet<usize> = found.iter().map(|(_, to)| *to).collect();
                prop_assert_eq!((inputs.len(), outputs.len()), (found.len(), found.len()), "{:?}", found);
            }
            let counts: Vec<u64> = news.iter().map(|wanted| wanted.version).collect();
            prop_assert!(counts.iter().all(|&next| { let fine = next == version || next == version + 1 || version == 0; version = next; fine }), "{:?}", counts);
            let now = pairs(&news.pop().unwrap());
            prop_assert!(now.iter().all(|(from, to)| !bad.contains(from) && !bad.contains(to)), "{:?} of {:?}", now, bad);
        }
    }
}
