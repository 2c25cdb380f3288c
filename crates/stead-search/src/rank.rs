//! The score of a text for a query. Pure: the same text, weights and query give the same score
//! everywhere.
//!
//! Effects: none.

use crate::query::QueryTerms;
use crate::tokenizer::{TokenKind, TokenizedText};
use std::collections::HashMap;
use std::ops::Range;

/// The k1 of BM25: how fast repetitions of a word stop counting.
const BM25_K1: f64 = 1.2;
/// The b of BM25: how much long texts are penalised.
const BM25_B: f64 = 0.4;
/// The number of words of an average line.
const AVERAGE_LINE_WORDS: f64 = 20.0;
/// The bonus for two adjacent words of the query, as a fraction of the lesser weight.
const ADJACENCY_BONUS: f64 = 0.6;
/// The bonus for the literal query, as a fraction of the weight of all its words.
const LITERAL_BONUS: f64 = 0.5;
/// The bonus for the newest hit.
const RECENCY_BONUS: f64 = 0.05;
/// The number of days after which that bonus is halved.
const RECENCY_HALF_LIFE_DAYS: f64 = 30.0;

/// The score of a text, with its matches.
#[derive(Debug)]
pub(crate) struct Ranked {
    pub(crate) score: f64,
    /// The positions of query words, with their index.
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

/// Returns a query as it would occur in a text.
fn strip_quotes(query: &str) -> String {
    query.trim().trim_matches(['"', '“', '”']).to_lowercase()
}

/// Returns the weighted part of the search terms that occur; words that are in no row count as the
/// rarest.
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

/// Returns the bonus of a hit that is `age_days` older than the newest one.
pub(crate) fn recency(age_days: f64) -> f64 {
    1.0 + RECENCY_BONUS * 0.5_f64.powf(age_days / RECENCY_HALF_LIFE_DAYS)
}
