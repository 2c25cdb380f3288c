//! The tokenizer: one for lines and queries, in every language and in code.
//!
//! | text | its words, in order | beside them |
//! |---|---|---|
//! | `Running tests` | `run` `test` | |
//! | `数据库` | `数` `据` `库` | `数据` `据库` |
//! | `HttpModel` | `http` `model` | `httpmodel` |
//! | `src/read_lines.rs` | `src` `read` `line` `rs` | `read_lines_rs` `src_read_lines_rs` |
//! | `E0308`, `Café` | `e0308` `cafe` | |
//!
//! Effects: none.

mod normalize;
#[cfg(test)]
mod tests;

use rust_stemmers::{Algorithm, Stemmer};
use std::ops::Range;

/// Longer words are cut, in lines and queries alike.
const MAX_WORD_CHARS: usize = 64;
/// The number of connector bytes in a row within one name, as in `std::env` and `a/../b`.
const MAX_CONNECTOR_BYTES: usize = 3;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchToken {
    /// The normalised text.
    pub(crate) text: String,
    /// The position in bytes.
    pub(crate) span: Range<usize>,
    pub(crate) kind: TokenKind,
}

/// The kind of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A word, or a part of a name.
    Plain,
    /// A character of a script without spaces, next to others.
    Character,
    /// Such a character by itself.
    Single,
    /// Two such characters.
    Bigram,
    /// A whole name.
    FullName,
}

impl TokenKind {
    /// Returns whether it is part of the sequence of words; the others repeat it in another form.
    pub(crate) fn is_sequence(self) -> bool {
        match self {
            Self::Plain | Self::Character | Self::Single => true,
            Self::Bigram | Self::FullName => false,
        }
    }
}

/// The words of a text, and how they are grouped.
#[derive(Debug, Default)]
pub(crate) struct TokenizedText {
    pub(crate) tokens: Vec<SearchToken>,
    /// The ends of each name, and of each pair of characters, in `all`.
    pub(crate) groups: Vec<usize>,
}

/// Returns all words of `text`.
pub(crate) fn tokenize(text: &str) -> TokenizedText {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = TokenizedText::default();
    for run in split_runs(text) {
        match run {
            CharRun::Ideographs(span) => push_ideographs(text, span, &mut out),
            CharRun::Name(span) => push_name(text, span, &stemmer, &mut out),
        }
    }
    out
}

#[derive(Debug, PartialEq, Eq)]
enum CharRun {
    Ideographs(Range<usize>),
    Name(Range<usize>),
}

/// The class of a character for the tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Ideograph,
    Letter,
    /// Joins letters on both sides to one name.
    Connector,
    Break,
}

fn char_class(c: char) -> CharClass {
    if c.is_ascii_alphanumeric() {
        return CharClass::Letter;
    }
    match c {
        '_' | '.' | '/' | '\\' | '-' | ':' | '\'' | '’' | '@' | '#' | '+' | '~' => {
            CharClass::Connector
        }
        _ if normalize::is_ideograph(c) => CharClass::Ideograph,
        _ if c.is_alphanumeric() || normalize::is_ignored_mark(c) => CharClass::Letter,
        _ => CharClass::Break,
    }
}

fn split_runs(text: &str) -> Vec<CharRun> {
    let mut runs: Vec<CharRun> = Vec::new();
    let mut connector_bytes = 0;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match char_class(c) {
            CharClass::Ideograph => match runs.last_mut() {
                Some(CharRun::Ideographs(span)) if span.end == at => span.end = end,
                _ => runs.push(CharRun::Ideographs(at..end)),
            },
            CharClass::Letter => match runs.last_mut() {
                Some(CharRun::Name(span)) if at - span.end == connector_bytes => span.end = end,
                _ => runs.push(CharRun::Name(at..end)),
            },
            CharClass::Connector if connector_bytes < MAX_CONNECTOR_BYTES => {
                connector_bytes += c.len_utf8();
                continue;
            }
            CharClass::Connector | CharClass::Break => {}
        }
        connector_bytes = 0;
    }
    runs
}

fn push_ideographs(text: &str, span: Range<usize>, out: &mut TokenizedText) {
    let characters: Vec<(Range<usize>, String)> = text[span.clone()]
        .char_indices()
        .map(|(at, c)| {
            (
                span.start + at..span.start + at + c.len_utf8(),
                normalize::normalize_ideograph(c),
            )
        })
        .collect();
    let single = if characters.len() == 1 {
        TokenKind::Single
    } else {
        TokenKind::Character
    };
    for (i, (span, text)) in characters.iter().enumerate() {
        out.tokens.push(SearchToken {
            text: text.clone(),
            span: span.clone(),
            kind: single,
        });
        if let Some((next, following)) = characters.get(i + 1) {
            let text = format!("{text}{following}");
            out.tokens.push(SearchToken {
                text,
                span: span.start..next.end,
                kind: TokenKind::Bigram,
            });
            out.groups.push(out.tokens.len());
        } else if single == TokenKind::Single {
            out.groups.push(out.tokens.len());
        }
    }
    // The last character of several belongs to the last pair.
    if let Some(last) = out.groups.last_mut() {
        *last = out.tokens.len();
    }
}

/// A part of a name between two connectors.
struct NameSegment {
    parts: Vec<(String, Range<usize>)>,
    /// The connector before it.
    connector_before: Option<char>,
}

impl NameSegment {
    fn joined(&self) -> String {
        self.parts.iter().map(|(part, _)| part.as_str()).collect()
    }
}

fn push_name(text: &str, span: Range<usize>, stemmer: &Stemmer, out: &mut TokenizedText) {
    let segments = split_segments(text, &span);
    let push = |out: &mut TokenizedText, text: String, span: Range<usize>, sort| {
        if !text.is_empty() {
            out.tokens.push(SearchToken {
                text: text.chars().take(MAX_WORD_CHARS).collect(),
                span,
                kind: sort,
            });
        }
    };
    for segment in &segments {
        for (part, span) in &segment.parts {
            push(out, stem(stemmer, part), span.clone(), TokenKind::Plain);
        }
        if segment.parts.len() > 1 {
            push(
                out,
                stem(stemmer, &segment.joined()),
                span.clone(),
                TokenKind::FullName,
            );
        }
    }
    if segments.len() > 1 {
        let files: Vec<&[NameSegment]> = segments
            .chunk_by(|_, next| !matches!(next.connector_before, Some('/' | '\\')))
            .collect();
        for file in files.iter().filter(|file| file.len() > 1) {
            push(out, full_name(file), span.clone(), TokenKind::FullName);
        }
        if files.len() > 1 {
            push(out, full_name(&segments), span.clone(), TokenKind::FullName);
        }
        if let [first, second] = segments.as_slice() {
            // `e-mail` is also `email`.
            push(
                out,
                stem(stemmer, &(first.joined() + &second.joined())),
                span,
                TokenKind::FullName,
            );
        }
    }
    if out.groups.last().copied().unwrap_or(0) < out.tokens.len() {
        out.groups.push(out.tokens.len());
    }
}

fn full_name(segments: &[NameSegment]) -> String {
    segments
        .iter()
        .map(NameSegment::joined)
        .collect::<Vec<_>>()
        .join("_")
}

fn split_segments(text: &str, span: &Range<usize>) -> Vec<NameSegment> {
    let mut segments: Vec<NameSegment> = Vec::new();
    let mut before: Option<char> = None;
    let mut new_segment = true;
    let mut after = None;
    let characters = text[span.clone()]
        .char_indices()
        .map(|(at, c)| (span.start + at, c));
    let mut characters = characters.peekable();
    while let Some((at, c)) = characters.next() {
        if char_class(c) == CharClass::Connector {
            // `don't` is one word.
            if !matches!(c, '\'' | '’') {
                (new_segment, after, before) = (true, Some(c), None);
            }
            continue;
        }
        let next = characters.peek().map(|(_, next)| *next);
        let folded = normalize::normalize_letter(c);
        let end = at + c.len_utf8();
        if new_segment {
            segments.push(NameSegment {
                parts: Vec::new(),
                connector_before: after,
            });
            new_segment = false;
        }
        let Some(segment) = segments.last_mut() else {
            continue;
        };
        match segment.parts.last_mut() {
            Some((part, span)) if !starts_name_part(before, c, next) => {
                part.push_str(&folded);
                span.end = end;
            }
            _ => segment.parts.push((folded, at..end)),
        }
        before = Some(c);
    }
    segments
}

/// Returns whether `c` begins a part of a name: `readLines`, `HTTPServer`.
fn starts_name_part(before: Option<char>, c: char, next: Option<char>) -> bool {
    let Some(before) = before else { return false };
    c.is_uppercase()
        && (before.is_lowercase() || before.is_uppercase() && next.is_some_and(char::is_lowercase))
}

/// Returns the stem of an English word; any other word is returned as it is.
fn stem(stemmer: &Stemmer, word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    stemmer.stem(word).into_owned()
}
