//! The text of journal entries, for search and display.
//!
//! An entry is rendered whole, with thinking and the arguments of calls, because a search must find
//! everything that the journal has. Other renderings of a conversation leave out or cut what their
//! readers do not need: archives, summaries, the extraction of facts, and the command line.
//!
//! Effects: none.

use std::collections::HashSet;
use stead_core::{Ask, Block, CallIntent, CallResult, Entry, JournalLine, ToolKind};
use stead_search::LineSpeaker;
use stead_tools::builtin_tool;

/// The text of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryText {
    /// The speaker.
    pub voice: LineSpeaker,
    /// The text: calls as `name {arguments}`, media as `[type name]`.
    pub text: String,
}

/// Returns the text of `entry`, if it has any.
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
        Entry::Notice(notice) if notice.untrusted => (LineSpeaker::Outside, notice.text.clone()),
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
        | Entry::Sent(_)
        | Entry::Rewind(_)
        | Entry::End(_) => return None,
    };
    Some(EntryText { voice, text }).filter(|entry| !entry.text.trim().is_empty())
}

/// Returns the speaker of a result.
fn voice_of(result: &CallResult) -> LineSpeaker {
    if result.untrusted {
        LineSpeaker::Outside
    } else {
        LineSpeaker::Tool
    }
}

/// Returns the searchable lines of a journal: all texts, except for searches and their results.
pub(super) fn searchable_lines(lines: &[JournalLine]) -> Vec<stead_search::SourceLine> {
    let mut searches: HashSet<&str> = HashSet::new();
    let mut out = Vec::new();
    for line in lines {
        let text = match &line.entry {
            Entry::Model(reply) => {
                searches.extend(reply.content.iter().filter_map(|block| match block {
                    Block::ToolCall(call) if is_lookup(&call.name) => Some(call.id.as_str()),
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
            Entry::Call(CallIntent { id, nested, .. }) | Entry::Ask(Ask { id, nested, .. }) => {
                let is_search = nested.as_ref().is_some_and(|call| is_lookup(&call.name));
                searches.extend(is_search.then_some(id.as_str()));
                None
            }
            Entry::Result(result) if searches.contains(result.id.as_str()) => None,
            other => entry_text(other),
        };
        out.extend(
            text.filter(|entry| !entry.text.trim().is_empty())
                .map(|entry| stead_search::SourceLine {
                    position: line.seq,
                    at: Some(line.at),
                    voice: entry.voice,
                    text: entry.text,
                }),
        );
    }
    out
}

/// Whether the tool is a lookup, whose result only repeats other text. A search should not find
/// earlier searches. The catalogue of built-in tools is used, because the journal may be older than
/// the current tools.
fn is_lookup(name: &str) -> bool {
    builtin_tool(name).is_some_and(|tool| tool.kind == ToolKind::Lookup)
}

/// Returns the text of blocks, except for the calls with these ids.
fn blocks_text(blocks: &[Block], excluded_calls: &HashSet<&str>) -> String {
    let is_included = |block: &&Block| match block {
        Block::ToolCall(call) => !excluded_calls.contains(call.id.as_str()),
        Block::Text { .. } | Block::Media(_) | Block::Thinking(_) => true,
    };
    let texts = blocks.iter().filter(is_included).map(Block::plain_text);
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}
