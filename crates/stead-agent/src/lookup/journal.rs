//! What entries of a journal say, for searching and for reading again.

use std::collections::HashSet;
use stead_core::{Block, CallResult, Entry, Line, ToolCall};
use stead_search::Voice;
use stead_tools::known_tool;

/// Tools that repeat what was said: to find what they found would only find the search.
const LOOKUP_TOOLS: [&str; 6] = [
    "memory_search",
    "memory_get",
    "session_search",
    "session_list",
    "session_history",
    "recall",
];

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Who says it.
    pub voice: Voice,
    /// The words: calls as `name {arguments}`, media as `[type name]`.
    pub text: String,
}

/// What `entry` says; none if nobody says anything.
pub fn said(entry: &Entry) -> Option<Said> {
    let (voice, text) = match entry {
        Entry::User(input) => (Voice::User, blocks(&input.content, &HashSet::new())),
        Entry::Model(reply) => (Voice::Assistant, blocks(&reply.content, &HashSet::new())),
        Entry::Result(result) => (voice_of(result), blocks(&result.content, &HashSet::new())),
        Entry::Steer(steer) => (Voice::User, blocks(&steer.content, &HashSet::new())),
        Entry::Notice(notice) => (Voice::Harness, notice.text.clone()),
        Entry::Compaction(compaction) => (
            Voice::Harness,
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
    Some(Said { voice, text }).filter(|said| !said.text.trim().is_empty())
}

fn voice_of(result: &CallResult) -> Voice {
    if result.untrusted {
        Voice::Outside
    } else {
        Voice::Tool
    }
}

/// What is searched of a journal: all that was said, without the searches themselves.
pub(super) fn searched(lines: &[Line]) -> Vec<stead_search::Line> {
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
                Some(Said {
                    voice: Voice::Assistant,
                    text: blocks(&reply.content, &searches),
                })
            }
            Entry::Result(result) if searches.contains(result.id.as_str()) => None,
            entry => said(entry),
        };
        out.extend(
            said.filter(|said| !said.text.trim().is_empty())
                .map(|said| stead_search::Line {
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

fn blocks(blocks: &[Block], without: &HashSet<&str>) -> String {
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
