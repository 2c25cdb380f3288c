//! The text of journal entries, for searching and reading.

use std::collections::HashSet;
use stead_core::{Block, CallResult, Entry, JournalLine, ToolCall};
use stead_search::LineSpeaker;
use stead_tools::known_tool;

/// Tools whose results repeat what was said. They are not searched.
const LOOKUP_TOOLS: [&str; 6] = [
    "memory_search",
    "memory_get",
    "session_search",
    "session_list",
    "session_history",
    "recall",
];

/// The text of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryText {
    /// The author.
    pub voice: LineSpeaker,
    /// The text: calls as `name {arguments}`, media as `[type name]`.
    pub text: String,
}

/// Returns the text of `entry`; `None` if it has none.
pub fn entry_text(entry: &Entry) -> Option<EntryText> {
    let (voice, text) = match entry {
        Entry::User(input) => (
            LineSpeaker::User,
            blocks_text(&input.content, &HashSet::new()),
        ),
        Entry::Model(reply) => (
            LineSpeaker::Assistant,
            blocks_text(&reply.content, &HashSet::new()),
        ),
        Entry::Result(result) => (
            voice_of(result),
            blocks_text(&result.content, &HashSet::new()),
        ),
        Entry::Steer(steer) => (
            LineSpeaker::User,
            blocks_text(&steer.content, &HashSet::new()),
        ),
        Entry::Notice(notice) => (LineSpeaker::Harness, notice.text.clone()),
        Entry::Compaction(compaction) => (
            LineSpeaker::Harness,
            compaction.view.summary.clone().unwrap_or_default(),
        ),
        Entry::Session(_)
        | Entry::Call(_)
        | Entry::Ask(_)
        | Entry::Decision(_)
        | Entry::Set(_)
        | Entry::Pin(_)
        | Entry::Hook(_)
        | Entry::Rewind(_)
        | Entry::End(_) => return None,
    };
    Some(EntryText { voice, text }).filter(|said| !said.text.trim().is_empty())
}

fn voice_of(result: &CallResult) -> LineSpeaker {
    if result.untrusted {
        LineSpeaker::Outside
    } else {
        LineSpeaker::Tool
    }
}

/// Returns the lines of a journal that are searched: everything except the searches themselves.
pub(super) fn searchable_lines(lines: &[JournalLine]) -> Vec<stead_search::SourceLine> {
    let mut searches: HashSet<&str> = HashSet::new();
    let mut out = Vec::new();
    for line in lines {
        let said = match &line.entry {
            Entry::Model(reply) => {
                searches.extend(reply.content.iter().filter_map(|block| match block {
                    Block::ToolCall(call) if is_lookup(call) => Some(call.id.as_str()),
                    Block::ToolCall(_)
                    | Block::Text { .. }
                    | Block::Media(_)
                    | Block::Thinking(_) => None,
                }));
                Some(EntryText {
                    voice: LineSpeaker::Assistant,
                    text: blocks_text(&reply.content, &searches),
                })
            }
            Entry::Result(result) if searches.contains(result.id.as_str()) => None,
            entry => entry_text(entry),
        };
        out.extend(
            said.filter(|said| !said.text.trim().is_empty())
                .map(|said| stead_search::SourceLine {
                    place: line.seq,
                    at: Some(line.at),
                    voice: said.voice,
                    text: said.text,
                }),
        );
    }
    out
}

fn is_lookup(call: &ToolCall) -> bool {
    let name = known_tool(&call.name).map_or(call.name.as_str(), |tool| tool.name);
    LOOKUP_TOOLS.contains(&name)
}

fn blocks_text(blocks: &[Block], without: &HashSet<&str>) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Media(media) => {
            let name = media
                .name
                .as_ref()
                .map_or(String::new(), |name| format!(" {name}"));
            Some(format!("[{}{name}]", media.mime))
        }
        Block::Thinking(thinking) => Some(thinking.text.clone()),
        Block::ToolCall(call) if without.contains(call.id.as_str()) => None,
        Block::ToolCall(call) => Some(format!("{} {}", call.name, call.args)),
    });
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
