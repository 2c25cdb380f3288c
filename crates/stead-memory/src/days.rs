//! Part of long-term memory: the facts of each day, which of them were not merged yet, and the
//! archive of old days.
//!
//! Effects: the clock, the environment, workspace files (writes), the store (writes).

use crate::error::MemoryError;
use crate::fact::Fact;
use crate::fact_document::FactDocument;
use crate::owner_memory::OwnerMemory;
use crate::progress::{MergedDay, Versioned};
use jiff::ToSpan;
use jiff::civil::Date;
use std::collections::HashSet;
use stead_store::{DocumentChange, Expected};
use stead_vfs::VfsError;

impl OwnerMemory {
    /// Returns the facts of all days that were not merged yet, oldest first.
    pub(crate) async fn unmerged_facts(&self) -> Result<Vec<(Date, Fact)>, MemoryError> {
        let mut unmerged = Vec::new();
        for date in self.files.dates("").await? {
            unmerged.extend(
                self.unmerged_facts_of(date)
                    .await?
                    .into_iter()
                    .map(|fact| (date, fact)),
            );
        }
        Ok(unmerged)
    }

    /// Returns the facts of one day that were not merged yet.
    async fn unmerged_facts_of(&self, date: Date) -> Result<Vec<Fact>, MemoryError> {
        let merged: Option<Versioned<MergedDay>> =
            self.documents.get(&self.documents.day_key(date)).await?;
        let merged = merged.map(|stored| stored.value.0).unwrap_or_default();
        let (document, _) = self.files.read(&self.files.day(date)?).await?;
        let mut seen = HashSet::new();
        let facts = document.facts().map(|(_, fact)| fact);
        Ok(facts
            .filter(|fact| !merged.contains(fact.id()) && seen.insert(fact.id().to_owned()))
            .collect())
    }

    /// Returns the number of facts that were not merged yet.
    pub(crate) async fn unmerged_count(&self) -> Result<usize, MemoryError> {
        Ok(self.unmerged_facts().await?.len())
    }

    /// Moves the files of old days to the archive if all their facts were merged.
    pub(crate) async fn archive_old_days(&self, archive_days: u32) -> Result<usize, MemoryError> {
        let today = self.files.date(self.cx.now());
        let Ok(oldest) = today.checked_sub(i64::from(archive_days).days()) else {
            return Ok(0);
        };
        let mut moved = 0;
        for date in self
            .files
            .dates("")
            .await?
            .into_iter()
            .filter(|date| *date < oldest)
        {
            let from = self.files.day(date)?;
            let to = self.files.archive(&date.to_string())?;
            if !self.unmerged_facts_of(date).await?.is_empty() {
                continue;
            }
            match self.files.files.rename(&from, &to).await {
                Ok(()) => {}
                // The day was archived before, and facts were added later.
                Err(VfsError::Exists(_)) => {
                    let (late, _) = self.files.read(&from).await?;
                    let add = |document: &mut FactDocument| {
                        let there: HashSet<String> = document
                            .lines()
                            .iter()
                            .map(|line| line.trim().to_owned())
                            .collect();
                        late.lines()
                            .iter()
                            .filter(|line| !there.contains(line.trim()))
                            .for_each(|line| {
                                document.push(line.trim_end_matches(['\r', '\n']));
                            });
                    };
                    self.files.change(&to, add).await?;
                    self.files.files.remove(&from).await?;
                }
                Err(VfsError::NotFound(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            self.documents
                .commit(vec![DocumentChange::Delete {
                    key: self.documents.day_key(date),
                    expect: Expected::Any,
                }])
                .await?;
            moved += 1;
        }
        Ok(moved)
    }
}
