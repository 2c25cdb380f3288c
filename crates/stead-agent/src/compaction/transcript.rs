//! The conversation as a text for a summariser that does not share the agent's context, in pieces
//! that it can take.

use stead_core::{Block, Message, ToolResult, TurnMessage, text_tokens};

/// Bytes that are shown of an argument list and of a result: facts are in the words around them.
const MAX_ARGS: usize = 600;
const MAX_RESULT: usize = 2_000;
/// Bytes that are shown of anything else.
const MAX_TEXT: usize = 24_000;

/// One message as text.
pub(super) fn render_turn(turn: &TurnMessage) -> String {
    match &*turn.message {
        Message::User { content } => {
            let who = if turn.is_user_input() {
                "PERSON"
            } else {
                "HARNESS"
            };
            format!("[{}] {who}: {}\n", turn.seq, render_blocks(content))
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
    let said = content.iter().filter_map(|block| match block {
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
    said.collect::<Vec<_>>().join("\n")
}

/// Pieces of at most about `most` tokens, cut between messages; a message that is larger alone is
/// cut itself.
pub(super) fn split_into_pieces(turns: &[TurnMessage], most: u64) -> Vec<String> {
    let mut pieces: Vec<(String, u64)> = Vec::new();
    for turn in turns {
        let text = render_turn(turn);
        let text = if text_tokens(&text) > most {
            truncate_middle(&text, (most as usize).saturating_mul(2))
        } else {
            text
        };
        let tokens = text_tokens(&text);
        match pieces.last_mut() {
            Some((piece, sum)) if *sum + tokens <= most => {
                piece.push_str(&text);
                *sum += tokens;
            }
            Some(_) | None => pieces.push((text, tokens)),
        }
    }
    pieces.into_iter().map(|(piece, _)| piece).collect()
}

/// The beginning and the end of a text.
pub(super) fn truncate_middle(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    format!(
        "{} … [{} bytes] … {}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}
