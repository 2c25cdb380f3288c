//! What is known of the tasks that a session handed to others:
//! `agents/<agent>/tasks/<session>.json`.
//!
//! A map from task to record, with the names that AgentScope gives its fields. Derived, in the
//! sense that the journals of both sessions have all of it; kept, so that one look tells how tasks
//! stand.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{RunId, SessionId, SpendAmount};
use stead_vfs::{Expect, ReadRange, VPath, Version, Vfs, VfsError};

/// Why the records cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskRecordError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// It is not what it should be. It is left alone.
    #[error("{path}: {reason}; repair it, or move it away")]
    Damaged {
        /// The file.
        path: VPath,
        /// What is wrong.
        reason: String,
    },
    /// Others change it all the time.
    #[error("{0} is being changed all the time; try again")]
    Busy(VPath),
}

impl From<TaskRecordError> for String {
    fn from(error: TaskRecordError) -> Self {
        error.to_string()
    }
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRecord {
    /// The task.
    pub task_id: String,
    /// The agent it was handed to.
    pub sub_agent_id: String,
    /// The agent that handed it over.
    pub parent_agent_id: String,
    /// Its session.
    pub parent_session_id: SessionId,
    /// The session in which the work is done.
    pub sub_session_id: SessionId,
    /// What it is called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it is about, in a few words.
    #[serde(default)]
    pub description: String,
    /// How it stands.
    pub status: TaskStatus,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether it waits for a person's decision.
    #[serde(default)]
    pub awaiting_confirm: bool,
    /// Whether it took in words that nobody here vouches for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The run that handed it over.
    pub run: RunId,
    /// What it spent, its own helpers included.
    #[serde(default, skip_serializing_if = "SpendAmount::is_zero")]
    pub spent: SpendAmount,
    /// When it was handed over.
    pub created_at: jiff::Timestamp,
    /// When this was last changed.
    pub last_updated_at: jiff::Timestamp,
    /// What other programs noted.
    #[serde(flatten)]
    pub others: BTreeMap<String, serde_json::Value>,
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskStatus {
    /// It waits for its turn.
    Pending,
    /// It is being worked on, or waits for a person.
    Running,
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing more comes of it.
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// In a word, for models and people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl TaskRecord {
    /// Whether it waits for a person's decision.
    pub fn is_parked(&self) -> bool {
        self.awaiting_confirm && !self.status.is_final()
    }

    /// How it stands, in a word.
    pub fn status_text(&self) -> &'static str {
        if self.is_parked() {
            "parked"
        } else {
            self.status.as_str()
        }
    }
}

/// Tasks that are done and kept on record; older ones leave.
const MAX_FINISHED: usize = 100;
/// Largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The tasks of one session.
#[derive(Debug)]
pub(super) struct TaskRecords {
    files: Arc<dyn Vfs>,
    path: VPath,
    cache: Mutex<CachedTaskRecords>,
    /// Held while the file is written, so that those who wait share the next write.
    write_lock: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct CachedTaskRecords {
    tasks: BTreeMap<String, TaskRecord>,
    version: Option<Version>,
    loaded: bool,
    /// How often it was changed, and how often as of the file.
    changes: u64,
    saved_changes: u64,
}

impl TaskRecords {
    pub(super) fn new(files: Arc<dyn Vfs>, path: VPath) -> Self {
        Self {
            files,
            path,
            cache: Mutex::default(),
            write_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Reads the file, if that was not done yet. One that cannot be read is never written over.
    pub(super) async fn load(&self) -> Result<(), TaskRecordError> {
        if self.lock_cache().loaded {
            return Ok(());
        }
        let (tasks, version) = self.read().await?;
        let mut known = self.lock_cache();
        if !known.loaded {
            *known = CachedTaskRecords {
                tasks,
                version,
                loaded: true,
                ..CachedTaskRecords::default()
            };
        }
        Ok(())
    }

    /// Reads the file again: another process may have worked on a task.
    pub(super) async fn reload(&self) -> Result<(), TaskRecordError> {
        let _alone = self.write_lock.lock().await;
        let (tasks, version) = self.read().await?;
        let mut known = self.lock_cache();
        if known.changes == known.saved_changes {
            (known.tasks, known.version, known.loaded) = (tasks, version, true);
        }
        Ok(())
    }

    async fn read(
        &self,
    ) -> Result<(BTreeMap<String, TaskRecord>, Option<Version>), TaskRecordError> {
        let (data, version) = match self
            .files
            .read(
                &self.path,
                ReadRange {
                    offset: 0,
                    len: MAX_BYTES,
                },
            )
            .await
        {
            Ok(read) => read,
            Err(VfsError::NotFound(_)) => return Ok((BTreeMap::new(), None)),
            Err(error) => return Err(error.into()),
        };
        let damaged = |error: serde_json::Error| TaskRecordError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        Ok((
            serde_json::from_slice(&data).map_err(damaged)?,
            Some(version),
        ))
    }

    pub(super) fn all(&self) -> Vec<TaskRecord> {
        self.lock_cache().tasks.values().cloned().collect()
    }

    pub(super) fn get(&self, task: &str) -> Option<TaskRecord> {
        self.lock_cache().tasks.get(task).cloned()
    }

    /// Changes or adds a record, and sees to it that the file says so.
    pub(super) async fn put(&self, record: TaskRecord) -> Result<(), TaskRecordError> {
        let mine = {
            let mut known = self.lock_cache();
            known.tasks.insert(record.task_id.clone(), record);
            prune_finished(&mut known.tasks);
            known.changes += 1;
            known.changes
        };
        self.save(mine).await
    }

    async fn save(&self, mine: u64) -> Result<(), TaskRecordError> {
        const TRIES: usize = 8;
        let _alone = self.write_lock.lock().await;
        for _ in 0..TRIES {
            let (text, version, upto) = {
                let known = self.lock_cache();
                if known.saved_changes >= mine {
                    return Ok(());
                }
                let text = serde_json::to_vec_pretty(&known.tasks).unwrap_or_default();
                (text, known.version.clone(), known.changes)
            };
            let expect = version.map_or(Expect::Absent, Expect::Version);
            match self.files.write(&self.path, text.into(), expect).await {
                Ok(version) => {
                    let mut known = self.lock_cache();
                    (known.version, known.saved_changes) = (Some(version), upto);
                    return Ok(());
                }
                // Another process worked on a task: what it says of that one is newer.
                Err(VfsError::Changed(_) | VfsError::Exists(_)) => {
                    let (theirs, version) = self.read().await?;
                    let mut known = self.lock_cache();
                    for (id, record) in theirs {
                        let newer = known
                            .tasks
                            .get(&id)
                            .is_none_or(|own| own.last_updated_at < record.last_updated_at);
                        if newer {
                            known.tasks.insert(id, record);
                        }
                    }
                    known.version = version;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(TaskRecordError::Busy(self.path.clone()))
    }

    fn lock_cache(&self) -> MutexGuard<'_, CachedTaskRecords> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps what is done within bounds.
fn prune_finished(tasks: &mut BTreeMap<String, TaskRecord>) {
    let mut done: Vec<(jiff::Timestamp, String)> = tasks
        .values()
        .filter(|record| record.status.is_final())
        .map(|record| (record.last_updated_at, record.task_id.clone()))
        .collect();
    if done.len() <= MAX_FINISHED {
        return;
    }
    done.sort();
    let mut carried = SpendAmount::default();
    let leaving = done.len() - MAX_FINISHED;
    for (_, id) in done.iter().take(leaving) {
        carried += tasks
            .remove(id)
            .map(|record| record.spent)
            .unwrap_or_default();
    }
    // What they spent still counts.
    if let Some(next) = done.get(leaving).and_then(|(_, id)| tasks.get_mut(id)) {
        next.spent += carried;
    }
}
