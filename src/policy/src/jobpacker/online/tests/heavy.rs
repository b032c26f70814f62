//! Heavy jobs that nobody planned.

use super::*;

#[test]
fn heavy_jobs_that_nobody_planned_are_kept_apart() {
    let mut harness = DispatchHarness::packer();
    harness.submit(1, None, 4, 0, Bytes(4));
    harness.submit(2, None, 4, 0, Bytes(4 * GB));
    harness.submit(3, None, 4, 0, Bytes(4 * GB));
    let first = harness.offer(0).unwrap();
    assert_ne!(first.attempt, attempt(1), "with nothing heavy in the rack a heavy one comes before the rest");
    let other = if first.attempt == attempt(2) { attempt(3) } else { attempt(2) };
    for _ in 0..4 + 3 {
        let task = harness.offer(1).unwrap();
        assert_ne!(task.attempt, other, "beside a heavy one no other heavy one while there is anything else");
    }
    assert_eq!(harness.offer(1).unwrap().attempt, other, "but nothing is held back");
    assert_eq!(harness.offer(2).unwrap().attempt, other);
    harness.tell(&DispatchEvent::Done(other));
    harness.submit(4, None, 4, 0, Bytes(4 * GB));
    assert_eq!(harness.offer(2).unwrap().attempt, attempt(4), "the rack is free of heavy ones again");
}

#[test]
fn beside_a_heavy_job_another_goes_where_its_input_is_before_that_one_reads_afar() {
    let mut harness = DispatchHarness::packer();
    // The input of the first is in rack 1, the second's in rack 0.
    harness.submit(2, None, 4, 0, Bytes(4 * GB));
    harness.submit(8, None, 4, 0, Bytes(4 * GB));
    assert_eq!(harness.offer(0).unwrap().attempt, attempt(2), "nothing heavy is there: who came first");
    assert_eq!(harness.offer(1).unwrap().attempt, attempt(8), "what reads in the rack");
    harness.submit(5, None, 2, 0, Bytes(2));
    let light: Vec<_> = (0..2).map(|_| harness.offer(0).unwrap().attempt).collect();
    assert_eq!(light, [attempt(5); 2], "what is not heavy comes first, wherever its input is");
    for _ in 0..3 {
        assert_eq!(harness.offer(0).unwrap().attempt, attempt(8));
    }
    assert_eq!(harness.offer(0).unwrap().attempt, attempt(2), "then what reads afar: nothing is held back");
}
