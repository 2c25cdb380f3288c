//! The conversation as text for a model that writes a summary without the agent's context.
//!
//! Unlike the text of journal entries for search, long texts, arguments and results are cut in the
//! middle, thinking is left out, and each message has its speaker: a summary needs the course of
//! the work and not every detail.
//!
//! Effects: none.

use stead_core::{Block, Message, ToolResult, TurnMessage, text_tokens};

/// The most bytes of the arguments of a call, and of a result. The text around them says what
/// matters.
const MAX_ARGS: usize = 600;
const MAX_RESULT: usize = 2_000;
/// The most bytes of any other text.
const MAX_TEXT: usize = 24_000;

/// Returns one message as text.
pub(super) fn render_turn(turn: &TurnMessage) -> String {
    match &*turn.message {
        Message::User { content } => {
            let speaker = if turn.is_user_input() {
                "PERSON"
            } else {
                "HARNESS"
            };
            format!("[{}] {speaker}: {}\n", turn.seq, render_blocks(content))
        }
        Message::Assistant { content } => {
            format!("[{}] AGENT: {}\n", turn.seq, render_blocks(content))
        }
        Message::Tool { results } => results
            .iter()
            .map(|result| render_result(turn.seq, result))
            .collect(),
    }
}

fn render_result(seq: u64, result: &ToolResult) -> String {
    let text = Message::Tool {
        results: vec![result.clone()],
    }
    .text();
    format!(
        "[{seq}] RESULT of {} ({}): {}\n",
        result.name,
        result.status.as_str(),
        truncate_middle(&text, MAX_RESULT)
    )
}

fn render_blocks(content: &[Block]) -> String {
    let parts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(truncate_middle(text, MAX_TEXT)),
        Block::ToolCall(call) => Some(format!(
            "calls {} {}",
            call.name,
            truncate_middle(&call.args.to_string(), MAX_ARGS)
        )),
        Block::Media(media) => Some(format!(
            "({} {})",
            media.mime,
            media.name.as_deref().unwrap_or("without a name")
        )),
        Block::Thinking(_) => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Returns the messages as pieces of at most about `limit` tokens. Only a message that is larger by
/// itself is cut.
pub(super) fn split_into_pieces(turns: &[TurnMessage], limit: u64) -> Vec<String> {
    let mut pieces: Vec<(String, u64)> = Vec::new();
    for turn in turns {
        let text = render_turn(turn);
        let text = if text_tokens(&text) > limit {
            truncate_middle(&text, (limit as usize).saturating_mul(2))
        } else {
            text
        };
        let tokens = text_tokens(&text);
        match pieces.last_mut() {
            Some((piece, sum)) if *sum + tokens <= limit => {
                piece.push_str(&text);
                *sum += tokens;
            }
            Some(_) | None => pieces.push((text, tokens)),
        }
    }
    pieces.into_iter().map(|(piece, _)| piece).collect()
}

/// Returns the beginning and the end of a text, with at most about `limit` bytes.
pub(super) fn truncate_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - limit / 3);
    format!(
        "{} … [{} bytes] … {}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}
