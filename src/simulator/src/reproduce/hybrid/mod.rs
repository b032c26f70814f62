//! Paper 004 (Li), chapter 5: `scale_up_out` on a cluster of scale-up and scale-out machines against `fair` and `delay` on it
//! and on one of scale-out machines alone.
//!
//! # Code map
//! - `world`: jobs and clusters of both scales, and the classifier. `systems`: what is compared, and runs that entries share.
//! - `figures`: Figures 5.11 to 5.18. `explain`: what explains them without a run. `svm`: what the classifier gets wrong (§5.3.2).

mod explain;
mod figures;
mod svm;
mod systems;
#[cfg(test)]
mod tests;
mod world;

pub use figures::{ABLATION, BATCH, ERROR, ONLINE};
pub use svm::SVM;
