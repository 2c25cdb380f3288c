//! Making room: when the context is full, the model is shown less of the conversation. The journal
//! stays as it is; a compaction is one more entry in it.
//!
//! What to leave out is planned in `stead-core`
//! ([`SessionState::plan`](stead_core::SessionState::plan)); here the plan is carried out, and a
//! summary is asked for where one is needed. A summary that cannot be had is replaced by a digest
//! made without a model: nothing that a model does or fails to do can stop a run or lose a word.

mod digest;
mod manual;
mod prompt;
mod summary;
mod transcript;

pub use manual::Pinned;

use crate::active_run::{ActiveRun, RunStop};
use crate::{ArchiveTag, Purpose, UsageRecord};
use stead_core::{
    Compaction, CompactionCause, CompactionPlan, ContextBudget, ContextView, Entry, EventKind,
    NoticeLevel, Usage, Usd, spec_tokens, text_tokens,
};
use stead_model::ModelError;
use stead_workspace::{CompactionSettings, FeatureSwitch};

/// Tokens that a summary must stand for at least.
const MIN_SUMMARISED_TOKENS: u64 = 400;

/// What a model wrote, or why it did not.
pub(crate) struct GeneratedSummary {
    pub(crate) text: String,
    /// Who wrote it, and at what price; none for a digest.
    pub(crate) written_by: Option<SummaryUsage>,
    /// Why no model wrote it.
    pub(crate) fallback: Option<String>,
}

/// Who was asked, and what that took.
#[derive(Debug, Clone, Default)]
pub(crate) struct SummaryUsage {
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Usd>,
}

impl ActiveRun<'_> {
    /// Leaves something out if the next request would be too large.
    pub(crate) async fn compact_if_needed(&mut self) -> Result<(), RunStop> {
        if !self.may_compact() {
            return Ok(());
        }
        let window = self.session.window_or_default().await;
        let room = self.context_budget(window);
        if room.prompt_tokens > window
            && self
                .session
                .state
                .run
                .as_ref()
                .is_some_and(|run| run.steps == 0)
        {
            let head = room.prompt_tokens;
            let text = format!(
                "the prompt and the tools alone take about {head} tokens of a window of {window}"
            );
            self.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text,
            });
        }
        let settings = self.compaction_settings();
        let state = &self.session.state;
        let (prefix, open) = state.visible_messages();
        let crowded = settings
            .messages
            .is_some_and(|most| prefix.len() + open.len() >= most as usize);
        if state.used_tokens(room.prompt_tokens) <= room.limit_tokens && !crowded {
            return Ok(());
        }
        // A number of messages is brought down by a summary only, and by one that covers most of
        // them.
        let plan = match crowded {
            true => state.plan_summary(&ContextBudget {
                keep_recent_tokens: room.keep_recent_tokens.min(state.context_tokens() / 4),
                ..room
            }),
            false => state.plan_compaction(&room),
        };
        self.apply_compaction_plan(plan, CompactionCause::Limit, room, None, None)
            .await
            .map(drop)
    }

    /// Leaves something out because a provider said that the request does not fit. An error if
    /// nothing can be.
    pub(crate) async fn recover_from_overflow(&mut self, words: String) -> Result<(), RunStop> {
        if !self.may_compact() {
            let hint = "compaction is off (`compaction:`, `disable:`)";
            return Err(RunStop::Model(ModelError::ContextOverflow(format!(
                "{words}; {hint}"
            ))));
        }
        let used = self.session.state.used_tokens(self.head_tokens());
        let told = prompt::window_from_error(&words).filter(|told| *told < used.saturating_mul(4));
        // Whatever was believed of the window, or of the tokens used, was wrong.
        let window = told
            .unwrap_or(u64::MAX)
            .min(self.session.window().unwrap_or(u64::MAX))
            .min(used);
        let ContextBudget {
            limit_tokens: limit,
            keep_recent_tokens: keep,
            prompt_tokens: head,
        } = self.context_budget(window);
        // The prompt and the tools stay, however large they are: a part of the conversation must
        // go.
        let talk = used.saturating_sub(head);
        let room = ContextBudget {
            limit_tokens: limit.min(used / 4 * 3),
            keep_recent_tokens: keep.min(talk / 4),
            prompt_tokens: head,
        };
        let plan = self.session.state.plan_summary(&room);
        if self
            .apply_compaction_plan(plan, CompactionCause::Overflow, room, told, None)
            .await?
        {
            return Ok(());
        }
        let newest = self
            .session
            .state
            .turns
            .last()
            .map_or(0, |turn| turn.tokens());
        let reason = format!(
            "{words}; and there is nothing left to leave out: the newest message is about {newest} tokens, the prompt \
             and the tools about {head}. Use a model with a larger window, or put long texts into files"
        );
        Err(RunStop::Model(ModelError::ContextOverflow(reason)))
    }

    /// Carries a plan out and records it. False if there is nothing to leave out.
    pub(crate) async fn apply_compaction_plan(
        &mut self,
        plan: CompactionPlan,
        cause: CompactionCause,
        room: ContextBudget,
        window: Option<u64>,
        focus: Option<String>,
    ) -> Result<bool, RunStop> {
        let before_tokens = self.session.state.used_tokens(room.prompt_tokens);
        let plan = match plan {
            // A summary of next to nothing takes more than it gives.
            CompactionPlan::Summarise(view)
                if cause != CompactionCause::Overflow
                    && self.session.state.covered_tokens(&view) < MIN_SUMMARISED_TOKENS =>
            {
                return Ok(false);
            }
            plan => plan,
        };
        if plan != CompactionPlan::Nothing && !self.before_compaction(cause, before_tokens).await? {
            return Ok(false);
        }
        if let CompactionPlan::Summarise(view) = &plan {
            // What is about to be covered is looked through for what to remember; a queue that
            // cannot be written loses nothing, for the next job begins where the last one ended.
            let _ = self
                .session
                .agent
                .memory()
                .enqueue_flush(&self.session.owner, &self.session.id, view.covers)
                .await;
        }
        let (view, summary) = match plan {
            CompactionPlan::Nothing => return Ok(false),
            CompactionPlan::Shorten(view) => (view, None),
            CompactionPlan::Summarise(view) => {
                self.emit(EventKind::CompactionStarted {
                    cause,
                    before_tokens,
                });
                let summary = self
                    .summarise(&view, &room, cause, focus.as_deref())
                    .await?;
                (
                    ContextView {
                        summary: Some(summary.text.clone()),
                        ..view
                    },
                    Some(summary),
                )
            }
        };
        // What the harness keeps is shown beside a summary, as it stands now.
        let kept = if view.summary.is_some() {
            self.session.kept_verbatim()
        } else {
            Vec::new()
        };
        let view = ContextView { kept, ..view };
        let dropped = self.session.state.dropped(&view);
        let after_tokens = room.prompt_tokens + self.session.state.tokens_of(&view);
        let (asked, fallback) = summary.map_or((None, None), |summary| {
            (summary.written_by, summary.fallback)
        });
        let summarised = dropped.messages > 0;
        let SummaryUsage { model, usage, cost } = asked.clone().unwrap_or_default();
        let compaction = Compaction {
            run: self.session.state.run.as_ref().map(|run| run.id.clone()),
            cause,
            view,
            dropped,
            before_tokens,
            after_tokens,
            window,
            focus,
            fallback: fallback.clone(),
            model: asked.map(|_| model),
            usage,
            cost,
        };
        let run = compaction.run.clone();
        let spent = compaction.model.clone().map(|model| (model, usage, cost));
        let lines = self.record(vec![Entry::Compaction(compaction)]).await?;
        if let (Some((model, usage, cost)), Some(line)) = (spent, lines.first()) {
            let record = UsageRecord::new(
                self.session.user(),
                &self.session.id,
                Purpose::Compaction,
                model,
            );
            let record = run
                .iter()
                .fold(record, |record, run| record.for_run(run))
                .with_usage(usage, cost);
            self.log_usage(UsageRecord {
                at: line.at,
                ..record
            })
            .await;
        }
        self.emit(EventKind::Compacted {
            cause,
            dropped,
            summarised,
            before_tokens,
            after_tokens,
            fallback,
        });
        if summarised {
            self.archive_before_compaction(cause).await;
        }
        self.after_compaction(cause, dropped, (before_tokens, after_tokens))
            .await?;
        Ok(true)
    }

    /// Keeps the conversation where the layout keeps conversations. The journal has it, so that a
    /// failure loses nothing.
    async fn archive_before_compaction(&mut self, cause: CompactionCause) {
        let tag = match cause {
            CompactionCause::Manual => ArchiveTag::Compact,
            CompactionCause::Limit | CompactionCause::Overflow => ArchiveTag::AutoCompact,
        };
        let agent = self.session.agent.clone();
        if let Err(error) = agent
            .archive()
            .save(&self.session.owner, &self.session.id, tag)
            .await
        {
            let text = format!("the conversation was not archived: {error}");
            self.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text,
            });
        }
    }

    /// What there is room for in a window of so many tokens.
    pub(crate) fn context_budget(&self, window: u64) -> ContextBudget {
        let settings = self.compaction_settings();
        // The answer must fit, too.
        let answer = self
            .session
            .agent
            .parts
            .params
            .max_output_tokens
            .map_or(0, u64::from)
            .min(window / 2);
        ContextBudget {
            limit_tokens: settings.trigger_tokens(window).min(window - answer),
            keep_recent_tokens: settings.keep_tokens(window),
            prompt_tokens: self.head_tokens(),
        }
    }

    /// An estimate of the prompt and the tools.
    pub(crate) fn head_tokens(&self) -> u64 {
        *self.head_tokens.get_or_init(|| {
            let system: u64 = self.system.iter().map(|part| text_tokens(&part.text)).sum();
            system + self.tools.specs().iter().map(spec_tokens).sum::<u64>()
        })
    }

    fn may_compact(&self) -> bool {
        let config = self.session.agent.workspace().config();
        config.compaction.enabled && !config.disable.contains(FeatureSwitch::Compaction)
    }

    pub(crate) fn compaction_settings(&self) -> &CompactionSettings {
        &self.session.agent.workspace().config().compaction
    }
}
