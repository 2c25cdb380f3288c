//! Merging facts into curated memory. The functions are pure: the same memory, facts and decision
//! give the same text, and applying a decision twice is the same as once.
//!
//! Effects: none.

use crate::fact::{Fact, normalised, one_line, without_sources};
use crate::fact_document::FactDocument;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use stead_core::text_tokens;

/// The assumed bytes of a token, as in the prompt section of memory.
const BYTES_PER_TOKEN: u64 = 3;
/// The first line of a new memory file.
const TITLE: &str = "# Memory";

/// How new facts are merged with remembered ones. All facts are named by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MergeDecision {
    /// Bullets that replace one or more facts.
    pub(crate) bullets: Vec<Bullet>,
    /// Facts that are dropped because of another one.
    pub(crate) dropped: Vec<DroppedFact>,
}

/// A bullet, and the facts that it replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bullet {
    pub(crate) text: String,
    pub(crate) from: Vec<String>,
}

/// A fact that is dropped because of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DroppedFact {
    pub(crate) id: String,
    pub(crate) by: String,
}

/// Curated memory after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergeResult {
    pub(crate) memory: FactDocument,
    /// The bullets that were removed from it.
    pub(crate) archived: Vec<Fact>,
}

/// Curated memory during a merge.
struct MergeState {
    document: FactDocument,
    /// The facts with their lines, without those that were replaced.
    bullets: BTreeMap<usize, Fact>,
    removed_lines: HashSet<usize>,
    archived: Vec<Fact>,
}

impl MergeState {
    /// Returns the line of the bullet that contains the fact `id`.
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

    /// Replaces old bullets by a new one, or appends it.
    fn combine(&mut self, text: String, lines: &[usize], new_facts: &[&Fact]) {
        let replaced: Vec<Fact> = lines
            .iter()
            .filter_map(|line| self.bullets.remove(line))
            .collect();
        let sources = replaced
            .iter()
            .chain(new_facts.iter().copied())
            .flat_map(|fact| fact.sources.clone());
        let fact = Fact {
            sources: sources.collect(),
            text,
        };
        match lines.split_first() {
            Some((first, rest)) => {
                self.document.replace(*first, &fact);
                self.removed_lines.extend(rest);
            }
            None => self.document.push(&fact.to_string()),
        }
        self.archived
            .extend(replaced.into_iter().filter(|old| old.text != fact.text));
    }
}

/// Merges `facts` into the memory `text`. Lines that people wrote are not changed. Every fact is
/// merged, dropped because of another one that stays, or added as it is; facts in `archived_ids`
/// were archived before. If the result exceeds `max_tokens`, the oldest facts are removed.
pub(crate) fn apply_decision(
    text: &str,
    facts: &[Fact],
    decision: &MergeDecision,
    archived_ids: &HashSet<String>,
    max_tokens: u64,
) -> MergeResult {
    let document = FactDocument::parse(text);
    let bullets: BTreeMap<usize, Fact> = document.facts().collect();
    let known_ids = document.ids();
    let mut new_facts: BTreeMap<&str, &Fact> = facts
        .iter()
        .filter(|fact| !known_ids.contains(fact.id()) && !archived_ids.contains(fact.id()))
        .map(|fact| (fact.id(), fact))
        .collect();
    let mut merge = MergeState {
        document,
        bullets,
        removed_lines: HashSet::new(),
        archived: Vec::new(),
    };
    if merge.document.lines().is_empty() && !new_facts.is_empty() {
        merge.document.push(TITLE);
        merge.document.push("");
    }
    combine_bullets(&mut merge, &mut new_facts, &decision.bullets);
    // The facts before the merge: a bullet may contain them by now.
    let is_known = |id: &String| {
        facts.iter().any(|fact| fact.id() == id)
            || archived_ids.contains(id)
            || known_ids.contains(id)
    };
    drop_facts(&mut merge, &mut new_facts, decision, is_known);
    append_undecided(&mut merge, facts, &new_facts);
    merge.document.remove_lines(&merge.removed_lines);
    let MergeState {
        mut document,
        mut archived,
        ..
    } = merge;
    archived.extend(trim_to_budget(&mut document, max_tokens));
    MergeResult {
        memory: document,
        archived,
    }
}

/// Replaces facts by the bullets of a decision. A bullet must have at least one new fact.
fn combine_bullets(
    merge: &mut MergeState,
    new_facts: &mut BTreeMap<&str, &Fact>,
    bullets: &[Bullet],
) {
    for bullet in bullets {
        let text = one_line(&bullet.text);
        let new: Vec<&Fact> = bullet
            .from
            .iter()
            .filter_map(|id| new_facts.get(id.as_str()).copied())
            .collect();
        if text.is_empty() || new.is_empty() {
            continue;
        }
        new_facts.retain(|id, _| !new.iter().any(|fact| fact.id() == *id));
        let mut lines: Vec<usize> = bullet
            .from
            .iter()
            .filter_map(|id| merge.line_of(id))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        merge.combine(text, &lines, &new);
    }
}

/// Drops the facts that the decision drops. A fact that a bullet replaces is not dropped, and
/// neither an unknown nor a dropped fact is a reason to drop another.
fn drop_facts(
    merge: &mut MergeState,
    new_facts: &mut BTreeMap<&str, &Fact>,
    decision: &MergeDecision,
    is_known: impl Fn(&String) -> bool,
) {
    let used: HashSet<&String> = decision
        .bullets
        .iter()
        .flat_map(|bullet| &bullet.from)
        .collect();
    let dropped: HashSet<&String> = decision.dropped.iter().map(|dropped| &dropped.id).collect();
    for DroppedFact { id, by } in &decision.dropped {
        if used.contains(id) || dropped.contains(by) || !is_known(by) {
            continue;
        }
        if new_facts.remove(id.as_str()).is_none()
            && let Some(line) = merge
                .line_of(id)
                .filter(|line| merge.line_of(by) != Some(*line))
        {
            merge.archive(line);
        }
    }
}

/// Adds the facts that the decision does not mention, except duplicates.
fn append_undecided(merge: &mut MergeState, facts: &[Fact], new_facts: &BTreeMap<&str, &Fact>) {
    let removed = &merge.removed_lines;
    let lines = merge
        .document
        .lines()
        .iter()
        .enumerate()
        .filter(|(at, _)| !removed.contains(at));
    let mut known_texts: HashSet<String> = lines
        .map(|(_, line)| normalised(without_sources(line)))
        .collect();
    for fact in facts
        .iter()
        .filter(|fact| new_facts.contains_key(fact.id()))
    {
        if known_texts.insert(normalised(&fact.text)) {
            merge.document.push(&fact.to_string());
        }
    }
}

/// Removes the oldest facts until the rest fits.
fn trim_to_budget(document: &mut FactDocument, max_tokens: u64) -> Vec<Fact> {
    let costs: Vec<u64> = document
        .lines()
        .iter()
        .map(|line| prompt_tokens(line))
        .collect();
    let mut total: u64 = costs.iter().sum();
    let mut leaving = HashSet::new();
    let mut left = Vec::new();
    for (at, fact) in document.facts() {
        if total <= max_tokens {
            break;
        }
        total -= costs[at];
        leaving.insert(at);
        left.push(fact);
    }
    document.remove_lines(&leaving);
    left
}

/// Returns the size of a line in the prompt, where sources are not shown.
fn prompt_tokens(line: &str) -> u64 {
    let shown = without_sources(line);
    text_tokens(shown).max((shown.len() as u64 + 1).div_ceil(BYTES_PER_TOKEN))
}

#[cfg(test)]
mod tests;
