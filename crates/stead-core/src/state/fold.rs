//! The fold: the effect of each entry on the state.
//!
//! Effects: none.

use super::{
    ActiveSkill, CachedTokenEstimate, ProviderTokenCount, SessionState, TurnMessage, add_cost,
};
use crate::session_change::ChangeAuthor;
use crate::{
    Ask, CallIntent, CallResult, CallState, Decision, DecisionKind, Entry, FoldError, HookRun,
    Message, ModelReply, NestedId, Notice, NoticeKind, Run, RunCause, RunEnd, RunId, SessionChange,
    SessionStart, SkillActivation, Steer, StepCalls, StopReason, TaintOrigin, ToolCall, UserInput,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum length of a title in characters.
const TITLE_CHARS: usize = 72;

impl SessionState {
    /// Applies one entry. On an error the state is unchanged.
    pub fn apply(&mut self, seq: u64, entry: &Entry) -> Result<(), FoldError> {
        let fold = match entry {
            Entry::Session(start) => self.start(seq, start),
            Entry::User(input) => self.input(seq, input),
            Entry::Model(reply) => self.reply(seq, reply),
            Entry::Call(intent) => self.begin_call(intent),
            Entry::Result(result) => self.result(seq, result),
            Entry::Ask(ask) => self.ask(ask),
            Entry::Decision(decision) => self.decide(decision),
            Entry::Notice(notice) => self.notice(seq, notice),
            Entry::Steer(steer) => self.steer(seq, steer),
            Entry::Set(set) => {
                self.change(seq, &set.change, ChangeAuthor::Person);
                Ok(())
            }
            Entry::Pin(pin) => self.pin(pin),
            Entry::Compaction(compaction) => self.compact(seq, compaction),
            Entry::Hook(hook) => self.hook(hook),
            // Its content is part of the conversation already, or not meant for the model.
            Entry::Sent(_) => Ok(()),
            Entry::Rewind(rewind) => self.rewind(rewind.to),
            Entry::End(end) => self.end(end),
        };
        fold.map_err(|reason| FoldError {
            seq,
            kind: entry.kind(),
            reason: reason.to_owned(),
        })?;
        self.seq = seq;
        Ok(())
    }
    fn start(&mut self, seq: u64, start: &SessionStart) -> Result<(), &'static str> {
        if seq != 1 || self.session.is_some() {
            return Err("only the first line opens a session");
        }
        if start.version > crate::FORMAT_VERSION {
            return Err("this journal was written by a newer version of stead; use that version");
        }
        self.session = Some(start.session.clone());
        self.agent = Some(start.agent.clone());
        self.parent = start.parent.clone();
        self.spawned = start.spawned.clone();
        self.session_model = start.model.clone();
        Ok(())
    }

    fn input(&mut self, seq: u64, input: &UserInput) -> Result<(), &'static str> {
        if self.run.is_some() {
            return Err("the run before it was not ended");
        }
        if input.cause == RunCause::Resume && !self.is_resumable() {
            return Err("there is nothing to resume");
        }
        self.remember_inputs(seq, &input.inbox_rows);
        if !input.content.is_empty() {
            let message = Message::User {
                content: input.content.clone(),
            };
            if self.title.is_empty() {
                // The title is made from the text, not from attachments.
                let said = Message::User {
                    content: input.content.iter().take(1).cloned().collect(),
                };
                self.title = title_of(&said.text());
            }
            self.push_message(seq, message, Some(input.run.clone()));
            self.newest_input = seq;
            self.reminder_due = false;
        }
        let run = Run {
            output_schema: input.output_schema.clone(),
            ..Run::new(input.run.clone())
        };
        self.run = Some(match &self.last_run {
            // A run that resumes another continues with its budget.
            Some(before) if input.cause == RunCause::Resume => run.resuming(before, input.raise),
            Some(_) | None => run,
        });
        self.runs += 1;
        self.raised += input.raise;
        Ok(())
    }

    fn reply(&mut self, seq: u64, reply: &ModelReply) -> Result<(), &'static str> {
        let run = self.open_run(&reply.run)?;
        if !run.pending.is_empty() {
            return Err("calls of the step before are open");
        }
        let message = Message::Assistant {
            content: reply.content.clone(),
        };
        let calls: Vec<ToolCall> = message.calls().cloned().collect();
        let first = run.has_spent_nothing();
        run.steps += 1;
        // What was cut off is no answer: a run that goes on asks again.
        let is_answer = calls.is_empty() && reply.stop != StopReason::CutOff;
        run.answered = is_answer.then(|| reply.stop.clone());
        run.usage += reply.usage;
        run.cost = if first {
            reply.cost
        } else {
            add_cost(run.cost, reply.cost)
        };
        run.pending = StepCalls::new(calls);
        self.usage += reply.usage;
        self.cost = if self.model.is_none() {
            reply.cost
        } else {
            add_cost(self.cost, reply.cost)
        };
        self.model = Some(reply.model.clone());
        self.call_ids
            .extend(message.calls().map(|call| Box::from(call.id.as_str())));
        // An empty answer ends the run but is not added to the conversation: no provider accepts an
        // empty message.
        if !reply.content.is_empty() {
            self.push_message(seq, message, None);
        }
        let tokens = reply.usage.total_tokens();
        self.counted = (reply.usage.input_tokens > 0).then_some(ProviderTokenCount {
            tokens,
            turns: self.turns.len(),
        });
        Ok(())
    }

    fn result(&mut self, seq: u64, result: &CallResult) -> Result<(), &'static str> {
        let run = self.open_run(&result.run)?;
        run.introduce(&result.id, result.nested.as_ref())?;
        run.pending.finish(seq, result)?;
        self.seen.extend(
            result
                .seen
                .iter()
                .map(|(path, version)| (path.clone(), version.clone())),
        );
        if let Some(SkillActivation { skill, version }) = &result.activates {
            let call = result.id.clone();
            self.skills.insert(
                skill.clone(),
                ActiveSkill {
                    version: version.clone(),
                    seq,
                    call,
                },
            );
        }
        if result.untrusted {
            self.taint(seq, &result.taint);
        }
        if let Some(change) = &result.change {
            self.change(seq, change, ChangeAuthor::Call);
        }
        self.told.extend(result.tasks.iter().cloned());
        let Some(run) = &mut self.run else {
            return Ok(());
        };
        if let Some(results) = run.take_results() {
            self.push_message(seq, Message::Tool { results }, None);
        }
        Ok(())
    }

    fn decide(&mut self, decision: &Decision) -> Result<(), &'static str> {
        let run = self.open_run(&decision.run)?;
        let pending = run
            .pending
            .find_mut(&decision.id)
            .ok_or("no such call in this step")?;
        let CallState::Asked {
            args_hash, terms, ..
        } = &pending.state
        else {
            return Err("no question is open for this call");
        };
        if *args_hash != decision.args_hash {
            return Err("the decision was made for different arguments");
        }
        let by = decision.by.clone();
        pending.state = match decision.kind() {
            DecisionKind::Approve => CallState::Approved {
                args_hash: decision.args_hash.clone(),
                files: terms.files.clone(),
                seal: decision.seal.clone(),
            },
            DecisionKind::Edit => {
                let args = decision.args.clone().unwrap_or_default();
                let args_hash = crate::args_hash(&args);
                pending.call.args = args;
                pending.call.invalid = None;
                run.edited.insert(decision.id.clone(), by);
                // What a person wrote is theirs, whatever the files are by then.
                CallState::Approved {
                    args_hash,
                    files: BTreeMap::new(),
                    seal: decision.seal.clone(),
                }
            }
            DecisionKind::Reject => CallState::Rejected {
                by,
                words: decision.words.clone(),
            },
            DecisionKind::Respond => CallState::Responded {
                by,
                words: decision.words.clone().unwrap_or_default(),
            },
        };
        Ok(())
    }

    fn notice(&mut self, seq: u64, notice: &Notice) -> Result<(), &'static str> {
        let run = self.open_run(&notice.run)?;
        match notice.kind {
            NoticeKind::Repetition => run.nudged = true,
            NoticeKind::Reminder => self.reminder_due = false,
            // The end of a task may need an answer.
            NoticeKind::Tasks => run.answered = None,
            NoticeKind::Tools => self.told_tools.clone_from(&notice.tools),
            NoticeKind::Correction => {
                run.answered = None;
                run.corrections += 1;
            }
            NoticeKind::Context | NoticeKind::Continuation | NoticeKind::CutOff => {}
        }
        if notice.untrusted {
            self.taint(seq, &notice.taint);
        }
        self.told.extend(notice.tasks.iter().cloned());
        // A notice without words only records what holds.
        if !notice.text.is_empty() {
            self.push_message(seq, Message::user(notice.text.clone()), None);
        }
        Ok(())
    }

    fn steer(&mut self, seq: u64, steer: &Steer) -> Result<(), &'static str> {
        let run = self.open_run(&steer.run)?;
        if !run.pending.is_empty() {
            return Err("calls are open");
        }
        // There is more to answer now.
        run.answered = None;
        self.remember_inputs(seq, &steer.inbox_rows);
        self.push_message(
            seq,
            Message::User {
                content: steer.content.clone(),
            },
            None,
        );
        if let Some(turn) = self.turns.last_mut() {
            turn.is_steering = true;
        }
        Ok(())
    }

    fn taint(&mut self, seq: u64, origins: &[TaintOrigin]) {
        self.taint.taint(seq, origins);
        self.tainted = self.taint.first();
    }

    fn change(&mut self, seq: u64, change: &SessionChange, by: ChangeAuthor) {
        match (change, by) {
            // A rewind does not return to an earlier model: another provider would be sent the
            // conversation without anybody having said so.
            (SessionChange::Model { to }, _) => {
                self.session_model = Some(to.clone());
                return;
            }
            (SessionChange::Trust, ChangeAuthor::Person) => {
                self.taint.trust(seq);
                self.tainted = self.taint.first();
                return;
            }
            (SessionChange::Title { to }, ChangeAuthor::Person) => {
                self.title.clone_from(to);
                return;
            }
            // Only a person can vouch for what a session has taken in, and name it.
            (SessionChange::Trust | SessionChange::Title { .. }, ChangeAuthor::Call) => return,
            (
                SessionChange::Todos { .. }
                | SessionChange::Plan { .. }
                | SessionChange::Agent { .. }
                | SessionChange::Mode { .. }
                | SessionChange::Ceiling(_),
                _,
            ) => {}
        }
        self.changes
            .push(seq, change.clone(), by, self.newest_input);
        // An agent that was chosen before the first input did not replace another.
        self.reminder_due |= matches!(change, SessionChange::Agent { .. }) && self.runs > 0;
        self.refresh_from_changes();
    }

    /// Updates the fields that are derived from changes.
    fn refresh_from_changes(&mut self) {
        self.todos = self.changes.todos().to_vec();
        self.plan = self.changes.plan().cloned();
        self.acting = self.changes.agent().map(str::to_owned);
        let mode = self.changes.mode();
        self.mode = mode.map(|(mode, _)| mode);
        self.mode_seal = mode.and_then(|(_, seal)| seal.map(str::to_owned));
    }

    /// Applies a hook run. A hook changes only the arguments of a call that has not started.
    fn hook(&mut self, hook: &HookRun) -> Result<(), &'static str> {
        let Some(args) = &hook.args else {
            return Ok(());
        };
        let (Some(id), Some(call)) = (&hook.run, &hook.call) else {
            return Err("the hook changed arguments but names no call");
        };
        let run = self.open_run(id)?;
        run.introduce(call, hook.nested.as_ref())?;
        let pending = run
            .pending
            .find_mut(call)
            .ok_or("no such call in this step")?;
        match pending.state {
            CallState::New => pending.call.args = args.clone(),
            // A person was shown other arguments, or the call uses them.
            CallState::Asked { .. }
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => {
                return Err("the arguments of this call can no longer change");
            }
        }
        Ok(())
    }

    fn rewind(&mut self, to: u64) -> Result<(), &'static str> {
        if self.run.is_some() {
            return Err("a run is open");
        }
        let keep = self.turns.partition_point(|turn| turn.seq <= to);
        if self
            .turns
            .get(keep)
            .is_some_and(|turn| turn.starts_run.is_none())
        {
            return Err("only the point before a person's input can be returned to");
        }
        self.turns.truncate(keep);
        self.skills.retain(|_, skill| skill.seq <= to);
        self.pins.retain(|seq| *seq <= to);
        self.taint.rewind(to);
        self.tainted = self.taint.first();
        self.changes.rewind(to);
        self.newest_input = self
            .turns
            .iter()
            .rev()
            .find(|turn| turn.starts_run.is_some())
            .map_or(0, |turn| turn.seq);
        self.refresh_from_changes();
        self.views.retain(|shown| shown.seq <= to);
        self.counted = None;
        self.last_outcome = None;
        Ok(())
    }

    fn end(&mut self, end: &RunEnd) -> Result<(), &'static str> {
        let run = self.open_run(&end.run)?;
        if !run.pending.is_empty() {
            return Err("calls are open");
        }
        run.guard = crate::RepeatGuard::default();
        self.last_run = self.run.take();
        self.last_outcome = Some(end.outcome);
        Ok(())
    }

    fn begin_call(&mut self, intent: &CallIntent) -> Result<(), &'static str> {
        let repeatable = intent.repeatable;
        let run = self.open_run(&intent.run)?;
        run.introduce(&intent.id, intent.nested.as_ref())?;
        self.advance(&intent.run, &intent.id, |state| match state {
            CallState::New | CallState::Approved { .. } => Ok(CallState::Begun { repeatable }),
            CallState::Begun { repeatable: true } => Ok(CallState::Begun { repeatable }),
            CallState::Begun { repeatable: false } => {
                Err("the call was begun before and must not run twice")
            }
            CallState::Asked { .. } => Err("the call waits for a decision"),
            CallState::Rejected { .. } | CallState::Responded { .. } => {
                Err("the call was rejected or answered by a person")
            }
            CallState::Done { .. } => Err("the call has a result"),
        })?;
        // The open calls are those of the newest answer.
        let has_calls = |turn: &&mut TurnMessage| turn.message.calls().next().is_some();
        if intent.changes
            && NestedId::parse(&intent.id).is_none()
            && let Some(turn) = self.turns.iter_mut().rev().find(has_calls)
        {
            turn.changing_calls.insert(intent.id.clone());
        }
        Ok(())
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), &'static str> {
        let run = self.open_run(&ask.run)?;
        run.introduce(&ask.id, ask.nested.as_ref())?;
        self.advance(&ask.run, &ask.id, |state| match state {
            // A second question means that the hash of the arguments no longer matched.
            CallState::New | CallState::Approved { .. } => {
                let Ask {
                    args_hash,
                    rule,
                    rules,
                    terms,
                    ..
                } = ask.clone();
                Ok(CallState::Asked {
                    args_hash,
                    rule,
                    rules,
                    terms,
                })
            }
            CallState::Asked { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => Err("nobody can be asked about this call any more"),
        })
    }

    fn push_message(&mut self, seq: u64, message: Message, opens: Option<RunId>) {
        self.turns.push(TurnMessage {
            seq,
            message: Arc::new(message),
            starts_run: opens,
            is_steering: false,
            changing_calls: BTreeSet::new(),
            tokens: CachedTokenEstimate::default(),
        });
    }

    fn open_run(&mut self, id: &RunId) -> Result<&mut Run, &'static str> {
        match &mut self.run {
            Some(run) if run.id == *id => Ok(run),
            Some(_) => Err("another run is open"),
            None => Err("no run is open"),
        }
    }

    fn advance(
        &mut self,
        run: &RunId,
        id: &str,
        step: impl FnOnce(&CallState) -> Result<CallState, &'static str>,
    ) -> Result<(), &'static str> {
        let run = self.open_run(run)?;
        let pending = run
            .pending
            .find_mut(id)
            .ok_or("no such call in this step")?;
        pending.state = step(&pending.state)?;
        Ok(())
    }
}

fn title_of(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
