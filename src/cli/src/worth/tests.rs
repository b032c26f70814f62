//! Arguments and the table of variants.

use super::variants::{LEVERS, Variant, chosen, other_phases};
use super::{Shard, shard};

#[test]
fn parts_are_told_as_people_count_and_are_all_of_the_runs() {
    assert_eq!(shard("2/3"), Ok(Shard { part: 1, of: 3 }));
    for (text, problem) in
        [("3/2", "no part 3 of 2"), ("0/2", "no part 0 of 2"), ("1", "I/N"), ("a/b", "I/N"), ("1/0", "no part 1")]
    {
        assert!(shard(text).unwrap_err().contains(problem), "{text}");
    }
    let parts: Vec<usize> = (0..3).map(|part| (0..10).filter(|&run| Shard { part, of: 3 }.has(run)).count()).collect();
    assert_eq!(parts, [4, 3, 3]);
}

#[test]
fn each_policy_is_run_by_each_lever_beside_the_three_that_it_is_held_against() {
    let levers = chosen(&["where".to_owned(), "when".to_owned()]);
    let variants = Variant::all(2, &levers);
    assert_eq!(variants[..3], [Variant::Alone, Variant::Phases, Variant::Free]);
    // Where YARN places by itself, only when receivers are asked for can differ.
    let [one, two, alone] = [Some(0), Some(1), None];
    let hinted = [(one, 0), (one, 1), (two, 0), (two, 1), (alone, 1)];
    assert_eq!(variants[3..], hinted.map(|(policy, lever)| Variant::Hinted(policy, lever)));
    assert_eq!(chosen(&[]).len(), LEVERS.len());
    assert_eq!(chosen(&["where".to_owned()])[0].name, "where");
    assert_ne!(other_phases(1), other_phases(2));
}
