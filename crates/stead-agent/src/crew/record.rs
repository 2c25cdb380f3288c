//! What is known of the tasks that a session handed to others:
//! `agents/<agent>/tasks/<session>.json`.
//!
//! A map from task to record, with the names that AgentScope gives its fields. Derived, in the
//! sense that the journals of both sessions have all of it; kept, so that one look tells how tasks
//! stand.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{Allowance, RunId, SessionId};
use stead_vfs::{Expect, ReadRange, VPath, Version, Vfs, VfsError};

/// Why the records cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
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
    #[serde(default, skip_serializing_if = "Allowance::is_zero")]
    pub spent: Allowance,
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
    pub fn standing(&self) -> &'static str {
        if self.is_parked() {
            "parked"
        } else {
            self.status.as_str()
        }
    }
}

/// Tasks that are done and kept on record; older ones leave.
const MAX_DONE: usize = 100;
/// Largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The tasks of one session.
#[derive(Debug)]
pub(super) struct Records {
    files: Arc<dyn Vfs>,
    path: VPath,
    known: Mutex<Known>,
    /// Held while the file is written, so that those who wait share the next write.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    tasks: BTreeMap<String, TaskRecord>,
    version: Option<Version>,
    loaded: bool,
    /// How often it was changed, and how often as of the file.
    changed: u64,
    saved: u64,
}

impl Records {
    pub(super) fn new(files: Arc<dyn Vfs>, path: VPath) -> Self {
        Self {
            files,
            path,
            known: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Reads the file, if that was not done yet. One that cannot be read is never written over.
    pub(super) async fn load(&self) -> Result<(), RecordError> {
        if self.known().loaded {
            return Ok(());
        }
        let (tasks, version) = self.read().await?;
        let mut known = self.known();
        if !known.loaded {
            *known = Known {
                tasks,
                version,
                loaded: true,
                ..Known::default()
            };
        }
        Ok(())
    }

    /// Reads the file again: another process may have worked on a task.
    pub(super) async fn reload(&self) -> Result<(), RecordError> {
        let _alone = self.writing.lock().await;
        let (tasks, version) = self.read().await?;
        let mut known = self.known();
        if known.changed == known.saved {
            (known.tasks, known.version, known.loaded) = (tasks, version, true);
        }
        Ok(())
    }

    async fn read(&self) -> Result<(BTreeMap<String, TaskRecord>, Option<Version>), RecordError> {
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
        let damaged = |error: serde_json::Error| RecordError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        Ok((
            serde_json::from_slice(&data).map_err(damaged)?,
            Some(version),
        ))
    }

    pub(super) fn all(&self) -> Vec<TaskRecord> {
        self.known().tasks.values().cloned().collect()
    }

    pub(super) fn get(&self, task: &str) -> Option<TaskRecord> {
        self.known().tasks.get(task).cloned()
    }

    /// Changes or adds a record, and sees to it that the file says so.
    pub(super) async fn put(&self, record: TaskRecord) -> Result<(), RecordError> {
        let mine = {
            let mut known = self.known();
            known.tasks.insert(record.task_id.clone(), record);
            forget_oldest(&mut known.tasks);
            known.changed += 1;
            known.changed
        };
        self.save(mine).await
    }

    async fn save(&self, mine: u64) -> Result<(), RecordError> {
        const TRIES: usize = 8;
        let _alone = self.writing.lock().await;
        for _ in 0..TRIES {
            let (text, version, upto) = {
                let known = self.known();
                if known.saved >= mine {
                    return Ok(());
                }
                let text = serde_json::to_vec_pretty(&known.tasks).unwrap_or_default();
                (text, known.version.clone(), known.changed)
            };
            let expect = version.map_or(Expect::Absent, Expect::Version);
            match self.files.write(&self.path, text.into(), expect).await {
                Ok(version) => {
                    let mut known = self.known();
                    (known.version, known.saved) = (Some(version), upto);
                    return Ok(());
                }
                // Another process worked on a task: what it says of that one is newer.
                Err(VfsError::Changed(_) | VfsError::Exists(_)) => {
                    let (theirs, version) = self.read().await?;
                    let mut known = self.known();
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
        Err(RecordError::Busy(self.path.clone()))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps what is done within bounds.
fn forget_oldest(tasks: &mut BTreeMap<String, TaskRecord>) {
    let mut done: Vec<(jiff::Timestamp, String)> = tasks
        .values()
        .filter(|record| record.status.is_final())
        .map(|record| (record.last_updated_at, record.task_id.clone()))
        .collect();
    if done.len() <= MAX_DONE {
        return;
    }
    done.sort();
    let mut carried = Allowance::default();
    let leaving = done.len() - MAX_DONE;
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
