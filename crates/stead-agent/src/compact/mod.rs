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

use crate::live::{Live, Stop};
use crate::{ArchiveTag, Purpose, UsageRecord};
use stead_core::{
    Cause, Compaction, Entry, EventKind, Level, Plan, Room, Usage, Usd, View, spec_tokens,
    text_tokens,
};
use stead_model::ModelError;
use stead_workspace::{CompactionSettings, Switch};

/// Tokens that a summary must stand for at least.
const WORTH: u64 = 400;

/// What a model wrote, or why it did not.
pub(crate) struct Summary {
    pub(crate) text: String,
    /// Who wrote it, and at what price; none for a digest.
    pub(crate) asked: Option<Asked>,
    /// Why no model wrote it.
    pub(crate) fallback: Option<String>,
}

/// Who was asked, and what that took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Usd>,
}

impl Live<'_> {
    /// Leaves something out if the next request would be too large.
    pub(crate) async fn make_room(&mut self) -> Result<(), Stop> {
        if !self.may_compact() {
            return Ok(());
        }
        let window = self.session.known_window().await;
        let room = self.room(window);
        if room.head > window
            && self
                .session
                .state
                .run
                .as_ref()
                .is_some_and(|run| run.steps == 0)
        {
            let head = room.head;
            let text = format!(
                "the prompt and the tools alone take about {head} tokens of a window of {window}"
            );
            self.emit(EventKind::Notice {
                level: Level::Warning,
                text,
            });
        }
        let settings = self.settings();
        let state = &self.session.state;
        let (prefix, open) = state.shown();
        let crowded = settings
            .messages
            .is_some_and(|most| prefix.len() + open.len() >= most as usize);
        if state.used_tokens(room.head) <= room.limit && !crowded {
            return Ok(());
        }
        // A number of messages is brought down by a summary only, and by one that covers most of
        // them.
        let plan = match crowded {
            true => state.plan_summary(&Room {
                keep: room.keep.min(state.context_tokens() / 4),
                ..room
            }),
            false => state.plan(&room),
        };
        self.carry_out(plan, Cause::Limit, room, None, None)
            .await
            .map(drop)
    }

    /// Leaves something out because a provider said that the request does not fit. An error if
    /// nothing can be.
    pub(crate) async fn recover(&mut self, words: String) -> Result<(), Stop> {
        if !self.may_compact() {
            let hint = "compaction is off (`compaction:`, `disable:`)";
            return Err(Stop::Model(ModelError::ContextOverflow(format!(
                "{words}; {hint}"
            ))));
        }
        let used = self.session.state.used_tokens(self.head());
        let told = prompt::told_window(&words).filter(|told| *told < used.saturating_mul(4));
        // Whatever was believed of the window, or of the tokens used, was wrong.
        let window = told
            .unwrap_or(u64::MAX)
            .min(self.session.window().unwrap_or(u64::MAX))
            .min(used);
        let Room { limit, keep, head } = self.room(window);
        // The prompt and the tools stay, however large they are: a part of the conversation must
        // go.
        let talk = used.saturating_sub(head);
        let room = Room {
            limit: limit.min(used / 4 * 3),
            keep: keep.min(talk / 4),
            head,
        };
        let plan = self.session.state.plan_summary(&room);
        if self
            .carry_out(plan, Cause::Overflow, room, told, None)
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
        Err(Stop::Model(ModelError::ContextOverflow(reason)))
    }

    /// Carries a plan out and records it. False if there is nothing to leave out.
    pub(crate) async fn carry_out(
        &mut self,
        plan: Plan,
        cause: Cause,
        room: Room,
        window: Option<u64>,
        focus: Option<String>,
    ) -> Result<bool, Stop> {
        let before_tokens = self.session.state.used_tokens(room.head);
        let plan = match plan {
            // A summary of next to nothing takes more than it gives.
            Plan::Summarise(view)
                if cause != Cause::Overflow && self.session.state.covered_tokens(&view) < WORTH =>
            {
                return Ok(false);
            }
            plan => plan,
        };
        if plan != Plan::Nothing && !self.before_compaction(cause, before_tokens).await? {
            return Ok(false);
        }
        if let Plan::Summarise(view) = &plan {
            // What is about to be covered is looked through for what to remember; a queue that
            // cannot be written loses nothing, for the next job begins where the last one ended.
            let _ = self
                .session
                .agent
                .enqueue_flush(&self.session.owner, &self.session.id, view.covers)
                .await;
        }
        let (view, summary) = match plan {
            Plan::Nothing => return Ok(false),
            Plan::Shorten(view) => (view, None),
            Plan::Summarise(view) => {
                self.emit(EventKind::CompactionStarted {
                    cause,
                    before_tokens,
                });
                let summary = self.summary(&view, &room, cause, focus.as_deref()).await?;
                (
                    View {
                        summary: Some(summary.text.clone()),
                        ..view
                    },
                    Some(summary),
                )
            }
        };
        // What the harness keeps is shown beside a summary, as it stands now.
        let kept = if view.summary.is_some() {
            self.session.kept()
        } else {
            Vec::new()
        };
        let view = View { kept, ..view };
        let dropped = self.session.state.dropped(&view);
        let after_tokens = room.head + self.session.state.tokens_of(&view);
        let (asked, fallback) =
            summary.map_or((None, None), |summary| (summary.asked, summary.fallback));
        let summarised = dropped.messages > 0;
        let Asked { model, usage, cost } = asked.clone().unwrap_or_default();
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
                .fold(record, |record, run| record.of_run(run))
                .used(usage, cost);
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
            self.archive(cause).await;
        }
        self.after_compaction(cause, dropped, (before_tokens, after_tokens))
            .await?;
        Ok(true)
    }

    /// Keeps the conversation where the layout keeps conversations. The journal has it, so that a
    /// failure loses nothing.
    async fn archive(&mut self, cause: Cause) {
        let tag = match cause {
            Cause::Manual => ArchiveTag::Compact,
            Cause::Limit | Cause::Overflow => ArchiveTag::AutoCompact,
        };
        let agent = self.session.agent.clone();
        if let Err(error) = agent
            .archive(&self.session.owner, &self.session.id, tag)
            .await
        {
            let text = format!("the conversation was not archived: {error}");
            self.emit(EventKind::Notice {
                level: Level::Warning,
                text,
            });
        }
    }

    /// What there is room for in a window of so many tokens.
    pub(crate) fn room(&self, window: u64) -> Room {
        let settings = self.settings();
        // The answer must fit, too.
        let answer = self
            .session
            .agent
            .parts
            .params
            .max_output_tokens
            .map_or(0, u64::from)
            .min(window / 2);
        Room {
            limit: settings.limit(window).min(window - answer),
            keep: settings.kept(window),
            head: self.head(),
        }
    }

    /// An estimate of the prompt and the tools.
    pub(crate) fn head(&self) -> u64 {
        *self.head.get_or_init(|| {
            let system: u64 = self.system.iter().map(|part| text_tokens(&part.text)).sum();
            system + self.tools.specs().iter().map(spec_tokens).sum::<u64>()
        })
    }

    fn may_compact(&self) -> bool {
        let config = self.session.agent.workspace().config();
        config.compaction.enabled && !config.disable.has(Switch::Compaction)
    }

    pub(crate) fn settings(&self) -> &CompactionSettings {
        &self.session.agent.workspace().config().compaction
    }
}
