//! Where the store is.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString};

use super::fault::Wrong;

/// Where the store is.
#[derive(Clone, Debug)]
pub enum StoreAt {
    /// The database file of the embedded store.
    Sqlite(PathBuf),
    /// A PostgreSQL server. The URL may hold a password.
    Postgres {
        /// The whole URL.
        url: SecretString,
        /// Host and database, for people.
        shown: Box<str>,
    },
}

impl StoreAt {
    /// What `text` says: `sqlite:` and a path, or the URL of a PostgreSQL server.
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let path = text.strip_prefix("sqlite:").filter(|path| !path.is_empty() && !path.starts_with(':'));
        if let Some(path) = path {
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres { url: text.to_owned().into(), shown: shown(text) });
        }
        Err(Wrong::new(
            "this is no store",
            "write for example store = \"sqlite:posthaste.db\", or \"postgres://user@host/database\"",
        ))
    }

    /// The folder of what belongs beside the store, if it has one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres { .. } => None,
        }
    }

    /// The URL of a server.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres { url, .. } => Some(url.expose_secret()),
        }
    }
}

/// The URL without whatever may be secret in it.
fn shown(text: &str) -> Box<str> {
    let Ok(url) = url::Url::parse(text) else { return "postgres://…".into() };
    let host = url.host_str().unwrap_or("");
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("postgres://{host}{port}{}", url.path()).into()
}

/// Never a password.
impl fmt::Display for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres { shown, .. } => f.write_str(shown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_g6_a_store_is_shown_without_its_password() {
        let at =
            StoreAt::parse("postgres://me:hunter2@db.example:6432/hooks?sslmode=require&password=x").unwrap();
        assert_eq!("postgres://db.example:6432/hooks", at.to_string());
        assert!(!format!("{at:?}").contains("hunter2"));
        assert_eq!("a.db", StoreAt::parse("sqlite:a.db").unwrap().to_string());
        for wrong in ["", "a.db", "sqlite:", "sqlite::memory:", "postgres:", "mysql://h/d"] {
            assert!(StoreAt::parse(wrong).is_err(), "{wrong}");
        }
    }
}
