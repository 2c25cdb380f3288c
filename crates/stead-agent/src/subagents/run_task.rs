//! One who works on a task.

use super::{DelegationContext, Subagents, TaskRecord, TaskStatus};
use crate::{Agent, Listener, RunOptions, RunReport, Session};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use stead_core::{Block, Event, RunOutcome, SetEntry, SpendAmount, SubagentOrigin};
use tokio_util::sync::CancellationToken;

/// What is to be done, and by whom.
pub(super) struct TaskAssignment {
    pub(super) agent: Arc<Agent>,
    pub(super) session: ChildSession,
    pub(super) input: Vec<Block>,
    pub(super) context: DelegationContext,
    pub(super) cancel: CancellationToken,
    /// What the result must look like.
    pub(super) schema: Option<Value>,
}

/// The session in which it is done.
pub(super) enum ChildSession {
    /// A new one, with this.
    New(SubagentOrigin),
    /// That of an earlier task, in which this is set.
    Existing(SetEntry),
}

/// What came of it.
#[derive(Default)]
struct ChildUsage {
    spent: SpendAmount,
    /// Whether it took in words that nobody here vouches for.
    untrusted: bool,
}

/// How it came to its end.
enum TaskEnd {
    Done(String),
    Parked,
    Failed(String),
    Cancelled,
}

/// How often a result that does not fit its schema may be given again.
const MAX_CORRECTIONS: usize = 2;
/// The longest result that is kept on record; the session has all of it.
const MAX_RESULT_CHARS: usize = 100_000;

impl Subagents {
    /// Works on a task to its end, whatever happens, and puts that on record.
    pub(super) async fn run_task(self: &Arc<Self>, mut record: TaskRecord, work: TaskAssignment) {
        let cancel = work.cancel.clone();
        let slot = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            slot = self.slots.clone().acquire_owned() => slot.ok(),
        };
        let (ended, lived) = match slot {
            None => (TaskEnd::Cancelled, ChildUsage::default()),
            Some(_slot) => {
                let worked = std::panic::AssertUnwindSafe(self.run_child(&record, work))
                    .catch_unwind()
                    .await;
                worked.unwrap_or_else(|_panic| {
                    (
                        TaskEnd::Failed("it failed unexpectedly".to_owned()),
                        ChildUsage::default(),
                    )
                })
            }
        };
        (record.spent, record.untrusted) = (lived.spent, lived.untrusted);
        match ended {
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
        // Nothing is lost if this fails: the session of the task has it, and the next look at it
        // finds it.
        let _ = self.records.put(record).await;
    }

    fn run_child<'a>(
        self: &'a Arc<Self>,
        record: &'a TaskRecord,
        work: TaskAssignment,
    ) -> BoxFuture<'a, (TaskEnd, ChildUsage)> {
        Box::pin(async move {
            let id = record.sub_session_id.clone();
            let (spawned, set) = match work.session {
                ChildSession::New(spawned) => (Some(spawned), Vec::new()),
                ChildSession::Existing(set) => (None, vec![set]),
            };
            let mut session = Session::with_agent(
                self.workspace_agent.clone(),
                work.agent,
                self.owner.clone(),
                id,
                spawned,
            );
            session.parent_subagents = Some(self.clone());
            let name = record
                .label
                .clone()
                .unwrap_or_else(|| record.sub_agent_id.clone());
            let options = RunOptions {
                listener: nest_events(name, work.context.listener),
                cancel: work.cancel,
                approvals: work.context.approvals,
                budget: Some(work.context.budget),
                settings: set,
                ..RunOptions::default()
            };
            let (ended, mut spent) =
                run_until_schema_fits(&mut session, options, work.input, work.schema.as_ref())
                    .await;
            spent += session.subagent_spend().await;
            (
                ended,
                ChildUsage {
                    spent,
                    untrusted: session.state().tainted.is_some(),
                },
            )
        })
    }
}

/// Gives the task, and asks again for a result that does not fit its schema.
async fn run_until_schema_fits(
    session: &mut Session,
    options: RunOptions,
    input: Vec<Block>,
    schema: Option<&Value>,
) -> (TaskEnd, SpendAmount) {
    let mut spent = SpendAmount::default();
    let mut next = with_schema(input, schema);
    let mut wrong = String::new();
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
            TaskEnd::Done(text) => text,
            other @ (TaskEnd::Parked | TaskEnd::Failed(_) | TaskEnd::Cancelled) => {
                return (other, spent);
            }
        };
        match schema.map_or(Ok(text.clone()), |schema| fit_schema(schema, &text)) {
            Ok(text) => return (TaskEnd::Done(text), spent),
            Err(why) => wrong = why,
        }
        let again =
            format!("Your last answer is not the JSON that was asked for: {wrong}\nGive it again.");
        next = vec![Block::text(again)];
    }
    (
        TaskEnd::Failed(format!("its result does not fit its schema: {wrong}")),
        spent,
    )
}

fn task_end(report: &RunReport) -> TaskEnd {
    let reason = || report.reason.clone().unwrap_or_default();
    match report.outcome {
        RunOutcome::Completed => TaskEnd::Done(report.text.clone()),
        RunOutcome::Parked => TaskEnd::Parked,
        RunOutcome::Cancelled => TaskEnd::Cancelled,
        RunOutcome::StepLimit | RunOutcome::Budget | RunOutcome::TimedOut | RunOutcome::Failed => {
            let said = if report.text.is_empty() {
                String::new()
            } else {
                format!("\nIts last words: {}", report.text)
            };
            TaskEnd::Failed(format!("{}: {}{said}", report.outcome.as_str(), reason()))
        }
    }
}

/// Tells events of a child as those of its parent, with its name before them.
fn nest_events(name: String, listener: Listener) -> Listener {
    Arc::new(move |event: &Event| {
        let mut event = event.clone();
        event.source.insert(0, name.clone());
        listener(&event);
    })
}

fn with_schema(mut input: Vec<Block>, schema: Option<&Value>) -> Vec<Block> {
    if let Some(schema) = schema {
        let text = format!(
            "Your last message must be one JSON value and nothing else. It must fit this schema:\n{schema}"
        );
        input.push(Block::text(text));
    }
    input
}

/// The JSON in `text`, if it fits.
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
