//! How well a text answers a query. Pure: the same text, weights and query give the same score
//! everywhere.

use crate::query::QueryTerms;
use crate::tokenizer::{TokenKind, TokenizedText};
use std::collections::HashMap;
use std::ops::Range;

/// How fast more of the same word stops to count (the k1 of BM25).
const BM25_K1: f64 = 1.2;
/// How much long texts are held back (its b).
const BM25_B: f64 = 0.4;
/// Words of an ordinary line.
const AVERAGE_LINE_WORDS: f64 = 20.0;
/// What two words of the query that stand together add, of what the lesser of them tells.
const ADJACENCY_BONUS: f64 = 0.6;
/// What the query in its own words adds, of all that its words tell.
const LITERAL_BONUS: f64 = 0.5;
/// What the newest gets beside what it says.
const RECENCY_BONUS: f64 = 0.05;
/// After so many days, half of that.
const RECENCY_HALF_LIFE_DAYS: f64 = 30.0;

/// How well a text answers, and where.
#[derive(Debug)]
pub(crate) struct Ranked {
    pub(crate) score: f64,
    /// Where words of the query stand, with their index.
    pub(crate) matches: Vec<(usize, Range<usize>)>,
}

/// Ranks `text`, whose words are `words`.
pub(crate) fn rank(
    terms: &QueryTerms,
    weights: &[f64],
    query: &str,
    text: &str,
    words: &TokenizedText,
) -> Ranked {
    let known: HashMap<&str, usize> = terms
        .words
        .iter()
        .enumerate()
        .map(|(at, word)| (word.as_str(), at))
        .collect();
    let mut counts = vec![0_u32; terms.words.len()];
    let mut matches = Vec::new();
    let mut order: Vec<Option<usize>> = Vec::new();
    let mut length = 0.0;
    for word in &words.tokens {
        let at = known.get(word.text.as_str()).copied();
        if let Some(at) = at {
            counts[at] += 1;
            matches.push((at, word.span.clone()));
        }
        match word.kind {
            TokenKind::Plain | TokenKind::Bigram | TokenKind::Single => order.push(at),
            TokenKind::Character | TokenKind::FullName => {}
        }
        length += if word.kind.is_sequence() { 1.0 } else { 0.0 };
    }
    let dampening = BM25_K1 * (1.0 - BM25_B + BM25_B * length / AVERAGE_LINE_WORDS);
    let told: f64 = terms
        .candidate_terms()
        .into_iter()
        .map(|at| (weights[at], f64::from(counts[at])))
        .map(|(weight, count)| weight * count * (BM25_K1 + 1.0) / (count + dampening))
        .sum();
    let all: f64 = terms.required_terms().map(|at| weights[at]).sum();
    let literal = terms.sequence.len() > 1 && text.to_lowercase().contains(&strip_quotes(query));
    let bonus = if literal { LITERAL_BONUS * all } else { 0.0 };
    let score = told * (0.5 + coverage(terms, weights, &counts))
        + adjacency_score(terms, weights, &order)
        + bonus;
    matches.retain(|(at, _)| weights[*at] > 0.0);
    Ranked { score, matches }
}

/// A query as it would stand in a text.
fn strip_quotes(query: &str) -> String {
    query.trim().trim_matches(['"', '“', '”']).to_lowercase()
}

/// The part of what is looked for that is there, by what it tells; words that are nowhere count as
/// the rarest.
fn coverage(terms: &QueryTerms, weights: &[f64], counts: &[u32]) -> f64 {
    let rarest = weights.iter().copied().fold(1.0, f64::max);
    let telling = |at: usize| {
        if weights[at] > 0.0 {
            weights[at]
        } else {
            rarest
        }
    };
    let mut there = 0.0;
    let mut wanted = 0.0;
    for group in &terms.groups {
        let all: f64 = group.parts.iter().map(|&at| telling(at)).sum();
        let found: f64 = group
            .parts
            .iter()
            .filter(|&&at| counts[at] > 0)
            .map(|&at| telling(at))
            .sum();
        there += if group.wholes.iter().any(|&at| counts[at] > 0) {
            all
        } else {
            found
        };
        wanted += all;
    }
    if wanted > 0.0 { there / wanted } else { 0.0 }
}

fn adjacency_score(terms: &QueryTerms, weights: &[f64], order: &[Option<usize>]) -> f64 {
    let pairs = terms.sequence.windows(2).filter(|pair| pair[0] != pair[1]);
    let together = pairs.filter(|pair| {
        order
            .windows(2)
            .any(|next| next == [Some(pair[0]), Some(pair[1])])
    });
    together
        .map(|pair| ADJACENCY_BONUS * weights[pair[0]].min(weights[pair[1]]))
        .sum()
}

/// What being new adds: `age_days` behind the newest of all that was found.
pub(crate) fn recency(age_days: f64) -> f64 {
    1.0 + RECENCY_BONUS * 0.5_f64.powf(age_days / RECENCY_HALF_LIFE_DAYS)
}
