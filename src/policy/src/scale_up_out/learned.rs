//! A classifier from jobs that finished here: labelled by task times as they were measured, held against jobs that it was
//! not trained from, written down and read back.

use super::classifier::{Classifier, ClassifierRow, Mistakes};
use super::params::ScaleUpOutParams;
use super::task_times::{TaskTimes, shape, timed};
use super::time::JobShape;
use crate::learn::{FinishedJob, Judged, LearnError, Lesson};
use hintd_model::solve::svm::SvmError;
use hintd_model::units::Bytes;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Fewer jobs teach nothing; as many as [`ScaleUpOutParams::training_jobs`] has to be at least.
pub(super) const JOBS_MIN: usize = 50;
/// One job in so many is held out to be judged.
const HELD_OUT: usize = 5;
/// As many of a kind as cross-validation has parts.
const KIND_MIN: usize = super::classifier::FOLDS;
/// Of [`Written`]; another is not read. 2: with what was seen.
const FORMAT: u32 = 2;

/// What the policy learnt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Learned {
    pub(super) classifier: Arc<Classifier>,
    pub(super) times: TaskTimes,
    pub(super) lesson: Lesson,
}

/// The same as it is kept in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    /// Under which labels hold.
    parameters: ScaleUpOutParams,
    classifier: ClassifierRow,
    times: TaskTimes,
    lesson: Lesson,
}

/// What every format has.
#[derive(Debug, Deserialize)]
struct Header {
    format: u32,
}

impl Learned {
    /// From the first [`ScaleUpOutParams::training_jobs`] of `jobs`.
    ///
    /// # Errors
    /// [`LearnError::TooFew`], [`LearnError::OneKind`].
    pub(super) fn of(jobs: &[FinishedJob], params: &ScaleUpOutParams, seed: u64) -> Result<Self, LearnError> {
        let mut jobs = jobs[..jobs.len().min(params.training_jobs as usize)].to_vec();
        if jobs.len() < JOBS_MIN {
            return Err(LearnError::TooFew { jobs: jobs.len(), least: JOBS_MIN });
        }
        jobs.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let (all, small) = taught(&jobs, params)?;
        let judged = Self::blind(&jobs, &all.times, params);
        let lesson = Lesson { jobs: jobs.len() as u64, small: small as u64, timed: timed(&jobs), ..judged };
        Ok(Self { lesson, ..all })
    }

    /// How far off one is that was trained without a fifth of either kind, on that fifth. Nothing is judged where too few of a
    /// kind are left: what all jobs together teach counts all the same.
    fn blind(jobs: &[FinishedJob], times: &TaskTimes, params: &ScaleUpOutParams) -> Lesson {
        let model = params.time_model();
        let (small, large): (Vec<_>, Vec<_>) = jobs.iter().copied().partition(|job| times.small(&model, &shape(job)));
        let by_kind = [small, large].concat().into_iter().enumerate();
        let (held_out, others): (Vec<_>, Vec<_>) = by_kind.partition(|(at, _)| at % HELD_OUT == HELD_OUT - 1);
        let [held_out, others] =
            [held_out, others].map(|jobs| jobs.into_iter().map(|(_, job)| job).collect::<Vec<_>>());
        taught(&others, params).map_or_else(|_| Lesson::default(), |(blind, _)| blind.judged(&held_out, times, params))
    }

    /// Above 0: the job is small. Of jobs unlike all that were there to learn from the classifier can't tell, and a large one
    /// among them must not be called small: the learnt times say it, as they labelled those that were there.
    pub(super) fn decision(&self, job: &JobShape, params: &ScaleUpOutParams) -> f64 {
        let decision = self.classifier.decision(job);
        if self.classifier.has_seen(job) {
            return decision;
        }
        let sure = decision.abs().max(1.0); // not near the boundary, that is at 0
        if self.times.small(&params.time_model(), job) { sure } else { -sure }
    }

    /// How far off it is on jobs that it was not trained from, whose kinds are those that `times` say.
    fn judged(&self, held_out: &[FinishedJob], times: &TaskTimes, params: &ScaleUpOutParams) -> Lesson {
        let model = params.time_model();
        let (mut classifier, mut regression) = ([Mistakes::default(); 2], [Mistakes::default(); 2]);
        for job in held_out.iter().map(shape) {
            let small = times.small(&model, &job);
            for (at, seen) in [job, JobShape { shuffle: Bytes::ZERO, ..job }].iter().enumerate() {
                classifier[at].judge(small, self.decision(seen, params) > 0.0);
                regression[at].judge(small, self.classifier.logistic_decision(seen) > 0.0);
            }
        }
        let mut errors = self.times.errors(&model, held_out);
        errors.sort_unstable_by(f64::total_cmp);
        let time_error = errors.get(errors.len() / 2).copied();
        let judged = |mistakes: Mistakes| Judged {
            jobs: mistakes.of,
            wrong: mistakes.small_called_large + mistakes.large_called_small,
            large_called_small: mistakes.large_called_small,
        };
        Lesson {
            time_error,
            classifier: classifier.map(judged),
            regression: regression.map(judged),
            ..Lesson::default()
        }
    }

    /// As [`Self::read`] reads it back.
    pub(super) fn written(&self, params: &ScaleUpOutParams) -> String {
        let (parameters, classifier) = (params.clone(), self.classifier.row());
        let written = Written { format: FORMAT, parameters, classifier, times: self.times, lesson: self.lesson };
        serde_json::to_string(&written).expect("it is numbers and names")
    }

    /// What was written down.
    ///
    /// # Errors
    /// [`LearnError::Damaged`] with what can't be meant; [`LearnError::OtherParameters`].
    pub(super) fn read(text: &str, params: &ScaleUpOutParams) -> Result<Self, LearnError> {
        let damaged = |why: &dyn std::fmt::Display| LearnError::Damaged(why.to_string());
        let Header { format } = serde_json::from_str(text).map_err(|error| damaged(&error))?;
        if format != FORMAT {
            return Err(LearnError::Damaged(format!("its format is {format}, not {FORMAT}")));
        }
        let written: Written = serde_json::from_str(text).map_err(|error| damaged(&error))?;
        if written.parameters != *params {
            return Err(LearnError::OtherParameters);
        }
        if !written.times.are_finite() {
            return Err(LearnError::Damaged("a task time is no number".to_owned()));
        }
        let classifier = Classifier::of_row(written.classifier).map_err(|error| damaged(&error))?;
        Ok(Self { classifier: Arc::new(classifier), times: written.times, lesson: written.lesson })
    }
}

/// Times learnt from the jobs, and a classifier from the jobs as these label them; small ones among them.
fn taught(jobs: &[FinishedJob], params: &ScaleUpOutParams) -> Result<(Learned, usize), LearnError> {
    let model = params.time_model();
    let times = TaskTimes::learn(&model, jobs);
    let labelled: Vec<(JobShape, bool)> = jobs.iter().map(shape).map(|job| (job, times.small(&model, &job))).collect();
    let small = labelled.iter().filter(|(_, small)| *small).count();
    let of_one_kind = || LearnError::OneKind { jobs: jobs.len(), small, least: KIND_MIN };
    if small.min(jobs.len() - small) < KIND_MIN {
        return Err(of_one_kind());
    }
    let classifier = Classifier::train(&labelled).map_err(|error| match error {
        SvmError::OneClass(_) => of_one_kind(),
        other => LearnError::Damaged(other.to_string()), // a job whose numbers can't be meant
    })?;
    Ok((Learned { classifier: Arc::new(classifier), times, lesson: Lesson::default() }, small))
}

#[cfg(test)]
mod tests {
    use super::super::{BLOCK, ScaleUpOut, Side};
    use super::*;
    use crate::Definition as _;
    use crate::learn::Learn as _;
    use hintd_model::units::Micros;
    use rand::RngExt as _;

    fn params() -> ScaleUpOutParams {
        ScaleUpOutParams { training_jobs: 200, ..ScaleUpOutParams::default() }
    }

    /// Jobs of 2^`from` to 2^`to` bytes, in turn on one class and the other; tasks there take `slower` times what is stated.
    fn history(jobs: usize, (from, to): (f64, f64), slower: [f64; 2]) -> Vec<FinishedJob> {
        let (model, mut random) = (params().time_model(), ChaCha8Rng::seed_from_u64(9));
        let one = |at: usize| {
            let input = Bytes(random.random_range(from..to).exp2() as u64);
            let shuffle = Bytes((input.as_f64() * random.random_range(0.0..0.5)) as u64);
            let (maps, reduces) = (input.0.div_ceil(BLOCK.0), shuffle.0.div_ceil(1 << 30));
            let job = JobShape { maps, reduces, input, shuffle };
            let up = at.is_multiple_of(2);
            let stated = if up { model.speed.of(input, shuffle) } else { 1.0 };
            let speed = stated / slower[usize::from(!up)];
            let time = |stage: usize| Micros((job.stages()[stage].task_s(speed) * 1e6) as u64);
            let on_class = Some(if up { 1_000 } else { 0 });
            FinishedJob { maps: (maps, time(0)), reduces: (reduces, time(1)), input, shuffle, on_class }
        };
        (0..jobs).map(one).collect()
    }

    const ALL_SIZES: (f64, f64) = (28.0, 40.0);

    #[test]
    fn it_learns_what_it_is_told_and_says_how_far_off_it_is_on_jobs_held_out() {
        let jobs = history(200, ALL_SIZES, [2.0, 2.0]);
        let learned = Learned::of(&jobs, &params(), 1).unwrap();
        assert_eq!(Learned::of(&jobs, &params(), 1).unwrap(), learned, "the same again");
        let Lesson { jobs: count, small, timed, time_error, classifier, regression } = learned.lesson;
        println!("{:?}", learned.lesson);
        assert_eq!((count, timed[0] + timed[1], classifier[0].jobs, regression[1].jobs), (200, 200, 40, 40));
        assert!(small > 20 && small < 180 && time_error.unwrap() < 0.01, "{:?}", learned.lesson);
        assert!(classifier[0].wrong <= 4 && regression[0].wrong <= 4, "{:?}", learned.lesson);
        let other = Learned::of(&history(200, ALL_SIZES, [1.3, 1.0]), &params(), 1).unwrap();
        assert!(other.lesson.small < small, "on slow scale-up machines fewer jobs are small: {:?}", other.lesson);
    }

    #[test]
    fn history_of_one_kind_of_jobs_or_of_too_few_changes_nothing() {
        let policy = ScaleUpOut::new(params());
        let refused = |jobs: &[FinishedJob]| policy.learn(jobs, 1).err().unwrap().to_string();
        let small = history(100, (20.0, 30.0), [1.0, 1.0]);
        assert_eq!(refused(&small), "of 100 finished jobs 100 are small: fewer than 5 are of the other kind");
        let large = history(100, (38.0, 42.0), [1.0, 1.0]);
        assert_eq!(refused(&large), "of 100 finished jobs 0 are small: fewer than 5 are of the other kind");
        assert_eq!(refused(&small[..49]), "49 finished jobs, fewer than 50");
        let few = [&small[..], &large[..4]].concat();
        assert_eq!(refused(&few), "of 104 finished jobs 100 are small: fewer than 5 are of the other kind");
    }

    #[test]
    fn with_few_jobs_of_a_kind_it_learns_and_holds_out_as_many_as_leave_enough() {
        let few = |large: usize| {
            let jobs = [history(190, (20.0, 30.0), [1.0, 1.0]), history(large, (38.0, 42.0), [1.0, 1.0])].concat();
            let Lesson { jobs, small, classifier, .. } = Learned::of(&jobs, &params(), 1).unwrap().lesson;
            assert_eq!((jobs, small), (190 + large as u64, 190), "{large} large ones");
            classifier[0].jobs
        };
        // Of 5 large jobs one would be held out, and 4 teach nothing.
        assert_eq!((few(5), few(6), few(7)), (0, 39, 39));
    }

    /// Lognormal sizes, most of them small; every third job shuffles nothing.
    fn lognormal(seed: u64) -> Vec<FinishedJob> {
        let (model, mut random) = (params().time_model(), ChaCha8Rng::seed_from_u64(seed));
        let one = |at: usize| {
            let normal = (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
            let input = Bytes(normal.mul_add(2.5, 31.5).exp2() as u64 + 1);
            let ratio = if at.is_multiple_of(3) { 0.0 } else { random.random_range(0.1..1.0) };
            let shuffle = Bytes((input.as_f64() * ratio) as u64);
            let job =
                JobShape { maps: input.0.div_ceil(BLOCK.0), reduces: shuffle.0.div_ceil(1 << 30), input, shuffle };
            let time =
                |stage: usize| Micros((job.stages()[stage].task_s(model.speed_of(Side::Out, &job)) * 1e6) as u64);
            let (maps, reduces) = ((job.maps, time(0)), (job.reduces, time(1)));
            FinishedJob { maps, reduces, input, shuffle, on_class: Some(0) }
        };
        (0..200).map(one).collect()
    }

    #[test]
    fn a_large_job_unlike_all_that_were_there_to_learn_from_is_not_called_small() {
        let model = params().time_model();
        let (mut histories, mut by_classifier, mut by_policy) = (0, 0, 0);
        for seed in 0..16 {
            let jobs = lognormal(seed);
            let Ok((learnt, _)) = taught(&jobs, &params()) else { continue };
            histories += 1;
            let most = jobs.iter().max_by_key(|job| job.input).unwrap();
            let cases = [1.4, 2.0, 4.0, 16.0].into_iter().flat_map(|larger| {
                [0.0, 0.2, 0.5, 1.0].map(|ratio| {
                    let input = Bytes((most.input.as_f64() * larger) as u64);
                    let shuffle = Bytes((input.as_f64() * ratio) as u64);
                    let (maps, reduces) = (input.0.div_ceil(BLOCK.0), shuffle.0.div_ceil(1 << 30));
                    // And the same before it ran for the first time.
                    let job = JobShape { maps, reduces, input, shuffle };
                    [job, JobShape { shuffle: Bytes::ZERO, ..job }]
                })
            });
            for job in cases.flatten() {
                assert!(!learnt.times.small(&model, &job));
                by_classifier += u32::from(learnt.classifier.decision(&job) > 0.0);
                by_policy += u32::from(learnt.decision(&job, &params()) > 0.0);
            }
        }
        println!(
            "{histories} histories of 32 large jobs each; small by the classifier {by_classifier}, by the policy {by_policy}"
        );
        assert!(histories >= 10 && by_classifier > 0, "else nothing is tried: {histories}, {by_classifier}");
        assert_eq!(by_policy, 0);
    }

    #[test]
    fn history_of_machines_of_one_class_teaches_how_long_tasks_take_and_says_so() {
        let jobs: Vec<_> =
            history(200, ALL_SIZES, [1.0, 1.0]).into_iter().filter(|job| job.on_class == Some(0)).collect();
        let learned = Learned::of(&jobs, &params(), 1).unwrap();
        assert_eq!(learned.lesson.timed, [0, 100]);
        let unknown: Vec<_> = jobs.iter().map(|job| FinishedJob { on_class: None, ..*job }).collect();
        let learned = Learned::of(&unknown, &params(), 1).unwrap();
        assert_eq!((learned.lesson.timed, learned.lesson.time_error), ([0, 0], None));
    }

    #[test]
    fn history_that_contradicts_itself_ends_and_its_error_says_so() {
        let (quick, slow) = (history(200, ALL_SIZES, [0.2, 0.2]), history(200, ALL_SIZES, [20.0, 20.0]));
        // The very same jobs on the very same machines, and a hundred times as long.
        let torn: Vec<_> =
            quick.iter().zip(&slow).enumerate().map(|(at, (a, b))| if at % 3 == 0 { *a } else { *b }).collect();
        let learned = Learned::of(&torn, &params(), 1).unwrap();
        println!("{:?}", learned.lesson);
        assert!(learned.lesson.time_error.unwrap() > 0.3, "{:?}", learned.lesson);
        assert!(jobs_are_decided(&learned, &torn));
        let steady = Learned::of(&slow, &params(), 1).unwrap();
        assert!(steady.lesson.time_error.unwrap() < 0.01);
    }

    #[test]
    fn a_placement_tells_how_often_the_classifier_was_wrong_on_jobs_like_this_that_were_held_out() {
        use crate::sample::cluster;
        use crate::{Budget, Place as _};
        use hintd_model::cluster::Resource;
        use hintd_model::network::build::{TreeSpec, tree};
        let mut sample = cluster(&tree(&TreeSpec::default()).unwrap(), Resource::new(4096, 4), Bytes(1));
        let statics = Arc::make_mut(&mut sample.snapshot.statics);
        statics.class_names.push("scale-up".into());
        statics.class[0] = hintd_model::units::ClassIdx(1);
        let learned = Learned::of(&history(200, ALL_SIZES, [2.0, 2.0]), &params(), 1).unwrap();
        let [known, unknown] = learned.lesson.classifier;
        let policy = ScaleUpOut::new(params()).by(learned);
        let parts = |shuffle| {
            let mut problem = sample.problem(vec![sample.group("map", 2, Resource::new(1024, 1))], vec![], vec![]);
            problem.job.shuffle = shuffle;
            let mut never = || false;
            policy.place(&problem, &mut Budget::new(1_000, &mut never)).unwrap().parts
        };
        for (shuffle, judged) in [(Bytes(1 << 20), known), (Bytes::ZERO, unknown)] {
            let parts = parts(shuffle);
            let of = |name: &str| parts.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            assert!(judged.jobs > 0);
            assert_eq!(of("held_out_jobs"), Some(judged.jobs as f64), "{parts:?}");
            assert_eq!(of("held_out_wrong"), Some(judged.wrong as f64), "{parts:?}");
        }
    }

    fn jobs_are_decided(learned: &Learned, jobs: &[FinishedJob]) -> bool {
        jobs.iter().all(|job| learned.classifier.decision(&shape(job)).is_finite())
    }

    #[test]
    fn what_was_written_down_is_read_back_and_what_is_damaged_is_named() {
        let policy = ScaleUpOut::new(params());
        let (learnt, written) = policy.learn(&history(200, ALL_SIZES, [2.0, 2.0]), 1).unwrap();
        let learned = Learned::read(&written, &params()).unwrap();
        assert_eq!(learned.written(&params()), written);
        let restored = policy.read_back(&written).unwrap();
        assert_eq!(restored.as_learn().unwrap().lesson(), learnt.as_learn().unwrap().lesson());
        assert!(restored.is_prepared() && policy.lesson().is_none());
        let refused = |text: &str| policy.read_back(text).err().unwrap().to_string();
        assert_eq!(refused(&written.replacen("\"format\":2", "\"format\":7", 1)), "its format is 7, not 2");
        let of_before = format!("{{\"format\":1,{}", &written[written.find("\"parameters\"").unwrap()..]);
        assert_eq!(refused(&of_before.replacen("\"seen\"", "\"was_seen\"", 1)), "its format is 1, not 2");
        assert!(refused(&written[..written.len() / 2]).contains("EOF"), "{}", refused(&written[..written.len() / 2]));
        assert!(refused("").starts_with("EOF"));
        let gamma = written.find("\"gamma\":").unwrap() + 8;
        let end = gamma + written[gamma..].find(',').unwrap();
        let no_width = format!("{}0.0{}", &written[..gamma], &written[end..]);
        assert_eq!(refused(&no_width), "gamma is 0");
        let other = ScaleUpOut::new(ScaleUpOutParams { speed: 2.0, ..params() });
        assert_eq!(other.read_back(&written).err(), Some(LearnError::OtherParameters));
    }
}
