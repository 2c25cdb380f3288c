//! A known answer cut into the pieces in which it would have arrived.

use crate::Delta;
use std::num::NonZeroUsize;
use stead_core::Block;

/// The pieces of a whole answer, `chunk` characters at a time, or every block in one piece.
pub(crate) fn of(content: &[Block], chunk: Option<NonZeroUsize>) -> Vec<Delta> {
    let mut pieces = Vec::new();
    let mut calls = 0;
    for block in content {
        match block {
            Block::Text { text: said } => pieces.extend(text(said, chunk)),
            Block::Thinking(thought) => pieces.extend(thinking(&thought.text, chunk)),
            Block::ToolCall(called) => {
                pieces.extend(call(calls, &called.name, &called.args.to_string(), chunk));
                calls += 1;
            }
            Block::Media(_) => {}
        }
    }
    pieces
}

pub(crate) fn text(text: &str, chunk: Option<NonZeroUsize>) -> impl Iterator<Item = Delta> {
    cut(text, chunk).map(|piece| Delta::Text(piece.to_owned()))
}

pub(crate) fn thinking(text: &str, chunk: Option<NonZeroUsize>) -> impl Iterator<Item = Delta> {
    cut(text, chunk).map(|piece| Delta::Thinking(piece.to_owned()))
}

pub(crate) fn call(index: u32, name: &str, json: &str, chunk: Option<NonZeroUsize>) -> impl Iterator<Item = Delta> {
    let started = Delta::CallStarted { index, name: name.to_owned() };
    let args = cut(json, chunk).map(move |piece| Delta::CallArgs { index, json: piece.to_owned() });
    std::iter::once(started).chain(args)
}

/// Cuts a text after every `chunk` characters.
fn cut(text: &str, chunk: Option<NonZeroUsize>) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = chunk.and_then(|chunk| rest.char_indices().nth(chunk.get())).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_nothing_is_lost() {
        let pieces = |chunk| cut("grüße!", NonZeroUsize::new(chunk)).collect::<Vec<_>>();
        assert_eq!(pieces(0), ["grüße!"]);
        assert_eq!(pieces(4), ["grüß", "e!"]);
        assert_eq!(pieces(6), ["grüße!"]);
        assert_eq!(pieces(1).concat(), "grüße!");
        assert_eq!(cut("", None).count(), 0);
    }
}
