//! Splitting lines into rows of the search index, of limited size and with their words.
//!
//! Effects: none.

use crate::tokenizer::tokenize;
use crate::{SearchSource, SourceLine};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Longer lines are split into pieces, so that a hit in them can be located.
const MAX_PIECE_BYTES: usize = 1200;
/// The part of one line that is searched.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// The number of rows written with one statement.
pub(crate) const BATCH_ROWS: usize = 500;

/// Returns the rows of a line as JSON: id, source, place, at, voice, hash, text, scope, sequence,
/// beside.
pub(crate) fn rows<'a>(
    source: &'a SearchSource,
    source_id: i64,
    lines: &'a [SourceLine],
    first_id: i64,
) -> impl Iterator<Item = Value> + 'a {
    let scope = format!("k{} s{source_id}", source.kind.code());
    let pieces = lines.iter().flat_map(|line| {
        split_text(&line.text)
            .into_iter()
            .map(move |piece| (line, piece))
    });
    pieces.zip(first_id..).map(move |((line, piece), id)| {
        let mut sequence = String::new();
        let mut beside = String::new();
        for word in tokenize(&piece).tokens {
            let column = if word.kind.is_sequence() {
                &mut sequence
            } else {
                &mut beside
            };
            column.push_str(&word.text);
            column.push(' ');
        }
        json!([
            id,
            source_id,
            line.position,
            line.at.map(|at| at.as_millisecond()),
            line.voice.code(),
            text_hash(&piece),
            piece,
            scope,
            sequence,
            beside
        ])
    })
}

/// Returns a hash that identifies a text.
pub(crate) fn text_hash(text: &str) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&Sha256::digest(text.as_bytes())[..8]);
    i64::from_le_bytes(first)
}

/// Splits a text into pieces that end at the end of a line or word if possible.
fn split_text(text: &str) -> Vec<String> {
    // SQLite ends a text at a NUL.
    let text: String = text
        .chars()
        .map(|c| if c == '\0' { ' ' } else { c })
        .collect();
    let mut rest = &text[..floor_char_boundary(&text, MAX_LINE_BYTES)];
    let mut pieces = Vec::new();
    while rest.len() > MAX_PIECE_BYTES {
        let window = &rest[..floor_char_boundary(rest, MAX_PIECE_BYTES)];
        let late = floor_char_boundary(window, MAX_PIECE_BYTES / 2);
        let end = [
            window[late..].rfind('\n'),
            window[late..].rfind(char::is_whitespace),
        ]
        .into_iter()
        .flatten()
        .next();
        let end = end.map_or(window.len(), |end| late + end);
        pieces.push(rest[..end].trim().to_owned());
        rest = &rest[end..];
    }
    pieces.push(rest.trim().to_owned());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Returns the last character boundary at or before `at`.
pub(crate) fn floor_char_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_kept_in_pieces_without_losing_a_word() {
        for word in ["word ", "数据库", "row\n", "longwithoutend"] {
            let text = word.repeat(2000);
            let pieces = split_text(&text);
            assert!(
                pieces.iter().all(|piece| piece.len() <= MAX_PIECE_BYTES),
                "{word}"
            );
            let strip = |text: &str| {
                text.chars()
                    .filter(|c| !c.is_whitespace())
                    .collect::<String>()
            };
            assert_eq!(strip(&pieces.concat()), strip(&text), "{word}");
        }
        assert_eq!(split_text(" a\0b "), ["a b"]);
        assert_eq!(split_text(" \n "), Vec::<String>::new());
    }
}
