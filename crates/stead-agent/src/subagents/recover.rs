//! Updates of task records after a process ended, or after another process continued a task.
//!
//! Effects: the clock, workspace files (writes), the journal (writes).

use super::run_task::fit_schema;
use super::{Subagents, TaskRecord, TaskRecordError, TaskStatus};
use stead_core::{CallState, RunOutcome, SessionState, SpendAmount};
use stead_store::{LockWait, StoreError};

/// The part of a task record that says how the task stands.
struct TaskStanding {
    status: TaskStatus,
    result: Option<String>,
    error: Option<String>,
}

impl TaskStanding {
    fn running() -> Self {
        Self {
            status: TaskStatus::Running,
            result: None,
            error: None,
        }
    }

    fn failed(error: String) -> Self {
        Self {
            status: TaskStatus::Failed,
            result: None,
            error: Some(error),
        }
    }
}

impl Subagents {
    /// Updates the record of every task that does not run in this process. No task is started
    /// again.
    pub(crate) async fn recover_tasks(&self) -> Result<(), TaskRecordError> {
        self.records.reload().await?;
        for task in self.records.all() {
            if task.status.is_final() || self.lock_running().contains_key(&task.task_id) {
                continue;
            }
            if let Some(record) = self.refreshed_record(task).await {
                self.records.put(record).await?;
            }
        }
        Ok(())
    }

    /// Returns the record of a task as its session says; `None` if nothing changed or another
    /// process works on it.
    async fn refreshed_record(&self, mut task: TaskRecord) -> Option<TaskRecord> {
        let sessions = self.workspace_agent().parts.place.sessions(&self.owner);
        let state = match sessions
            .open(&task.sub_session_id, None, LockWait::No)
            .await
        {
            Ok(opened) => {
                opened.writer.close().await;
                opened.state.unwrap_or_default()
            }
            // Whether the task was begun will be known when the store answers again.
            Err(StoreError::Locked { .. } | StoreError::Unavailable { .. }) => return None,
            Err(error) => {
                task.status = TaskStatus::Failed;
                task.error_message = Some(format!("it was not begun: {error}"));
                task.last_updated_at = jiff::Timestamp::now();
                return Some(task);
            }
        };
        let waits = waits_for_person(&state);
        if waits && task.awaiting_confirm {
            return None;
        }
        let ended = match waits {
            true => TaskStanding::running(),
            false => self.ended_standing(&task.sub_agent_id, &state).await,
        };
        task.awaiting_confirm = waits;
        task.spent = SpendAmount {
            usd: state.cost.unwrap_or_default(),
            tokens: state.usage.total_tokens(),
        };
        task.untrusted = state.tainted.is_some();
        task.taint = state.taint_origins();
        task.last_updated_at = jiff::Timestamp::now();
        task.status = ended.status;
        task.result = ended.result;
        task.error_message = ended.error;
        Some(task)
    }

    /// Returns how a task ended whose session nobody works on and that waits for no person.
    async fn ended_standing(&self, agent: &str, state: &SessionState) -> TaskStanding {
        let failed = TaskStanding::failed;
        match (state.run.is_some(), state.last_outcome) {
            (true, _) | (false, None) => failed(
                "interrupted: the process ended before it was done; agent_send goes on with it"
                    .to_owned(),
            ),
            (false, Some(RunOutcome::Completed)) => {
                match self.check_result(agent, state.final_text()).await {
                    Ok(text) => TaskStanding {
                        status: TaskStatus::Completed,
                        result: Some(text),
                        error: None,
                    },
                    Err(why) => failed(format!("its result does not fit its schema: {why}")),
                }
            }
            (false, Some(RunOutcome::Cancelled)) => TaskStanding {
                status: TaskStatus::Cancelled,
                result: None,
                error: None,
            },
            (false, Some(outcome)) => failed(outcome.as_str().to_owned()),
        }
    }

    /// Returns the result if it fits the schema in the definition of the agent. It was not checked
    /// before if the task was resumed after a person's decision.
    async fn check_result(&self, agent: &str, text: String) -> Result<String, String> {
        let files = self
            .workspace_agent()
            .parts
            .place
            .files(&self.owner, &self.session, None);
        let specs = self
            .workspace_agent()
            .agents()
            .specs(
                &self.owner,
                &self.workspace_agent().workspace().prompt_files(&files),
            )
            .await;
        let schema = specs
            .ok()
            .and_then(|specs| specs.get(agent)?.result_schema.clone());
        schema.map_or(Ok(text.clone()), |schema| fit_schema(&schema, &text))
    }
}

/// Whether the run waits for a person's decision, or has not continued since.
fn waits_for_person(state: &SessionState) -> bool {
    let pending = state.run.iter().flat_map(|run| run.pending.all());
    pending.into_iter().any(|call| match call.state {
        CallState::Asked { .. }
        | CallState::Approved { .. }
        | CallState::Rejected { .. }
        | CallState::Responded { .. } => true,
        CallState::New | CallState::Begun { .. } | CallState::Done { .. } => false,
    })
}
