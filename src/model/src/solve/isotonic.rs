//! Monotone regression: the values that never grow and are nearest, by squares, to what was observed.
//!
//! Pool adjacent violators (Barlow and others 1972): neighbors that grow are replaced by their mean. Exact, in linear time.

/// What was observed at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The mean there; finite.
    pub value: f64,
    /// How much it counts; above 0 and finite.
    pub weight: f64,
}

/// Values that never grow, one for each of `observed` in its order, with the least Σ weight · (value − observed)².
#[must_use]
pub fn falling(observed: &[Observed]) -> Vec<f64> {
    // Blocks of equal values: their mean, weight and length. Means fall from block to block.
    let mut blocks: Vec<(Observed, usize)> = Vec::with_capacity(observed.len());
    for &next in observed {
        let mut block = (next, 1);
        while let Some(&(before, length)) = blocks.last()
            && before.value <= block.0.value
        {
            blocks.pop();
            block = (pooled(before, block.0), length + block.1);
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|(block, length)| std::iter::repeat_n(block.value, length)).collect()
}

fn pooled(a: Observed, b: Observed) -> Observed {
    let weight = a.weight + b.weight;
    Observed { value: a.value + (b.value - a.value) * (b.weight / weight), weight }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(observed: &[Observed], values: &[f64]) -> f64 {
        observed.iter().zip(values).map(|(seen, value)| seen.weight * (value - seen.value).powi(2)).sum()
    }

    /// Of all ways to cut the places into blocks of their means the nearest whose means never grow: the optimum is one of them.
    fn by_trying(observed: &[Observed]) -> Vec<f64> {
        let cuts = 1_u32 << (observed.len() - 1);
        let of = |cuts: u32| {
            let (mut values, mut first) = (Vec::new(), 0);
            for end in 1..=observed.len() {
                if end == observed.len() || cuts >> (end - 1) & 1 == 1 {
                    let block = &observed[first..end];
                    let weight: f64 = block.iter().map(|seen| seen.weight).sum();
                    let mean = block.iter().map(|seen| seen.weight * seen.value).sum::<f64>() / weight;
                    values.extend(block.iter().map(|_| mean));
                    first = end;
                }
            }
            values
        };
        let falls = |values: &Vec<f64>| values.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12);
        let all = (0..cuts).map(of).filter(falls);
        all.min_by(|a, b| cost(observed, a).total_cmp(&cost(observed, b))).unwrap()
    }

    #[test]
    fn what_falls_stays_and_what_grows_becomes_its_mean() {
        let seen = |pairs: &[(f64, f64)]| -> Vec<Observed> {
            pairs.iter().map(|&(value, weight)| Observed { value, weight }).collect()
        };
        assert_eq!(falling(&seen(&[(3.0, 1.0), (2.0, 5.0), (1.0, 1.0)])), [3.0, 2.0, 1.0]);
        assert_eq!(falling(&seen(&[(1.0, 1.0), (4.0, 2.0), (1.0, 1.0)])), [3.0, 3.0, 1.0]);
        assert_eq!(falling(&seen(&[(1.0, 1.0), (2.0, 1.0), (6.0, 1.0)])), [3.0, 3.0, 3.0]);
        assert_eq!(falling(&[]), [0.0; 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_cut_into_blocks_is_nearer(pairs in prop::collection::vec((0_u32..20, 1_u32..6), 1..9)) {
            let observed: Vec<Observed> =
                pairs.iter().map(|&(value, weight)| Observed { value: value.into(), weight: weight.into() }).collect();
            let (found, expected) = (falling(&observed), by_trying(&observed));
            prop_assert!(found.windows(2).all(|pair| pair[1] <= pair[0]), "{found:?}");
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-9, "{found} {expected} of {observed:?}");
            }
        }
    }
}
