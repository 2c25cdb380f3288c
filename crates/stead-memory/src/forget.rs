//! Forgetting facts: finding them by id or text, and moving them to the archive.
//!
//! Effects: workspace files (writes).

use crate::error::MemoryError;
use crate::fact::{Fact, FactSource, normalised};
use crate::fact_files::{FORGOTTEN, FactFiles};
use crate::review::LocatedFact;
use std::collections::HashSet;

/// The most candidates that are returned if a text matches several facts.
const MAX_CANDIDATES: usize = 20;

/// The result of forgetting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgetResult {
    /// These facts were forgotten.
    Done(Vec<LocatedFact>),
    /// The text matches several facts; nothing was forgotten.
    Ambiguous(Vec<LocatedFact>),
    /// No fact matches.
    NotFound,
}

impl FactFiles {
    /// Moves a fact to the forgotten ones. `query` is its id, or words that only this fact
    /// contains; the values of `by` are added to its sources.
    pub(crate) async fn forget(
        &self,
        query: &str,
        by: &FactSource,
    ) -> Result<ForgetResult, MemoryError> {
        let found = match matching_facts(&self.remembered_facts().await?, query) {
            ForgetResult::Done(found) => found,
            other @ (ForgetResult::Ambiguous(_) | ForgetResult::NotFound) => return Ok(other),
        };
        let forgotten: Vec<Fact> = found
            .iter()
            .map(|located| Fact {
                text: located.text.clone(),
                sources: located.sources.clone(),
            })
            .map(|fact| {
                by.0.iter()
                    .fold(fact, |fact, (key, value)| fact.with_note(key, value))
            })
            .collect();
        self.change(&self.archive(FORGOTTEN)?, |document| {
            for fact in &forgotten {
                let line = fact.to_string();
                if !document
                    .lines()
                    .iter()
                    .any(|known| known.trim_end() == line)
                {
                    document.push(&line);
                }
            }
        })
        .await?;
        for located in &found {
            self.remove_fact(&located.path, &located.id).await?;
        }
        Ok(ForgetResult::Done(found))
    }
}

/// Returns the facts that `query` means: those with this id, else those with this text, else those
/// that contain it.
fn matching_facts(all: &[LocatedFact], query: &str) -> ForgetResult {
    let wanted = normalised(query);
    let matching = |is_match: &dyn Fn(&LocatedFact) -> bool| -> Vec<LocatedFact> {
        let found = all.iter().filter(|located| is_match(located));
        found.cloned().collect()
    };
    let has_id = |located: &LocatedFact| {
        let mut ids = located.sources.iter().map(FactSource::id);
        ids.any(|id| id == query.trim())
    };
    let by_id = matching(&has_id);
    if !by_id.is_empty() {
        return ForgetResult::Done(by_id);
    }
    if wanted.is_empty() {
        return ForgetResult::NotFound;
    }
    let mut found = matching(&|located| normalised(&located.text) == wanted);
    if found.is_empty() {
        found = matching(&|located| normalised(&located.text).contains(&wanted));
    }
    // The same text in the file of a day and in curated memory counts as one fact.
    let texts: HashSet<String> = found
        .iter()
        .map(|located| normalised(&located.text))
        .collect();
    match texts.len() {
        0 => ForgetResult::NotFound,
        1 => ForgetResult::Done(found),
        _ => {
            found.truncate(MAX_CANDIDATES);
            ForgetResult::Ambiguous(found)
        }
    }
}
