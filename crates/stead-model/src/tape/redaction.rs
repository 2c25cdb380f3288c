//! Removing secrets from an answer before it is written on a tape.
//!
//! Effects: none.

use super::{TapeDelta, TapeEntry};
use crate::Reply;
use stead_core::{Block, Redactor, StopReason};

/// Returns the answer without secrets. If it holds one, its pieces are made from the whole answer:
/// as they arrived, a secret may be spread over several of them.
pub(super) fn redacted(entry: TapeEntry, redactor: &Redactor) -> TapeEntry {
    let reply = redact_reply(entry.reply.clone(), redactor);
    let is_clean = reply == entry.reply && !are_telling(&entry.pieces, redactor);
    let pieces = match is_clean {
        true => entry.pieces,
        false => reply.deltas().iter().filter_map(TapeDelta::of).collect(),
    };
    TapeEntry {
        reply,
        pieces,
        ..entry
    }
}

/// Whether the pieces hold a secret that the whole answer does not: a model may have written one in
/// a form that the answer does not keep.
fn are_telling(pieces: &[TapeDelta], redactor: &Redactor) -> bool {
    let texts = pieces.iter().map(|piece| match piece {
        TapeDelta::Text(text) | TapeDelta::Thinking(text) => text,
        TapeDelta::Call { name, .. } => name,
        TapeDelta::Args { json, .. } => json,
    });
    let said: String = texts.map(String::as_str).collect();
    *redactor.redact(&said) != said
}

fn redact_reply(reply: Reply, redactor: &Redactor) -> Reply {
    let clean = |text: String| redactor.redact_owned(text);
    let stop = match reply.stop {
        StopReason::Other(stop) => StopReason::Other(clean(stop)),
        known @ (StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::MaxTokens
        | StopReason::StopSequence
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::CutOff) => known,
    };
    let blocks = reply.content.into_iter();
    Reply {
        content: blocks.map(|block| redact_block(block, redactor)).collect(),
        stop,
        model: clean(reply.model),
        ..reply
    }
}

fn redact_block(block: Block, redactor: &Redactor) -> Block {
    let clean = |text: String| redactor.redact_owned(text);
    match block {
        Block::Text { text } => Block::Text { text: clean(text) },
        Block::Thinking(mut thinking) => {
            thinking.text = clean(thinking.text);
            thinking.signature = thinking.signature.map(clean);
            thinking.id = thinking.id.map(clean);
            Block::Thinking(thinking)
        }
        Block::ToolCall(mut call) => {
            call.id = clean(call.id);
            call.name = clean(call.name);
            redactor.redact_all(&mut call.args);
            call.invalid = call.invalid.map(clean);
            call.signature = call.signature.map(clean);
            Block::ToolCall(call)
        }
        Block::Media(mut media) => {
            media.mime = clean(media.mime);
            media.name = media.name.map(clean);
            Block::Media(media)
        }
    }
}
