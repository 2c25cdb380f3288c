//! Rendering a view of a conversation: the messages that a model is sent after a compaction.
//!
//! Effects: none.

use super::message_tokens;
use crate::{ActiveSkill, Block, Message, ToolCall, ToolResult, TurnMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A view of the history: the part that a model is shown, and what replaces the rest. Sequence
/// numbers are those of entries; 0 means none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextView {
    /// Messages up to this entry are replaced by the summary.
    #[serde(default)]
    pub covers: u64,
    /// The summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Long arguments of calls up to this entry are shown cut.
    #[serde(default)]
    pub cut_args: u64,
    /// Results up to this entry are shown cut.
    #[serde(default)]
    pub cut_results: u64,
    /// Texts that features of the harness show verbatim: the active plan, open todos.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<VerbatimSection>,
}

/// A text that is shown verbatim beside a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerbatimSection {
    /// The tag around it, such as `active_plan`.
    pub tag: String,
    /// The text.
    pub text: String,
}

/// A rendered view.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RenderedView {
    /// The entry of the compaction.
    pub(crate) seq: u64,
    pub(crate) view: ContextView,
    /// The input of the run that was open then, which is the task.
    pub(crate) task: Option<u64>,
    /// The messages at the beginning.
    pub(crate) prefix: Vec<Arc<Message>>,
    /// The index of the first turn that follows the prefix as it is.
    pub(crate) tail_start: usize,
    /// The estimated tokens of the prefix.
    pub(crate) tokens: u64,
}

/// An argument longer than this is cut in old calls.
const LONG_ARG: usize = 400;
/// A result longer than this is cut when it is old.
const LONG_RESULT: usize = 1_200;
/// What is shown of a cut text: its beginning and its end, in bytes.
const CUT_HEAD_BYTES: usize = 400;
const CUT_TAIL_BYTES: usize = 200;
/// The most of the current request that is repeated after a summary, in bytes.
const MAX_TASK_BYTES: usize = 16 * 1024;

const COMPACTION_NOTE: &str = "[The conversation up to here was made shorter to leave room. This stands for it; every word of it \
is still on record, and `recall` finds it.]";

/// Content that must be shown verbatim, whatever else is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VerbatimContent<'a> {
    /// The entries of pinned messages.
    pub(crate) pins: &'a BTreeSet<u64>,
    /// The active skills.
    pub(crate) skills: &'a BTreeMap<String, ActiveSkill>,
    /// The entries of the results that set the todos and the plan.
    pub(crate) current: [Option<u64>; 2],
    /// The entry of the input that is being worked on.
    pub(crate) task: Option<u64>,
}

impl VerbatimContent<'_> {
    /// Returns the skill whose body is this result.
    fn skill(&self, result: &ToolResult) -> Option<&str> {
        self.skills
            .iter()
            .find(|(_, skill)| skill.call == result.id)
            .map(|(name, _)| name.as_str())
    }

    /// Returns whether a result is never cut.
    fn must_stay_whole(&self, result: &ToolResult) -> bool {
        self.skill(result).is_some() || self.current.contains(&Some(result.seq))
    }
}

/// Renders `view`, created by the entry `seq`, of `turns`.
pub(crate) fn render_view(
    turns: &[TurnMessage],
    view: ContextView,
    seq: u64,
    verbatim: VerbatimContent<'_>,
) -> RenderedView {
    let covered = turns.partition_point(|turn| turn.seq <= view.covers);
    let changed = turns.partition_point(|turn| turn.seq <= view.cut_args.max(view.cut_results));
    let from = covered.max(changed);
    let mut prefix = Vec::new();
    if let Some(summary) = &view.summary {
        let text = summary_message(&turns[..covered], &view, summary, verbatim);
        prefix.push(Arc::new(Message::user(text)));
    }
    prefix.extend(
        turns[covered..from]
            .iter()
            .map(|turn| shorten_message(turn, &view, verbatim)),
    );
    let tokens = prefix.iter().map(|message| message_tokens(message)).sum();
    RenderedView {
        seq,
        view,
        task: verbatim.task,
        prefix,
        tail_start: from,
        tokens,
    }
}

/// Returns the message that replaces everything that is covered.
fn summary_message(
    covered: &[TurnMessage],
    view: &ContextView,
    summary: &str,
    verbatim: VerbatimContent<'_>,
) -> String {
    let mut text = format!(
        "{COMPACTION_NOTE}\n\n{}",
        wrap_in_tag("summary", "", summary.trim())
    );
    for turn in covered {
        if verbatim.pins.contains(&turn.seq) {
            text.push_str(&wrap_in_tag("pinned_message", "", &turn.message.text()));
        } else if verbatim.task == Some(turn.seq) {
            let task = middle_out(&turn.message.text(), MAX_TASK_BYTES / 2, MAX_TASK_BYTES / 2);
            text.push_str(&wrap_in_tag("current_request", "", &task));
        }
        let Message::Tool { results } = &*turn.message else {
            continue;
        };
        for result in results {
            let Some(skill) = verbatim.skill(result) else {
                continue;
            };
            let body = Message::Tool {
                results: vec![result.clone()],
            }
            .text();
            text.push_str(&wrap_in_tag(
                "active_skill",
                &format!(" name=\"{skill}\""),
                &body,
            ));
        }
    }
    for kept in &view.kept {
        text.push_str(&wrap_in_tag(&kept.tag, "", &kept.text));
    }
    text
}

/// Wraps a text in a tag that it cannot close.
fn wrap_in_tag(tag: &str, attributes: &str, text: &str) -> String {
    const TAGS: [&str; 7] = [
        "summary",
        "pinned_message",
        "current_request",
        "active_skill",
        "active_plan",
        "plan_mode",
        "open_todos",
    ];
    let mut safe = text.to_owned();
    for known in TAGS.into_iter().chain([tag]) {
        safe = safe
            .replace(&format!("</{known}"), &format!("&lt;/{known}"))
            .replace(&format!("<{known}"), &format!("&lt;{known}"));
    }
    format!("<{tag}{attributes}>\n{safe}\n</{tag}>\n")
}

/// Returns the message as an old one is shown, or the same message if nothing in it is long.
fn shorten_message(
    turn: &TurnMessage,
    view: &ContextView,
    verbatim: VerbatimContent<'_>,
) -> Arc<Message> {
    let whole = || turn.message.clone();
    match &*turn.message {
        Message::User { .. } => whole(),
        Message::Assistant { content } => {
            // The effect of such a call can be read where it was made, and the call in the journal.
            let long =
                |call: &ToolCall| turn.has_changing_call(&call.id) && has_long_text(&call.args);
            if turn.seq > view.cut_args || !turn.message.calls().any(long) {
                return whole();
            }
            let content = content.iter().map(|block| match block {
                Block::ToolCall(call) if long(call) => Block::ToolCall(ToolCall {
                    args: cut_args(&call.args),
                    ..call.clone()
                }),
                other => other.clone(),
            });
            Arc::new(Message::Assistant {
                content: content.collect(),
            })
        }
        Message::Tool { results } => {
            let long = |result: &ToolResult| is_long(result) && !verbatim.must_stay_whole(result);
            if turn.seq > view.cut_results || !results.iter().any(long) {
                return whole();
            }
            let cut = |result: &ToolResult| {
                if long(result) {
                    cut_result(result)
                } else {
                    result.clone()
                }
            };
            Arc::new(Message::Tool {
                results: results.iter().map(cut).collect(),
            })
        }
    }
}

fn has_long_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > LONG_ARG,
        Value::Array(items) => items.iter().any(has_long_text),
        Value::Object(fields) => fields.values().any(has_long_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn cut_args(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONG_ARG => {
            Value::String(middle_out(text, LONG_ARG / 4, 0))
        }
        Value::Array(items) => items.iter().map(cut_args).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), cut_args(value)))
            .collect(),
        other => other.clone(),
    }
}

fn is_long(result: &ToolResult) -> bool {
    result.content.iter().any(|block| match block {
        Block::Text { text } => text.len() > LONG_RESULT,
        Block::Media(_) => true,
        Block::Thinking(_) | Block::ToolCall(_) => false,
    })
}

fn cut_result(result: &ToolResult) -> ToolResult {
    let seq = result.seq;
    let content = result.content.iter().map(|block| match block {
        Block::Text { text } if text.len() > LONG_RESULT => Block::text(format!(
            "{}\n[older output, shown in part; recall(seq={seq}) shows all]",
            middle_out(text, CUT_HEAD_BYTES, CUT_TAIL_BYTES)
        )),
        Block::Media(media) => {
            let name = media
                .file
                .as_ref()
                .or(media.name.as_ref())
                .map_or(String::new(), |name| format!(" {name}"));
            Block::text(format!("[{}{name}: left out to make room]", media.mime))
        }
        other => other.clone(),
    });
    ToolResult {
        content: content.collect(),
        ..result.clone()
    }
}

/// Returns the beginning and the end of a text, and how much is missing between them.
pub(crate) fn middle_out(text: &str, head: usize, tail: usize) -> String {
    if text.len() <= head + tail + 64 {
        return text.to_owned();
    }
    let start = text.floor_char_boundary(head);
    let end = text.ceil_char_boundary(text.len() - tail);
    format!(
        "{}… [{} bytes left out] …{}",
        &text[..start],
        end - start,
        &text[end..]
    )
}
