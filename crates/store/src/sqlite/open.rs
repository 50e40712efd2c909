//! Opening connections: settings, each read back, and the schema.

use std::path::Path;

use posthaste_core::{Epoch, Timestamp};
use rusqlite::{Connection, OpenFlags, OptionalExtension, types::Value};

use super::{
    fault::Fault,
    options::{Checkpoints, OpenError, SqliteOptions},
};

refinery::embed_migrations!("migrations/sqlite");

/// Marks a file as ours: "psth".
const APPLICATION_ID: i32 = 0x7073_7468;

/// `synchronous = FULL`, as SQLite says it. Less, and a loss of power takes answered work with it.
const SYNCHRONOUS_FULL: &str = "2";

/// Bytes of the write-ahead log that are kept when it starts over.
const JOURNAL_SIZE_LIMIT: &str = "134217728";

/// Opens the file for the first time: makes it, brings its schema up to date, and gives its epoch.
pub(super) fn open_first(options: &SqliteOptions) -> Result<(Connection, Epoch), OpenError> {
    let path = &options.path;
    make_private(path);
    let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    conn.busy_timeout(options.busy_timeout).map_err(OpenError::sqlite(path, "setting a time-out"))?;
    claim_file(&conn, path)?;
    set_up_writer(&conn, options)?;
    migrate(&mut conn, path)?;
    let now = options.clock.now();
    let epoch = create_meta(&conn, now).map_err(OpenError::sqlite(path, "reading `meta`"))?;
    if let Emptied::Busy = empty_log(&conn, options)? {
        tracing::warn!(path = %path.display(), "another program reads the database: its log is not emptied yet");
    }
    Ok((conn, epoch))
}

/// Makes a new file that only this user can read: payloads are nobody else's business. SQLite gives its other files the
/// same mode. If this fails, opening says why.
fn make_private(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt as _;

    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    if let Err(error) = made
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        tracing::debug!(%error, "the store's file could not be made beforehand");
    }
}

/// Opens the file again after a fault, and checks that it is still the one that it was.
pub(super) fn open_again(options: &SqliteOptions, epoch: Epoch) -> Result<Connection, OpenError> {
    let path = &options.path;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.busy_timeout(options.busy_timeout).map_err(OpenError::sqlite(path, "setting a time-out"))?;
    set_up_writer(&conn, options)?;
    let found = read_epoch(&conn).map_err(OpenError::sqlite(path, "reading `meta`"))?;
    let id: i32 =
        pragma(&conn, "application_id").map_err(OpenError::sqlite(path, "reading its application id"))?;
    if found != Some(epoch) || id != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.clone(), found: id });
    }
    if let Emptied::Busy = empty_log(&conn, options)? {
        return Err(OpenError::Busy { path: path.clone() });
    }
    // A disk that is full or read-only can be read: only a commit shows that it works again.
    conn.execute_batch("BEGIN IMMEDIATE; PRAGMA user_version = 0; COMMIT")
        .map_err(OpenError::sqlite(path, "writing to it"))?;
    Ok(conn)
}

/// What emptying the log came to.
enum Emptied {
    Done,
    /// Somebody reads what is in it.
    Busy,
}

/// Moves the log into the database file and begins it anew.
///
/// What an earlier connection left in the log may be there to be read although a sync of it failed: the kernel then
/// takes it for written, and no later sync of the log says otherwise. In the database file it is written and synced
/// afresh, before anything rests on it.
fn empty_log(conn: &Connection, options: &SqliteOptions) -> Result<Emptied, OpenError> {
    if options.checkpoints == Checkpoints::External {
        return Ok(Emptied::Done);
    }
    let busy: i64 = conn
        .query_row(include_str!("sql/checkpoint_truncate.sql"), [], |row| row.get(0))
        .map_err(OpenError::sqlite(&options.path, "moving its log into it"))?;
    Ok(if busy == 0 { Emptied::Done } else { Emptied::Busy })
}

/// Opens a connection that moves the log into the database file, and does nothing else. It syncs as the writer does.
pub(super) fn open_checkpointer(options: &SqliteOptions) -> Result<Connection, Fault> {
    let conn = Connection::open_with_flags(
        &options.path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(std::time::Duration::ZERO)?;
    for setting in ["synchronous = FULL", "wal_autocheckpoint = 0", "mmap_size = 0", "cache_size = -64"] {
        conn.query_row(&format!("PRAGMA {setting}"), [], |_| Ok(())).optional()?;
    }
    Ok(conn)
}

/// Opens a connection that only reads.
pub(super) fn open_reader(options: &SqliteOptions) -> Result<Connection, OpenError> {
    let path = &options.path;
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.busy_timeout(options.busy_timeout).map_err(OpenError::sqlite(path, "setting a time-out"))?;
    for (name, value) in [("query_only", "1"), ("temp_store", "2"), ("mmap_size", "0")] {
        set(&conn, path, name, value, value)?;
    }
    let cache = format!("-{}", options.cache_kib / 4);
    conn.pragma_update(None, "cache_size", &cache).map_err(OpenError::sqlite(path, "setting its cache"))?;
    Ok(conn)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, OpenError> {
    // Each connection stays on one thread.
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(OpenError::sqlite(path, "opening it"))
}

/// Refuses the database of another program before anything is written to it.
fn claim_file(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let doing = || OpenError::sqlite(path, "reading it");
    let found: i32 = pragma(conn, "application_id").map_err(doing())?;
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(doing())?;
    if found == APPLICATION_ID {
        return Ok(());
    }
    if found != 0 || tables != 0 {
        return Err(OpenError::Foreign { path: path.to_owned(), found });
    }
    conn.pragma_update(None, "page_size", 4096).map_err(doing())?;
    conn.pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(OpenError::sqlite(path, "writing to it"))
}

fn set_up_writer(conn: &Connection, options: &SqliteOptions) -> Result<(), OpenError> {
    let path = &options.path;
    let settings = [
        ("journal_mode", "WAL", "wal"),
        ("synchronous", "FULL", SYNCHRONOUS_FULL),
        ("wal_autocheckpoint", "0", "0"),
        ("journal_size_limit", JOURNAL_SIZE_LIMIT, JOURNAL_SIZE_LIMIT),
        ("temp_store", "MEMORY", "2"),
        ("mmap_size", "0", "0"),
        ("foreign_keys", "ON", "1"),
        ("trusted_schema", "OFF", "0"),
    ];
    #[cfg(feature = "faults")]
    let settings = crate::faults::weakened(settings);
    for (name, value, wanted) in settings {
        set(conn, path, name, value, wanted)?;
    }
    let cache = format!("-{}", options.cache_kib);
    conn.pragma_update(None, "cache_size", &cache).map_err(OpenError::sqlite(path, "setting its cache"))?;
    let pages = options.page_limit.pages();
    if pages > 0 {
        // The pragma answers with a row, so it can't be "executed".
        conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
            .map_err(OpenError::sqlite(path, "limiting its size"))?;
    }
    Ok(())
}

/// Sets, and reads back: SQLite ignores what it can't do.
fn set(
    conn: &Connection,
    path: &Path,
    name: &'static str,
    value: &str,
    wanted: &'static str,
) -> Result<(), OpenError> {
    let set = conn.query_row(&format!("PRAGMA {name} = {value}"), [], |_| Ok(())).optional();
    set.map_err(OpenError::sqlite(path, "changing a setting"))?;
    let found = spelled(conn, name).map_err(OpenError::sqlite(path, "reading a setting"))?;
    // A build without memory mapping has no such setting, which is as good.
    if found == wanted || (found.is_empty() && name == "mmap_size") {
        return Ok(());
    }
    Err(OpenError::Pragma { path: path.to_owned(), pragma: name, wanted, found: found.into() })
}

fn spelled(conn: &Connection, name: &str) -> rusqlite::Result<String> {
    let value = conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).optional()?;
    Ok(match value {
        Some(Value::Text(text)) => text,
        Some(Value::Integer(number)) => number.to_string(),
        Some(Value::Null | Value::Real(_) | Value::Blob(_)) | None => String::new(),
    })
}

fn pragma(conn: &Connection, name: &str) -> rusqlite::Result<i32> {
    conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

/// The settings on which durability and speed rest, as a connection has them.
pub(super) fn settings_of(conn: &Connection) -> Result<Vec<(&'static str, String)>, Fault> {
    let names = [
        "journal_mode",
        "synchronous",
        "wal_autocheckpoint",
        "journal_size_limit",
        "page_size",
        "cache_size",
        "temp_store",
        "mmap_size",
        "foreign_keys",
        "busy_timeout",
    ];
    names.into_iter().map(|name| Ok((name, spelled(conn, name)?))).collect()
}

fn migrate(conn: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let failed =
        |source: refinery::Error| OpenError::Migration { path: path.to_owned(), source: source.into() };
    // Grouped, so that a migration and the note that it was applied are one transaction.
    let runner = migrations::runner().set_grouped(true);
    let known = runner.get_migrations().iter().map(refinery::Migration::version).max().unwrap_or(0);
    if has_history(conn).map_err(OpenError::sqlite(path, "reading its schema"))? {
        let found = runner.get_last_applied_migration(conn).map_err(failed)?.map_or(0, |last| last.version());
        if found > known {
            return Err(OpenError::NewerSchema { path: path.to_owned(), found, known });
        }
    }
    runner.run(conn).map_err(failed)?;
    Ok(())
}

fn has_history(conn: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'refinery_schema_history')";
    conn.query_row(sql, [], |row| row.get(0))
}

fn create_meta(conn: &Connection, now: Timestamp) -> rusqlite::Result<Epoch> {
    conn.execute(include_str!("sql/meta_create.sql"), [now.0])?;
    read_epoch(conn)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

fn read_epoch(conn: &Connection) -> rusqlite::Result<Option<Epoch>> {
    conn.query_row(include_str!("sql/meta_read.sql"), [], |row| row.get(0).map(Epoch)).optional()
}
