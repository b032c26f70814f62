//! When a job would end on machines of one class: what labels jobs, and what placements are chosen by.

use super::classes::Side;
use crate::class_speed::ClassSpeed;
use hintd_model::units::Bytes;

/// Input of a map, where it is not known.
pub const BLOCK: Bytes = Bytes(128 << 20);
/// What a task costs before its first byte, seconds, and bytes that it works through in a second after that, on a
/// scale-out machine: the simulator's job model.
const BASE_S: f64 = 1.0;
const BYTES_PER_S: f64 = 32e6;

/// What is known of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobShape {
    /// Its maps.
    pub maps: u64,
    /// Its reduces.
    pub reduces: u64,
    /// Bytes that its maps read.
    pub input: Bytes,
    /// Bytes between them.
    pub shuffle: Bytes,
}

/// Tasks of one kind, and the bytes that all of them together work through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    tasks: u64,
    bytes: Bytes,
}

impl JobShape {
    /// Maps and reduces.
    #[must_use]
    pub const fn tasks(&self) -> u64 {
        self.maps.saturating_add(self.reduces)
    }

    /// Maps, then reduces.
    #[must_use]
    pub const fn stages(&self) -> [Stage; 2] {
        [Stage { tasks: self.maps, bytes: self.input }, Stage { tasks: self.reduces, bytes: self.shuffle }]
    }
}

impl Stage {
    /// How often `containers` run one task after another; 0 without tasks.
    #[must_use]
    pub fn waves(&self, containers: u64) -> f64 {
        if self.tasks == 0 { 0.0 } else { (self.tasks as f64 / containers.max(1) as f64).max(1.0) }
    }

    /// Seconds of one task on a machine `speed` times as fast as a scale-out one.
    #[must_use]
    pub fn task_s(&self, speed: f64) -> f64 {
        (BASE_S + self.bytes.as_f64() / self.tasks.max(1) as f64 / BYTES_PER_S) / speed
    }
}

/// One scale-up machine against as many scale-out machines as cost as much (004 §5.1.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeModel {
    /// Of a scale-up machine, against a scale-out one.
    pub speed: ClassSpeed,
    /// Containers of the one.
    pub scale_up_containers: u32,
    /// Containers of the others together.
    pub scale_out_containers: u32,
}

impl TimeModel {
    /// Seconds for the job alone on `containers` of a machine `speed` times as fast as a scale-out one: maps, then reduces,
    /// each as many at once as there are containers.
    #[must_use]
    pub fn seconds(job: &JobShape, containers: u64, speed: f64) -> f64 {
        job.stages().map(|stage| stage.waves(containers) * stage.task_s(speed)).iter().sum()
    }

    /// Speed of machines of the side for the job.
    #[must_use]
    pub fn speed_of(&self, side: Side, job: &JobShape) -> f64 {
        match side {
            Side::Up => self.speed.of(job.input, job.shuffle),
            Side::Out => 1.0,
        }
    }

    /// Containers of the side's machines that cost as much as one scale-up machine.
    #[must_use]
    pub fn containers(&self, side: Side) -> u64 {
        match side {
            Side::Up => self.scale_up_containers.into(),
            Side::Out => self.scale_out_containers.into(),
        }
    }

    /// On a scale-up machine.
    #[must_use]
    pub fn scale_up_s(&self, job: &JobShape) -> f64 {
        Self::seconds(job, self.scale_up_containers.into(), self.speed.of(job.input, job.shuffle))
    }

    /// On the scale-out machines.
    #[must_use]
    pub fn scale_out_s(&self, job: &JobShape) -> f64 {
        Self::seconds(job, self.scale_out_containers.into(), 1.0)
    }

    /// Whether it ends sooner on the scale-up machine: a small job, in the words of 004 §5.1.1.
    #[must_use]
    pub fn small(&self, job: &JobShape) -> bool {
        self.scale_up_s(job) < self.scale_out_s(job)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ScaleUpOutParams;
    use super::*;

    fn job(gib: f64, ratio: f64) -> JobShape {
        let input = Bytes((gib * f64::from(1 << 30)) as u64);
        let shuffle = Bytes((input.as_f64() * ratio) as u64);
        let maps = input.0.div_ceil(BLOCK.0).max(1);
        JobShape { maps, reduces: shuffle.0.div_ceil(1 << 30), input, shuffle }
    }

    /// Figure 5.1: up to 70 % more on scale-out machines where the job is small, down to 35 % less where it is large.
    #[test]
    fn the_model_is_figure_5_1() {
        let model = ScaleUpOutParams::default().time_model();
        let ratio = |job: &JobShape| model.scale_out_s(job) / model.scale_up_s(job);
        let figure = |gib, shuffles| ratio(&job(gib, shuffles));
        assert!((figure(1.0, 0.0) - 1.7).abs() < 1e-9);
        assert!((figure(100.0, 0.0) - 0.65).abs() < 1e-3, "{}", figure(100.0, 0.0));
        for (gib, shuffles, small) in
            [(0.01, 0.0, true), (31.9, 0.0, true), (32.1, 0.0, false), (63.9, 1.0, true), (64.1, 1.0, false)]
        {
            assert_eq!(model.small(&job(gib, shuffles)), small, "{gib} GiB, shuffle {shuffles}");
        }
    }
}
