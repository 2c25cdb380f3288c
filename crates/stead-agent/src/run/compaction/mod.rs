//! Compaction: when the context is full, the model is shown less of the conversation. The journal
//! stays as it is; a compaction is one more entry in it.
//!
//! What to leave out is planned in `stead-core`
//! ([`SessionState::plan_compaction`](stead_core::SessionState::plan_compaction)). Here the plan is
//! carried out, and a summary is requested where one is needed. If no model gives a summary, a
//! digest made without a model takes its place: a model that fails cannot stop a run or lose
//! anything.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, the model.

mod digest;
mod manual;
mod prompt;
mod summary;
mod transcript;

use super::conversation::Conversation;
use super::journal::RunJournal;
use super::signals::RunSignals;
use super::spending::{CallUsage, RunSpending};
use super::stop::RunStop;
use crate::hooks::RunHooks;
use crate::session::plan_mode_text;
use crate::{ArchiveTag, Purpose};
use stead_core::{
    Compaction, CompactionCause, CompactionPlan, ContextBudget, ContextView, Entry, EventKind,
    PlanStage, SessionState, TodoStatus, Usage, Usd, VerbatimSection,
};
use stead_memory::NewPart;
use stead_model::ModelError;
use stead_tools::checklist;
use stead_workspace::{CompactionSettings, FeatureSwitch};

/// The fewest tokens that are worth a summary.
const MIN_SUMMARISED_TOKENS: u64 = 400;

/// Compacts the conversation with the parts of a run.
pub(crate) struct Compactor<'s, 'a> {
    pub(crate) journal: &'s mut RunJournal<'a>,
    pub(crate) conversation: &'s mut Conversation,
    pub(crate) spending: &'s mut RunSpending,
    pub(crate) hooks: Option<&'s mut RunHooks>,
    pub(crate) signals: &'s RunSignals,
}

/// A compaction that is about to be carried out.
struct PlannedCompaction {
    plan: CompactionPlan,
    cause: CompactionCause,
    budget: ContextBudget,
    /// The context window that a provider reported with its refusal.
    window: Option<u64>,
    /// What the summary must keep above all.
    focus: Option<String>,
}

/// A summary, or the digest in its place.
struct GeneratedSummary {
    text: String,
    /// The model that wrote it and what that cost; none for a digest.
    written_by: Option<SummaryUsage>,
    /// Why no model wrote it.
    fallback: Option<String>,
}

/// The model that wrote a summary, and what that cost.
#[derive(Debug, Clone, Default)]
struct SummaryUsage {
    model: String,
    usage: Usage,
    cost: Option<Usd>,
}

impl Compactor<'_, '_> {
    /// Compacts the context if the next request would be too long.
    pub(crate) async fn compact_if_needed(&mut self) -> Result<(), RunStop> {
        if !self.is_enabled() {
            return Ok(());
        }
        let window = self.journal.session().window_or_default().await;
        let budget = self.context_budget(window);
        let run = self.journal.state().run.as_ref();
        if budget.prompt_tokens > window && run.is_some_and(|run| run.steps == 0) {
            let head = budget.prompt_tokens;
            self.journal.warn(format!(
                "the prompt and the tools alone take about {head} tokens of a window of {window}"
            ));
        }
        let state = self.journal.state();
        let (prefix, open) = state.visible_messages();
        let most_messages = self.settings().messages;
        let is_crowded =
            most_messages.is_some_and(|most| prefix.len() + open.len() >= most as usize);
        if state.used_tokens(budget.prompt_tokens) <= budget.limit_tokens && !is_crowded {
            return Ok(());
        }
        // The number of messages shrinks only with a summary, and only if that covers most of them.
        let plan = match is_crowded {
            true => state.plan_summary(&ContextBudget {
                keep_recent_tokens: budget.keep_recent_tokens.min(state.context_tokens() / 4),
                ..budget
            }),
            false => state.plan_compaction(&budget),
        };
        let planned = PlannedCompaction {
            plan,
            cause: CompactionCause::Limit,
            budget,
            window: None,
            focus: None,
        };
        Box::pin(self.compact(planned)).await.map(drop)
    }

    /// Compacts the context because a provider refused the request as too long. An error if nothing
    /// can be left out.
    pub(crate) async fn recover_from_overflow(&mut self, message: String) -> Result<(), RunStop> {
        self.journal.emit(EventKind::ModelRetry {
            attempt: 2,
            wait_ms: 0,
            reason: "the context does not fit; it is made smaller".to_owned(),
        });
        if !self.is_enabled() {
            let hint = "compaction is off (`compaction:`, `disable:`)";
            return Err(RunStop::Model(ModelError::ContextOverflow(format!(
                "{message}; {hint}"
            ))));
        }
        let state = self.journal.state();
        let used = state.used_tokens(self.conversation.head_tokens());
        let reported =
            prompt::window_from_error(&message).filter(|window| *window < used.saturating_mul(4));
        // The window that was assumed, or the estimate of the tokens used, was wrong.
        let window = reported
            .unwrap_or(u64::MAX)
            .min(self.journal.session().window().unwrap_or(u64::MAX))
            .min(used);
        let budget = self.context_budget(window);
        // The prompt and the tools stay, however long they are: part of the conversation must go.
        let head = budget.prompt_tokens;
        let conversation_tokens = used.saturating_sub(head);
        let budget = ContextBudget {
            limit_tokens: budget.limit_tokens.min(used / 4 * 3),
            keep_recent_tokens: budget.keep_recent_tokens.min(conversation_tokens / 4),
            prompt_tokens: head,
        };
        let newest = state.turns.last().map_or(0, |turn| turn.tokens());
        let planned = PlannedCompaction {
            plan: state.plan_summary(&budget),
            cause: CompactionCause::Overflow,
            budget,
            window: reported,
            focus: None,
        };
        if self.compact(planned).await? {
            return Ok(());
        }
        let reason = format!(
            "{message}; and there is nothing left to leave out: the newest message is about {newest} tokens, the prompt \
             and the tools about {head}. Use a model with a larger window, or put long texts into files"
        );
        Err(RunStop::Model(ModelError::ContextOverflow(reason)))
    }

    /// Carries out a plan and records it. Returns false if there is nothing to leave out.
    async fn compact(&mut self, planned: PlannedCompaction) -> Result<bool, RunStop> {
        let cause = planned.cause;
        let head_tokens = planned.budget.prompt_tokens;
        let before_tokens = self.journal.state().used_tokens(head_tokens);
        if !is_worthwhile(&planned, self.journal.state()) {
            return Ok(false);
        }
        if let Some(hooks) = &mut self.hooks {
            let allowed = hooks.before_compaction(self.journal, cause, before_tokens);
            if !allowed.await? {
                return Ok(false);
            }
        }
        let (view, summary) = match planned.plan.clone() {
            CompactionPlan::Nothing => return Ok(false),
            CompactionPlan::Shorten(view) => (view, None),
            CompactionPlan::Summarise(view) => {
                let (view, summary) = self.summarised_view(&planned, view, before_tokens).await?;
                (view, Some(summary))
            }
        };
        // The plan and the todos are shown beside a summary, as they are now.
        let kept = match view.summary {
            Some(_) => kept_verbatim(self.journal.state()),
            None => Vec::new(),
        };
        let view = ContextView { kept, ..view };
        let dropped = self.journal.state().dropped(&view);
        let after_tokens = head_tokens + self.journal.state().tokens_of(&view);
        let (written_by, fallback) = summary.map_or((None, None), |summary| {
            (summary.written_by, summary.fallback)
        });
        let SummaryUsage { model, usage, cost } = written_by.clone().unwrap_or_default();
        let run = self.journal.state().run.as_ref().map(|run| run.id.clone());
        let lines = self
            .journal
            .record(vec![Entry::Compaction(Compaction {
                run,
                cause,
                view,
                dropped,
                before_tokens,
                after_tokens,
                window: planned.window,
                focus: planned.focus,
                fallback: fallback.clone(),
                model: written_by.as_ref().map(|_| model.clone()),
                usage,
                cost,
            })])
            .await?;
        if written_by.is_some() {
            let used = CallUsage {
                purpose: Purpose::Compaction,
                model,
                usage,
                cost,
                at: lines.first().map(|line| line.at),
                ms: None,
            };
            self.spending.log(self.journal, used).await;
        }
        let summarised = dropped.messages > 0;
        self.journal.emit(EventKind::Compacted {
            cause,
            dropped,
            summarised,
            before_tokens,
            after_tokens,
            fallback,
        });
        if summarised {
            self.archive(cause).await;
        }
        if let Some(hooks) = &mut self.hooks {
            hooks
                .after_compaction(self.journal, cause, dropped, (before_tokens, after_tokens))
                .await?;
        }
        Ok(true)
    }

    /// Summarises what `view` covers. Returns the view with the summary, and the summary.
    async fn summarised_view(
        &mut self,
        planned: &PlannedCompaction,
        view: ContextView,
        before_tokens: u64,
    ) -> Result<(ContextView, GeneratedSummary), RunStop> {
        self.note_for_memory(&view).await;
        self.journal.emit(EventKind::CompactionStarted {
            cause: planned.cause,
            before_tokens,
        });
        let summary = self.summarise(planned, &view).await?;
        let view = ContextView {
            summary: Some(summary.text.clone()),
            ..view
        };
        Ok((view, summary))
    }

    /// Notes that what a summary is about to cover may hold facts. A failure loses nothing: the end
    /// of the run is noted, too.
    async fn note_for_memory(&self, view: &ContextView) {
        let covered = NewPart {
            upto: view.covers,
            tokens: self.journal.state().covered_tokens(view),
        };
        let session = self.journal.session();
        let memory = session.agent().memory();
        let _ = memory
            .before_summary(session.owner(), session.id(), covered)
            .await;
    }

    /// Archives the conversation if the layout keeps archives. The journal has it too, so a failure
    /// loses nothing.
    async fn archive(&mut self, cause: CompactionCause) {
        let tag = match cause {
            CompactionCause::Manual => ArchiveTag::Compact,
            CompactionCause::Limit | CompactionCause::Overflow => ArchiveTag::AutoCompact,
        };
        let session = self.journal.session();
        let archive = session.agent().archive();
        if let Err(error) = archive.save(session.owner(), session.id(), tag).await {
            self.journal
                .warn(format!("the conversation was not archived: {error}"));
        }
    }

    /// The context budget in a window of so many tokens.
    fn context_budget(&self, window: u64) -> ContextBudget {
        let settings = self.settings();
        let params = &self.journal.agent().parts.params;
        // The answer must fit, too.
        let answer = params
            .max_output_tokens
            .map_or(0, u64::from)
            .min(window / 2);
        ContextBudget {
            limit_tokens: settings.trigger_tokens(window).min(window - answer),
            keep_recent_tokens: settings.keep_tokens(window),
            prompt_tokens: self.conversation.head_tokens(),
        }
    }

    fn is_enabled(&self) -> bool {
        let config = self.journal.agent().workspace().config();
        config.compaction.enabled && !config.disable.contains(FeatureSwitch::Compaction)
    }

    fn settings(&self) -> &CompactionSettings {
        &self.journal.agent().workspace().config().compaction
    }
}

/// Whether a plan leaves out anything worth it: a summary of next to nothing takes more tokens than
/// it saves.
fn is_worthwhile(planned: &PlannedCompaction, state: &SessionState) -> bool {
    match &planned.plan {
        CompactionPlan::Nothing => false,
        CompactionPlan::Shorten(_) => true,
        CompactionPlan::Summarise(view) => {
            planned.cause == CompactionCause::Overflow
                || state.covered_tokens(view) >= MIN_SUMMARISED_TOKENS
        }
    }
}

/// Returns what stays word for word beside a summary: the plan and the open todos.
fn kept_verbatim(state: &SessionState) -> Vec<VerbatimSection> {
    let plan = state.plan.as_ref().map(|stage| match stage {
        PlanStage::Making { file } => VerbatimSection {
            tag: "plan_mode".to_owned(),
            text: plan_mode_text(file),
        },
        PlanStage::Agreed { text, .. } => VerbatimSection {
            tag: "active_plan".to_owned(),
            text: text.clone(),
        },
    });
    let open = checklist(state.todos.iter().filter(|todo| match todo.status {
        TodoStatus::Pending | TodoStatus::InProgress => true,
        TodoStatus::Completed => false,
    }));
    let todos = (!open.is_empty()).then(|| VerbatimSection {
        tag: "open_todos".to_owned(),
        text: open,
    });
    plan.into_iter().chain(todos).collect()
}
