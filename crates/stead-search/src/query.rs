//! Search queries, and how they are parsed.
//!
//! Effects: none.

use crate::tokenizer::{SearchToken, TokenKind, tokenize};
use crate::{IndexError, SearchSourceKind};
use jiff::Timestamp;

/// The maximum number of hits of one search.
pub const MAX_LIMIT: usize = 301;
const DEFAULT_LIMIT: usize = 10;
/// Longer queries are cut.
const MAX_QUERY_CHARS: usize = 1000;
const MAX_TERMS: usize = 48;

/// English words that are not distinctive; left out if others remain.
const STOP_WORDS: &str = "a an the and or of to in on at by for from with about as is are was were be been it its this \
    that these those what which who whom when where why how do did does we i you he she they our my your me us them \
    there here can could should would will shall may might must have has had not no any some if then than so";

/// A search query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The text as typed. Words between `"` must be adjacent.
    pub text: String,
    /// The part of the index to search.
    pub scope: SearchScope,
    /// The earliest time (inclusive).
    pub since: Option<Timestamp>,
    /// The latest time (exclusive).
    pub until: Option<Timestamp>,
    /// The maximum number of hits, capped at [`MAX_LIMIT`].
    pub limit: usize,
}

impl Query {
    /// Returns a query of the whole index.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            scope: SearchScope::All,
            since: None,
            until: None,
            limit: DEFAULT_LIMIT,
        }
    }

    /// Restricts the query to a part of the index.
    pub fn in_scope(self, scope: SearchScope) -> Self {
        Self { scope, ..self }
    }

    /// Sets the maximum number of hits.
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    pub(crate) fn bounded_limit(&self) -> usize {
        self.limit.clamp(1, MAX_LIMIT)
    }
}

/// The part of an index to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchScope {
    /// The whole index.
    All,
    /// Sources of one kind.
    Kind(SearchSourceKind),
    /// Sources of one kind whose names begin with this text.
    Under(SearchSourceKind, String),
    /// These sources of one kind.
    Sources(SearchSourceKind, Vec<String>),
}

/// A parsed query.
#[derive(Debug, PartialEq)]
pub(crate) enum ParsedQuery {
    Words(QueryTerms),
    /// Without words: its symbols are searched literally.
    Symbols(String),
}

/// The words of a query.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct QueryTerms {
    /// The distinct words.
    pub(crate) words: Vec<String>,
    /// The names and words that should occur, as indexes into `words`.
    pub(crate) groups: Vec<TermGroup>,
    /// The words in the order in which they were typed.
    pub(crate) sequence: Vec<usize>,
    /// The phrases, whose words must be adjacent.
    pub(crate) phrases: Vec<Vec<String>>,
}

/// A search term: all of its parts, or its whole.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TermGroup {
    pub(crate) parts: Vec<usize>,
    pub(crate) wholes: Vec<usize>,
}

/// Parses the text of a query.
pub(crate) fn parse(text: &str) -> Result<ParsedQuery, IndexError> {
    let text: String = text.trim().chars().take(MAX_QUERY_CHARS).collect();
    if text.is_empty() {
        return Err(IndexError::EmptyQuery);
    }
    let mut terms = QueryTerms::default();
    for quoted in quoted_phrases(&text) {
        let sequence = tokenize(quoted)
            .tokens
            .into_iter()
            .filter(|word| word.kind.is_sequence());
        let phrase: Vec<String> = sequence.map(|word| word.text).take(MAX_TERMS).collect();
        if !phrase.is_empty() {
            terms.phrases.push(phrase);
        }
    }
    let found = tokenize(&text);
    let mut start = 0;
    for end in found.groups {
        terms.add(&found.tokens[start..end]);
        start = end;
    }
    if terms.words.is_empty() {
        return Ok(ParsedQuery::Symbols(text));
    }
    terms.remove_stop_words();
    Ok(ParsedQuery::Words(terms))
}

/// Returns the quoted phrases; an unclosed quote is ignored.
fn quoted_phrases(text: &str) -> impl Iterator<Item = &str> {
    let is_quote = |c: char| matches!(c, '"' | '“' | '”' | '「' | '」');
    let pieces: Vec<&str> = text.split(is_quote).collect();
    let closed = pieces.len() - usize::from(pieces.len().is_multiple_of(2));
    pieces.into_iter().take(closed).skip(1).step_by(2)
}

impl QueryTerms {
    fn add(&mut self, name: &[SearchToken]) {
        let mut group = TermGroup::default();
        for word in name {
            let wanted = match word.kind {
                TokenKind::Plain | TokenKind::Single | TokenKind::Bigram => &mut group.parts,
                TokenKind::FullName => &mut group.wholes,
                // The pairs that contain it are more distinctive.
                TokenKind::Character => continue,
            };
            let known = self.words.iter().position(|known| *known == word.text);
            let Some(at) =
                known.or_else(|| (self.words.len() < MAX_TERMS).then_some(self.words.len()))
            else {
                continue;
            };
            if known.is_none() {
                self.words.push(word.text.clone());
            }
            wanted.push(at);
            if word.kind != TokenKind::FullName {
                self.sequence.push(at);
            }
        }
        if !group.parts.is_empty() && !self.groups.contains(&group) {
            self.groups.push(group);
        }
    }

    fn remove_stop_words(&mut self) {
        let is_empty = |word: &str| STOP_WORDS.split_whitespace().any(|empty| empty == word);
        let says_nothing = |group: &TermGroup| {
            group.wholes.is_empty() && group.parts.iter().all(|&at| is_empty(&self.words[at]))
        };
        if self.groups.iter().all(says_nothing) {
            return;
        }
        let groups: Vec<bool> = self.groups.iter().map(says_nothing).collect();
        let mut left_out = groups.into_iter();
        self.groups.retain(|_| !left_out.next().unwrap_or_default());
    }

    /// Returns the words that should all occur.
    pub(crate) fn required_terms(&self) -> impl Iterator<Item = usize> {
        let mut all: Vec<usize> = self
            .groups
            .iter()
            .flat_map(|group| group.parts.iter().copied())
            .collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }

    /// Returns the words that make a line a candidate.
    pub(crate) fn candidate_terms(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self
            .groups
            .iter()
            .flat_map(|group| group.parts.iter().chain(&group.wholes))
            .copied()
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (
        &'static str,
        &'static [&'static str],
        &'static [&'static [&'static str]],
    );

    fn terms(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
        match parse(text).unwrap() {
            ParsedQuery::Symbols(signs) => panic!("{signs} has words"),
            ParsedQuery::Words(terms) => {
                let wanted = terms
                    .candidate_terms()
                    .into_iter()
                    .map(|at| terms.words[at].clone())
                    .collect();
                (wanted, terms.phrases)
            }
        }
    }

    #[test]
    fn a_query_is_its_words_and_what_must_stand_together() {
        #[rustfmt::skip]
        let table: &[Case] = &[
            ("which database do we use?", &["databas", "use"], &[]),
            ("who are you", &["who", "are", "you"], &[]),
            ("\"exact phrase\" more", &["exact", "phrase", "more"], &[&["exact", "phrase"]]),
            ("an \"open quote", &["open", "quot"], &[]),
            ("“数据库” 表", &["数据", "据库", "表"], &[&["数", "据", "库"]]),
            ("库", &["库"], &[]),
            ("read_lines", &["read", "line", "read_lines", "readlin"], &[]),
            ("NEAR(a b) OR col:x* AND -y", &["near", "b", "col", "x", "col_x", "colx", "y"], &[]),
        ];
        for (text, wanted, phrases) in table {
            let wanted: Vec<String> = wanted.iter().map(|&w| w.into()).collect();
            let phrases: Vec<Vec<String>> = phrases
                .iter()
                .map(|p| p.iter().map(|&w| w.into()).collect())
                .collect();
            assert_eq!(terms(text), (wanted, phrases), "{text}");
        }
    }

    #[test]
    fn a_query_without_words_is_looked_for_as_it_stands() {
        for signs in ["=>", "\"\"", "?!", "🎉", "***"] {
            assert_eq!(
                parse(signs).unwrap(),
                ParsedQuery::Symbols(signs.to_owned())
            );
        }
        assert!(matches!(parse(" \n "), Err(IndexError::EmptyQuery)));
    }
}
