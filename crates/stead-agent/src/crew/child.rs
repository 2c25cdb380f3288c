//! One who works on a task.

use super::{Crew, Now, TaskRecord, TaskStatus};
use crate::{Agent, Listener, RunOptions, RunReport, Session};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use stead_core::{Allowance, Block, Event, Outcome, Set, Spawned};
use tokio_util::sync::CancellationToken;

/// What is to be done, and by whom.
pub(super) struct Work {
    pub(super) role: Arc<Agent>,
    pub(super) begins: Begins,
    pub(super) input: Vec<Block>,
    pub(super) now: Now,
    pub(super) cancel: CancellationToken,
    /// What the result must look like.
    pub(super) schema: Option<Value>,
}

/// The session in which it is done.
pub(super) enum Begins {
    /// A new one, with this.
    New(Spawned),
    /// That of an earlier task, in which this is set.
    Again(Set),
}

/// What came of it.
#[derive(Default)]
struct Lived {
    spent: Allowance,
    /// Whether it took in words that nobody here vouches for.
    untrusted: bool,
}

/// How it came to its end.
enum Ended {
    Done(String),
    Parked,
    Failed(String),
    Cancelled,
}

/// How often a result that does not fit its schema may be given again.
const MAX_CORRECTIONS: usize = 2;
/// The longest result that is kept on record; the session has all of it.
const MAX_RESULT_CHARS: usize = 100_000;

impl Crew {
    /// Works on a task to its end, whatever happens, and puts that on record.
    pub(super) async fn work(self: &Arc<Self>, mut record: TaskRecord, work: Work) {
        let cancel = work.cancel.clone();
        let slot = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            slot = self.slots.clone().acquire_owned() => slot.ok(),
        };
        let (ended, lived) = match slot {
            None => (Ended::Cancelled, Lived::default()),
            Some(_slot) => {
                let worked = std::panic::AssertUnwindSafe(self.live_through(&record, work))
                    .catch_unwind()
                    .await;
                worked.unwrap_or_else(|_panic| {
                    (
                        Ended::Failed("it failed unexpectedly".to_owned()),
                        Lived::default(),
                    )
                })
            }
        };
        (record.spent, record.untrusted) = (lived.spent, lived.untrusted);
        match ended {
            Ended::Done(text) => {
                record.status = TaskStatus::Completed;
                record.result = Some(text.chars().take(MAX_RESULT_CHARS).collect());
            }
            Ended::Parked => record.awaiting_confirm = true,
            Ended::Failed(reason) => {
                record.status = TaskStatus::Failed;
                record.error_message = Some(reason);
            }
            Ended::Cancelled => record.status = TaskStatus::Cancelled,
        }
        record.last_updated_at = jiff::Timestamp::now();
        // Nothing is lost if this fails: the session of the task has it, and the next look at it
        // finds it.
        let _ = self.records.put(record).await;
    }

    fn live_through<'a>(
        self: &'a Arc<Self>,
        record: &'a TaskRecord,
        work: Work,
    ) -> BoxFuture<'a, (Ended, Lived)> {
        Box::pin(async move {
            let id = record.sub_session_id.clone();
            let (spawned, set) = match work.begins {
                Begins::New(spawned) => (Some(spawned), Vec::new()),
                Begins::Again(set) => (None, vec![set]),
            };
            let mut session = Session::of_child(
                self.home.clone(),
                work.role,
                self.owner.clone(),
                id,
                spawned,
            );
            session.above = Some(self.clone());
            let name = record
                .label
                .clone()
                .unwrap_or_else(|| record.sub_agent_id.clone());
            let options = RunOptions {
                listener: nested(name, work.now.listener),
                cancel: work.cancel,
                approvals: work.now.approvals,
                budget: Some(work.now.budget),
                set,
                ..RunOptions::default()
            };
            let (ended, mut spent) =
                converse(&mut session, options, work.input, work.schema.as_ref()).await;
            spent += session.crew_spent().await;
            (
                ended,
                Lived {
                    spent,
                    untrusted: session.state().tainted.is_some(),
                },
            )
        })
    }
}

/// Gives the task, and asks again for a result that does not fit its schema.
async fn converse(
    session: &mut Session,
    options: RunOptions,
    input: Vec<Block>,
    schema: Option<&Value>,
) -> (Ended, Allowance) {
    let mut spent = Allowance::default();
    let mut next = with_schema(input, schema);
    let mut wrong = String::new();
    for _ in 0..=MAX_CORRECTIONS {
        let report = match session.run(next, options.clone()).await {
            Ok(report) => report,
            Err(error) => return (Ended::Failed(error.to_string()), spent),
        };
        spent += Allowance {
            usd: report.cost.unwrap_or_default(),
            tokens: report.usage.total_tokens(),
        };
        let text = match ended(&report) {
            Ended::Done(text) => text,
            other @ (Ended::Parked | Ended::Failed(_) | Ended::Cancelled) => return (other, spent),
        };
        match schema.map_or(Ok(text.clone()), |schema| fit(schema, &text)) {
            Ok(text) => return (Ended::Done(text), spent),
            Err(why) => wrong = why,
        }
        let again =
            format!("Your last answer is not the JSON that was asked for: {wrong}\nGive it again.");
        next = vec![Block::text(again)];
    }
    (
        Ended::Failed(format!("its result does not fit its schema: {wrong}")),
        spent,
    )
}

fn ended(report: &RunReport) -> Ended {
    let reason = || report.reason.clone().unwrap_or_default();
    match report.outcome {
        Outcome::Completed => Ended::Done(report.text.clone()),
        Outcome::Parked => Ended::Parked,
        Outcome::Cancelled => Ended::Cancelled,
        Outcome::StepLimit | Outcome::Budget | Outcome::TimedOut | Outcome::Failed => {
            let said = if report.text.is_empty() {
                String::new()
            } else {
                format!("\nIts last words: {}", report.text)
            };
            Ended::Failed(format!("{}: {}{said}", report.outcome.as_str(), reason()))
        }
    }
}

/// Tells events of a child as those of its parent, with its name before them.
fn nested(name: String, listener: Listener) -> Listener {
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
pub(super) fn fit(schema: &Value, text: &str) -> Result<String, String> {
    let bare = text.trim();
    let bare = bare
        .strip_prefix("```json")
        .or_else(|| bare.strip_prefix("```"))
        .unwrap_or(bare);
    let bare = bare.strip_suffix("```").unwrap_or(bare).trim();
    let value: Value =
        serde_json::from_str(bare).map_err(|error| format!("it is no JSON: {error}"))?;
    stead_tools::fits(schema, &value)?;
    Ok(value.to_string())
}
