//! The statements of the ledger, as files that any language can run as they are.
//!
//! This crate runs these very texts. Parameters: `$1` and so on for PostgreSQL, `:name` for SQLite; each file tells its
//! own.

/// Which database the statements are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL 12 or later.
    Postgres,
    /// SQLite 3.35 or later.
    Sqlite,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::Sqlite];

    /// Its name: `postgres` or `sqlite`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }

    /// The dialect of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// The files of one dialect.
macro_rules! files {
    ($dialect:literal: $($constant:ident $name:literal),+) => {
        $(
            #[allow(dead_code, reason = "which of them are run depends on the features")]
            pub(crate) const $constant: &str = include_str!(concat!("../../sql/", $dialect, "/", $name));
        )+
        pub(super) const FILES: &[(&str, &str)] = &[$(($name, $constant)),+];
    };
}

pub(crate) mod postgres {
    files!("postgres": TABLE "table.sql", ADOPT "adopt.sql", INDEX "index.sql", CLAIM "claim.sql",
        COMPLETE "complete.sql", FAIL "fail.sql", EXTEND "extend.sql", RESET "reset.sql", GET "get.sql",
        PURGE "purge.sql");
}

pub(crate) mod sqlite {
    files!("sqlite": TABLE "table.sql", ADOPT "adopt.sql", INDEX "index.sql", CLAIM "claim.sql",
        COMPLETE "complete.sql", FAIL "fail.sql", EXTEND "extend.sql", RESET "reset.sql", GET "get.sql",
        PURGE "purge.sql");
}

/// Every file of a dialect: its name, such as `claim.sql`, and its text. In the order in which a reader wants them.
pub fn files(dialect: Dialect) -> &'static [(&'static str, &'static str)] {
    match dialect {
        Dialect::Postgres => postgres::FILES,
        Dialect::Sqlite => sqlite::FILES,
    }
}

/// The text of one file, such as `claim.sql`.
pub fn file(dialect: Dialect, name: &str) -> Option<&'static str> {
    files(dialect).iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
