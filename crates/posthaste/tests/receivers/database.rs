//! The receiver's own database, asked through its command line tool.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{cli_support::posthaste, tools};

/// Where the effects and the ledger are. The effects have no constraint that a team would give them: it would hide a
/// second one.
pub(crate) enum Database {
    /// A throwaway PostgreSQL, stopped when dropped.
    Postgres { url: String, folder: TempDir, statements: TempDir },
    /// A file.
    Sqlite { file: PathBuf, _folder: TempDir, statements: TempDir },
}

impl Database {
    /// A new PostgreSQL that holds the ledger's table and the effects.
    pub(crate) fn postgres(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = tools::free_port(seed).to_string();
        let arguments = ["start".as_ref(), folder.path().as_os_str(), port.as_ref()];
        let url = tools::run(&mut tools::script("postgres.sh", &arguments)).trim().to_owned();
        let database = Self::Postgres { url, folder, statements: statements("postgres") };
        database.run_file("table.sql");
        database.run("CREATE TABLE charges (id BIGSERIAL PRIMARY KEY, event_key TEXT, amount BIGINT)");
        database
    }

    /// A new SQLite file that holds the ledger's table and the effects.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("receiver.db");
        let database = Self::Sqlite { file, _folder: folder, statements: statements("sqlite") };
        database.run("PRAGMA journal_mode = WAL");
        database.run_file("table.sql");
        database.run("CREATE TABLE charges (id INTEGER PRIMARY KEY, event_key TEXT, amount INTEGER)");
        database
    }

    /// Where a receiver finds it.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres { url, .. } => url.clone(),
            Self::Sqlite { file, .. } => file.display().to_string(),
        }
    }

    /// The folder of the ledger's statements.
    pub(crate) fn statements(&self) -> &Path {
        match self {
            Self::Postgres { statements, .. } | Self::Sqlite { statements, .. } => statements.path(),
        }
    }

    /// The command line tool, which stops at the first error and prints rows as `a|b`.
    pub(crate) fn tool(&self) -> Command {
        match self {
            Self::Postgres { url, .. } => {
                let mut psql = Command::new("psql");
                psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url]);
                psql
            }
            Self::Sqlite { file, .. } => {
                let mut sqlite = Command::new("sqlite3");
                sqlite.args(["-batch", "-bail", "-cmd", ".timeout 30000"]).arg(file);
                sqlite
            }
        }
    }

    /// Runs statements, and gives the lines that they print.
    pub(crate) fn run(&self, sql: &str) -> Vec<String> {
        let mut tool = self.tool();
        let output = tools::play(&mut tool, &format!("{sql};"));
        tools::printed(&tool, output).lines().map(str::to_owned).collect()
    }

    fn run_file(&self, name: &str) {
        let text = std::fs::read_to_string(self.statements().join(name));
        self.run(&text.unwrap_or_else(|error| panic!("{name}: {error}")));
    }

    /// Lets the first attempt at each effect whose amount `WHERE amount % 15 = 0` fail.
    pub(crate) fn let_first_attempts_fail(&self) {
        let attempts = "(SELECT attempts FROM webhook_events WHERE event_key = NEW.event_key)";
        match self {
            Self::Postgres { .. } => self.run(&format!(
                "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {attempts} = 1 THEN \
                 RAISE 'declined'; END IF; RETURN NEW; END $$; CREATE TRIGGER fails BEFORE INSERT ON charges \
                 FOR EACH ROW WHEN (NEW.amount % 15 = 0) EXECUTE FUNCTION fails()"
            )),
            Self::Sqlite { .. } => self.run(&format!(
                "CREATE TRIGGER fails BEFORE INSERT ON charges WHEN NEW.amount % 15 = 0 AND {attempts} = 1 \
                 BEGIN SELECT RAISE(ABORT, 'declined'); END"
            )),
        };
    }
}

/// The statements of a dialect, saved as a team saves them.
fn statements(dialect: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["ledger", "sql", "--dialect", dialect, "--dir", "."];
    tools::run(&mut posthaste(folder.path(), &arguments));
    folder
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Self::Postgres { folder, .. } = self {
            let stopped =
                tools::script("postgres.sh", &["stop".as_ref(), folder.path().as_os_str()]).status();
            assert!(stopped.is_ok_and(|status| status.success()) || std::thread::panicking());
        }
    }
}
