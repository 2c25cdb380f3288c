//! Those who work for a session: agents of the workspace that it hands tasks to.
//!
//! Each works in a session of its own, with its own journal, context, tools and model, under the
//! ceiling of the one that handed the task over. It may be waited for or not; one that is waited
//! for too long goes on in the background. When it is done, its parent is told once: by the result
//! of the call, or by a notice before the next question to the model.

mod bounds;
mod finished;
mod recover;
mod run_task;
mod start_task;
mod task_records;

pub use bounds::DelegationBounds;
pub(crate) use bounds::{TaskIdentity, child_files};
pub use start_task::{TaskRequest, TaskWait};
pub use task_records::{TaskRecord, TaskRecordError, TaskStatus};

use crate::{Agent, ApprovalPolicy, Budget, Listener};
use futures_util::future::BoxFuture;
use run_task::TaskAssignment;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stead_core::{Owner, RunId, SessionId};
use stead_gate::SessionPermissions;
use stead_vfs::VPath;
use task_records::TaskRecords;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Those who work for one session.
pub struct Subagents {
    workspace_agent: Arc<Agent>,
    owner: Owner,
    session: SessionId,
    records: TaskRecords,
    /// What holds in the open run, and for whom it hands work over.
    run_context: Mutex<Option<DelegationContext>>,
    slots: Arc<Semaphore>,
    running: Mutex<HashMap<String, RunningTask>>,
    /// Those at work.
    workers: Mutex<JoinSet<()>>,
    /// Counts tasks that ended, so that one can wait for the next.
    finished_count: watch::Sender<u64>,
}

/// What holds in the open run.
#[derive(Clone)]
pub(crate) struct DelegationContext {
    /// The agent that acts.
    pub(crate) agent: Arc<Agent>,
    pub(crate) run: RunId,
    pub(crate) permissions: SessionPermissions,
    /// Through how many hands its own work came.
    pub(crate) depth: u32,
    /// The session whose files it works on.
    pub(crate) tree: SessionId,
    pub(crate) listener: Listener,
    pub(crate) approvals: ApprovalPolicy,
    pub(crate) cancel: CancellationToken,
    pub(crate) budget: Budget,
}

/// A task that waits for a person's decision.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WaitingTask {
    /// The task.
    pub task: String,
    /// The session that handed it over, which can go on once there is an answer.
    pub session: SessionId,
}

/// A task that is being worked on in this process.
struct RunningTask {
    cancel: CancellationToken,
    done: watch::Receiver<bool>,
}

/// How long those who are stopped may take to come to their end.
const STOP_GRACE: Duration = Duration::from_millis(1500);

impl Subagents {
    /// Those who will work for a session of `home`.
    pub(crate) fn new(home: Arc<Agent>, owner: Owner, session: SessionId) -> Self {
        let files = home.parts.place.files(&owner, &session, None);
        let records = TaskRecords::new(files, records_path(&home, &session));
        let slots = home.policy().max_concurrent_subagents as usize;
        Self {
            workspace_agent: home,
            owner,
            session,
            records,
            run_context: Mutex::default(),
            slots: Arc::new(Semaphore::new(slots.clamp(1, Semaphore::MAX_PERMITS))),
            running: Mutex::default(),
            workers: Mutex::default(),
            finished_count: watch::Sender::new(0),
        }
    }

    /// From here on, work is handed over for this run.
    pub(crate) fn set_run_context(&self, now: DelegationContext) {
        *self
            .run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// What binds the session now binds those it hands work to from here on.
    pub(crate) fn update_permissions(&self, agent: Arc<Agent>, terms: SessionPermissions) {
        if let Some(now) = &mut *self
            .run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            (now.agent, now.permissions) = (agent, terms);
        }
    }

    /// What binds the session now.
    pub(crate) fn current_permissions(&self) -> Option<SessionPermissions> {
        self.run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|now| now.permissions.clone())
    }

    fn run_context(&self) -> Option<DelegationContext> {
        self.run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many are at work in this process.
    pub fn running_count(&self) -> usize {
        self.lock_running().len()
    }

    /// All tasks on record, oldest first.
    pub async fn tasks(&self) -> Result<Vec<TaskRecord>, TaskRecordError> {
        self.records.load().await?;
        let mut tasks = self.records.all();
        tasks.sort_by(|a, b| {
            a.created_at
                .cmp(&b.created_at)
                .then_with(|| a.task_id.cmp(&b.task_id))
        });
        Ok(tasks)
    }

    /// The task of this id, label or session; the newest, if a label was given again.
    pub async fn task(&self, name: &str) -> Result<TaskRecord, String> {
        let tasks = self.tasks().await?;
        let is = |task: &&TaskRecord| {
            task.task_id == name
                || task.label.as_deref() == Some(name)
                || task.sub_session_id.as_str() == name
        };
        tasks.iter().rev().find(is).cloned().ok_or_else(|| {
            let known: Vec<&str> = tasks.iter().map(|task| task.task_id.as_str()).collect();
            match known.is_empty() {
                true => format!("there is no task {name:?}: none was handed over in this session"),
                false => format!("there is no task {name:?}; there are: {}", known.join(", ")),
            }
        })
    }

    /// The tasks that wait for a person's decision, and those that others who worked for it handed
    /// over.
    pub(crate) fn waiting_tasks(&self) -> BoxFuture<'_, Vec<WaitingTask>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for task in self.records.all() {
                if task.status.is_final() {
                    let below = Self::new(
                        self.workspace_agent.clone(),
                        self.owner.clone(),
                        task.sub_session_id,
                    );
                    // What is on record there may be older than the answer. What cannot be read is
                    // told where it is used.
                    if below.recover_tasks().await.is_ok() {
                        all.extend(below.waiting_tasks().await);
                    }
                } else if task.is_parked() {
                    all.push(WaitingTask {
                        task: task.task_id,
                        session: self.session.clone(),
                    });
                }
            }
            all
        })
    }

    /// Stops a task and waits for its end. False if it was not at work here.
    pub async fn cancel(&self, task: &str) -> bool {
        let hand = self
            .lock_running()
            .get(task)
            .map(|hand| (hand.cancel.clone(), hand.done.clone()));
        let Some((cancel, mut done)) = hand else {
            return false;
        };
        cancel.cancel();
        let _ = tokio::time::timeout(STOP_GRACE, done.wait_for(|done| *done)).await;
        true
    }

    /// Counts the tasks that ended, for whoever waits for the next.
    pub fn watch_finished(&self) -> watch::Receiver<u64> {
        self.finished_count.subscribe()
    }

    /// Stops all of them and waits for their end.
    pub async fn stop(&self) {
        let hands: Vec<_> = self
            .lock_running()
            .values()
            .map(|hand| (hand.cancel.clone(), hand.done.clone()))
            .collect();
        hands.iter().for_each(|(cancel, _)| cancel.cancel());
        let all =
            futures_util::future::join_all(hands.into_iter().map(|(_, mut done)| async move {
                let _ = done.wait_for(|done| *done).await;
            }));
        let _ = tokio::time::timeout(STOP_GRACE, all).await;
    }

    /// Waits for the end of a task that is at work here, as long as `patience` lasts.
    pub async fn wait(&self, task: &str, patience: Duration) -> Option<TaskRecord> {
        let done = self.lock_running().get(task).map(|hand| hand.done.clone());
        if let Some(mut done) = done {
            let _ = tokio::time::timeout(patience, done.wait_for(|done| *done)).await;
        }
        self.records.get(task)
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<String, RunningTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets somebody to work.
    fn spawn_task(self: &Arc<Self>, record: TaskRecord, work: TaskAssignment) {
        let (tell, done) = watch::channel(false);
        let hand = RunningTask {
            cancel: work.cancel.clone(),
            done,
        };
        self.lock_running().insert(record.task_id.clone(), hand);
        let crew = self.clone();
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        while workers.try_join_next().is_some() {}
        workers.spawn(async move {
            let task = record.task_id.clone();
            // On record before anybody hears that it is done.
            crew.run_task(record, work).await;
            crew.lock_running().remove(&task);
            let _ = tell.send(true);
            crew.finished_count.send_modify(|count| *count += 1);
        });
    }
}

/// Where the tasks of a session are on record.
fn records_path(agent: &Agent, session: &SessionId) -> VPath {
    let definition = &agent.parts.workspace.definition;
    let path = format!(
        "agents/{}/tasks/{session}.json",
        definition.config.agent_id()
    );
    definition
        .paths
        .runtime
        .join(&path)
        .unwrap_or(VPath::root())
}

impl fmt::Debug for Subagents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew")
            .field("session", &self.session)
            .field("working", &self.running_count())
            .finish_non_exhaustive()
    }
}
