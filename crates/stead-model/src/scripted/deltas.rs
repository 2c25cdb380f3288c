//! Part of the scripted model: splitting the texts of its script into the pieces in which they
//! arrive.
//!
//! Effects: none.

use crate::Delta;
use std::num::NonZeroUsize;

pub(super) fn text(text: &str, chunk: Option<NonZeroUsize>) -> impl Iterator<Item = Delta> {
    cut(text, chunk).map(|piece| Delta::Text(piece.to_owned()))
}

pub(super) fn thinking(text: &str, chunk: Option<NonZeroUsize>) -> impl Iterator<Item = Delta> {
    cut(text, chunk).map(|piece| Delta::Thinking(piece.to_owned()))
}

pub(super) fn call(
    index: u32,
    name: &str,
    json: &str,
    chunk: Option<NonZeroUsize>,
) -> impl Iterator<Item = Delta> {
    let started = Delta::CallStarted {
        index,
        name: name.to_owned(),
    };
    let args = cut(json, chunk).map(move |piece| Delta::CallArgs {
        index,
        json: piece.to_owned(),
    });
    std::iter::once(started).chain(args)
}

/// Splits a text after every `chunk` characters.
fn cut(text: &str, chunk: Option<NonZeroUsize>) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = chunk
            .and_then(|chunk| rest.char_indices().nth(chunk.get()))
            .map_or(rest.len(), |(end, _)| end);
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
