//! Applying journal entries to the screen of `stead chat`. An entry has the whole content of what
//! live events may have shown before; what they have not shown is shown now.
//!
//! Effects: none.

use super::super::transcript::{self, CallStage, ItemBody, Tone};
use super::{Chat, ChatPhase, typed_text};
use crate::cli::changes::change_of_arguments;
use serde_json::Value;
use stead::core::{
    Block, CallResult, Entry, JournalLine, Message, ModelReply, RunCause, ShownEnd, UserInput,
};

/// How inputs of a chat came, as their entries say.
pub(in crate::cli::chat) const VIA_CHAT: &str = "chat";
/// The most characters of a result that are shown.
const PREVIEW_CHARS: usize = 400;

impl Chat {
    pub(in crate::cli::chat) fn on_entry(&mut self, line: &JournalLine) {
        match &line.entry {
            Entry::User(input) => self.on_input(input),
            Entry::Steer(steer) => self.push(transcript::user_item(&steer.content)),
            Entry::Model(reply) => self.on_reply(reply),
            Entry::Result(result) => self.on_result(result),
            Entry::Session(_)
            | Entry::Call(_)
            | Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Notice(_)
            | Entry::Set(_)
            | Entry::Pin(_)
            | Entry::Compaction(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_) => {}
        }
    }

    /// A run begins. Its input is on the screen already if it was typed here.
    fn on_input(&mut self, input: &UserInput) {
        match input.cause {
            RunCause::Input if self.is_typed_here(input) => {
                let typed = self.unrecorded.pop_front();
                // A long input is recorded shortened.
                if typed.as_deref() == Some(&*typed_text(&input.content)) {
                    self.note_attachments(&input.content);
                }
            }
            RunCause::Input => self.push(transcript::user_item(&input.content)),
            RunCause::Wake => self.note(Tone::Info, "a background task has ended"),
            RunCause::Resume => {}
        }
        if self.phase == ChatPhase::Idle {
            self.enter_running();
        }
    }

    fn is_typed_here(&self, input: &UserInput) -> bool {
        let Some(typed) = self.unrecorded.front() else {
            return false;
        };
        *typed == typed_text(&input.content) || input.origin.via.as_deref() == Some(VIA_CHAT)
    }

    /// Shows the whole text of an answer, if pieces of it were lost.
    fn on_reply(&mut self, reply: &ModelReply) {
        let is_call = |block: &Block| match block {
            Block::ToolCall(call) => Some(call.clone()),
            Block::Text { .. } | Block::Media(_) | Block::Thinking(_) => None,
        };
        self.step_calls = reply.content.iter().filter_map(is_call).collect();
        let message = Message::Assistant {
            content: reply.content.clone(),
        };
        let whole = message.text();
        let from = self.step_start.min(self.items.len());
        let answers = self.items[from..]
            .iter()
            .filter_map(|item| match &item.body {
                ItemBody::Answer(text) => Some(text.as_str()),
                ItemBody::User { .. } | ItemBody::Call(_) | ItemBody::Note(..) => None,
            });
        let shown: String = answers.collect();
        if shown == whole {
            return;
        }
        let mut at = 0;
        self.items.retain(|item| {
            at += 1;
            at <= from || !matches!(item.body, ItemBody::Answer(_))
        });
        if !whole.is_empty() {
            self.push(ItemBody::Answer(whole));
        }
    }

    /// Shows the end of a call, if its live event was lost.
    fn on_result(&mut self, result: &CallResult) {
        let stage = self.find_call(&result.id).map(|(_, call)| &call.stage);
        if matches!(stage, Some(CallStage::Ended { .. })) {
            return;
        }
        let text = Message::User {
            content: result.content.clone(),
        }
        .text();
        let end = result.status.shown(result.exit_code);
        let call = self.step_calls.iter().find(|call| call.id == result.id);
        let (name, args) = match call.cloned() {
            Some(call) => (call.name, call.args),
            // A nested call: without its beginning there is nothing to show.
            None if self.find_call(&result.id).is_none() => return,
            None => (String::new(), Value::Null),
        };
        let diff = (end == ShownEnd::Succeeded)
            .then(|| change_of_arguments(&name, &args))
            .flatten();
        let ended = CallStage::Ended {
            end,
            preview: text.chars().take(PREVIEW_CHARS).collect(),
            diff,
            ms: Some(result.ms),
        };
        self.update_call(&result.id, &name, &args, ended);
    }
}
