//! The undo log as files:
//!
//! ```text
//! agents/<agent>/undo/runs/<session>.<run>.jsonl   the changes of a run, one line each
//! agents/<agent>/undo/images/<sha256>              the previous contents
//! ```
//!
//! Effects: the local disk (writes).

use super::{LoggedRun, PreImage, RunKey, UndoLog};
use crate::regular_file::{MAX_STATE_FILE_BYTES, open_regular, read_regular};
use crate::sessions::{make_dirs, modified_ms};
use crate::{Disk, StoreError, open_dir};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use rustix::fs::{AtFlags, CWD, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_core::{AgentId, RunId, SessionId};

const SUFFIX: &str = ".jsonl";
/// Longer writes would block the thread for too long.
const INLINE_WRITE_BYTES: usize = 128 * 1024;

/// An undo log below the agent's folder.
#[derive(Debug, Clone)]
pub struct FileUndoLog {
    runs: PathBuf,
    images: PathBuf,
    disk: Arc<dyn Disk>,
}

impl FileUndoLog {
    /// Returns the undo log of `agent` in `workspace`. Creates nothing until the first change.
    pub fn new(workspace: &Path, agent: &AgentId, disk: Arc<dyn Disk>) -> Self {
        let root = workspace.join("agents").join(agent.as_str()).join("undo");
        Self {
            runs: root.join("runs"),
            images: root.join("images"),
            disk,
        }
    }

    fn log_path(&self, run: &RunKey) -> PathBuf {
        // Neither id can contain a dot.
        self.runs
            .join(format!("{}.{}{SUFFIX}", run.session, run.run))
    }

    fn record_blocking(
        &self,
        run: &RunKey,
        mut line: String,
        images: &[(String, Bytes)],
    ) -> io::Result<()> {
        if !images.is_empty() {
            make_dirs(&*self.disk, &self.images)?;
            let dir = open_dir(&self.images)?;
            for (hash, content) in images {
                let known = rustix::fs::statat(&dir, hash.as_str(), AtFlags::SYMLINK_NOFOLLOW);
                // An image that a power failure left incomplete is written again.
                if known.is_ok_and(|stat| u64::try_from(stat.st_size) == Ok(content.len() as u64)) {
                    continue;
                }
                self.disk
                    .replace(dir.as_fd(), Path::new(hash), content, 0o600)?;
            }
        }
        line.push('\n');
        let path = self.log_path(run);
        let file = match open_append(&path) {
            Ok(file) => {
                // An incomplete line belongs to a change that was never made.
                if let Some(whole) = torn_tail_offset(&file)? {
                    self.disk.set_len(&file, whole)?;
                }
                file
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_dirs(&*self.disk, &self.runs)?;
                self.disk.create(CWD, &path, 0o600)?
            }
            Err(error) => return Err(error),
        };
        self.disk.write_all(&file, line.as_bytes())
    }

    fn runs_blocking(&self) -> io::Result<Vec<LoggedRun>> {
        let mut runs = Vec::new();
        for (name, meta) in entries(&self.runs)? {
            let ids = name
                .strip_suffix(SUFFIX)
                .and_then(|name| name.split_once('.'));
            let Some((session, run)) = ids else { continue };
            let (Ok(session), Ok(run)) = (SessionId::new(session), RunId::new(run)) else {
                continue;
            };
            runs.push(LoggedRun {
                key: RunKey { session, run },
                updated_ms: modified_ms(&meta),
            });
        }
        runs.sort_by(|a, b| (a.updated_ms, &a.key).cmp(&(b.updated_ms, &b.key)));
        Ok(runs)
    }

    fn images_blocking(&self) -> io::Result<Vec<PreImage>> {
        let found = entries(&self.images)?.into_iter();
        Ok(found
            .map(|(hash, meta)| PreImage {
                hash,
                bytes: meta.len(),
                kept_ms: modified_ms(&meta),
            })
            .collect())
    }

    fn remove(&self, path: &Path) -> Result<(), StoreError> {
        match self.disk.remove(CWD, path, AtFlags::empty()) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(path, cause))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl UndoLog for FileUndoLog {
    fn record<'a>(
        &'a self,
        run: &'a RunKey,
        line: String,
        images: Vec<(String, Bytes)>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let bytes: usize = images.iter().map(|(_, content)| content.len()).sum();
            let recorded = if bytes <= INLINE_WRITE_BYTES {
                self.record_blocking(run, line, &images)
            } else {
                let changes = self.clone();
                let run = run.clone();
                let task = tokio::task::spawn_blocking(move || {
                    changes.record_blocking(&run, line, &images)
                });
                task.await
                    .unwrap_or_else(|lost| Err(io::Error::other(lost)))
            };
            recorded.map_err(|cause| StoreError::io(self.log_path(run), cause))
        })
    }

    fn records<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let path = self.log_path(run);
            let text = match read_regular(&path, MAX_STATE_FILE_BYTES) {
                Ok(text) => text,
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(cause) => return Err(StoreError::io(path, cause)),
            };
            // A last line without its end was never acknowledged, so its change was never made.
            let whole = text
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |end| end + 1);
            let text =
                std::str::from_utf8(&text[..whole]).map_err(|cause| StoreError::Corrupt {
                    place: path.display().to_string(),
                    cause: cause.to_string(),
                })?;
            Ok(text.lines().map(str::to_owned).collect())
        })
    }

    fn image<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        Box::pin(async move {
            let path = self.images.join(hash);
            match read_regular(&path, u64::MAX) {
                Ok(content) => Ok(Some(content.into())),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(cause) => Err(StoreError::io(path, cause)),
            }
        })
    }

    fn runs(&self) -> BoxFuture<'_, Result<Vec<LoggedRun>, StoreError>> {
        Box::pin(async move {
            self.runs_blocking()
                .map_err(|cause| StoreError::io(&self.runs, cause))
        })
    }

    fn images(&self) -> BoxFuture<'_, Result<Vec<PreImage>, StoreError>> {
        Box::pin(async move {
            self.images_blocking()
                .map_err(|cause| StoreError::io(&self.images, cause))
        })
    }

    fn delete_run<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.remove(&self.log_path(run)) })
    }

    fn delete_image<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.remove(&self.images.join(hash)) })
    }
}

/// Returns the end of the last complete line of a log, if an incomplete one follows.
fn torn_tail_offset(file: &File) -> io::Result<Option<u64>> {
    let size = file.metadata()?.len();
    let mut last = [0];
    if size == 0 || (file.read_exact_at(&mut last, size - 1).is_ok() && last == *b"\n") {
        return Ok(None);
    }
    let mut text = vec![0; usize::try_from(size).unwrap_or(0)];
    file.read_exact_at(&mut text, 0)?;
    Ok(Some(
        text.iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end as u64 + 1),
    ))
}

fn open_append(path: &Path) -> io::Result<File> {
    open_regular(path, OFlags::RDWR | OFlags::APPEND)
}

/// Returns the regular files of a directory, or none if it does not exist.
fn entries(dir: &Path) -> io::Result<Vec<(String, std::fs::Metadata)>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let named = entries.flatten().filter_map(|entry| {
        Some((
            entry.file_name().into_string().ok()?,
            entry.metadata().ok()?,
        ))
    });
    Ok(named.filter(|(_, meta)| meta.is_file()).collect())
}
