//! What is wrong with a configuration, and where: one [`Fault`] a mistake.
//!
//! A fault never holds the value of a secret: lines of a file are shown only as far as [`super::document`] lets them.

use std::fmt;

/// One mistake. Its text is for the person who wrote the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands.
    pub place: Place,
    /// Which setting, for example `endpoint[fan_17].retry.delays`; empty where the file can't be read at all.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right; may be empty.
    pub remedy: String,
    /// The line of the file with a mark under the fault.
    pub excerpt: Option<String>,
}

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a file.
    File {
        /// Its name as given.
        name: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// In an environment variable.
    Variable(String),
    /// In a flag of the command line.
    Flag(&'static str),
    /// In a file that can't be read.
    Whole(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "{name}"),
            Self::Whole(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        let said_by_flag = matches!(self.place, Place::Flag(_));
        if !self.path.is_empty() && !said_by_flag {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.problem)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        match &self.excerpt {
            Some(excerpt) => write!(f, "\n{excerpt}"),
            None => Ok(()),
        }
    }
}

/// Every mistake of a configuration, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub(crate) Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// What is wrong with a value; the place is added by whoever knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) problem: String,
    pub(super) remedy: String,
}

impl Wrong {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

/// `; did you mean …?` if a known word is close, else the list of what is known.
pub(super) fn suggestion(word: &str, known: &[&str]) -> String {
    let distance = |other: &&&str| strsim::damerau_levenshtein(word, other);
    match known.iter().min_by_key(distance) {
        Some(near) if strsim::damerau_levenshtein(word, near) <= 2.min(word.len() / 2) => {
            format!("did you mean `{near}`?")
        }
        Some(near) if near.starts_with(word) || word.starts_with(near) => format!("did you mean `{near}`?"),
        Some(_) | None => format!("known are {}", known.join(", ")),
    }
}
