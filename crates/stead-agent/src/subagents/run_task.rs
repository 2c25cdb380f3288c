//! Running one task of a subagent to its end.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

use super::{DelegationContext, Subagents, TaskRecord, TaskStatus};
use crate::{Agent, Listener, RunOptions, RunReport, Session};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use stead_core::{
    Block, ChildPosition, Event, Message, RunOutcome, SessionId, SetEntry, SpendAmount,
    SubagentOrigin, TaintOrigins,
};
use tokio_util::sync::CancellationToken;

/// A task and the agent that works on it.
pub(super) struct TaskAssignment {
    pub(super) agent: Arc<Agent>,
    pub(super) session: ChildSession,
    pub(super) input: Vec<Block>,
    pub(super) context: DelegationContext,
    pub(super) cancel: CancellationToken,
    /// The JSON schema of the result.
    pub(super) schema: Option<Value>,
}

/// The session of a subagent.
pub(super) enum ChildSession {
    /// A new session with this origin.
    New(SubagentOrigin),
    /// The session of an earlier task, in which this setting is changed.
    Existing(SetEntry),
}

/// What a task used.
#[derive(Default)]
struct ChildUsage {
    spent: SpendAmount,
    /// The origins of untrusted content that it took in, if it did.
    taint: Option<TaintOrigins>,
}

/// The end of a task.
enum TaskEnd {
    /// It completed with this result.
    Done(String),
    /// It waits for a person's decision.
    Parked,
    Failed(String),
    Cancelled,
}

/// How many times a result that does not fit its schema is asked for again.
const MAX_CORRECTIONS: usize = 2;
/// The most characters of a result that are recorded. The session has all of it.
const MAX_RESULT_CHARS: usize = 100_000;

impl Subagents {
    /// Runs a task to its end and records the end. A panic counts as a failure.
    pub(super) async fn run_task(
        self: &Arc<Self>,
        mut record: TaskRecord,
        assignment: TaskAssignment,
    ) {
        let cancel = assignment.cancel.clone();
        let slot = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            slot = self.slots.clone().acquire_owned() => slot.ok(),
        };
        let (end, usage) = match slot {
            None => (TaskEnd::Cancelled, ChildUsage::default()),
            Some(_slot) => {
                let result = std::panic::AssertUnwindSafe(self.run_child(&record, assignment))
                    .catch_unwind()
                    .await;
                result.unwrap_or_else(|_panic| {
                    (
                        TaskEnd::Failed("it failed unexpectedly".to_owned()),
                        ChildUsage::default(),
                    )
                })
            }
        };
        record.spent = usage.spent;
        record.untrusted = usage.taint.is_some();
        record.taint = usage.taint.unwrap_or_default();
        match end {
            TaskEnd::Done(text) => {
                record.status = TaskStatus::Completed;
                record.result = Some(text.chars().take(MAX_RESULT_CHARS).collect());
            }
            TaskEnd::Parked => record.awaiting_confirm = true,
            TaskEnd::Failed(reason) => {
                record.status = TaskStatus::Failed;
                record.error_message = Some(reason);
            }
            TaskEnd::Cancelled => record.status = TaskStatus::Cancelled,
        }
        record.last_updated_at = jiff::Timestamp::now();
        // If this fails, the record is updated from the session of the task later.
        let _ = self.records.put(record).await;
    }

    /// Runs the task in the session of the subagent.
    fn run_child<'a>(
        self: &'a Arc<Self>,
        record: &'a TaskRecord,
        assignment: TaskAssignment,
    ) -> BoxFuture<'a, (TaskEnd, ChildUsage)> {
        Box::pin(async move {
            let id = record.sub_session_id.clone();
            let (spawned, set) = match assignment.session {
                ChildSession::New(spawned) => (Some(spawned), Vec::new()),
                ChildSession::Existing(set) => (None, vec![set]),
            };
            let mut session = Session::of_subagent(
                self.workspace_agent(),
                assignment.agent,
                self.owner.clone(),
                id,
            )
            .with_origin(spawned)
            .with_parent(self.clone());
            let name = record
                .label
                .clone()
                .unwrap_or_else(|| record.sub_agent_id.clone());
            let options = RunOptions {
                listener: nest_events(
                    name,
                    record.sub_session_id.clone(),
                    assignment.context.listener,
                ),
                cancel: assignment.cancel,
                approvals: assignment.context.approvals,
                budget: Some(assignment.context.budget),
                settings: set,
                ..RunOptions::default()
            };
            let (end, mut spent) = run_until_schema_fits(
                &mut session,
                options,
                assignment.input,
                assignment.schema.as_ref(),
            )
            .await;
            spent += session.subagents().total_spend().await;
            (
                end,
                ChildUsage {
                    spent,
                    taint: session
                        .state()
                        .tainted
                        .map(|_| session.state().taint_origins()),
                },
            )
        })
    }
}

/// Runs the task, and asks again for a result that does not fit its schema.
async fn run_until_schema_fits(
    session: &mut Session,
    options: RunOptions,
    input: Vec<Block>,
    schema: Option<&Value>,
) -> (TaskEnd, SpendAmount) {
    let mut spent = SpendAmount::default();
    let mut next = with_schema(input, schema);
    let mut mismatch = String::new();
    for _ in 0..=MAX_CORRECTIONS {
        let report = match session.run(next, options.clone()).await {
            Ok(report) => report,
            Err(error) => return (TaskEnd::Failed(error.to_string()), spent),
        };
        spent += SpendAmount {
            usd: report.cost.unwrap_or_default(),
            tokens: report.usage.total_tokens(),
        };
        let text = match task_end(&report) {
            TaskEnd::Done(text) if text.trim().is_empty() => last_result(session).unwrap_or(text),
            TaskEnd::Done(text) => text,
            other @ (TaskEnd::Parked | TaskEnd::Failed(_) | TaskEnd::Cancelled) => {
                return (other, spent);
            }
        };
        match schema.map_or(Ok(text.clone()), |schema| fit_schema(schema, &text)) {
            Ok(text) => return (TaskEnd::Done(text), spent),
            Err(why) => mismatch = why,
        }
        let again = format!(
            "Your last answer is not the JSON that was asked for: {mismatch}\nGive it again."
        );
        next = vec![Block::text(again)];
    }
    (
        TaskEnd::Failed(format!("its result does not fit its schema: {mismatch}")),
        spent,
    )
}

/// Returns the last result of a tool, for a task whose agent says nothing at the end.
fn last_result(session: &Session) -> Option<String> {
    let messages = session.state().messages();
    let results = messages.iter().rev().find_map(|message| match &**message {
        Message::Tool { results } => results.last(),
        Message::User { .. } | Message::Assistant { .. } => None,
    })?;
    let texts: Vec<&str> = results.content.iter().filter_map(Block::as_text).collect();
    let text = texts.join("\n");
    (!text.trim().is_empty())
        .then(|| format!("[It ended without a word. The last result of its tools:]\n{text}"))
}

/// Returns the end of a task after a run.
fn task_end(report: &RunReport) -> TaskEnd {
    let reason = || report.reason.clone().unwrap_or_default();
    match report.outcome {
        RunOutcome::Completed => TaskEnd::Done(report.text.clone()),
        RunOutcome::Parked => TaskEnd::Parked,
        RunOutcome::Cancelled => TaskEnd::Cancelled,
        RunOutcome::StepLimit | RunOutcome::Budget | RunOutcome::TimedOut | RunOutcome::Failed => {
            let last_text = if report.text.is_empty() {
                String::new()
            } else {
                format!("\nIts last words: {}", report.text)
            };
            TaskEnd::Failed(format!(
                "{}: {}{last_text}",
                report.outcome.as_str(),
                reason()
            ))
        }
    }
}

/// Returns a listener that passes events of a subagent to that of its parent, with the name of the
/// subagent as their source.
fn nest_events(name: String, session: SessionId, listener: Listener) -> Listener {
    Arc::new(move |event: &Event| {
        let mut event = event.clone();
        // Events of deeper subagents keep their own session and entry.
        event.child.get_or_insert_with(|| ChildPosition {
            session: session.clone(),
            entry: event.entry,
        });
        event.source.insert(0, name.clone());
        listener(&event);
    })
}

/// Adds the instruction to answer with JSON that fits the schema.
fn with_schema(mut input: Vec<Block>, schema: Option<&Value>) -> Vec<Block> {
    if let Some(schema) = schema {
        let text = format!(
            "Your last message must be one JSON value and nothing else. It must fit this schema:\n{schema}"
        );
        input.push(Block::text(text));
    }
    input
}

/// Returns the JSON in `text` if it fits the schema.
pub(super) fn fit_schema(schema: &Value, text: &str) -> Result<String, String> {
    let bare = text.trim();
    let bare = bare
        .strip_prefix("```json")
        .or_else(|| bare.strip_prefix("```"))
        .unwrap_or(bare);
    let bare = bare.strip_suffix("```").unwrap_or(bare).trim();
    let value: Value =
        serde_json::from_str(bare).map_err(|error| format!("it is no JSON: {error}"))?;
    stead_tools::validate_json(schema, &value)?;
    Ok(value.to_string())
}
