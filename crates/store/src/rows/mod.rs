//! Rows as both databases give them: their columns stand in the same order, each with a reader of its own.

pub(crate) mod attempt;
pub(crate) mod bulk_run;
pub(crate) mod cells;
pub(crate) mod configured;
pub(crate) mod entry;
pub(crate) mod job;
pub(crate) mod lane;
pub(crate) mod texts;
pub(crate) mod words;
