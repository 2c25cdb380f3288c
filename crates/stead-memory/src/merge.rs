//! How new facts become part of curated memory. Pure: the same memory, facts and decision give the
//! same text, and doing it twice is the same as once.

use crate::fact::{Fact, normalised, one_line, without_sources};
use crate::fact_document::FactDocument;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use stead_core::text_tokens;

/// Bytes that a token has at least: the same measure by which a prompt is cut.
const BYTES_PER_TOKEN: u64 = 3;
/// What a memory begins with that was not there.
const TITLE: &str = "# Memory";

/// What is to become of new facts, and of old ones that they touch. Everything is named by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeDecision {
    /// Bullets that say what several facts said.
    pub(crate) bullets: Vec<Bullet>,
    /// Facts that another one makes needless.
    pub(crate) dropped: Vec<DroppedFact>,
}

/// A bullet, and the facts it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bullet {
    pub(crate) text: String,
    pub(crate) from: Vec<String>,
}

/// A fact that is needless because of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DroppedFact {
    pub(crate) id: String,
    pub(crate) by: String,
}

/// A memory after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergeResult {
    pub(crate) memory: FactDocument,
    /// Bullets that are no longer in it.
    pub(crate) archived: Vec<Fact>,
}

/// A memory while it is changed.
struct MergeState {
    ledger: FactDocument,
    /// Machine-written bullets with their lines; those that were used up are gone from here.
    bullets: BTreeMap<usize, Fact>,
    removed_lines: HashSet<usize>,
    archived: Vec<Fact>,
}

impl MergeState {
    /// The line of the bullet that holds `id`.
    fn line_of(&self, id: &str) -> Option<usize> {
        self.bullets
            .iter()
            .find(|(_, fact)| fact.ids().any(|known| known == id))
            .map(|(line, _)| *line)
    }

    fn archive(&mut self, line: usize) {
        if let Some(fact) = self.bullets.remove(&line) {
            self.archived.push(fact);
            self.removed_lines.insert(line);
        }
    }

    /// Puts one bullet in the place of old ones, or at the end.
    fn combine(&mut self, text: String, lines: &[usize], fresh: &[&Fact]) {
        let olds: Vec<Fact> = lines
            .iter()
            .filter_map(|line| self.bullets.remove(line))
            .collect();
        let sources = olds
            .iter()
            .chain(fresh.iter().copied())
            .flat_map(|fact| fact.sources.clone());
        let fact = Fact {
            sources: sources.collect(),
            text,
        };
        match lines.split_first() {
            Some((first, rest)) => {
                self.ledger.replace(*first, &fact);
                self.removed_lines.extend(rest);
            }
            None => self.ledger.push(&fact.to_string()),
        }
        self.archived
            .extend(olds.into_iter().filter(|old| old.text != fact.text));
    }
}

/// Merges `facts` into the memory `text`. Lines that a person wrote stay as they are. Every fact is
/// used, or dropped because of another that stays, or added as it is; those in `away` were put away
/// before. Beyond `max_tokens` the oldest machine-written bullets leave.
pub(crate) fn apply_decision(
    text: &str,
    facts: &[Fact],
    decision: &MergeDecision,
    away: &HashSet<String>,
    max_tokens: u64,
) -> MergeResult {
    let ledger = FactDocument::parse(text);
    let old: BTreeMap<usize, Fact> = ledger.facts().collect();
    let there = ledger.ids();
    let mut fresh: BTreeMap<&str, &Fact> = facts
        .iter()
        .filter(|fact| !there.contains(fact.id()) && !away.contains(fact.id()))
        .map(|fact| (fact.id(), fact))
        .collect();
    let mut merge = MergeState {
        ledger,
        bullets: old,
        removed_lines: HashSet::new(),
        archived: Vec::new(),
    };
    if merge.ledger.lines().is_empty() && !fresh.is_empty() {
        merge.ledger.push(TITLE);
        merge.ledger.push("");
    }
    for bullet in &decision.bullets {
        let text = one_line(&bullet.text);
        let new: Vec<&Fact> = bullet
            .from
            .iter()
            .filter_map(|id| fresh.get(id.as_str()).copied())
            .collect();
        if text.is_empty() || new.is_empty() {
            continue;
        }
        fresh.retain(|id, _| !new.iter().any(|fact| fact.id() == *id));
        let mut lines: Vec<usize> = bullet
            .from
            .iter()
            .filter_map(|id| merge.line_of(id))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        merge.combine(text, &lines, &new);
    }
    // What a bullet stands for is not needless, and what is needless is no reason.
    let used: HashSet<&String> = decision
        .bullets
        .iter()
        .flat_map(|bullet| &bullet.from)
        .collect();
    let needless: HashSet<&String> = decision.dropped.iter().map(|dropped| &dropped.id).collect();
    for DroppedFact { id, by } in &decision.dropped {
        // As it was before: a bullet may have taken it in by now.
        let is_known =
            facts.iter().any(|fact| fact.id() == by) || away.contains(by) || there.contains(by);
        if used.contains(id) || needless.contains(by) || !is_known {
            continue;
        }
        if fresh.remove(id.as_str()).is_none()
            && let Some(line) = merge
                .line_of(id)
                .filter(|line| merge.line_of(by) != Some(*line))
        {
            merge.archive(line);
        }
    }
    append_undecided(&mut merge, facts, &fresh);
    merge.ledger.remove_lines(&merge.removed_lines);
    let MergeState {
        mut ledger,
        mut archived,
        ..
    } = merge;
    archived.extend(trim_to_budget(&mut ledger, max_tokens));
    MergeResult {
        memory: ledger,
        archived,
    }
}

/// Adds what nobody decided about, but nothing that is said already.
fn append_undecided(merge: &mut MergeState, facts: &[Fact], fresh: &BTreeMap<&str, &Fact>) {
    let gone = &merge.removed_lines;
    let lines = merge
        .ledger
        .lines()
        .iter()
        .enumerate()
        .filter(|(at, _)| !gone.contains(at));
    let mut said: HashSet<String> = lines
        .map(|(_, line)| normalised(without_sources(line)))
        .collect();
    for fact in facts.iter().filter(|fact| fresh.contains_key(fact.id())) {
        if said.insert(normalised(&fact.text)) {
            merge.ledger.push(&fact.to_string());
        }
    }
}

/// Takes out the oldest machine-written bullets until the rest fits.
fn trim_to_budget(ledger: &mut FactDocument, max_tokens: u64) -> Vec<Fact> {
    let costs: Vec<u64> = ledger
        .lines()
        .iter()
        .map(|line| prompt_tokens(line))
        .collect();
    let mut total: u64 = costs.iter().sum();
    let mut leaving = HashSet::new();
    let mut left = Vec::new();
    for (at, fact) in ledger.facts() {
        if total <= max_tokens {
            break;
        }
        total -= costs[at];
        leaving.insert(at);
        left.push(fact);
    }
    ledger.remove_lines(&leaving);
    left
}

/// What a line takes of a prompt, where nothing of its sources is shown.
fn prompt_tokens(line: &str) -> u64 {
    let shown = without_sources(line);
    text_tokens(shown).max((shown.len() as u64 + 1).div_ceil(BYTES_PER_TOKEN))
}

#[cfg(test)]
mod tests;
