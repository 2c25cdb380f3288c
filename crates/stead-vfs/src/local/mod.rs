//! The local backend: a directory of the local disk as a file system.
//!
//! Effects: the clock, randomness, the local disk (writes).

mod attributes;
mod dir_lock;
mod error;
mod find;
mod first_results;
mod ignores;
mod root;
mod sweep;
mod walk;
mod write;

use crate::lines::{self, BLOCK_BYTES, LineIndex, LineRange, LineScan, LineWindow};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search,
};
use crate::{DirEntry, Expect, FileKind, ReadRange, Stat, VPath, Version, Vfs, VfsError};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use root::Root;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use stead_store::{Disk, open_dir};

/// The number of locks that all directories share; two of them rarely collide.
const WRITE_LOCKS: usize = 64;
/// Files up to this size are read on the calling thread.
const SMALL_BYTES: u64 = 128 * 1024;
/// Directories up to this size, one block of most disks, are listed on the calling thread.
const SMALL_DIRECTORY_BYTES: u64 = 4096;

/// A directory of the local disk that no operation leaves: links inside it are followed, links out
/// of it are refused, even ones that appear while an operation runs.
///
/// A version consists of size, inode and the change times of content and inode. Every write creates
/// a new file that is renamed into place, so hard links are separated. Mode bits stay, and so do
/// owner, group and extended attributes if the process may set them. FIFOs, devices and sockets are never opened for reading or writing.
/// Comparing a version and replacing the file is one step also between processes, by a lock on the
/// directory (on disks that have such locks).
#[derive(Debug, Clone)]
pub struct LocalVfs(Arc<LocalInner>);

#[derive(Debug)]
struct LocalInner {
    root: Root,
    disk: Arc<dyn Disk>,
    locks: [Mutex<()>; WRITE_LOCKS],
    index: LineIndex,
}

impl LocalVfs {
    /// Opens the directory `root`, which stays open even if it is moved. Changes go through `disk`.
    pub fn open(root: &Path, disk: Arc<dyn Disk>) -> Result<Self, VfsError> {
        let opened = open_dir(root).map_err(|e| error::at(&VPath::root(), e))?;
        let locks = std::array::from_fn(|_| Mutex::default());
        Ok(Self(Arc::new(LocalInner {
            root: Root(opened),
            disk,
            locks,
            index: LineIndex::default(),
        })))
    }

    /// Runs `work` on the calling thread: it takes microseconds, handing it to another thread takes
    /// tens of them.
    fn run_inline<'a, T: Send + 'a>(
        &'a self,
        path: &'a VPath,
        work: impl FnOnce(&LocalInner, &VPath) -> Result<T, VfsError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, VfsError>> {
        Box::pin(async move { work(&self.0, path) })
    }

    /// Opens a file and reads it: on the calling thread if it is small, on a blocking thread
    /// otherwise.
    fn with_open_file<'a, T: Send + 'static>(
        &'a self,
        path: &'a VPath,
        read: impl FnOnce(&LocalInner, &VPath, File, rustix::fs::Stat) -> Result<T, VfsError>
        + Send
        + 'static,
    ) -> BoxFuture<'a, Result<T, VfsError>> {
        match self.0.root.open_file(path) {
            Err(error) => Box::pin(async { Err(error) }),
            Ok((file, stat)) if root::size(&stat) <= SMALL_BYTES => {
                self.run_inline(path, move |local, path| read(local, path, file, stat))
            }
            Ok((file, stat)) => {
                self.run_blocking(path, move |local, path| read(local, path, file, stat))
            }
        }
    }

    /// Runs `work` on a blocking thread.
    fn run_blocking<'a, T: Send + 'static>(
        &self,
        path: &'a VPath,
        work: impl FnOnce(&LocalInner, &VPath) -> Result<T, VfsError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, VfsError>> {
        let local = Arc::clone(&self.0);
        let owned = path.clone();
        Box::pin(async move {
            let task = tokio::task::spawn_blocking(move || work(&local, &owned));
            task.await
                .unwrap_or_else(|e| Err(error::task_failed(path, e)))
        })
    }
}

impl Vfs for LocalVfs {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        self.run_inline(path, LocalInner::stat)
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        match self.0.open_dir(path) {
            Err(error) => Box::pin(async { Err(error) }),
            Ok((dir, size)) if size <= SMALL_DIRECTORY_BYTES => {
                self.run_inline(path, move |local, path| local.list(path, &dir))
            }
            Ok((dir, _)) => self.run_blocking(path, move |local, path| local.list(path, &dir)),
        }
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        self.with_open_file(path, move |_, path, file, stat| {
            read(path, file, &stat, range)
        })
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        self.with_open_file(path, move |local, path, file, stat| {
            local.read_lines(path, &file, &stat, range)
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        self.run_blocking(path, move |local, path| {
            let temporary = local.create_temp(path, &expect)?;
            temporary.push(&data).map_err(|e| error::at(path, e))?;
            temporary.publish(local, path, &expect)
        })
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        mut source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            let create = |local: &LocalInner, path: &VPath| local.create_temp(path, &Expect::Any);
            let mut begun = self.run_blocking(path, create).await?;
            while let Some(piece) = source.next().await {
                let push = move |_: &LocalInner, path: &VPath| {
                    begun
                        .push(&piece)
                        .map(|()| begun)
                        .map_err(|e| error::at(path, e))
                };
                begun = self.run_blocking(path, push).await?;
            }
            self.run_blocking(path, move |local, path| {
                begun.publish(local, path, &Expect::Any)
            })
            .await
        })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        self.run_blocking(path, LocalInner::remove)
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        let to = to.clone();
        self.run_blocking(from, move |local, from| local.rename(from, &to))
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        self.run_blocking(path, LocalInner::mkdir)
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        self.run_blocking(path, move |local, path| local.set_mode(path, mode))
    }

    fn set_directory_mode<'a>(
        &'a self,
        path: &'a VPath,
        mode: u32,
    ) -> BoxFuture<'a, Result<(), VfsError>> {
        self.run_blocking(path, move |local, path| {
            local.set_directory_mode(path, mode)
        })
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        self.run_inline(path, |local, path| local.root.resolve(path))
    }

    fn search(&self) -> &dyn Search {
        self
    }
}

impl Search for LocalVfs {
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>> {
        self.search_blocking(bounds, move |local, bounds| local.glob(&query, bounds))
    }

    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>> {
        self.search_blocking(bounds, move |local, bounds| local.grep(&query, bounds))
    }
}

impl LocalVfs {
    /// Runs a search on a blocking thread. A search that is no longer awaited ends soon.
    fn search_blocking<T: Send + 'static>(
        &self,
        mut bounds: Bounds,
        work: impl FnOnce(&LocalInner, &Bounds) -> Result<T, FileSearchError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, FileSearchError>> {
        let local = Arc::clone(&self.0);
        Box::pin(async move {
            bounds.cancel = bounds.cancel.child_token();
            let _dropped = bounds.cancel.clone().drop_guard();
            let task = tokio::task::spawn_blocking(move || work(&local, &bounds));
            task.await
                .unwrap_or_else(|e| Err(error::task_failed(&VPath::root(), e).into()))
        })
    }
}

impl LocalInner {
    fn stat(&self, path: &VPath) -> Result<Stat, VfsError> {
        let stat = self
            .root
            .stat(Path::new(path.as_str()))
            .map_err(|e| error::at(path, e))?;
        Ok(root::to_stat(&stat))
    }

    /// Opens a directory and returns the size of its own data, which grows with its entries.
    fn open_dir(&self, path: &VPath) -> Result<(File, u64), VfsError> {
        let dir = self
            .root
            .open_dir(Path::new(path.as_str()))
            .map_err(|e| error::at(path, e))?;
        let stat = rustix::fs::fstat(&dir).map_err(|e| error::at(path, e))?;
        Ok((dir, u64::try_from(stat.st_size).unwrap_or(0)))
    }

    fn list(&self, path: &VPath, dir: &File) -> Result<Vec<DirEntry>, VfsError> {
        let text = Path::new(path.as_str());
        let names = write::names(dir).map_err(|e| error::at(path, e))?;
        let names = names.iter().filter(|name| !write::is_temporary(name));
        let mut entries: Vec<DirEntry> = names
            .filter_map(|name| self.entry(dir, text, name))
            .collect();
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Returns one entry of an open directory, or `None` if it was removed meanwhile.
    fn entry(&self, dir: &File, path: &Path, name: &OsStr) -> Option<DirEntry> {
        let own = rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_link =
            rustix::fs::FileType::from_raw_mode(own.st_mode) == rustix::fs::FileType::Symlink;
        let stat = if is_link {
            self.root.stat(&path.join(name)).unwrap_or(own)
        } else {
            own
        };
        let usable = name
            .to_str()
            .is_some_and(|name| !name.chars().any(char::is_control));
        Some(DirEntry {
            // A name must not forge a line of a listing or send control sequences to a terminal.
            name: name.to_string_lossy().replace(char::is_control, "\u{fffd}"),
            kind: if usable {
                root::kind(&stat)
            } else {
                FileKind::Other
            },
            size: root::size(&stat),
            modified_ms: root::modified_ms(&stat),
            link: is_link,
            mode: Some(stat.st_mode & 0o7777),
            hash: None,
        })
    }

    fn set_mode(&self, path: &VPath, mode: u32) -> Result<(), VfsError> {
        let (file, _) = self.root.open_file(path)?;
        self.disk
            .set_mode(&file, mode & 0o777)
            .map_err(|e| error::at(path, e))
    }

    fn set_directory_mode(&self, path: &VPath, mode: u32) -> Result<(), VfsError> {
        let (dir, _) = self.open_dir(path)?;
        self.disk
            .set_mode(&dir, mode & 0o777)
            .map_err(|e| error::at(path, e))
    }

    fn read_lines(
        &self,
        path: &VPath,
        file: &File,
        stat: &rustix::fs::Stat,
        range: LineRange,
    ) -> Result<LineWindow, VfsError> {
        let failed = |e| error::at(path, e);
        let size = root::size(stat);
        let version = root::version(stat);
        let known = self.index.get(path, &version);
        let mut block = vec![0; size.min(BLOCK_BYTES) as usize];
        if known.is_none() {
            let head = fill(file, &mut block, 0).map_err(failed)?;
            if lines::is_binary(head) {
                return Ok(LineWindow {
                    lines: Vec::new(),
                    total: None,
                    binary: true,
                    size,
                    version,
                });
            }
        }
        let mut scan = LineScan::new(range, size, known.as_deref().cloned().unwrap_or_default());
        while let Some(offset) = scan.offset() {
            scan.push(fill(file, &mut block, offset).map_err(failed)?);
        }
        let (lines, checkpoints) = scan.finish(version);
        self.index.put(path, &lines.version, checkpoints);
        Ok(lines)
    }
}

fn read(
    path: &VPath,
    mut file: File,
    stat: &rustix::fs::Stat,
    range: ReadRange,
) -> Result<(Bytes, Version), VfsError> {
    let failed = |e| error::at(path, e);
    let len = range.len.min(root::size(stat).saturating_sub(range.offset));
    let mut data = Vec::new();
    let room = usize::try_from(len).unwrap_or(usize::MAX);
    data.try_reserve_exact(room)
        .map_err(|_| VfsError::TooLarge {
            path: path.clone(),
            size: len,
            limit: isize::MAX as u64,
        })?;
    if range.offset > 0 {
        file.seek(SeekFrom::Start(range.offset)).map_err(failed)?;
    }
    file.take(len).read_to_end(&mut data).map_err(failed)?;
    Ok((data.into(), root::version(stat)))
}

/// Reads as much of `block` as the file has at `offset`.
fn fill<'a>(file: &File, block: &'a mut [u8], offset: u64) -> std::io::Result<&'a [u8]> {
    let mut len = 0;
    while len < block.len() {
        match file.read_at(&mut block[len..], offset + len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(&block[..len])
}
