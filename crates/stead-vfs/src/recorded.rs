//! A file system that records the previous content before each change, for undo.
//!
//! Effects: the clock, randomness, workspace files (writes), the store (writes).

use crate::forward::forward_reads;
use crate::{ContentHash, Expect, FileKind, ReadRange, VPath, Version, Vfs, VfsError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::try_join;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stead_store::{RunKey, StoreError, UndoLog};

/// Larger contents are not recorded: the change is visible in the log, but cannot be undone.
const MAX_IMAGE_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum number of bytes recorded for one operation, and of directory entries it covers.
const MAX_OPERATION_BYTES: u64 = 512 * 1024 * 1024;
const MAX_ENTRIES: usize = 50_000;
/// The size of one record.
const RECORD_BYTES: usize = 4 * 1024 * 1024;
const RECORD_ENTRIES: usize = 1000;
/// The number of attempts of a write without an expectation while others change the file.
const RETRIES: usize = 8;

/// One path that an operation changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path with links resolved.
    pub path: String,
    /// The state before.
    pub before: FileState,
    /// The state after.
    pub after: FileState,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenState", into = "WrittenState")]
pub enum FileState {
    /// Nothing is there.
    Absent,
    /// A directory.
    Directory {
        /// The permission bits, if they are known.
        mode: Option<u32>,
    },
    /// A file.
    File {
        /// The content's hash.
        hash: String,
        /// The permission bits, if the file system keeps them.
        mode: Option<u32>,
    },
    /// A state that cannot be restored, with the reason.
    Unkept(String),
    /// Something whose content is not kept, and which was moved here.
    Moved {
        /// The path that it had.
        from: String,
        /// What it is recognised by.
        identity: String,
    },
}

impl FileState {
    /// Returns the permission bits of a file, if they are known.
    fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } => *mode,
            Self::Absent | Self::Directory { .. } | Self::Unkept(_) | Self::Moved { .. } => None,
        }
    }
}

/// The form of a state in a log. Earlier versions wrote directories without permission bits.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenState {
    Absent,
    Directory,
    DirectoryMode(u32),
    /// A file.
    File {
        /// The content's hash.
        hash: String,
        /// The permission bits, if the file system keeps them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    Unkept(String),
    Moved {
        from: String,
        identity: String,
    },
}

impl From<WrittenState> for FileState {
    fn from(state: WrittenState) -> Self {
        match state {
            WrittenState::Absent => Self::Absent,
            WrittenState::Directory => Self::Directory { mode: None },
            WrittenState::DirectoryMode(mode) => Self::Directory { mode: Some(mode) },
            WrittenState::File { hash, mode } => Self::File { hash, mode },
            WrittenState::Unkept(reason) => Self::Unkept(reason),
            WrittenState::Moved { from, identity } => Self::Moved { from, identity },
        }
    }
}

impl From<FileState> for WrittenState {
    fn from(state: FileState) -> Self {
        match state {
            FileState::Absent => Self::Absent,
            FileState::Directory { mode: None } => Self::Directory,
            FileState::Directory { mode: Some(mode) } => Self::DirectoryMode(mode),
            FileState::File { hash, mode } => Self::File { hash, mode },
            FileState::Unkept(reason) => Self::Unkept(reason),
            FileState::Moved { from, identity } => Self::Moved { from, identity },
        }
    }
}

/// Returns what something is recognised by whose content is not kept, wherever it is moved: a link,
/// or a file by its hash, or else by its size and the time of its change.
pub async fn moved_identity(files: &dyn Vfs, path: &VPath) -> Option<String> {
    let parent = path.parent()?;
    if files.resolve(&parent).await.ok()? != parent {
        return None;
    }
    match files.resolve(path).await {
        Ok(end) if end == *path => {}
        Ok(_) | Err(VfsError::Escapes(_)) => return Some("link".to_owned()),
        Err(_) => return None,
    }
    let stat = files.stat(path).await.ok()?;
    match stat.kind {
        FileKind::File => Some(match stat.hash {
            Some(hash) => hash.to_string(),
            None => format!("{}-{}", stat.size, stat.modified_ms),
        }),
        FileKind::Directory | FileKind::Other => None,
    }
}

/// A line of a run's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeRecord {
    /// Changes that are about to be made.
    Change {
        /// The id of the record.
        id: String,
        /// The paths.
        paths: Vec<FileChange>,
    },
    /// All changes so far were undone.
    Undone,
    /// Changes that were not made after all.
    Void {
        /// The id of the record.
        id: String,
    },
}

/// A file system that records every change, with the previous state, before it is made.
#[derive(Debug)]
pub struct Recorded {
    inner: Arc<dyn Vfs>,
    log: Arc<dyn UndoLog>,
    run: RunKey,
}

/// A content with its hash.
type HashedContent = (String, Bytes);

/// The current state of a path, with its version and, if it can be recorded, its content.
struct CurrentState {
    state: FileState,
    version: Option<Version>,
    content: Option<HashedContent>,
}

impl Recorded {
    /// Returns a file system that records the changes made through it as those of `run`.
    pub fn new(inner: Arc<dyn Vfs>, log: Arc<dyn UndoLog>, run: RunKey) -> Self {
        Self { inner, log, run }
    }

    /// Returns the state of `path`, which has no links in it.
    async fn current_state(&self, path: &VPath) -> Result<CurrentState, VfsError> {
        let stat = match self.inner.stat(path).await {
            Ok(stat) => stat,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => {
                return Ok(CurrentState {
                    state: FileState::Absent,
                    version: None,
                    content: None,
                });
            }
            Err(error) => return Err(error),
        };
        let unkept = |reason: &str| {
            Ok(CurrentState {
                state: FileState::Unkept(reason.to_owned()),
                version: None,
                content: None,
            })
        };
        match stat.kind {
            FileKind::Directory => Ok(CurrentState {
                state: FileState::Directory {
                    mode: stat.mode.map(|mode| mode & 0o777),
                },
                version: None,
                content: None,
            }),
            FileKind::Other => unkept("it is not a regular file"),
            FileKind::File if stat.size > MAX_IMAGE_BYTES => unkept("it is too large to be kept"),
            FileKind::File => {
                let (content, version) = self.inner.read(path, ReadRange::ALL).await?;
                let hash = ContentHash::of_large(path, &content).await?.to_string();
                let was = FileState::File {
                    hash: hash.clone(),
                    mode: stat.mode,
                };
                Ok(CurrentState {
                    state: was,
                    version: Some(version),
                    content: Some((hash, content)),
                })
            }
        }
    }

    /// Returns the directories above `path` that an operation will create.
    async fn missing_parents(&self, path: &VPath) -> Result<Vec<FileChange>, VfsError> {
        let mut missing = Vec::new();
        let mut above = path.parent();
        while let Some(directory) = above.filter(|directory| !directory.is_root()) {
            match self.inner.stat(&directory).await {
                Err(VfsError::NotFound(_)) => missing.push(FileChange {
                    path: directory.as_str().to_owned(),
                    before: FileState::Absent,
                    after: FileState::Directory { mode: None },
                }),
                // Any other problem is reported by the operation itself.
                Ok(_) | Err(_) => break,
            }
            above = directory.parent();
        }
        Ok(missing)
    }

    async fn record(
        &self,
        path: &VPath,
        paths: Vec<FileChange>,
        images: Vec<HashedContent>,
    ) -> Result<String, VfsError> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        self.log(
            path,
            &ChangeRecord::Change {
                id: id.clone(),
                paths,
            },
            images,
        )
        .await?;
        Ok(id)
    }

    async fn log(
        &self,
        path: &VPath,
        record: &ChangeRecord,
        images: Vec<HashedContent>,
    ) -> Result<(), VfsError> {
        let line = serde_json::to_string(record).map_err(|e| VfsError::Io {
            path: path.clone(),
            source: e.into(),
        })?;
        // Without its before-image no change is made.
        self.log
            .record(&self.run, line, images)
            .await
            .map_err(|error| match error {
                StoreError::NoSpace(_) => VfsError::NoSpace(path.clone()),
                StoreError::Unavailable { .. } => VfsError::Unavailable {
                    path: path.clone(),
                    cause: error.to_string(),
                },
                other => VfsError::Io {
                    path: path.clone(),
                    source: std::io::Error::other(other),
                },
            })
    }

    /// Voids records of changes that were not made, and returns `error`.
    async fn void_records<T>(
        &self,
        path: &VPath,
        ids: Vec<String>,
        error: VfsError,
    ) -> Result<T, VfsError> {
        for id in ids {
            self.log(path, &ChangeRecord::Void { id }, Vec::new())
                .await?;
        }
        Err(error)
    }

    /// Returns whether `path` itself is a link.
    async fn is_link(&self, path: &VPath) -> Result<bool, VfsError> {
        let Some(parent) = path.parent() else {
            return Ok(false);
        };
        let own = self.inner.resolve(&parent).await?.join(path.name())?;
        Ok(self.inner.resolve(path).await? != own)
    }

    /// Records that everything at and below `from` is removed, or moved to `to`. Returns the ids of
    /// the records.
    async fn record_tree(&self, from: &VPath, to: Option<&VPath>) -> Result<Vec<String>, VfsError> {
        let mut kept_bytes = 0;
        let mut batch = Batch::default();
        let mut ids = Vec::new();
        let mut entries = vec![from.clone()];
        let is_link = match self.is_link(from).await {
            Err(VfsError::Escapes(_)) => true,
            is_link => is_link?,
        };
        let kind = match self.inner.stat(from).await {
            Ok(stat) => stat.kind,
            // A link that leads nowhere.
            Err(_) if is_link => FileKind::Other,
            Err(error @ (VfsError::Unavailable { .. } | VfsError::Io { .. })) => return Err(error),
            // A path that cannot be had for good is reported by the operation itself.
            Err(_) => return Ok(ids),
        };
        if kind == FileKind::Directory && !is_link {
            let walk = self.inner.walk(from, None, MAX_ENTRIES).await?;
            if walk.truncated {
                let reason = FileState::Unkept(format!("it has more than {MAX_ENTRIES} entries"));
                batch.push(from, to, from, reason, None, None)?;
                return Ok(vec![self.record(from, batch.changes, batch.images).await?]);
            }
            entries.extend(walk.entries.into_iter().map(|(path, _)| path));
        }
        for path in entries {
            let now = match self.is_link(&path).await {
                Ok(false) => self.current_state(&path).await?,
                Ok(true) | Err(VfsError::Escapes(_) | VfsError::NotFound(_)) => CurrentState {
                    state: FileState::Unkept("it is a link".to_owned()),
                    version: None,
                    content: None,
                },
                Err(error) => return Err(error),
            };
            kept_bytes += now
                .content
                .as_ref()
                .map_or(0, |(_, content)| content.len() as u64);
            let (was, content) = if kept_bytes > MAX_OPERATION_BYTES && now.content.is_some() {
                (
                    FileState::Unkept("too much was changed at once to be kept".to_owned()),
                    None,
                )
            } else {
                (now.state, now.content)
            };
            let mut identity = None;
            if let (FileState::Unkept(_), Some(_)) = (&was, to) {
                identity = moved_identity(&*self.inner, &path).await;
            }
            batch.push(from, to, &path, was, content, identity)?;
            if batch.is_full() {
                let Batch {
                    changes, images, ..
                } = std::mem::take(&mut batch);
                ids.push(self.record(from, changes, images).await?);
            }
        }
        if !batch.changes.is_empty() {
            ids.push(self.record(from, batch.changes, batch.images).await?);
        }
        Ok(ids)
    }
}

/// A record being collected.
#[derive(Default)]
struct Batch {
    changes: Vec<FileChange>,
    images: Vec<HashedContent>,
    bytes: usize,
}

impl Batch {
    fn push(
        &mut self,
        from: &VPath,
        to: Option<&VPath>,
        path: &VPath,
        was: FileState,
        content: Option<HashedContent>,
        identity: Option<String>,
    ) -> Result<(), VfsError> {
        if let Some(to) = to {
            let rest = path.as_str().strip_prefix(from.as_str()).unwrap_or("");
            let moved = to.join(rest)?.as_str().to_owned();
            let after = match identity {
                Some(identity) => FileState::Moved {
                    from: path.as_str().to_owned(),
                    identity,
                },
                None => was.clone(),
            };
            self.changes.push(FileChange {
                path: moved,
                before: FileState::Absent,
                after,
            });
        }
        self.changes.push(FileChange {
            path: path.as_str().to_owned(),
            before: was,
            after: FileState::Absent,
        });
        self.bytes += content.as_ref().map_or(0, |(_, content)| content.len());
        self.images.extend(content);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes >= RECORD_BYTES || self.changes.len() >= RECORD_ENTRIES
    }
}

/// Returns what a write must expect so that it replaces exactly the state that was recorded, or `None`
/// if the write cannot succeed.
fn certain_expectation(expect: &Expect, now: &CurrentState) -> Option<Expect> {
    match (expect, &now.state, &now.version) {
        (Expect::Absent, FileState::Absent, _) => Some(Expect::Absent),
        (
            Expect::Absent,
            FileState::Directory { .. }
            | FileState::File { .. }
            | FileState::Unkept(_)
            | FileState::Moved { .. },
            _,
        )
        | (Expect::Any | Expect::Version(_), FileState::Directory { .. }, _)
        | (Expect::Version(_), FileState::Absent, _) => None,
        (Expect::Version(known), _, Some(version)) if known != version => None,
        (Expect::Any, FileState::Absent, _) => Some(Expect::Absent),
        (_, FileState::File { .. }, Some(version)) => Some(Expect::Version(version.clone())),
        (expect, FileState::File { .. } | FileState::Unkept(_) | FileState::Moved { .. }, _) => {
            Some(expect.clone())
        }
    }
}

impl Vfs for Recorded {
    forward_reads!(inner);

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            let target = self.inner.resolve(path).await?;
            let (after, mut now) = try_join!(
                ContentHash::of_large(path, &data),
                self.current_state(&target)
            )?;
            for _ in 0..RETRIES {
                let Some(sure) = certain_expectation(&expect, &now) else {
                    // The write will fail and say why.
                    return self.inner.write(path, data, expect).await;
                };
                let mut changes = match &now.state {
                    FileState::Absent => self.missing_parents(&target).await?,
                    FileState::Directory { .. }
                    | FileState::File { .. }
                    | FileState::Unkept(_)
                    | FileState::Moved { .. } => Vec::new(),
                };
                changes.push(FileChange {
                    path: target.as_str().to_owned(),
                    after: FileState::File {
                        hash: after.to_string(),
                        mode: now.state.mode(),
                    },
                    before: now.state,
                });
                let images = now.content.into_iter().collect();
                let id = self.record(path, changes, images).await?;
                match self.inner.write(path, data.clone(), sure).await {
                    Ok(version) => return Ok(version),
                    Err(VfsError::Changed(_) | VfsError::Exists(_)) if expect == Expect::Any => {
                        self.log(path, &ChangeRecord::Void { id }, Vec::new())
                            .await?;
                        now = self.current_state(&target).await?;
                    }
                    Err(error) => return self.void_records(path, vec![id], error).await,
                }
            }
            Err(VfsError::Changed(path.clone()))
        })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            if path.is_root() {
                return self.inner.remove(path).await;
            }
            let Some(target) = self.own_path(path).await? else {
                return self.inner.remove(path).await;
            };
            let ids = self.record_tree(&target, None).await?;
            match self.inner.remove(path).await {
                Ok(()) => Ok(()),
                Err(error) => self.void_records(path, ids, error).await,
            }
        })
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let (Some(source), Some(target)) =
                (self.own_path(from).await?, self.own_path(to).await?)
            else {
                return self.inner.rename(from, to).await;
            };
            // An impossible move is reported by the operation itself.
            if source.is_root()
                || source.contains(&target)
                || self.inner.stat(&target).await.is_ok()
            {
                return self.inner.rename(from, to).await;
            }
            let mut ids = self.record_tree(&source, Some(&target)).await?;
            let parents = self.missing_parents(&target).await?;
            if !parents.is_empty() {
                ids.push(self.record(to, parents, Vec::new()).await?);
            }
            match self.inner.rename(from, to).await {
                Ok(()) => Ok(()),
                Err(error) => self.void_records(from, ids, error).await,
            }
        })
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let Ok(target) = self.inner.resolve(path).await else {
                return self.inner.mkdir(path).await;
            };
            let mut changes = self.missing_parents(&target).await?;
            if matches!(self.inner.stat(&target).await, Err(VfsError::NotFound(_))) {
                let path = target.as_str().to_owned();
                changes.push(FileChange {
                    path,
                    before: FileState::Absent,
                    after: FileState::Directory { mode: None },
                });
            }
            if changes.is_empty() {
                return self.inner.mkdir(path).await;
            }
            let id = self.record(path, changes, Vec::new()).await?;
            match self.inner.mkdir(path).await {
                Ok(()) => Ok(()),
                Err(error) => self.void_records(path, vec![id], error).await,
            }
        })
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let target = self.inner.resolve(path).await?;
            let now = self.current_state(&target).await?;
            let FileState::File { hash, .. } = &now.state else {
                return self.inner.set_mode(path, mode).await;
            };
            let after = FileState::File {
                hash: hash.clone(),
                mode: Some(mode & 0o777),
            };
            let change = FileChange {
                path: target.as_str().to_owned(),
                before: now.state.clone(),
                after,
            };
            let id = self
                .record(path, vec![change], now.content.into_iter().collect())
                .await?;
            match self.inner.set_mode(path, mode).await {
                Ok(()) => Ok(()),
                Err(error) => self.void_records(path, vec![id], error).await,
            }
        })
    }
}

impl Recorded {
    /// Returns the path of the entry itself: links above it are resolved, the entry is not. `None`
    /// if a parent cannot be resolved.
    async fn own_path(&self, path: &VPath) -> Result<Option<VPath>, VfsError> {
        let Some(parent) = path.parent() else {
            return Ok(Some(path.clone()));
        };
        match self.inner.resolve(&parent).await {
            Ok(parent) => Ok(Some(parent.join(path.name())?)),
            Err(_) => Ok(None),
        }
    }
}
