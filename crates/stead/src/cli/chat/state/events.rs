//! Applying the events of a run to the screen of `stead chat`.
//!
//! Effects: the clock.

use super::super::transcript::{CallItem, CallStage, Details, ItemBody, Tone};
use super::{Activity, Chat, ChatPhase};
use crate::cli::render::{compacted_line, plan_line};
use serde_json::Value;
use stead::agent::INTERRUPTED;
use stead::core::{Event, EventKind, NoticeLevel, PlanStage, RunOutcome};

/// The most bytes of the output of a running call that are kept.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// Returns the id of the item of a call of a subagent. Ids of calls are unique within a session only.
pub(super) fn child_call(who: &str, id: &str) -> String {
    format!("{who}\n{id}")
}

impl Chat {
    pub(in crate::cli::chat) fn on_event(&mut self, event: &Event) {
        if let EventKind::Decision { id, .. } | EventKind::ToolEnded { id, .. } = &event.kind {
            let child = event.child.as_ref();
            let asking = child.map_or(&self.info.session, |child| &child.session);
            self.forget_question(&asking.clone(), id);
        }
        if !event.source.is_empty() {
            return self.on_child_event(event);
        }
        match &event.kind {
            EventKind::RunStarted { model, resumed, .. } => {
                self.info.model.clone_from(model);
                if !resumed {
                    self.info.turns += 1;
                }
            }
            EventKind::ModelStarted { step } => {
                self.step_start = self.items.len();
                if let ChatPhase::Running(run) = &mut self.phase {
                    run.step = *step;
                }
                self.set_activity(Activity::Waiting);
            }
            EventKind::TextDelta { text } => {
                self.set_activity(Activity::Answering);
                self.append_answer(text);
            }
            EventKind::ThinkingDelta { .. } => self.set_activity(Activity::Thinking),
            EventKind::ToolCallStarted { name, .. } => {
                self.set_activity(Activity::Calling(name.clone()))
            }
            EventKind::ToolArgsDelta { .. } => {}
            EventKind::ModelRetry {
                attempt,
                wait_ms,
                reason,
            } => {
                let step_start = self.step_start;
                let mut at = 0;
                self.items.retain(|item| {
                    at += 1;
                    at <= step_start || !matches!(item.body, ItemBody::Answer(_))
                });
                let seconds = *wait_ms as f64 / 1000.0;
                self.note(
                    Tone::Warning,
                    format!("attempt {attempt} in {seconds:.1} s: {reason}"),
                );
                self.set_activity(Activity::Waiting);
            }
            EventKind::ModelEnded {
                usage,
                cost,
                context_tokens,
                context_window,
                ..
            } => {
                self.info.context = context_tokens.map(|used| (used, *context_window));
                self.info.usage += *usage;
                self.info.cost = match (self.info.cost, cost) {
                    (Some(mut total), Some(part)) => {
                        total += *part;
                        Some(total)
                    }
                    (Some(_) | None, None) | (None, Some(_)) => None,
                };
            }
            EventKind::ToolStarted { id, name, args, .. } => {
                self.set_activity(Activity::Tools);
                self.update_call(id, name, args, CallStage::Running(String::new()));
            }
            EventKind::ToolOutputDelta { id, text } => self.append_output(id, text),
            EventKind::ToolEnded {
                id,
                name,
                status,
                exit_code,
                preview,
                diff,
                ms,
                ..
            } => {
                let ended = CallStage::Ended {
                    end: status.shown(*exit_code),
                    preview: preview.clone(),
                    diff: diff.clone(),
                    ms: Some(*ms),
                };
                self.update_call(id, name, &Value::Null, ended);
            }
            EventKind::Ask {
                id,
                name,
                args,
                rule,
                preview,
                ..
            } => {
                self.update_call(
                    id,
                    name,
                    args,
                    CallStage::AwaitingApproval {
                        rule: rule.clone(),
                        preview: preview.clone(),
                    },
                );
            }
            // The question is forgotten above.
            EventKind::Decision { .. } => {}
            EventKind::AgentSwitched { from, to, model } => {
                self.info.model.clone_from(model);
                self.info.agent.clone_from(to);
                self.note(Tone::Info, format!("switched from {from} to {to}"));
            }
            // Its entry is shown.
            EventKind::Steered { .. } => {}
            EventKind::Awaiting { questions } => self.ask_all(questions),
            EventKind::Notice { level, text } => {
                let tone = match level {
                    NoticeLevel::Info => Tone::Info,
                    NoticeLevel::Warning => Tone::Warning,
                };
                self.note(tone, text.clone());
            }
            EventKind::Todos { todos } => self.info.todos.clone_from(todos),
            EventKind::Plan { stage } => {
                self.info.planning = stage
                    .as_ref()
                    .and_then(PlanStage::draft_file)
                    .map(str::to_owned);
                self.note(Tone::Info, plan_line(stage.as_ref()));
            }
            EventKind::Mode { to } => {
                self.info.mode = *to;
                self.note(Tone::Info, format!("mode {to} from now on"));
            }
            EventKind::CompactionStarted { .. } => self.set_activity(Activity::Summarising),
            EventKind::Compacted {
                dropped,
                before_tokens,
                after_tokens,
                fallback,
                ..
            } => {
                let text = compacted_line(
                    [*before_tokens, *after_tokens],
                    dropped,
                    fallback.as_deref(),
                );
                self.note(Tone::Info, text);
                self.info.context = Some((
                    *after_tokens,
                    self.info.context.and_then(|(_, window)| window),
                ));
            }
            EventKind::RunEnded {
                outcome, reason, ..
            } => self.show_run_end(*outcome, reason.as_deref()),
        }
    }

    /// Shows how a run ended.
    pub(in crate::cli::chat) fn show_run_end(&mut self, outcome: RunOutcome, reason: Option<&str>) {
        let reason = reason.unwrap_or("");
        match outcome {
            RunOutcome::Completed if reason.is_empty() => {}
            RunOutcome::Completed => self.note(Tone::Info, reason),
            RunOutcome::Cancelled if reason == INTERRUPTED => self.note(Tone::Info, reason),
            RunOutcome::Cancelled => self.note(Tone::Warning, "cancelled; /resume resumes it"),
            RunOutcome::Parked => self.note(
                Tone::Warning,
                format!("parked: {reason}; /resume asks again, `stead approvals` also edits and responds"),
            ),
            RunOutcome::Budget => self.note(Tone::Warning, format!("budget: {reason}; /raise AMOUNT resumes it")),
            RunOutcome::StepLimit | RunOutcome::TimedOut => {
                self.note(Tone::Warning, format!("{}: {reason}; /resume resumes it", outcome.as_str()));
            }
            RunOutcome::Failed => self.note(Tone::Error, format!("failed: {reason}; /resume tries again")),
        }
    }

    pub(super) fn append_answer(&mut self, text: &str) {
        let last = self.items.len().saturating_sub(1);
        if last >= self.step_start
            && let Some(item) = self.items.last_mut()
            && let ItemBody::Answer(answer) = &mut item.body
        {
            answer.push_str(text);
            item.revision += 1;
            return;
        }
        self.push(ItemBody::Answer(text.to_owned()));
    }

    /// Updates the stage of a call. A call that is not on the screen yet is added.
    pub(super) fn update_call(&mut self, id: &str, name: &str, args: &Value, stage: CallStage) {
        if let Some((item_revision, call)) = self.find_call(id) {
            *item_revision += 1;
            call.stage = stage;
            return;
        }
        let id = id.to_owned();
        let name = name.to_owned();
        let args = args.clone();
        self.push(ItemBody::Call(CallItem {
            id,
            who: None,
            name,
            args,
            stage,
            details: Details::Hidden,
        }));
    }

    /// Says which subagent makes a call.
    pub(super) fn name_caller(&mut self, id: &str, who: &str) {
        if let Some((_, call)) = self.find_call(id) {
            call.who = Some(who.to_owned());
        }
    }

    pub(super) fn append_output(&mut self, id: &str, text: &str) {
        if let Some((item_revision, call)) = self.find_call(id)
            && let CallStage::Running(output) = &mut call.stage
        {
            output.push_str(text);
            // Only its end is shown.
            if output.len() > 2 * MAX_OUTPUT_BYTES {
                let from = output.ceil_char_boundary(output.len() - MAX_OUTPUT_BYTES);
                output.drain(..from);
            }
            *item_revision += 1;
        }
    }

    pub(super) fn find_call(&mut self, id: &str) -> Option<(&mut u64, &mut CallItem)> {
        self.items
            .iter_mut()
            .rev()
            .find_map(|item| match &mut item.body {
                ItemBody::Call(call) if call.id == id => Some((&mut item.revision, call)),
                ItemBody::Call(_)
                | ItemBody::User { .. }
                | ItemBody::Answer(_)
                | ItemBody::Note(..) => None,
            })
    }

    pub(super) fn set_activity(&mut self, now: Activity) {
        if let ChatPhase::Running(run) = &mut self.phase
            && run.activity != Activity::Cancelling
        {
            run.activity = now;
        }
    }

    /// Shows the events of subagents: their calls with who makes them, other events a line each.
    fn on_child_event(&mut self, event: &Event) {
        let who = &event.source.join("/");
        let session = event.child.as_ref().map(|child| &child.session);
        if let Some(session) = session
            && !self.children.contains_key(session)
        {
            self.children.insert(session.clone(), who.clone());
        }
        match &event.kind {
            EventKind::RunStarted { .. } => self.note(Tone::Info, format!("[{who}] began")),
            EventKind::ToolStarted { id, name, args, .. } => {
                let running = CallStage::Running(String::new());
                self.update_call(&child_call(who, id), name, args, running);
                self.name_caller(&child_call(who, id), who);
            }
            EventKind::ToolOutputDelta { id, text } => {
                self.append_output(&child_call(who, id), text);
            }
            EventKind::ToolEnded {
                id,
                name,
                status,
                exit_code,
                preview,
                diff,
                ms,
                ..
            } => {
                let ended = CallStage::Ended {
                    end: status.shown(*exit_code),
                    preview: preview.clone(),
                    diff: diff.clone(),
                    ms: Some(*ms),
                };
                self.update_call(&child_call(who, id), name, &Value::Null, ended);
                self.name_caller(&child_call(who, id), who);
            }
            EventKind::ModelEnded { usage, cost, .. } => {
                self.info.usage += *usage;
                self.info.cost = match (self.info.cost, cost) {
                    (Some(mut total), Some(part)) => {
                        total += *part;
                        Some(total)
                    }
                    (Some(_) | None, None) | (None, Some(_)) => None,
                };
            }
            EventKind::Ask {
                id,
                name,
                args,
                rule,
                preview,
                ..
            } => {
                let asks = CallStage::AwaitingApproval {
                    rule: rule.clone(),
                    preview: preview.clone(),
                };
                self.update_call(&child_call(who, id), name, args, asks);
                self.name_caller(&child_call(who, id), who);
            }
            EventKind::RunEnded { outcome, .. } => {
                self.note(Tone::Info, format!("[{who}] {}", outcome.as_str()))
            }
            EventKind::Notice { text, .. } => self.note(Tone::Info, format!("[{who}] {text}")),
            EventKind::Awaiting { questions } => self.ask_all(questions),
            _ => {}
        }
    }
}
