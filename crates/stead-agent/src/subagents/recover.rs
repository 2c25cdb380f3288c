//! What became of tasks while nobody looked: a process ended, or another one went on with them.

use super::run_task::fit_schema;
use super::{Subagents, TaskRecord, TaskRecordError, TaskStatus};
use stead_core::{CallState, RunOutcome, SessionState, SpendAmount};
use stead_store::{LockWait, StoreError};

impl Subagents {
    /// Brings the record of every task that is not at work here up to date. Nothing is begun again
    /// by itself.
    pub(crate) async fn recover_tasks(&self) -> Result<(), TaskRecordError> {
        self.records.reload().await?;
        for task in self.records.all() {
            if task.status.is_final() || self.lock_running().contains_key(&task.task_id) {
                continue;
            }
            if let Some(found) = self.refreshed_record(task).await {
                self.records.put(found).await?;
            }
        }
        Ok(())
    }

    /// How a task stands by what its own session says; none if another process works on it.
    async fn refreshed_record(&self, mut task: TaskRecord) -> Option<TaskRecord> {
        let sessions = self.workspace_agent.parts.place.sessions(&self.owner);
        let state = match sessions
            .open(&task.sub_session_id, None, LockWait::No)
            .await
        {
            Ok(opened) => {
                opened.writer.close().await;
                opened.state.unwrap_or_default()
            }
            Err(StoreError::Locked { .. }) => return None,
            Err(error) => {
                task.status = TaskStatus::Failed;
                task.error_message = Some(format!("it was not begun: {error}"));
                task.last_updated_at = jiff::Timestamp::now();
                return Some(task);
            }
        };
        let asked = waits_for_person(&state);
        if asked && task.awaiting_confirm {
            return None;
        }
        task.awaiting_confirm = asked;
        task.spent = SpendAmount {
            usd: state.cost.unwrap_or_default(),
            tokens: state.usage.total_tokens(),
        };
        task.untrusted = state.tainted.is_some();
        task.last_updated_at = jiff::Timestamp::now();
        (task.status, task.result, task.error_message) =
            match (asked, state.run.is_some(), state.last_outcome) {
                (true, _, _) => (TaskStatus::Running, None, None),
                (false, true, _) | (false, false, None) => {
                    let reason = "the process ended before it was done; agent_send goes on with it"
                        .to_owned();
                    (
                        TaskStatus::Failed,
                        None,
                        Some(format!("interrupted: {reason}")),
                    )
                }
                (false, false, Some(RunOutcome::Completed)) => {
                    match self
                        .check_result(&task.sub_agent_id, state.final_text())
                        .await
                    {
                        Ok(text) => (TaskStatus::Completed, Some(text), None),
                        Err(why) => (
                            TaskStatus::Failed,
                            None,
                            Some(format!("its result does not fit its schema: {why}")),
                        ),
                    }
                }
                (false, false, Some(RunOutcome::Cancelled)) => (TaskStatus::Cancelled, None, None),
                (false, false, Some(outcome)) => {
                    (TaskStatus::Failed, None, Some(outcome.as_str().to_owned()))
                }
            };
        Some(task)
    }

    /// A result, if it is what the definition of the agent asks for. Whoever answered a question
    /// and let it go on did not know that.
    async fn check_result(&self, agent: &str, text: String) -> Result<String, String> {
        let files = self
            .workspace_agent
            .parts
            .place
            .files(&self.owner, &self.session, None);
        let specs = self
            .workspace_agent
            .agents()
            .specs(
                &self.owner,
                &self.workspace_agent.workspace().prompt_files(&files),
            )
            .await;
        let schema = specs
            .ok()
            .and_then(|specs| specs.get(agent)?.result_schema.clone());
        schema.map_or(Ok(text.clone()), |schema| fit_schema(&schema, &text))
    }
}

/// Whether a person was asked, and it did not go on yet with the answer.
fn waits_for_person(state: &SessionState) -> bool {
    let pending = state.run.iter().flat_map(|run| &run.pending);
    pending.into_iter().any(|call| match call.state {
        CallState::Asked { .. }
        | CallState::Approved { .. }
        | CallState::Rejected { .. }
        | CallState::Responded { .. } => true,
        CallState::New | CallState::Begun { .. } | CallState::Done { .. } => false,
    })
}
