//! The rules, one module each. Every check is a function over data and returns what it found.

pub(crate) mod clients;
pub(crate) mod clock;
pub(crate) mod field_cases;
pub(crate) mod floors;
pub(crate) mod lengths;
pub(crate) mod links;
pub(crate) mod module_docs;
pub(crate) mod rows;
pub(crate) mod skips;
pub(crate) mod sql;
pub(crate) mod words;

/// A package, file, folder or function that a rule names, and why it does.
pub(crate) struct Listed {
    pub(crate) what: &'static str,
    pub(crate) reason: &'static str,
}
