//! Sessions as files below one agent's folder:
//!
//! ```text
//! agents/<agent>/sessions/<session>.log.jsonl    the journal
//! agents/<agent>/sessions/sessions.json          index, derived
//! agents/<agent>/context/<session>/agent_state.json   snapshot, derived
//! ```

use super::group_sync::GroupSync;
use super::index::SessionIndex;
use super::journal::{FileWriter, PendingDirSync, check_lines, read_lines};
use super::lock::Lock;
use crate::{
    Disk, ImportOutcome, JournalWriter, LockWait, OpenedSession, Position, SessionSummary,
    Sessions, StoreError, open_dir,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use stead_core::{
    AgentId, Entry, FORMAT_VERSION, JournalLine, LineError, Redactor, SessionId, SessionOrigin,
    SessionStart, SessionState,
};

const JOURNAL_SUFFIX: &str = ".log.jsonl";
/// The minimum interval between writes of the index while runs end in quick succession.
const INDEX_INTERVAL: Duration = Duration::from_millis(250);
/// The interval is also at least this multiple of the time that writing takes, which grows with the
/// number of sessions.
const INDEX_SHARE: u32 = 20;

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
    index: Mutex<PendingIndexWrites>,
}

/// Summaries that are not yet in the index file.
#[derive(Debug, Default)]
struct PendingIndexWrites {
    changes: BTreeMap<SessionId, SessionSummary>,
    /// The earliest time of the next write.
    due: Option<Instant>,
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
            index: Mutex::default(),
        }
    }

    /// Returns the path of the journal of `id`.
    pub fn path(&self, id: &SessionId) -> PathBuf {
        self.sessions.join(format!("{id}{JOURNAL_SUFFIX}"))
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
            let file = match open_journal(&path, OFlags::RDWR | OFlags::APPEND) {
                Ok(file) => Arc::new(file),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                    return Err(StoreError::NotFound(id.clone()));
                }
                Err(cause) => return Err(StoreError::io(path, cause)),
            };
            let lock = Lock::take(file.clone(), &path, id, wait).await?;
            // The file may have been removed while this waited; then the lock protects nothing.
            let removed = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 0);
            if !removed {
                return Ok((file, lock));
            }
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

    fn snapshot(&self, state: &SessionState, position: Position) -> io::Result<()> {
        #[derive(Serialize)]
        struct Snapshot<'a> {
            version: u32,
            position: Position,
            messages: usize,
            #[serde(flatten)]
            state: &'a SessionState,
        }
        let Some(id) = &state.session else {
            return Ok(());
        };
        let dir = self.root.join("context").join(id.as_str());
        make_dirs(&*self.disk, &dir)?;
        let snapshot = Snapshot {
            version: FORMAT_VERSION,
            position,
            messages: state.turns.len(),
            state,
        };
        let text = serde_json::to_vec_pretty(&snapshot)?;
        self.disk.replace(
            open_dir(&dir)?.as_fd(),
            Path::new("agent_state.json"),
            &text,
            0o644,
        )
    }

    fn write_index(&self) -> Result<(), StoreError> {
        let mut unwritten = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if unwritten.changes.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        unwritten.due = Some(begun + INDEX_INTERVAL);
        let changes = std::mem::take(&mut unwritten.changes);
        drop(unwritten);
        let merged = SessionIndex::merge(&self.sessions, &*self.dir()?, &*self.disk, changes);
        let rest = (begun.elapsed() * INDEX_SHARE).max(INDEX_INTERVAL);
        self.index
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .due = Some(begun + rest);
        merged
    }

    fn summarise(&self, id: &SessionId, updated_ms: i64) -> SessionSummary {
        let path = self.path(id);
        let mut state = SessionState::default();
        let folded =
            read_file(&path).and_then(|text| fold(&path, id, &text, &mut state).map(|(at, _)| at));
        match folded {
            Ok(at) => SessionSummary::of(id, &state, at, updated_ms),
            Err(error) => {
                let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
                let at = Position {
                    bytes: size,
                    ..Position::START
                };
                SessionSummary {
                    damage: Some(error.to_string()),
                    ..SessionSummary::of(id, &state, at, updated_ms)
                }
            }
        }
    }

    fn list_blocking(&self) -> Result<Vec<SessionSummary>, StoreError> {
        let entries = match std::fs::read_dir(&self.sessions) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(StoreError::io(&self.sessions, cause)),
        };
        let mut old = SessionIndex::load(&self.sessions);
        let mut new = SessionIndex::default();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let id = name
                .to_str()
                .and_then(|name| name.strip_suffix(JOURNAL_SUFFIX))
                .map(SessionId::new);
            let (Some(Ok(id)), Ok(meta)) = (id, entry.metadata()) else {
                continue;
            };
            let summary = match old.sessions.remove(&id) {
                Some(known)
                    if (known.bytes, known.updated_ms) == (meta.len(), modified_ms(&meta)) =>
                {
                    known
                }
                Some(_) | None => self.summarise(&id, modified_ms(&meta)),
            };
            // A session that is just being created, or whose creation failed.
            if summary.entries == 0 && summary.damage.is_none() {
                continue;
            }
            new.sessions.insert(id, summary);
        }
        if new != SessionIndex::load(&self.sessions) {
            // A read-only folder can be listed too.
            let _ = self
                .dir()
                .and_then(|dir| new.store(&self.sessions, &dir, &*self.disk));
        }
        let mut list: Vec<SessionSummary> = new.sessions.into_values().collect();
        list.sort_by(|a, b| {
            b.updated_ms
                .cmp(&a.updated_ms)
                .then_with(|| b.id.cmp(&a.id))
        });
        Ok(list)
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
                    .replace(dir.as_fd(), name, &text, 0o644)
                    .map_err(failed)?;
                let file = open_journal(&path, OFlags::RDONLY).map_err(failed)?;
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
        self.list_blocking().map(drop)
    }
}

impl Sessions for FileSessions {
    fn create<'a>(
        &'a self,
        id: &'a SessionId,
        from: Option<SessionOrigin>,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>> {
        Box::pin(async move {
            let path = self.path(id);
            let dir = self.dir()?;
            let name = path.file_name().map(Path::new).unwrap_or(Path::new(""));
            let file = self
                .disk
                .create(dir.as_fd(), name, 0o644)
                .map_err(|cause| match cause.kind() {
                    io::ErrorKind::AlreadyExists => StoreError::Exists(id.clone()),
                    _ => StoreError::io(&path, cause),
                })?;
            let file = Arc::new(file);
            let lock = Lock::take(file.clone(), &path, id, LockWait::No).await?;
            // Another process may have started the session between creating and locking the file.
            if file.metadata().map_or(0, |meta| meta.len()) > 0 {
                return Err(StoreError::Exists(id.clone()));
            }
            let newborn = PendingDirSync {
                dir: dir.clone(),
                group: self.created.clone(),
            };
            let mut writer = self
                .writer(path.clone(), file, Position::START, lock)
                .with_pending_dir_sync(newborn);
            let start = Entry::Session(SessionStart::new(id.clone(), self.agent.clone(), from));
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

    fn list(&self) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move { self.list_blocking() })
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
            if let Err(error) = self.snapshot(state, position) {
                tracing::warn!(session = %id, %error, "snapshot not written; it is derived and will be rebuilt");
            }
            let due = {
                let updated_ms =
                    std::fs::metadata(self.path(id)).map_or(0, |meta| modified_ms(&meta));
                let mut unwritten = self.index.lock().unwrap_or_else(PoisonError::into_inner);
                unwritten.changes.insert(
                    id.clone(),
                    SessionSummary::of(id, state, position, updated_ms),
                );
                unwritten.due.is_none_or(|due| Instant::now() >= due)
            };
            if due {
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

fn fold(
    path: &Path,
    id: &SessionId,
    text: &[u8],
    state: &mut SessionState,
) -> Result<(Position, Option<crate::TornTail>), StoreError> {
    read_lines(path, text, |line| {
        check_session_id(path, id, &line)?;
        state
            .apply(line.seq, &line.entry)
            .map_err(|cause| StoreError::Inconsistent {
                path: path.to_owned(),
                cause,
            })
    })
}

/// Returns whether the last line of a journal is the one at `position`.
fn ends_at(file: &File, position: Position) -> bool {
    let end = format!("{}\"}}\n", position.sum);
    let mut bytes = vec![0; end.len()];
    let start = position.bytes.checked_sub(end.len() as u64);
    start.is_some_and(|start| {
        file.read_exact_at(&mut bytes, start).is_ok() && bytes == end.as_bytes()
    })
}

/// Checks that a journal belongs to `id`. A journal under another name is refused, because two
/// sessions would become one.
fn check_session_id(path: &Path, id: &SessionId, line: &JournalLine) -> Result<(), StoreError> {
    match &line.entry {
        Entry::Session(start) if start.session != *id => {
            let cause = LineError::Malformed(format!("it belongs to session {}", start.session));
            Err(StoreError::Damaged {
                path: path.to_owned(),
                line: line.seq,
                cause,
            })
        }
        _ => Ok(()),
    }
}

/// Opens a journal, which must be a regular file, without blocking or following links.
fn open_journal(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("this is not a regular file"))
    }
}

fn read_whole(mut file: &File) -> io::Result<Vec<u8>> {
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut text = Vec::new();
    text.try_reserve_exact(size).map_err(io::Error::other)?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

fn read_file(path: &Path) -> Result<Vec<u8>, StoreError> {
    let read = open_journal(path, OFlags::RDONLY).and_then(|file| read_whole(&file));
    read.map_err(|cause| StoreError::io(path, cause))
}

pub(crate) fn modified_ms(meta: &std::fs::Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    meta.mtime() * 1000 + meta.mtime_nsec() / 1_000_000
}

/// Creates a directory and its parents. Returns those that did not exist.
pub(crate) fn make_dirs(disk: &dyn Disk, path: &Path) -> io::Result<Vec<PathBuf>> {
    match disk.create_dir(CWD, path, 0o755) {
        Ok(()) => Ok(vec![path.to_owned()]),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut made = make_dirs(disk, path.parent().ok_or(error)?)?;
            match disk.create_dir(CWD, path, 0o755) {
                Ok(()) => made.push(path.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            Ok(made)
        }
        Err(error) => Err(error),
    }
}

/// Creates a directory that survives a power failure.
fn make_durable_dir(disk: &dyn Disk, path: &Path) -> io::Result<File> {
    for made in make_dirs(disk, path)? {
        disk.sync(&open_dir(made.parent().unwrap_or(Path::new("/")))?)?;
    }
    open_dir(path)
}
