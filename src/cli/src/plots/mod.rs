//! What all plots share, whichever command draws them: sizes, colours, texts of axes, where it is from.

pub(crate) mod provenance;
pub(crate) mod style;
