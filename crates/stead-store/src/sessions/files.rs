//! Sessions as files below one agent's folder:
//!
//! ```text
//! agents/<agent>/sessions/<session>.log.jsonl    the journal
//! agents/<agent>/sessions/sessions.jsonl         index, derived
//! agents/<agent>/context/<session>/agent_state.json   snapshot, derived
//! ```
//!
//! Effects: the clock, the local disk (writes).

use super::dirs::{make_durable_dir, modified_ms};
use super::group_sync::GroupSync;
use super::index::SessionIndex;
use super::journal::{FileWriter, PendingDirSync, check_lines};
use super::journal_file::{check_session_id, ends_at, fold, read_file, read_whole};
use super::journal_range::{read_end, read_range};
use super::listing::list_page;
use super::lock::Lock;
use super::long_journal::read_lines;
use super::pending_index::{IndexWrite, PendingIndexWrites};
use super::read_positions::ReadPositions;
use super::snapshot::write_snapshot;
use super::{JournalEnd, PageRequest, SessionPage, journal_name};
use crate::regular_file::open_regular;
use crate::{
    Disk, ImportOutcome, JournalWriter, LockWait, OpenedSession, Position, SessionSummary,
    Sessions, StoreError,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use rustix::fs::{AtFlags, CWD, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use stead_core::{
    AgentId, Entry, JournalLine, LineError, NewSession, Redactor, SessionId, SessionStart,
    SessionState,
};

/// The sessions of one agent as files.
#[derive(Debug)]
pub struct FileSessions {
    agent: AgentId,
    root: PathBuf,
    sessions: PathBuf,
    disk: Arc<dyn Disk>,
    redactor: Redactor,
    /// The open `sessions/` directory, once it exists.
    dir: OnceLock<Arc<File>>,
    created: Arc<GroupSync>,
    index: PendingIndexWrites,
    read_ends: ReadPositions,
}

impl FileSessions {
    /// Returns the sessions of `agent` in `workspace`. Creates nothing until the first write.
    pub fn new(workspace: &Path, agent: AgentId, disk: Arc<dyn Disk>, redactor: Redactor) -> Self {
        let root = workspace.join("agents").join(agent.as_str());
        let sessions = root.join("sessions");
        Self {
            agent,
            root,
            sessions,
            disk,
            redactor,
            dir: OnceLock::new(),
            created: Arc::default(),
            index: PendingIndexWrites::default(),
            read_ends: ReadPositions::default(),
        }
    }

    /// Returns the path of the journal of `id`.
    pub fn path(&self, id: &SessionId) -> PathBuf {
        self.sessions.join(journal_name(id))
    }

    fn dir(&self) -> Result<Arc<File>, StoreError> {
        if let Some(dir) = self.dir.get() {
            return Ok(dir.clone());
        }
        let opened = make_durable_dir(&*self.disk, &self.sessions);
        let dir = Arc::new(opened.map_err(|cause| StoreError::io(&self.sessions, cause))?);
        Ok(self.dir.get_or_init(|| dir).clone())
    }

    /// Opens and locks a journal, and checks that the locked file is the one at the path.
    async fn lock(&self, id: &SessionId, wait: LockWait) -> Result<(Arc<File>, Lock), StoreError> {
        let path = self.path(id);
        loop {
            let file = match open_regular(&path, OFlags::RDWR | OFlags::APPEND) {
                Ok(file) => Arc::new(file),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                    return Err(StoreError::NotFound(id.clone()));
                }
                Err(cause) => return Err(StoreError::io(path, cause)),
            };
            let lock = Lock::take(file.clone(), &path, id, wait).await?;
            // The file may have been removed while this waited; then the lock protects nothing.
            if !is_removed(&file) {
                return Ok((file, lock));
            }
        }
    }

    /// Opens a journal for reading. Returns `None` if there is none.
    fn open_existing(&self, id: &SessionId) -> Result<Option<File>, StoreError> {
        let path = self.path(id);
        match open_regular(&path, OFlags::RDONLY) {
            Ok(file) => Ok(Some(file)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StoreError::io(path, cause)),
        }
    }

    fn writer(&self, path: PathBuf, file: Arc<File>, at: Position, lock: Lock) -> FileWriter {
        FileWriter::new(
            path,
            file,
            self.disk.clone(),
            self.redactor.clone(),
            at,
            lock,
        )
    }

    fn write_index(&self) -> Result<(), StoreError> {
        self.index
            .flush(|changes| self.append_to_index(&changes.into_values().collect::<Vec<_>>()))
    }

    fn append_to_index(&self, changes: &[SessionSummary]) -> Result<(), StoreError> {
        SessionIndex::append(&self.sessions, &*self.dir()?, &*self.disk, changes)
    }

    fn summarise(&self, id: &SessionId, updated_ms: i64) -> SessionSummary {
        let path = self.path(id);
        let mut state = SessionState::default();
        let folded =
            read_file(&path).and_then(|text| fold(&path, id, &text, &mut state).map(|(at, _)| at));
        let folded = folded.and_then(|at| self.check_not_emptied(id, at));
        match folded {
            Ok(at) => SessionSummary::of(id, &state, at, updated_ms),
            Err(error) => {
                let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
                let at = Position {
                    bytes: size,
                    ..Position::START
                };
                let known = SessionIndex::load(&self.sessions);
                let known = known.lines().get(id).map_or(0, |known| known.entries);
                let summary = SessionSummary::of(id, &state, at, updated_ms);
                SessionSummary {
                    damage: Some(error.to_string()),
                    // What was there stays known as long as the damage is.
                    entries: known.max(summary.entries),
                    ..summary
                }
            }
        }
    }

    /// Returns an error if a journal without a line had some, as far as the index knows.
    fn check_not_emptied(&self, id: &SessionId, at: Position) -> Result<Position, StoreError> {
        if at.seq > 0 {
            return Ok(at);
        }
        let index = SessionIndex::load(&self.sessions);
        match index.lines().get(id).map_or(0, |known| known.entries) {
            0 => Ok(at),
            known => Err(StoreError::Damaged {
                path: self.path(id),
                line: 1,
                cause: LineError::Malformed(format!(
                    "the journal is empty, but it had {known} entries"
                )),
            }),
        }
    }

    async fn import_now(
        &self,
        id: &SessionId,
        lines: &[Bytes],
    ) -> Result<ImportOutcome, StoreError> {
        let path = self.path(id);
        check_lines(&path, id, lines)?;
        let failed = |cause| StoreError::io(&path, cause);
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let (file, _lock) = match self.lock(id, LockWait::No).await {
            Ok(locked) => locked,
            Err(StoreError::NotFound(_)) => {
                // The file appears complete, so that no reader sees a part of it.
                let dir = self.dir()?;
                let name = path.file_name().map(Path::new).unwrap_or(Path::new(""));
                self.disk
                    .replace(dir.as_fd(), name, &text, 0o600)
                    .map_err(failed)?;
                let file = open_regular(&path, OFlags::RDONLY).map_err(failed)?;
                self.disk
                    .sync(&file)
                    .and_then(|()| self.disk.sync(&dir))
                    .map_err(failed)?;
                return Ok(ImportOutcome::New);
            }
            Err(error) => return Err(error),
        };
        let mut known = read_whole(&file).map_err(failed)?;
        let (end, torn) = fold(&path, id, &known, &mut SessionState::default())?;
        if torn.is_some() {
            self.disk.set_len(&file, end.bytes).map_err(failed)?;
            known.truncate(end.bytes as usize);
        }
        if known.starts_with(&text) {
            return Ok(ImportOutcome::Same);
        }
        let Some(rest) = text.strip_prefix(known.as_slice()) else {
            return Err(StoreError::Exists(id.clone()));
        };
        self.disk
            .write_all(&file, rest)
            .and_then(|()| self.disk.sync(&file))
            .map_err(failed)?;
        Ok(ImportOutcome::Extended)
    }

    fn remove_blocking(&self, id: &SessionId) -> Result<(), StoreError> {
        let dir = self.dir()?;
        let path = self.path(id);
        let name = path.file_name().map(Path::new).unwrap_or(Path::new(""));
        self.disk
            .remove(dir.as_fd(), name, AtFlags::empty())
            .and_then(|()| self.disk.sync(&dir))
            .map_err(|cause| StoreError::io(&path, cause))?;
        let context = self.root.join("context").join(id.as_str());
        for file in [
            context.join("agent_state.json"),
            self.root.join("tasks").join(format!("{id}.json")),
        ] {
            let _ = self.disk.remove(CWD, &file, AtFlags::empty());
        }
        let _ = self.disk.remove(CWD, &context, AtFlags::REMOVEDIR);
        Ok(())
    }
}

/// Whether a file has no name any more.
fn is_removed(file: &File) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_nlink == 0)
}

impl Sessions for FileSessions {
    fn create<'a>(
        &'a self,
        id: &'a SessionId,
        new: NewSession,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>> {
        Box::pin(async move {
            let path = self.path(id);
            let dir = self.dir()?;
            let name = path.file_name().map(Path::new).unwrap_or(Path::new(""));
            let file = self
                .disk
                .create(dir.as_fd(), name, 0o600)
                .map_err(|cause| match cause.kind() {
                    io::ErrorKind::AlreadyExists => StoreError::Exists(id.clone()),
                    _ => StoreError::io(&path, cause),
                })?;
            let file = Arc::new(file);
            let lock = Lock::take(file.clone(), &path, id, LockWait::No).await?;
            // Another process may have started the session between creating and locking the file,
            // or found it empty and removed it: what is written to a removed file is lost.
            if is_removed(&file) || file.metadata().map_or(0, |meta| meta.len()) > 0 {
                return Err(StoreError::Exists(id.clone()));
            }
            let pending_dir_sync = PendingDirSync {
                dir: dir.clone(),
                group: self.created.clone(),
            };
            let mut writer = self
                .writer(path.clone(), file, Position::START, lock)
                .with_pending_dir_sync(pending_dir_sync);
            let start = Entry::Session(SessionStart::new(id.clone(), self.agent.clone(), new));
            let lines = writer.append(vec![start]).await.inspect_err(|_| {
                // A session whose creation was not acknowledged must not remain as an empty one.
                let _ = self.disk.remove(dir.as_fd(), name, AtFlags::empty());
            })?;
            let mut state = SessionState::default();
            for line in lines {
                state
                    .apply(line.seq, &line.entry)
                    .map_err(|cause| StoreError::Inconsistent {
                        path: path.clone(),
                        cause,
                    })?;
            }
            Ok(OpenedSession {
                state: Some(state),
                writer: Box::new(writer),
                torn: None,
            })
        })
    }

    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        known: Option<Position>,
        wait: LockWait,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>> {
        Box::pin(async move {
            let path = self.path(id);
            let (file, lock) = self.lock(id, wait).await?;
            let size = file
                .metadata()
                .map_err(|cause| StoreError::io(&path, cause))?
                .len();
            if let Some(at) = known.filter(|at| at.bytes == size && ends_at(&file, *at)) {
                let writer = self.writer(path, file, at, lock);
                return Ok(OpenedSession {
                    state: None,
                    writer: Box::new(writer),
                    torn: None,
                });
            }
            let text = read_whole(&file).map_err(|cause| StoreError::io(&path, cause))?;
            let mut state = SessionState::default();
            let (at, torn) = fold(&path, id, &text, &mut state)?;
            let at = self.check_not_emptied(id, at)?;
            if at.seq == 0 {
                // The first line is missing: nothing was acknowledged, so the session does not
                // exist.
                let removed = self.disk.remove(CWD, &path, AtFlags::empty());
                removed.map_err(|cause| StoreError::io(&path, cause))?;
                return Err(StoreError::NotFound(id.clone()));
            }
            let writer = self.writer(path, file, at, lock);
            if torn.is_some() {
                writer.truncate_torn()?;
            }
            Ok(OpenedSession {
                state: Some(state),
                writer: Box::new(writer),
                torn,
            })
        })
    }

    fn read<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Vec<JournalLine>, StoreError>> {
        Box::pin(async move {
            let path = self.path(id);
            if !path.exists() {
                return Err(StoreError::NotFound(id.clone()));
            }
            let text = read_file(&path)?;
            let mut lines = Vec::new();
            read_lines(&path, &text, |line| {
                check_session_id(&path, id, &line)?;
                lines.push(line);
                Ok(())
            })?;
            Ok(lines)
        })
    }

    fn read_from<'a>(
        &'a self,
        id: &'a SessionId,
        from_seq: u64,
        limit_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<JournalLine>, StoreError>> {
        Box::pin(async move {
            let path = self.path(id);
            let file = self
                .open_existing(id)?
                .ok_or_else(|| StoreError::NotFound(id.clone()))?;
            let known = self.read_ends.get(id);
            let from = from_seq.max(1);
            let range = read_range((&path, &file), id, from, limit_bytes, known)?;
            self.read_ends.set(id, range.end);
            Ok(range.lines)
        })
    }

    fn tail<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<JournalEnd>, StoreError>> {
        Box::pin(async move {
            let Some(file) = self.open_existing(id)? else {
                return Ok(None);
            };
            read_end(&file).map_err(|cause| StoreError::io(self.path(id), cause))
        })
    }

    fn list(&self, page: PageRequest) -> BoxFuture<'_, Result<SessionPage, StoreError>> {
        Box::pin(async move {
            let listed = list_page(&self.sessions, &page, |id, updated_ms| {
                self.summarise(id, updated_ms)
            })?;
            if !listed.derived.is_empty() {
                // A read-only folder can be listed too.
                let _ = self.append_to_index(&listed.derived);
            }
            Ok(listed.page)
        })
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (_file, _lock) = self.lock(id, LockWait::No).await?;
            self.remove_blocking(id)
        })
    }

    fn export<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>> {
        Box::pin(async move {
            let path = self.path(id);
            if !path.exists() {
                return Err(StoreError::NotFound(id.clone()));
            }
            let text = Bytes::from(read_file(&path)?);
            let (end, _torn) = fold(&path, id, &text, &mut SessionState::default())?;
            let whole = text.slice(..end.bytes as usize);
            Ok(whole
                .split_inclusive(|&byte| byte == b'\n')
                .map(|line| whole.slice_ref(&line[..line.len() - 1]))
                .collect())
        })
    }

    fn import<'a>(
        &'a self,
        id: &'a SessionId,
        lines: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<ImportOutcome, StoreError>> {
        Box::pin(async move { self.import_now(id, &lines).await })
    }

    fn update_derived<'a>(
        &'a self,
        state: &'a SessionState,
        position: Position,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(id) = &state.session else { return };
            if let Err(error) = write_snapshot(&*self.disk, &self.root, state, position) {
                tracing::warn!(session = %id, %error, "snapshot not written; it is derived and will be rebuilt");
            }
            let updated_ms = std::fs::metadata(self.path(id)).map_or(0, |meta| modified_ms(&meta));
            let summary = SessionSummary::of(id, state, position, updated_ms);
            if self.index.add(id.clone(), summary) == IndexWrite::Due {
                self.flush().await;
            }
        })
    }

    fn locate(&self, id: &SessionId) -> String {
        self.path(id).display().to_string()
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.write_index() {
                tracing::warn!(%error, "session index not written; it is derived and will be rebuilt");
            }
        })
    }
}
