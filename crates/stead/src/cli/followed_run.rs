//! One run as its client sees it: which events belong to it, and how it ended.
//!
//! Effects: none.

use std::sync::Arc;
use stead::core::{
    Entry, Event, EventKind, InputId, JournalLine, Message, ModelReply, Receipt, RunEnd, RunId,
    RunReport, SessionEvent, SessionEventBody, SessionId, Usage, Usd,
};

/// A run that is followed from the receipt of its command to its end.
pub(crate) struct FollowedRun {
    session: SessionId,
    /// The command.
    input: InputId,
    /// The run, once it is known which one took the command.
    run: Option<RunId>,
    runner: Runner,
    /// Whether the command continues a run: no entry names it then.
    is_resumption: bool,
    /// The text of this step that was shown.
    shown: String,
    /// What the entries of the run say.
    recorded: RecordedReport,
}

/// Which process carries out the run. Live events of another one may be lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    ThisProcess,
    AnotherProcess,
}

#[derive(Default)]
struct RecordedReport {
    text: String,
    steps: u32,
    usage: Usage,
    cost: Option<Usd>,
}

/// What follows from an event.
#[derive(Debug, PartialEq)]
pub(crate) enum FollowStep {
    /// The event is part of the run.
    Show(Arc<Event>),
    /// The journal says that the run has ended. If nobody tells more, this is the report.
    Recorded(RunReport),
    /// The run has ended or is parked.
    Ended(RunReport),
}

impl FollowedRun {
    /// Returns the run that an input or an answer began, for its receipt.
    pub(crate) fn of_input(session: SessionId, receipt: &Receipt) -> Self {
        Self {
            session,
            input: receipt.input_id.clone(),
            run: receipt.run.clone(),
            runner: match receipt.run {
                Some(_) => Runner::ThisProcess,
                None => Runner::AnotherProcess,
            },
            is_resumption: false,
            shown: String::new(),
            recorded: RecordedReport::default(),
        }
    }

    /// Returns the run that a command without an input continued: the next one that begins so.
    pub(crate) fn of_resumption(session: SessionId, receipt: &Receipt) -> Self {
        Self {
            is_resumption: true,
            ..Self::of_input(session, receipt)
        }
    }

    /// Follows `run`, which took the command without our hearing of it.
    pub(crate) fn begin_unseen(&mut self, run: Option<RunId>) {
        self.run = self.run.take().or(run);
    }

    /// Returns the run, once it is known which one took the command.
    pub(crate) fn id(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// Whether a run has taken the command.
    pub(crate) fn has_begun(&self) -> bool {
        self.run.is_some()
    }

    /// Returns what follows from an event of the session.
    pub(crate) fn on_event(&mut self, event: &SessionEvent) -> Vec<FollowStep> {
        let event = match &event.body {
            SessionEventBody::Entry(line) => return self.on_entry(line),
            SessionEventBody::Live(event) => event,
        };
        let is_own = event.source.is_empty();
        if self.run.is_none()
            && is_own
            && self.is_resumption
            && matches!(event.kind, EventKind::RunStarted { resumed: true, .. })
        {
            self.run = Some(event.run.clone());
        }
        let Some(run) = &self.run else {
            return Vec::new();
        };
        if is_own && event.run != *run {
            return Vec::new();
        }
        let mut steps = vec![FollowStep::Show(event.clone())];
        match &event.kind {
            EventKind::TextDelta { text } if is_own => self.shown.push_str(text),
            EventKind::ModelStarted { .. } | EventKind::ModelRetry { .. } if is_own => {
                self.shown.clear();
            }
            EventKind::RunEnded {
                outcome,
                reason,
                text,
                steps: model_calls,
                usage,
                cost,
                value,
                waiting,
            } if is_own => steps.push(FollowStep::Ended(RunReport {
                session: self.session.clone(),
                run: run.clone(),
                outcome: *outcome,
                reason: reason.clone(),
                text: text.clone(),
                steps: *model_calls,
                usage: *usage,
                cost: *cost,
                value: value.clone(),
                waiting: waiting.clone(),
            })),
            _ => {}
        }
        steps
    }

    fn on_entry(&mut self, line: &JournalLine) -> Vec<FollowStep> {
        match &line.entry {
            Entry::User(input) if input.inbox_rows.contains(&self.input) => {
                self.run = Some(input.run.clone());
            }
            Entry::Steer(steer) if steer.inbox_rows.contains(&self.input) => {
                self.run = Some(steer.run.clone());
            }
            Entry::Model(reply) if self.run.as_ref() == Some(&reply.run) => {
                return self.on_reply(line.seq, reply);
            }
            Entry::End(end) if self.run.as_ref() == Some(&end.run) => {
                return vec![FollowStep::Recorded(self.report(end))];
            }
            Entry::User(_)
            | Entry::Steer(_)
            | Entry::Model(_)
            | Entry::End(_)
            | Entry::Session(_)
            | Entry::Call(_)
            | Entry::Result(_)
            | Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Notice(_)
            | Entry::Set(_)
            | Entry::Pin(_)
            | Entry::Compaction(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_) => {}
        }
        Vec::new()
    }

    /// An answer of the model is recorded. Text that was lost on the way is shown now.
    fn on_reply(&mut self, seq: u64, reply: &ModelReply) -> Vec<FollowStep> {
        let is_first = self.recorded.steps == 0;
        self.recorded.steps += 1;
        self.recorded.usage += reply.usage;
        self.recorded.cost = match (self.recorded.cost, reply.cost) {
            (None, Some(cost)) if is_first => Some(cost),
            (Some(mut sum), Some(cost)) => {
                sum += cost;
                Some(sum)
            }
            (Some(_) | None, None) | (None, Some(_)) => None,
        };
        let message = Message::Assistant {
            content: reply.content.clone(),
        };
        self.recorded.text = message.text();
        let shown = std::mem::take(&mut self.shown);
        let missing = match self.runner {
            Runner::ThisProcess => "",
            Runner::AnotherProcess => self
                .recorded
                .text
                .strip_prefix(&shown)
                .unwrap_or(&self.recorded.text),
        };
        if missing.is_empty() {
            return Vec::new();
        }
        vec![FollowStep::Show(Arc::new(Event {
            seq: 0,
            entry: seq,
            run: reply.run.clone(),
            child: None,
            source: Vec::new(),
            kind: EventKind::TextDelta {
                text: missing.to_owned(),
            },
        }))]
    }

    fn report(&self, end: &RunEnd) -> RunReport {
        RunReport {
            session: self.session.clone(),
            run: end.run.clone(),
            outcome: end.outcome,
            reason: end.reason.clone(),
            text: self.recorded.text.clone(),
            steps: self.recorded.steps,
            usage: self.recorded.usage,
            cost: self.recorded.cost,
            value: None,
            waiting: Vec::new(),
        }
    }
}
