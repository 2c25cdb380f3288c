//! How text becomes words: one way for lines and for queries, in every language and in code.
//!
//! | text | its words, in order | beside them |
//! |---|---|---|
//! | `Running tests` | `run` `test` | |
//! | `数据库` | `数` `据` `库` | `数据` `据库` |
//! | `HttpModel` | `http` `model` | `httpmodel` |
//! | `src/read_lines.rs` | `src` `read` `line` `rs` | `read_lines_rs` `src_read_lines_rs` |
//! | `E0308`, `Café` | `e0308` `cafe` | |

mod fold;
#[cfg(test)]
mod tests;

use rust_stemmers::{Algorithm, Stemmer};
use std::ops::Range;

/// Longer words are cut, in lines and in queries alike.
const MAX_WORD_CHARS: usize = 64;
/// Bytes of signs that may stand in a row inside one name, as in `std::env` and `a/../b`.
const MAX_CONNECTOR_BYTES: usize = 3;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// As it is looked up.
    pub(crate) text: String,
    /// Where it stands, in bytes.
    pub(crate) span: Range<usize>,
    pub(crate) sort: Sort,
}

/// What a word is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A word, or a part of a name.
    Plain,
    /// A character of a script without spaces, with others beside it.
    Character,
    /// Such a character by itself.
    Alone,
    /// Two such characters.
    Pair,
    /// A name as a whole.
    Whole,
}

impl Sort {
    /// Whether it is one of the words that follow each other; the others say the same again.
    pub(crate) fn is_sequence(self) -> bool {
        match self {
            Self::Plain | Self::Character | Self::Alone => true,
            Self::Pair | Self::Whole => false,
        }
    }
}

/// The words of a text, and how they belong together.
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub(crate) all: Vec<Word>,
    /// Where each name, and each pair of characters, ends in `all`.
    pub(crate) groups: Vec<usize>,
}

/// All words of `text`.
pub(crate) fn words(text: &str) -> Words {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = Words::default();
    for run in runs(text) {
        match run {
            Run::Ideographs(span) => ideographs(text, span, &mut out),
            Run::Name(span) => name(text, span, &stemmer, &mut out),
        }
    }
    out
}

#[derive(Debug, PartialEq, Eq)]
enum Run {
    Ideographs(Range<usize>),
    Name(Range<usize>),
}

/// What a character is for the division of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Ideograph,
    Letter,
    /// Joins letters to one name if they stand on both sides.
    Connector,
    Break,
}

fn class(c: char) -> Class {
    if c.is_ascii_alphanumeric() {
        return Class::Letter;
    }
    match c {
        '_' | '.' | '/' | '\\' | '-' | ':' | '\'' | '’' | '@' | '#' | '+' | '~' => {
            Class::Connector
        }
        _ if fold::is_ideograph(c) => Class::Ideograph,
        _ if c.is_alphanumeric() || fold::is_mark(c) => Class::Letter,
        _ => Class::Break,
    }
}

fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut connector_bytes = 0;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match class(c) {
            Class::Ideograph => match runs.last_mut() {
                Some(Run::Ideographs(span)) if span.end == at => span.end = end,
                _ => runs.push(Run::Ideographs(at..end)),
            },
            Class::Letter => match runs.last_mut() {
                Some(Run::Name(span)) if at - span.end == connector_bytes => span.end = end,
                _ => runs.push(Run::Name(at..end)),
            },
            Class::Connector if connector_bytes < MAX_CONNECTOR_BYTES => {
                connector_bytes += c.len_utf8();
                continue;
            }
            Class::Connector | Class::Break => {}
        }
        connector_bytes = 0;
    }
    runs
}

fn ideographs(text: &str, span: Range<usize>, out: &mut Words) {
    let characters: Vec<(Range<usize>, String)> = text[span.clone()]
        .char_indices()
        .map(|(at, c)| {
            (
                span.start + at..span.start + at + c.len_utf8(),
                fold::ideograph(c),
            )
        })
        .collect();
    let single = if characters.len() == 1 {
        Sort::Alone
    } else {
        Sort::Character
    };
    for (i, (span, text)) in characters.iter().enumerate() {
        out.all.push(Word {
            text: text.clone(),
            span: span.clone(),
            sort: single,
        });
        if let Some((next, following)) = characters.get(i + 1) {
            let text = format!("{text}{following}");
            out.all.push(Word {
                text,
                span: span.start..next.end,
                sort: Sort::Pair,
            });
            out.groups.push(out.all.len());
        } else if single == Sort::Alone {
            out.groups.push(out.all.len());
        }
    }
    // The last character of several belongs to the last pair.
    if let Some(last) = out.groups.last_mut() {
        *last = out.all.len();
    }
}

/// A part of a name between two connectors.
struct Segment {
    parts: Vec<(String, Range<usize>)>,
    /// What stands before it.
    after: Option<char>,
}

impl Segment {
    fn joined(&self) -> String {
        self.parts.iter().map(|(part, _)| part.as_str()).collect()
    }
}

fn name(text: &str, span: Range<usize>, stemmer: &Stemmer, out: &mut Words) {
    let segments = segments(text, &span);
    let push = |out: &mut Words, text: String, span: Range<usize>, sort| {
        if !text.is_empty() {
            out.all.push(Word {
                text: text.chars().take(MAX_WORD_CHARS).collect(),
                span,
                sort,
            });
        }
    };
    for segment in &segments {
        for (part, span) in &segment.parts {
            push(out, stem(stemmer, part), span.clone(), Sort::Plain);
        }
        if segment.parts.len() > 1 {
            push(
                out,
                stem(stemmer, &segment.joined()),
                span.clone(),
                Sort::Whole,
            );
        }
    }
    if segments.len() > 1 {
        let files: Vec<&[Segment]> = segments
            .chunk_by(|_, next| !matches!(next.after, Some('/' | '\\')))
            .collect();
        for file in files.iter().filter(|file| file.len() > 1) {
            push(out, whole(file), span.clone(), Sort::Whole);
        }
        if files.len() > 1 {
            push(out, whole(&segments), span.clone(), Sort::Whole);
        }
        if let [first, second] = segments.as_slice() {
            // `e-mail` is also `email`.
            push(
                out,
                stem(stemmer, &(first.joined() + &second.joined())),
                span,
                Sort::Whole,
            );
        }
    }
    if out.groups.last().copied().unwrap_or(0) < out.all.len() {
        out.groups.push(out.all.len());
    }
}

fn whole(segments: &[Segment]) -> String {
    segments
        .iter()
        .map(Segment::joined)
        .collect::<Vec<_>>()
        .join("_")
}

fn segments(text: &str, span: &Range<usize>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut before: Option<char> = None;
    let mut new_segment = true;
    let mut after = None;
    let characters = text[span.clone()]
        .char_indices()
        .map(|(at, c)| (span.start + at, c));
    let mut characters = characters.peekable();
    while let Some((at, c)) = characters.next() {
        if class(c) == Class::Connector {
            // `don't` is one word.
            if !matches!(c, '\'' | '’') {
                (new_segment, after, before) = (true, Some(c), None);
            }
            continue;
        }
        let next = characters.peek().map(|(_, next)| *next);
        let folded = fold::letter(c);
        let end = at + c.len_utf8();
        if new_segment {
            segments.push(Segment {
                parts: Vec::new(),
                after,
            });
            new_segment = false;
        }
        let Some(segment) = segments.last_mut() else {
            continue;
        };
        match segment.parts.last_mut() {
            Some((part, span)) if !begins_part(before, c, next) => {
                part.push_str(&folded);
                span.end = end;
            }
            _ => segment.parts.push((folded, at..end)),
        }
        before = Some(c);
    }
    segments
}

/// Whether `c` begins a part of a name: `readLines`, `HTTPServer`.
fn begins_part(before: Option<char>, c: char, next: Option<char>) -> bool {
    let Some(before) = before else { return false };
    c.is_uppercase()
        && (before.is_lowercase() || before.is_uppercase() && next.is_some_and(char::is_lowercase))
}

/// The stem of an English word; everything else as it is.
fn stem(stemmer: &Stemmer, word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    stemmer.stem(word).into_owned()
}
