//! The layers of a configuration laid over each other: which settings there are, and the last value of each.

use std::{collections::BTreeMap, ops::Range};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    document::{Document, Shown},
    fault::{Fault, Wrong, suggestion},
};

/// What a setting holds; decides how an environment variable is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Text,
    /// A number or `true`/`false`.
    Plain,
    /// Texts; in a variable separated by commas.
    List,
    /// A list of tables; in a variable as TOML.
    Tables,
}

/// Every setting there is.
pub(super) const SETTINGS: &[(&str, Kind)] = &[
    ("store", Kind::Text),
    ("listen", Kind::Text),
    ("intake_listen", Kind::Text),
    ("public_url", Kind::Text),
    ("insecure", Kind::Plain),
    ("accept_deadline", Kind::Text),
    ("drain_deadline", Kind::Text),
    ("master_key", Kind::Text),
    ("source", Kind::Tables),
    ("endpoint", Kind::Tables),
    ("queue", Kind::Tables),
    ("schedule", Kind::Tables),
    ("outbound.destinations", Kind::List),
    ("outbound.private_networks", Kind::List),
    ("outbound.allow_http", Kind::Plain),
    ("limits.payload_bytes_max", Kind::Plain),
    ("limits.connections_max", Kind::Plain),
    ("limits.deliveries_max", Kind::Plain),
    ("retention.committed", Kind::Text),
    ("retention.dead_lettered", Kind::Text),
    ("retention.ledger", Kind::Text),
    ("retention.archive", Kind::Text),
    ("retention.every", Kind::Text),
    ("retention.endpoint", Kind::Text),
    ("retention.region", Kind::Text),
    ("retention.access_key", Kind::Text),
    ("retention.secret_key", Kind::Text),
    ("log.format", Kind::Text),
    ("log.level", Kind::Text),
];

const SECTIONS: &[&str] = &["outbound", "limits", "retention", "log"];

/// Settings of the contract that do nothing yet. Taking them in silence would be a lie.
pub(super) const NOT_YET: &[(&str, &str)] =
    &[("tls", "TLS on the listener is not available yet: put a TLS proxy in front")];

/// The last value of one setting.
#[derive(Clone, Debug)]
pub(super) struct Found<'i> {
    pub(super) document: &'i Document,
    pub(super) key: Range<usize>,
    pub(super) value: Spanned<DeValue<'i>>,
}

impl Found<'_> {
    /// A fault of this setting.
    pub(super) fn fault(&self, path: &str, wrong: Wrong) -> Fault {
        self.document.fault_at(path, &self.key, Shown::Line, wrong)
    }
}

/// The layers, and what was found wrong with them.
#[derive(Debug, Default)]
pub(super) struct Layers<'i> {
    found: BTreeMap<String, Found<'i>>,
    pub(super) faults: Vec<Fault>,
}

impl<'i> Layers<'i> {
    /// Lays `document` over what is there.
    pub(super) fn lay(&mut self, document: &'i Document) {
        let table = match document.parse() {
            Ok(table) => table,
            Err(fault) => return self.faults.push(*fault),
        };
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let is_section = SECTIONS.contains(&name.as_str());
            match value.get_ref().as_table().filter(|_| is_section) {
                Some(section) => self.lay_section(document, &name, section),
                None if is_section => {
                    let wrong =
                        Wrong::new("this is a section", format!("write [{name}] on a line of its own"));
                    self.faults.push(document.fault_at(&name, &key.span(), Shown::Key, wrong));
                }
                None => self.lay_setting(document, name, key.span(), value),
            }
        }
    }

    fn lay_section(&mut self, document: &'i Document, section: &str, table: &DeTable<'i>) {
        for (key, value) in table {
            let path = format!("{section}.{}", key.get_ref());
            self.lay_setting(document, path, key.span(), value.clone());
        }
    }

    fn lay_setting(
        &mut self,
        document: &'i Document,
        path: String,
        key: Range<usize>,
        value: Spanned<DeValue<'i>>,
    ) {
        if SETTINGS.iter().any(|(known, _)| *known == path) {
            self.found.insert(path, Found { document, key, value });
        } else {
            let wrong = unknown(&path);
            self.faults.push(document.fault_at(&path, &key, Shown::Key, wrong));
        }
    }

    /// The last value of a setting, taken out.
    pub(super) fn take(&mut self, path: &str) -> Option<Found<'i>> {
        self.found.remove(path)
    }

    /// Reads a setting; what is wrong with it is noted, and counts as not given.
    pub(super) fn read<T>(
        &mut self,
        path: &'static str,
        parse: impl FnOnce(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<T> {
        let found = self.take(path)?;
        match parse(found.value.get_ref()) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.faults.push(found.fault(path, wrong));
                None
            }
        }
    }
}

/// What to say about a setting that there is not.
fn unknown(path: &str) -> Wrong {
    if let Some((_, problem)) = NOT_YET.iter().find(|(known, _)| *known == path) {
        return Wrong::new(*problem, "leave it out");
    }
    let (section, word) = path.rsplit_once('.').map_or(("", path), |(section, word)| (section, word));
    let siblings: Vec<&str> = SETTINGS
        .iter()
        .filter_map(|(known, _)| {
            let (of, word) = known.rsplit_once('.').map_or(("", *known), |(of, word)| (of, word));
            (of == section).then_some(word)
        })
        .chain(SECTIONS.iter().copied().filter(|_| section.is_empty()))
        .collect();
    Wrong::new("there is no such setting", suggestion(word, &siblings))
}

/// A value as text.
pub(super) fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, Wrong> {
    value.as_str().ok_or_else(|| {
        Wrong::new(format!("text is expected, not {}", a(value.type_str())), "put the value in quotes")
    })
}

/// A value as a switch.
pub(super) fn switch(value: &DeValue<'_>) -> Result<bool, Wrong> {
    value.as_bool().ok_or_else(|| {
        Wrong::new(format!("true or false is expected, not {}", a(value.type_str())), "write true or false")
    })
}

/// A value as a count within `bounds`.
pub(super) fn count(value: &DeValue<'_>, bounds: std::ops::RangeInclusive<usize>) -> Result<usize, Wrong> {
    let remedy = format!("give {} to {}", bounds.start(), bounds.end());
    let Some(number) = value.as_integer() else {
        return Err(Wrong::new(format!("a number is expected, not {}", a(value.type_str())), remedy));
    };
    let parsed = usize::from_str_radix(number.as_str(), number.radix()).ok();
    let out_of_range = || Wrong::new(format!("{number} is out of range"), remedy);
    parsed.filter(|number| bounds.contains(number)).ok_or_else(out_of_range)
}

/// A value as a list of texts, each parsed.
pub(super) fn list<T>(
    value: &DeValue<'_>,
    parse: impl Fn(&str) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    let Some(items) = value.as_array() else {
        let problem = format!("a list is expected, not {}", a(value.type_str()));
        return Err(Wrong::new(problem, "put the values in brackets, for example [\"a\", \"b\"]"));
    };
    items.iter().map(|item| parse(text(item.get_ref())?)).collect()
}

fn a(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}
