//! What all plots share, whichever command draws them: sizes, colours, texts of axes.

pub(crate) mod style;
