//! The archive in a folder of this machine, or one that is mounted.

use std::{
    fs::{File, OpenOptions, create_dir_all, read, rename},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{Archive, ArchiveError};
use crate::ports::BoxFuture;

/// A folder.
#[derive(Debug)]
pub struct FolderArchive {
    folder: PathBuf,
    place: String,
}

impl FolderArchive {
    /// The archive in `folder`, which is made if it is not there. Blocks.
    ///
    /// Errors: the folder can't be made or written to.
    pub fn open(folder: &Path) -> Result<Self, ArchiveError> {
        let place = format!("file:{}", folder.display());
        let archive = Self { folder: folder.to_owned(), place };
        let probe = folder.join(".writable.tmp");
        create_dir_all(folder)
            .and_then(|()| File::create(&probe).map(drop))
            .and_then(|()| std::fs::remove_file(&probe))
            .map_err(|error| archive.unavailable(&error))?;
        Ok(archive)
    }

    fn unavailable(&self, error: &std::io::Error) -> ArchiveError {
        ArchiveError::Unavailable { place: self.place.clone(), problem: error.to_string() }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result.map_err(|error| self.unavailable(&error)),
            Err(panic) => Err(self.unavailable(&std::io::Error::other(panic))),
        }
    }
}

impl Archive for FolderArchive {
    fn put(&self, name: &str, bytes: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        let (folder, path) = (self.folder.clone(), self.folder.join(name));
        Box::pin(self.blocking(move || put(&folder, &path, &bytes)))
    }

    fn get(&self, name: &str) -> BoxFuture<'_, Result<Option<Bytes>, ArchiveError>> {
        let path = self.folder.join(name);
        Box::pin(self.blocking(move || match read(&path) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }))
    }

    fn place(&self) -> &str {
        &self.place
    }
}

/// Under another name first: whoever reads never sees half a file, nor does a crash leave one under the name.
fn put(folder: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    // Payloads are nobody else's business.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    rename(&temporary, path)?;
    // The name too must survive a loss of power.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_put_is_there_whole_and_for_this_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let archive = FolderArchive::open(&path).unwrap();
        assert_eq!(None, archive.get("one").await.unwrap());
        archive.put("one", Bytes::from_static(b"first")).await.unwrap();
        archive.put("one", Bytes::from_static(b"second")).await.unwrap();
        assert_eq!(Some(Bytes::from_static(b"second")), archive.get("one").await.unwrap());
        let names: Vec<_> =
            std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(["one"], *names);
        assert_eq!(0o600, path.join("one").metadata().unwrap().permissions().mode() & 0o777);
        let taken = path.join("one");
        assert!(matches!(FolderArchive::open(&taken), Err(ArchiveError::Unavailable { .. })), "no folder");
    }
}
