//! Subagents: agents of the workspace that a session delegates tasks to.
//!
//! A subagent works in a session of its own, with its own journal, context, tools and model, under
//! the ceiling of its parent. The parent may wait for it; if it waits for too long, the task goes
//! on in the background. The parent is told about the end of a task once: by the result of the
//! call, or by a notice before the next request to the model.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

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

use crate::taint::TaintedFiles;
use crate::{Agent, ApprovalPolicy, Budget, Listener};
use futures_util::future::BoxFuture;
use run_task::TaskAssignment;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stead_core::{Owner, RunId, SessionId, SpendAmount, WaitingTask};
use stead_gate::SessionPermissions;
use stead_vfs::VPath;
use task_records::TaskRecords;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The subagents of one session.
pub struct Subagents {
    /// The workspace's own agent, with the model of the session.
    workspace_agent: Mutex<Arc<Agent>>,
    owner: Owner,
    session: SessionId,
    records: TaskRecords,
    /// The context of the open run, which delegates tasks.
    run_context: Mutex<Option<DelegationContext>>,
    slots: Arc<Semaphore>,
    running: Mutex<HashMap<String, RunningTask>>,
    /// The background jobs of the running tasks.
    workers: Mutex<JoinSet<()>>,
    /// The number of tasks that ended, to wait for the next one.
    finished_count: watch::Sender<u64>,
    /// The files that tainted calls wrote, shared by the session and all its subagents.
    tainted_files: Arc<TaintedFiles>,
}

/// What tasks take over from the run that delegates them.
#[derive(Clone)]
pub(crate) struct DelegationContext {
    /// The acting agent.
    pub(crate) agent: Arc<Agent>,
    pub(crate) run: RunId,
    pub(crate) permissions: SessionPermissions,
    /// The number of delegations through which the session's own work came.
    pub(crate) depth: u32,
    /// The session whose file tree is used.
    pub(crate) tree: SessionId,
    pub(crate) listener: Listener,
    pub(crate) approvals: ApprovalPolicy,
    pub(crate) cancel: CancellationToken,
    pub(crate) budget: Budget,
}

/// A task that runs in this process.
struct RunningTask {
    cancel: CancellationToken,
    done: watch::Receiver<bool>,
}

/// How long a stopped task may take to end.
const STOP_GRACE: Duration = Duration::from_millis(1500);

impl Subagents {
    /// Creates the subagents of a session of `workspace_agent`.
    pub(crate) fn new(workspace_agent: Arc<Agent>, owner: Owner, session: SessionId) -> Self {
        let files = workspace_agent.parts.place.files(&owner, &session, None);
        let records = TaskRecords::new(files, records_path(&workspace_agent, &session));
        let slots = workspace_agent.policy().max_concurrent_subagents as usize;
        Self {
            workspace_agent: Mutex::new(workspace_agent),
            owner,
            session,
            records,
            run_context: Mutex::default(),
            slots: Arc::new(Semaphore::new(slots.clamp(1, Semaphore::MAX_PERMITS))),
            running: Mutex::default(),
            workers: Mutex::default(),
            finished_count: watch::Sender::new(0),
            tainted_files: Arc::default(),
        }
    }

    /// Returns the workspace's own agent.
    fn workspace_agent(&self) -> Arc<Agent> {
        self.workspace_agent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sets the workspace's own agent, because the session runs with another model now.
    pub(crate) fn set_workspace_agent(&self, agent: Arc<Agent>) {
        *self
            .workspace_agent
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = agent;
    }

    /// Shares the tainted files with the parent of the session.
    pub(crate) fn with_tainted_files(self, tainted_files: Arc<TaintedFiles>) -> Self {
        Self {
            tainted_files,
            ..self
        }
    }

    /// The files that tainted calls wrote.
    pub(crate) fn tainted_files(&self) -> &Arc<TaintedFiles> {
        &self.tainted_files
    }

    /// Sets the run that delegates tasks from now on.
    pub(crate) fn set_run_context(&self, context: DelegationContext) {
        *self
            .run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(context);
    }

    /// Changes the acting agent and its permissions, for tasks that are delegated from now on.
    pub(crate) fn update_permissions(&self, agent: Arc<Agent>, permissions: SessionPermissions) {
        if let Some(context) = &mut *self
            .run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            (context.agent, context.permissions) = (agent, permissions);
        }
    }

    /// Returns the current permissions of the session.
    pub(crate) fn current_permissions(&self) -> Option<SessionPermissions> {
        self.run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|context| context.permissions.clone())
    }

    fn run_context(&self) -> Option<DelegationContext> {
        self.run_context
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the number of tasks that run in this process.
    pub fn running_count(&self) -> usize {
        self.lock_running().len()
    }

    /// Returns all recorded tasks, oldest first.
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

    /// Returns the task with this id, label or session. If several tasks had the label, the newest
    /// counts.
    pub async fn task(&self, name: &str) -> Result<TaskRecord, String> {
        let tasks = self.tasks().await?;
        let matches = |task: &&TaskRecord| {
            task.task_id == name
                || task.label.as_deref() == Some(name)
                || task.sub_session_id.as_str() == name
        };
        tasks.iter().rev().find(matches).cloned().ok_or_else(|| {
            let known: Vec<&str> = tasks.iter().map(|task| task.task_id.as_str()).collect();
            match known.is_empty() {
                true => format!("there is no task {name:?}: none was handed over in this session"),
                false => format!("there is no task {name:?}; there are: {}", known.join(", ")),
            }
        })
    }

    /// Returns the tasks that wait for a person's decision, including those of its subagents.
    pub(crate) fn waiting_tasks(&self) -> BoxFuture<'_, Vec<WaitingTask>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for task in self.records.all() {
                if task.status.is_final() {
                    let below = Self::new(
                        self.workspace_agent(),
                        self.owner.clone(),
                        task.sub_session_id,
                    );
                    // The records there may be older than the answer. Records that cannot be read
                    // are reported where they are used.
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

    /// Stops a task and waits for its end. Returns false if it did not run in this process.
    pub async fn cancel(&self, task: &str) -> bool {
        let running = self
            .lock_running()
            .get(task)
            .map(|running| (running.cancel.clone(), running.done.clone()));
        let Some((cancel, mut done)) = running else {
            return false;
        };
        cancel.cancel();
        let _ = tokio::time::timeout(STOP_GRACE, done.wait_for(|done| *done)).await;
        true
    }

    /// Returns the number of tasks that ended, to be watched.
    pub fn watch_finished(&self) -> watch::Receiver<u64> {
        self.finished_count.subscribe()
    }

    /// Stops all tasks and waits for their end.
    pub async fn stop(&self) {
        let running: Vec<_> = self
            .lock_running()
            .values()
            .map(|task| (task.cancel.clone(), task.done.clone()))
            .collect();
        running.iter().for_each(|(cancel, _)| cancel.cancel());
        let all =
            futures_util::future::join_all(running.into_iter().map(|(_, mut done)| async move {
                let _ = done.wait_for(|done| *done).await;
            }));
        let _ = tokio::time::timeout(STOP_GRACE, all).await;
    }

    /// Waits for the end of a task that runs in this process, at most for `timeout`. Returns its
    /// record.
    pub async fn wait(&self, task: &str, timeout: Duration) -> Option<TaskRecord> {
        let done = self
            .lock_running()
            .get(task)
            .map(|running| running.done.clone());
        if let Some(mut done) = done {
            let _ = tokio::time::timeout(timeout, done.wait_for(|done| *done)).await;
        }
        self.records.get(task)
    }

    /// Returns the recorded spending of all tasks of the session.
    pub(crate) async fn total_spend(&self) -> SpendAmount {
        let tasks = self.tasks().await.unwrap_or_default();
        tasks
            .iter()
            .fold(SpendAmount::default(), |sum, task| sum + task.spent)
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<String, RunningTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task in the background.
    fn spawn_task(self: &Arc<Self>, record: TaskRecord, assignment: TaskAssignment) {
        let (ended, done) = watch::channel(false);
        let running = RunningTask {
            cancel: assignment.cancel.clone(),
            done,
        };
        self.lock_running().insert(record.task_id.clone(), running);
        let subagents = self.clone();
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        while workers.try_join_next().is_some() {}
        workers.spawn(async move {
            let task = record.task_id.clone();
            // The end is recorded before anyone is notified of it.
            subagents.run_task(record, assignment).await;
            subagents.lock_running().remove(&task);
            let _ = ended.send(true);
            subagents.finished_count.send_modify(|count| *count += 1);
        });
    }
}

/// Returns the path of the task records of a session.
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
        f.debug_struct("Subagents")
            .field("session", &self.session)
            .field("working", &self.running_count())
            .finish_non_exhaustive()
    }
}
