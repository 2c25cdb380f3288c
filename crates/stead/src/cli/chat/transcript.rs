//! A conversation as items of the screen of `stead chat`.
//!
//! Effects: none.

use crate::cli::changes::change_of_arguments;
use crate::cli::render::call_line;
use serde_json::Value;
use stead::core::{Block, Message, SessionState, ShownEnd};

/// One item of the screen. The id never changes; the revision changes with the body.
#[derive(Debug, PartialEq)]
pub(super) struct ChatItem {
    pub(super) id: u64,
    pub(super) revision: u64,
    pub(super) body: ItemBody,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemBody {
    /// An input of the person, and the names of attached files.
    User {
        text: String,
        attached: Vec<String>,
    },
    /// Markdown text of the model.
    Answer(String),
    Call(CallItem),
    Note(Tone, String),
}

/// The tone of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// A message of the interface.
    Info,
    Warning,
    Error,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallItem {
    pub(super) id: String,
    /// The subagent that makes the call.
    pub(super) who: Option<String>,
    pub(super) name: String,
    pub(super) args: Value,
    pub(super) stage: CallStage,
    pub(super) details: Details,
}

impl CallItem {
    /// Returns the tool and its main argument on one line.
    pub(super) fn line(&self) -> String {
        let line = call_line(&self.name, &self.args);
        match &self.who {
            Some(who) => format!("[{who}] {line}"),
            None => line,
        }
    }
}

/// The stage of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallStage {
    /// The call waits for a person because of this rule, with this preview.
    AwaitingApproval {
        rule: String,
        preview: Option<String>,
    },
    /// The call runs, and has this output so far.
    Running(String),
    Ended {
        end: ShownEnd,
        preview: String,
        /// The change of files that the call made.
        diff: Option<String>,
        ms: Option<u64>,
    },
}

/// Whether a call shows its arguments and result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Details {
    Hidden,
    Shown,
}

/// The maximum number of characters shown of an earlier result.
const PREVIEW_CHARS: usize = 400;

/// Returns the current conversation of a session.
pub(super) fn session_items(state: &SessionState) -> Vec<ItemBody> {
    let mut bodies: Vec<ItemBody> = Vec::new();
    for turn in &state.turns {
        match &*turn.message {
            Message::User { content } if turn.is_user_input() => bodies.push(user_item(content)),
            Message::User { content } => {
                bodies.push(ItemBody::Note(Tone::Warning, texts(content).join("\n\n")));
            }
            Message::Assistant { content } => bodies.extend(content.iter().filter_map(answer_item)),
            Message::Tool { results } => {
                for result in results {
                    let preview = texts(&result.content)
                        .join("\n")
                        .chars()
                        .take(PREVIEW_CHARS)
                        .collect();
                    let end = result.status.shown(result.exit_code);
                    let call = bodies.iter_mut().rev().find_map(|body| match body {
                        ItemBody::Call(call) if call.id == result.id => Some(call),
                        ItemBody::Call(_)
                        | ItemBody::User { .. }
                        | ItemBody::Answer(_)
                        | ItemBody::Note(..) => None,
                    });
                    if let Some(call) = call {
                        let diff = (end == ShownEnd::Succeeded)
                            .then(|| change_of_arguments(&call.name, &call.args))
                            .flatten();
                        call.stage = CallStage::Ended {
                            end,
                            preview,
                            diff,
                            ms: None,
                        };
                    }
                }
            }
        }
    }
    bodies
}

/// Returns an input as an item: the first text is the person's, the rest was attached.
pub(super) fn user_item(content: &[Block]) -> ItemBody {
    let mut blocks = content.iter();
    let text = blocks.next().and_then(Block::as_text).unwrap_or_default();
    let title = |block: &Block| match block {
        // A message of the harness to the model.
        Block::Text { text } if text.starts_with("<system_reminder>") => None,
        Block::Text { text } => text
            .lines()
            .next()
            .map(|line| line.trim_end_matches(':').to_owned()),
        Block::Media(media) => Some(format!(
            "Attached file {}",
            media.name.as_deref().unwrap_or(&media.mime)
        )),
        Block::Thinking(_) | Block::ToolCall(_) => None,
    };
    ItemBody::User {
        text: text.to_owned(),
        attached: blocks.filter_map(title).collect(),
    }
}

fn answer_item(block: &Block) -> Option<ItemBody> {
    match block {
        Block::Text { text } => Some(ItemBody::Answer(text.clone())),
        Block::ToolCall(call) => Some(ItemBody::Call(CallItem {
            id: call.id.clone(),
            who: None,
            name: call.name.clone(),
            args: call.args.clone(),
            stage: CallStage::Running(String::new()),
            details: Details::Hidden,
        })),
        Block::Media(_) | Block::Thinking(_) => None,
    }
}

fn texts(content: &[Block]) -> Vec<&str> {
    content.iter().filter_map(Block::as_text).collect()
}
