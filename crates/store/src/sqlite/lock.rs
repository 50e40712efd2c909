//! One process a file. SQLite's own locks allow many writers; our single writer, its caches and the store's time do
//! not.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use super::options::OpenError;

/// Held as long as the store is open; the operating system frees it with the process.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock that stands beside `database`, and leaves this process' number in it for whoever comes next.
    pub(super) fn take(database: &Path) -> Result<Self, OpenError> {
        let path = lock_path(database);
        let error = |source| OpenError::File { path: path.clone(), source };
        // Not truncated: whoever holds it has written his number.
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(error)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Unreadable is as good as empty: it is only a hint.
                let _ = file.read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "(unknown)" } else { holder.trim() };
                return Err(OpenError::InUse { path: database.to_owned(), holder: holder.into() });
            }
            Err(TryLockError::Error(source)) => return Err(error(source)),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(error)?;
        Ok(Self { _file: file })
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

/// The file's one true name, so that two links to it share a lock.
pub(super) fn true_path(path: &Path) -> Result<PathBuf, OpenError> {
    let error = |source| OpenError::File { path: path.to_owned(), source };
    if path.exists() {
        return path.canonicalize().map_err(error);
    }
    let name = path.file_name().ok_or_else(|| error(std::io::ErrorKind::InvalidInput.into()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    Ok(folder.canonicalize().map_err(error)?.join(name))
}
