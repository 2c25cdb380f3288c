//! The records of the tasks that a session delegated: `agents/<agent>/tasks/<session>.json`.
//!
//! The file is a map from task id to record, with the field names of AgentScope. Everything in it
//! can be derived from the journals of both sessions; the file makes the state of tasks quick to
//! look up.
//!
//! Effects: workspace files (writes).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{RunId, SessionId, SpendAmount, TaintOrigin, TaintOrigins};
use stead_vfs::{Expect, ReadRange, VPath, Version, Vfs, VfsError};

/// Why the records of tasks cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskRecordError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// The file cannot be parsed. It is not changed.
    #[error("{path}: {reason}; repair it, or move it away")]
    Damaged {
        /// The file.
        path: VPath,
        /// What is wrong with it.
        reason: String,
    },
    /// Other processes changed the file at every attempt to write it.
    #[error("{0} is being changed all the time; try again")]
    Busy(VPath),
}

impl From<TaskRecordError> for String {
    fn from(error: TaskRecordError) -> Self {
        error.to_string()
    }
}

/// The record of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRecord {
    /// The id of the task.
    pub task_id: String,
    /// The agent that works on it.
    pub sub_agent_id: String,
    /// The agent that delegated it.
    pub parent_agent_id: String,
    /// The session that delegated it.
    pub parent_session_id: SessionId,
    /// The session of the subagent.
    pub sub_session_id: SessionId,
    /// The label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A short description.
    #[serde(default)]
    pub description: String,
    /// The status.
    pub status: TaskStatus,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The reason why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether it waits for a person's decision.
    #[serde(default)]
    pub awaiting_confirm: bool,
    /// Whether it took in untrusted content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Where that content comes from, as far as it is known.
    #[serde(default, skip_serializing_if = "TaintOrigins::is_empty")]
    pub taint: TaintOrigins,
    /// The run that delegated it.
    pub run: RunId,
    /// What it spent, including its own subagents.
    #[serde(default, skip_serializing_if = "SpendAmount::is_zero")]
    pub spent: SpendAmount,
    /// The time at which it was delegated.
    pub created_at: jiff::Timestamp,
    /// The time of the last change.
    pub last_updated_at: jiff::Timestamp,
    /// Fields that other programs added.
    #[serde(flatten)]
    pub others: BTreeMap<String, serde_json::Value>,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskStatus {
    /// It has not started.
    Pending,
    /// It runs, or waits for a person.
    Running,
    /// It completed.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Whether the task has ended.
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Returns the name of the status.
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
    /// Returns the origins of untrusted content in the result: the session of the subagent, and
    /// where that took it in.
    pub(crate) fn result_taint(&self) -> Vec<TaintOrigin> {
        let session = TaintOrigin::Session {
            id: self.sub_session_id.clone(),
        };
        match self.untrusted {
            true => std::iter::once(session)
                .chain(self.taint.named().iter().cloned())
                .collect(),
            false => Vec::new(),
        }
    }

    /// Whether it waits for a person's decision.
    pub fn is_parked(&self) -> bool {
        self.awaiting_confirm && !self.status.is_final()
    }

    /// Returns the name of the status, or "parked" if the task waits for a person.
    pub fn status_text(&self) -> &'static str {
        if self.is_parked() {
            "parked"
        } else {
            self.status.as_str()
        }
    }
}

/// The most ended tasks that are kept; the oldest are removed.
const MAX_FINISHED: usize = 100;
/// The size of the largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The records of the tasks of one session.
#[derive(Debug)]
pub(super) struct TaskRecords {
    files: Arc<dyn Vfs>,
    path: VPath,
    cache: Mutex<CachedTaskRecords>,
    /// Held while the file is written, so that changes made meanwhile share the next write.
    write_lock: tokio::sync::Mutex<()>,
}

/// The content of the file, and changes that were not written yet.
#[derive(Debug, Default)]
struct CachedTaskRecords {
    tasks: BTreeMap<String, TaskRecord>,
    version: Option<Version>,
    loaded: bool,
    /// The number of changes, and of those that the file has.
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

    /// Reads the file unless it was read before. A file that cannot be read is never overwritten.
    pub(super) async fn load(&self) -> Result<(), TaskRecordError> {
        if self.lock_cache().loaded {
            return Ok(());
        }
        let (tasks, version) = self.read().await?;
        let mut cache = self.lock_cache();
        if !cache.loaded {
            *cache = CachedTaskRecords {
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
        let _guard = self.write_lock.lock().await;
        let (tasks, version) = self.read().await?;
        let mut cache = self.lock_cache();
        if cache.changes == cache.saved_changes {
            (cache.tasks, cache.version, cache.loaded) = (tasks, version, true);
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

    /// Adds or replaces a record, and writes the file.
    pub(super) async fn put(&self, record: TaskRecord) -> Result<(), TaskRecordError> {
        let change = {
            let mut cache = self.lock_cache();
            cache.tasks.insert(record.task_id.clone(), record);
            prune_finished(&mut cache.tasks);
            cache.changes += 1;
            cache.changes
        };
        self.save(change).await
    }

    /// Writes the file, unless another write already included `change`.
    async fn save(&self, change: u64) -> Result<(), TaskRecordError> {
        const TRIES: usize = 8;
        let _guard = self.write_lock.lock().await;
        for _ in 0..TRIES {
            let (text, version, upto) = {
                let cache = self.lock_cache();
                if cache.saved_changes >= change {
                    return Ok(());
                }
                let text = serde_json::to_vec_pretty(&cache.tasks).unwrap_or_default();
                (text, cache.version.clone(), cache.changes)
            };
            let expect = version.map_or(Expect::Absent, Expect::Version);
            match self.files.write(&self.path, text.into(), expect).await {
                Ok(version) => {
                    let mut cache = self.lock_cache();
                    (cache.version, cache.saved_changes) = (Some(version), upto);
                    return Ok(());
                }
                // Another process changed the file. For each task, the newer record counts.
                Err(VfsError::Changed(_) | VfsError::Exists(_)) => {
                    let (current, version) = self.read().await?;
                    let mut cache = self.lock_cache();
                    for (id, record) in current {
                        let newer = cache
                            .tasks
                            .get(&id)
                            .is_none_or(|own| own.last_updated_at < record.last_updated_at);
                        if newer {
                            cache.tasks.insert(id, record);
                        }
                    }
                    cache.version = version;
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

/// Removes the oldest ended tasks beyond the limit.
fn prune_finished(tasks: &mut BTreeMap<String, TaskRecord>) {
    let mut ended: Vec<(jiff::Timestamp, String)> = tasks
        .values()
        .filter(|record| record.status.is_final())
        .map(|record| (record.last_updated_at, record.task_id.clone()))
        .collect();
    if ended.len() <= MAX_FINISHED {
        return;
    }
    ended.sort();
    let mut spent = SpendAmount::default();
    let removed = ended.len() - MAX_FINISHED;
    for (_, id) in ended.iter().take(removed) {
        spent += tasks
            .remove(id)
            .map(|record| record.spent)
            .unwrap_or_default();
    }
    // The spending of removed tasks still counts: the oldest remaining one takes it over.
    if let Some(next) = ended.get(removed).and_then(|(_, id)| tasks.get_mut(id)) {
        next.spent += spent;
    }
}
