//! The conversation as a text for a summariser that does not share the agent's context, in pieces
//! that it can take.

use stead_core::{Block, Message, ToolResult, Turn, text_tokens};

/// Bytes that are shown of an argument list and of a result: facts are in the words around them.
const MAX_ARGS: usize = 600;
const MAX_RESULT: usize = 2_000;
/// Bytes that are shown of anything else.
const MAX_WORDS: usize = 24_000;

/// One message as text.
pub(super) fn rendered(turn: &Turn) -> String {
    match &*turn.message {
        Message::User { content } => {
            let who = if turn.is_of_person() {
                "PERSON"
            } else {
                "HARNESS"
            };
            format!("[{}] {who}: {}\n", turn.seq, words(content))
        }
        Message::Assistant { content } => format!("[{}] AGENT: {}\n", turn.seq, words(content)),
        Message::Tool { results } => results
            .iter()
            .map(|result| outcome(turn.seq, result))
            .collect(),
    }
}

fn outcome(seq: u64, result: &ToolResult) -> String {
    let text = Message::Tool {
        results: vec![result.clone()],
    }
    .text();
    format!(
        "[{seq}] RESULT of {} ({}): {}\n",
        result.name,
        result.status.as_str(),
        cut(&text, MAX_RESULT)
    )
}

fn words(content: &[Block]) -> String {
    let said = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(cut(text, MAX_WORDS)),
        Block::ToolCall(call) => Some(format!(
            "calls {} {}",
            call.name,
            cut(&call.args.to_string(), MAX_ARGS)
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
pub(super) fn pieces(turns: &[Turn], most: u64) -> Vec<String> {
    let mut pieces: Vec<(String, u64)> = Vec::new();
    for turn in turns {
        let text = rendered(turn);
        let text = if text_tokens(&text) > most {
            cut(&text, (most as usize).saturating_mul(2))
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
pub(super) fn cut(text: &str, most: usize) -> String {
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
