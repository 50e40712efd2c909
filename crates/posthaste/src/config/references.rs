//! References to secrets: `env:NAME` and `file:PATH`. What they refer to never appears in an error.

use posthaste_engine::config::ConfigError;

/// Bytes of a file that holds one secret.
const FILE_BYTES_MAX: u64 = 64 * 1024;

const REMEDY: &str = "write \"env:NAME\" or \"file:PATH\"";

/// What `reference` refers to; `None` if it is no reference.
///
/// Errors: a sentence for the operator.
pub(crate) fn follow(reference: &str) -> Option<Result<String, String>> {
    if let Some(name) = reference.strip_prefix("env:") {
        return Some(variable(name));
    }
    reference.strip_prefix("file:").map(file)
}

fn variable(name: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(value) if value.trim().is_empty() => Err(format!("the environment variable {name} is empty")),
        Ok(value) => Ok(value.trim_end_matches(['\r', '\n']).to_owned()),
        Err(std::env::VarError::NotPresent) => Err(format!("the environment variable {name} is not set")),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("the environment variable {name} is no text")),
    }
}

fn file(path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("the file {path} can't be read: {error}");
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(format!("{path} is no file of at most {FILE_BYTES_MAX} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim().is_empty() { Err(format!("the file {path} is empty")) } else { Ok(text.to_owned()) }
}

/// The secrets that a file's `references` refer to, in order. A secret itself has no place in a file.
pub(super) fn resolve(path: &str, references: &[String]) -> Result<Vec<String>, ConfigError> {
    let resolved = references.iter().enumerate().map(|(at, reference)| {
        let path = format!("{path}[{at}]");
        match follow(reference) {
            Some(Ok(secret)) => Ok(secret),
            Some(Err(problem)) => Err(ConfigError::new(path, problem, "")),
            None => Err(ConfigError::new(path, "a secret itself has no place in a configuration", REMEDY)),
        }
    });
    resolved.collect()
}
