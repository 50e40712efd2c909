//! Panics in logs.

use std::fmt;

/// What a panic left behind, for the log.
pub(crate) struct PanicText<'a>(pub(crate) &'a (dyn std::any::Any + Send));

impl fmt::Display for PanicText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.downcast_ref::<&str>().copied();
        let text = text.or_else(|| self.0.downcast_ref::<String>().map(String::as_str));
        f.write_str(text.unwrap_or("no text"))
    }
}
