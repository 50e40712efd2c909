//! What is wrong with a configuration: where, what, and what would be right.

/// One fault. The caller adds the file and line, or the request's field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}; {remedy}")]
pub struct ConfigError {
    /// Which setting, for example `retry.delays`.
    pub path: String,
    /// What is wrong. Never holds a secret.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl ConfigError {
    /// A fault.
    pub fn new(path: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into(), remedy: remedy.into() }
    }
}
