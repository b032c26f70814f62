//! Sizes and the two resource calculators, with YARN's rounding: the same float widths, the same order of operations.
//!
//! YARN counts limits and shares in 32-bit floats; a wider one would round a limit to another step now and then.

use serde::{Deserialize, Serialize};

/// `yarn.scheduler.capacity.resource-calculator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calculator {
    /// `DefaultResourceCalculator`: memory only.
    #[default]
    Default,
    /// `DominantResourceCalculator`: memory and cores.
    Dominant,
}

impl From<hintd_model::cluster::Calculator> for Calculator {
    fn from(calculator: hintd_model::cluster::Calculator) -> Self {
        match calculator {
            hintd_model::cluster::Calculator::Default => Self::Default,
            hintd_model::cluster::Calculator::Dominant => Self::Dominant,
        }
    }
}

/// Memory and cores of a container, a node, a queue or a limit. What is left of a limit may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Size {
    /// Memory, MB.
    pub memory_mb: i64,
    /// Virtual cores.
    pub vcores: i64,
}

impl Size {
    /// Nothing.
    pub const ZERO: Self = Self { memory_mb: 0, vcores: 0 };

    /// Of so much.
    #[must_use]
    pub const fn new(memory_mb: i64, vcores: i64) -> Self {
        Self { memory_mb, vcores }
    }

    /// As the calculator of memory makes a size: one core beside any memory.
    const fn of_memory(memory_mb: i64) -> Self {
        Self { memory_mb, vcores: if memory_mb > 0 { 1 } else { 0 } }
    }

    /// Kind by kind.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { memory_mb: self.memory_mb + other.memory_mb, vcores: self.vcores + other.vcores }
    }

    /// Kind by kind; may be below zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { memory_mb: self.memory_mb - other.memory_mb, vcores: self.vcores - other.vcores }
    }

    pub(super) const fn times(self, by: i64) -> Self {
        Self { memory_mb: self.memory_mb * by, vcores: self.vcores * by }
    }

    /// Each kind times `by`, rounded down.
    pub(super) fn scaled(self, by: f32) -> Self {
        self.each(|value| (value as f64 * f64::from(by)) as i64)
    }

    fn each(self, change: impl Fn(i64) -> i64) -> Self {
        Self { memory_mb: change(self.memory_mb), vcores: change(self.vcores) }
    }

    fn with(self, other: Self, change: impl Fn(i64, i64) -> i64) -> Self {
        Self { memory_mb: change(self.memory_mb, other.memory_mb), vcores: change(self.vcores, other.vcores) }
    }
}

impl From<&hintd_model::cluster::Resource> for Size {
    /// Kinds beyond memory and cores are not modelled.
    fn from(size: &hintd_model::cluster::Resource) -> Self {
        Self { memory_mb: size.memory_mb() as i64, vcores: size.vcores() as i64 }
    }
}

/// 0 for 0 ÷ 0.
fn ratio(of: i64, to: i64) -> f32 {
    if of == 0 && to == 0 { 0.0 } else { of as f32 / to as f32 }
}

const fn round_up(value: i64, step: i64) -> i64 {
    if step == 0 { 0 } else { (value + (step - 1)) / step * step }
}

const fn round_down(value: i64, step: i64) -> i64 {
    if step == 0 { value } else { value / step * step }
}

fn divide_up(value: i64, by: f32) -> i64 {
    if by == 0.0 { 0 } else { f64::from(value as f32 / by).ceil() as i64 }
}

/// Share of the cluster; a kind that the cluster lacks counts as infinite.
fn share(cluster: i64, value: i64) -> f64 {
    if cluster == 0 { f64::INFINITY } else { value as f64 / cluster as f64 }
}

impl Calculator {
    /// Less, equal or greater by memory, or by the larger and then the smaller share of `cluster`.
    fn compare(self, cluster: Size, left: Size, right: Size) -> std::cmp::Ordering {
        use std::cmp::Ordering::{Equal, Greater, Less};
        if self == Self::Default {
            return left.memory_mb.cmp(&right.memory_mb);
        }
        if left == right {
            return Equal;
        }
        if cluster == Size::ZERO {
            let kinds = [left.memory_mb.cmp(&right.memory_mb), left.vcores.cmp(&right.vcores)];
            return match (kinds.contains(&Greater), kinds.contains(&Less)) {
                (true, false) => Greater,
                (false, true) => Less,
                _ => Equal,
            };
        }
        let shares = |size: Size| {
            let (memory, vcores) = (share(cluster.memory_mb, size.memory_mb), share(cluster.vcores, size.vcores));
            if vcores > memory { [vcores, memory] } else { [memory, vcores] }
        };
        shares(left).partial_cmp(&shares(right)).unwrap_or(Equal)
    }

    pub(super) fn greater(self, cluster: Size, left: Size, right: Size) -> bool {
        self.compare(cluster, left, right).is_gt()
    }

    pub(super) fn less(self, cluster: Size, left: Size, right: Size) -> bool {
        self.compare(cluster, left, right).is_lt()
    }

    /// The lesser; of equals the first.
    pub(super) fn min(self, cluster: Size, left: Size, right: Size) -> Size {
        if self.greater(cluster, left, right) { right } else { left }
    }

    /// The greater; of equals the first.
    pub(super) fn max(self, cluster: Size, left: Size, right: Size) -> Size {
        if self.less(cluster, left, right) { right } else { left }
    }

    pub(super) fn fits(self, smaller: Size, bigger: Size) -> bool {
        smaller.memory_mb <= bigger.memory_mb && (self == Self::Default || smaller.vcores <= bigger.vcores)
    }

    /// How many of that size are in it.
    pub(super) fn containers(self, available: Size, of: Size) -> i64 {
        let by = |available: i64, of: i64| if of == 0 { i64::MAX } else { available / of };
        let memory = by(available.memory_mb, of.memory_mb);
        if self == Self::Default { memory } else { memory.min(by(available.vcores, of.vcores)) }
    }

    pub(super) const fn any_above_zero(self, size: Size) -> bool {
        size.memory_mb > 0 || (matches!(self, Self::Dominant) && size.vcores > 0)
    }

    /// The larger of the kinds' ratios.
    pub(super) fn ratio(self, of: Size, to: Size) -> f32 {
        let memory = ratio(of.memory_mb, to.memory_mb);
        if self == Self::Default { memory } else { memory.max(ratio(of.vcores, to.vcores)).max(0.0) }
    }

    /// Largest share of the one ÷ largest share of the other.
    pub(super) fn divide(self, cluster: Size, of: Size, by: Size) -> f32 {
        if self == Self::Default {
            return ratio(of.memory_mb, by.memory_mb);
        }
        let (mut most, mut most_by) = (0.0_f64, 0.0_f64);
        for (cluster, of, by) in
            [(cluster.memory_mb, of.memory_mb, by.memory_mb), (cluster.vcores, of.vcores, by.vcores)]
        {
            if cluster != 0 {
                most = most.max(share(cluster, of));
                most_by = most_by.max(share(cluster, by));
            }
        }
        (most / most_by) as f32
    }

    /// Each kind ÷ `by`, rounded up; 0 for `by` 0.
    pub(super) fn divide_up(self, size: Size, by: f32) -> Size {
        match self {
            Self::Default => Size::of_memory(divide_up(size.memory_mb, by)),
            Self::Dominant => size.each(|value| divide_up(value, by)),
        }
    }

    /// Each kind ÷ 100, rounded up.
    pub(super) fn percent(self, size: Size) -> Size {
        let hundredth = |value: i64| (value + 99) / 100;
        match self {
            Self::Default => Size::of_memory(hundredth(size.memory_mb)),
            Self::Dominant => size.each(hundredth),
        }
    }

    pub(super) fn round_up(self, size: Size, step: Size) -> Size {
        match self {
            Self::Default => Size::of_memory(round_up(size.memory_mb, step.memory_mb)),
            Self::Dominant => size.with(step, |value, step| if step == 0 { value } else { round_up(value, step) }),
        }
    }

    pub(super) fn round_down(self, size: Size, step: Size) -> Size {
        match self {
            Self::Default => Size::of_memory(round_down(size.memory_mb, step.memory_mb)),
            Self::Dominant => size.with(step, round_down),
        }
    }

    /// Times `by`, then up to the next step. Memory alone is rounded to the nearest MB first.
    pub(super) fn scale_up(self, size: Size, by: f32, step: Size) -> Size {
        let by = f64::from(by);
        match self {
            Self::Default => Size::of_memory(round_up((size.memory_mb as f64 * by + 0.5) as i64, step.memory_mb)),
            Self::Dominant => size.with(step, |value, step| {
                let scaled = f64::from((value as f64 * by) as f32).ceil() as i64;
                if step == 0 { scaled } else { round_up(scaled, step) }
            }),
        }
    }

    /// An ask's size as YARN takes it: at least the smallest, in its steps, at most the largest.
    pub(super) fn normalize(self, size: Size, smallest: Size, largest: Size) -> Size {
        let one = |value: i64, smallest: i64, largest: i64| {
            let value = value.max(smallest);
            let value = if smallest == 0 { value } else { round_up(value, smallest) };
            value.min(largest)
        };
        let memory_mb = one(size.memory_mb, smallest.memory_mb, largest.memory_mb);
        match self {
            Self::Default => Size::of_memory(memory_mb),
            Self::Dominant => Size { memory_mb, vcores: one(size.vcores, smallest.vcores, largest.vcores) },
        }
    }
}
