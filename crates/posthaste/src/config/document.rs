//! One layer of a configuration as text: a file, an environment variable or a flag. Knows lines and columns, and how
//! much of a line may be shown.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::fault::{Fault, Place, Wrong};

/// Lines longer than this are cut in excerpts.
const EXCERPT_CHARS_MAX: usize = 100;

/// Words in names of settings whose values are never shown.
const NEVER_SHOWN: &[&str] =
    &["secret", "_key", "token", "password", "headers", "authorization", "url", "hmac", "store"];

/// How much of a line an excerpt shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// All of it, unless its setting may hold a secret.
    Line,
    /// The key alone: what a name that nobody knows holds may be a secret.
    Key,
}

/// Where a layer comes from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// A file, by its name as given.
    File(String),
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

/// A layer.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) origin: Origin,
    pub(super) text: String,
}

impl Document {
    /// The document as a table.
    ///
    /// Errors: the first place that is no TOML. What a parser makes of the rest would be guesses, and so would be their
    /// faults. Without an excerpt: where the text isn't understood, nobody knows what is a secret.
    pub(super) fn parse(&self) -> Result<DeTable<'_>, Box<Fault>> {
        DeTable::parse(&self.text).map(Spanned::into_inner).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let wrong = Wrong::new(format!("this is no TOML: {}", one_line(error.message())), "");
            Box::new(self.fault(String::new(), &span, wrong, None))
        })
    }

    /// A fault at the key or value at `span`.
    pub(super) fn fault_at(&self, path: &str, span: &Range<usize>, shown: Shown, wrong: Wrong) -> Fault {
        let shown = if may_show(path) { shown } else { Shown::Key };
        let excerpt = match self.origin {
            Origin::File(_) => self.excerpt(span, shown),
            Origin::Variable(_) | Origin::Flag(_) => None,
        };
        self.fault(path.to_owned(), span, wrong, excerpt)
    }

    fn fault(&self, path: String, span: &Range<usize>, wrong: Wrong, excerpt: Option<String>) -> Fault {
        Fault { place: self.place(span), path, problem: wrong.problem, remedy: wrong.remedy, excerpt }
    }

    /// Where `span` begins.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        match &self.origin {
            Origin::File(name) => {
                let (line, column, _) = self.position(span.start);
                Place::File { name: name.clone(), line, column }
            }
            Origin::Variable(name) => Place::Variable(name.clone()),
            Origin::Flag(name) => Place::Flag(name),
        }
    }

    /// Line and column, both from 1, and the line's text.
    fn position(&self, offset: usize) -> (usize, usize, &str) {
        let offset = offset.min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = self.text[..begin].lines().count() + 1;
        let text = self.text[begin..].lines().next().unwrap_or_default();
        let column = self.text.get(begin..offset).map_or(1, |head| head.chars().count() + 1);
        (line, column, text)
    }

    /// The line with a mark under `span`; nothing if what may be shown is nothing.
    fn excerpt(&self, span: &Range<usize>, shown: Shown) -> Option<String> {
        let (line, column, text) = self.position(span.start);
        let marked = self.text.get(span.clone())?.lines().next().unwrap_or_default();
        let text = match shown {
            Shown::Line => text.to_owned(),
            Shown::Key => key_alone(text, column, marked)?,
        };
        let text: String = text.chars().take(EXCERPT_CHARS_MAX).collect();
        let width = text.chars().count();
        let before = column - 1;
        if before >= width {
            return None;
        }
        let marks = marked.chars().count().clamp(1, width - before);
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        Some(format!("  {number} | {text}\n  {gutter} | {}{}", " ".repeat(before), "^".repeat(marks)))
    }
}

/// `key = …`, if `marked` is a plain key at the start of the line; a table's header as it is.
fn key_alone(line: &str, column: usize, marked: &str) -> Option<String> {
    let first = line.len() - line.trim_start().len() + 1 == column;
    let plain = marked.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if line.trim_start().starts_with('[') && line.trim_end().ends_with(']') && !line.contains(['"', '\'']) {
        return Some(line.to_owned());
    }
    (first && plain && !marked.is_empty()).then(|| format!("{}{marked} = …", &line[..column - 1]))
}

/// Whether a line that sets `path` may be shown whole.
fn may_show(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    !NEVER_SHOWN.iter().any(|word| path.contains(word))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where a setting stands in a table: spans of its key and of its value.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// From the table on: names, and `[n]` for elements of lists.
    pub(super) path: String,
    pub(super) key: Range<usize>,
}

/// The smallest setting in `table` whose key or value covers `offset`.
pub(super) fn spot_at(table: &DeTable<'_>, offset: usize) -> Option<Spot> {
    let mut best: Option<(usize, Spot)> = None;
    for (key, value) in table {
        let spot = Spot { path: key.get_ref().to_string(), key: key.span() };
        visit(value, &spot, offset, &mut best);
    }
    best.map(|(_, spot)| spot)
}

fn visit(value: &Spanned<DeValue<'_>>, spot: &Spot, offset: usize, best: &mut Option<(usize, Spot)>) {
    for span in [spot.key.clone(), value.span()] {
        if (span.contains(&offset) || span.start == offset)
            && best.as_ref().is_none_or(|(len, _)| span.len() < *len)
        {
            *best = Some((span.len(), spot.clone()));
        }
    }
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                let path = format!("{}.{}", spot.path, key.get_ref());
                visit(value, &Spot { path, key: key.span() }, offset, best);
            }
        }
        DeValue::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let path = format!("{}[{at}]", spot.path);
                visit(item, &Spot { path, key: item.span() }, offset, best);
            }
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

/// The span to show for `path` (`retry.delays`, `secrets[0]`), as deep as it exists; `None` if its root is absent.
pub(super) fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let mut segments = path.split(['.', '[']).map(|segment| segment.trim_end_matches(']'));
    let (key, value) = table.get_key_value(segments.next()?)?;
    let (mut span, mut value) = (key.span(), value.get_ref());
    for segment in segments {
        match value {
            DeValue::Table(table) => {
                let Some((key, inner)) = table.get_key_value(segment) else { break };
                (span, value) = (key.span(), inner.get_ref());
            }
            DeValue::Array(items) => {
                let Some(item) = segment.parse().ok().and_then(|at: usize| items.get(at)) else { break };
                (span, value) = (item.span(), item.get_ref());
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => break,
        }
    }
    Some(span)
}
