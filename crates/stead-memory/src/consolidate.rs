//! Consolidation: merging the facts of the daily files into curated memory (`MEMORY.md`).
//!
//! As in extraction, the plan (what the model decided, for which facts) is recorded as a document
//! before any file is written, and applying the same plan twice changes nothing. So a crash at any
//! point, or a second worker, does no harm. A file that was changed meanwhile is read again, and the
//! same plan is applied to its new content.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the store (writes),
//! the model.

use crate::error::MemoryError;
use crate::fact::Fact;
use crate::fact_files::FORGOTTEN;
use crate::merge::{MergeDecision, apply_decision};
use crate::merge_record::{MergeDiff, MergeRecord};
use crate::owner_memory::OwnerMemory;
use crate::progress::{MergeProgress, MergedDay, Versioned, expected_version, put_change};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use stead_core::text_tokens;
use stead_store::{DocumentChange, Expected};
use stead_vfs::VfsError;

/// The most facts that are merged at once.
const MAX_BATCH: usize = 200;
/// How many times a file that others change is read again before the job fails.
const MAX_TRIES: usize = 5;
/// The most merges of one job.
const MAX_BATCHES: usize = 10_000;
/// The number of merge records that are kept.
const MAX_RECORDS: u64 = 50;

/// The result of a consolidation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsolidationReport {
    /// The number of facts that were merged.
    pub facts: usize,
    /// The number of bullets that were moved from curated memory to the archive.
    pub archived: usize,
    /// The number of files of days that were archived.
    pub days: usize,
    /// Why facts were merged without the model, if they were.
    pub fallback: Option<String>,
}

/// A decision that is to be applied, as it is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MergePlan {
    generation: u64,
    facts: Vec<(Date, String)>,
    decision: MergeDecision,
    /// The model that decided, or why none did.
    by: Result<String, String>,
    /// The month whose archive takes the bullets that leave.
    month: String,
    /// The change to curated memory, once it is known.
    shown: Option<MergeDiff>,
}

impl OwnerMemory {
    /// Merges all new facts into curated memory, and archives the files of old days.
    pub(crate) async fn consolidate(&self) -> Result<ConsolidationReport, MemoryError> {
        let mut done = ConsolidationReport::default();
        let mut new_facts = Vec::new();
        for _ in 0..MAX_BATCHES {
            let merged: Option<Versioned<MergeProgress>> =
                self.documents.get(&self.documents.merged_key()).await?;
            if new_facts.is_empty() {
                new_facts = self.unmerged_facts().await?;
            }
            let Some(plan) = self.next_plan(&merged, &new_facts, &mut done).await? else {
                if new_facts.is_empty() {
                    done.days = self
                        .archive_old_days(self.cx.definition().config.memory.archive_days)
                        .await?;
                    return Ok(done);
                }
                new_facts.clear();
                continue;
            };
            done.fallback = plan.value.by.clone().err();
            done.facts += plan.value.facts.len();
            let planned: HashSet<String> =
                plan.value.facts.iter().map(|(_, id)| id.clone()).collect();
            let forgotten = self
                .files
                .read(&self.files.archive(FORGOTTEN)?)
                .await?
                .0
                .ids();
            let is_wanted =
                |fact: &&Fact| planned.contains(fact.id()) && !forgotten.contains(fact.id());
            let facts: Vec<Fact> = new_facts
                .iter()
                .map(|(_, fact)| fact)
                .filter(is_wanted)
                .cloned()
                .collect();
            let plan = self.apply_plan(plan, &facts, &mut done).await?;
            match self.finish_plan(&merged, plan).await? {
                true => new_facts.retain(|(_, fact)| !planned.contains(fact.id())),
                // Another worker was faster, so the list of new facts is out of date.
                false => new_facts.clear(),
            }
        }
        Err(MemoryError::Contended(self.files.memory.clone()))
    }

    /// Returns the next plan, which is recorded: the plan of an earlier attempt, or one that is
    /// decided now. `None` if there is nothing to merge, or if another worker was faster.
    async fn next_plan(
        &self,
        merged: &Option<Versioned<MergeProgress>>,
        new_facts: &[(Date, Fact)],
        done: &mut ConsolidationReport,
    ) -> Result<Option<Versioned<MergePlan>>, MemoryError> {
        let generation = merged.as_ref().map_or(0, |stored| stored.value.generation);
        let known: Option<Versioned<MergePlan>> =
            self.documents.get(&self.documents.plan_key()).await?;
        let current = |stored: &Versioned<MergePlan>| stored.value.generation == generation;
        if let Some(known) = known.as_ref().filter(|known| current(known)) {
            return Ok(Some(known.clone()));
        }
        if new_facts.is_empty() {
            return Ok(None);
        }
        let batch = self.batch(new_facts);
        let facts: Vec<Fact> = batch.iter().map(|(_, fact)| fact.clone()).collect();
        // A model that just failed is not asked again at once.
        let decided = match &done.fallback {
            Some(reason) => Err(reason.clone()),
            None => {
                let (memory, _) = self.files.read(&self.files.memory).await?;
                self.decide_merge(&memory, &facts)
                    .await
                    .map_err(|error| error.to_string())
            }
        };
        let by = match &decided {
            Ok(_) => Ok(self.cx.model().map_or_else(String::new, |model| model.name)),
            Err(reason) => Err(reason.clone()),
        };
        let today = self.files.date(self.cx.now());
        let plan = MergePlan {
            generation,
            facts: batch
                .iter()
                .map(|(date, fact)| (*date, fact.id().to_owned()))
                .collect(),
            decision: decided.unwrap_or_default(),
            by,
            month: today.strftime("%Y-%m").to_string(),
            shown: None,
        };
        let still = DocumentChange::Check {
            key: self.documents.merged_key(),
            expect: expected_version(merged),
        };
        self.documents
            .commit(vec![
                still,
                put_change(self.documents.plan_key(), &plan, expected_version(&known))?,
            ])
            .await?;
        // If another worker was faster, its plan is used.
        let stored: Option<Versioned<MergePlan>> =
            self.documents.get(&self.documents.plan_key()).await?;
        Ok(stored.filter(current))
    }

    /// Returns the oldest new facts that fit into one question.
    fn batch<'a>(&self, new_facts: &'a [(Date, Fact)]) -> &'a [(Date, Fact)] {
        let limit = self.question_tokens() / 2;
        let mut used = 0;
        let fits = |(_, fact): &&(Date, Fact)| {
            used += text_tokens(&fact.text) + 10;
            used <= limit
        };
        let count = new_facts.iter().take(MAX_BATCH).take_while(fits).count();
        &new_facts[..count.max(1)]
    }

    /// Writes curated memory as planned, after archiving the bullets that leave it.
    async fn apply_plan(
        &self,
        mut plan: Versioned<MergePlan>,
        facts: &[Fact],
        done: &mut ConsolidationReport,
    ) -> Result<Versioned<MergePlan>, MemoryError> {
        let max_tokens = u64::from(self.cx.definition().config.memory.max_tokens);
        let archive = self
            .files
            .archive(&format!("MEMORY-{}", plan.value.month))?;
        for _ in 0..MAX_TRIES {
            let (before, version) = self.files.read(&self.files.memory).await?;
            let archived_ids = self.files.read(&archive).await?.0.ids();
            let applied = apply_decision(
                &before.text(),
                facts,
                &plan.value.decision,
                &archived_ids,
                max_tokens,
            );
            if applied.memory == before {
                return Ok(plan);
            }
            let shown = MergeDiff::new(&before.text(), &applied.memory.text());
            let Some(recorded) = self.record_diff(&plan, shown).await? else {
                return Ok(plan);
            };
            plan = recorded;
            self.files
                .change(&archive, |document| {
                    document.append(&applied.archived, &document.ids())
                })
                .await?;
            match self
                .files
                .write(&self.files.memory, &applied.memory, version)
                .await
            {
                Ok(_) => {
                    done.archived += applied.archived.len();
                    return Ok(plan);
                }
                Err(VfsError::Changed(_) | VfsError::Exists(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(MemoryError::Contended(self.files.memory.clone()))
    }
}

impl OwnerMemory {
    /// Records what is about to change, so that it is known even after a crash. `None` if another
    /// worker was faster.
    async fn record_diff(
        &self,
        plan: &Versioned<MergePlan>,
        shown: MergeDiff,
    ) -> Result<Option<Versioned<MergePlan>>, MemoryError> {
        let value = MergePlan {
            shown: Some(shown),
            ..plan.value.clone()
        };
        if !self
            .documents
            .commit(vec![put_change(
                self.documents.plan_key(),
                &value,
                Expected::Version(plan.version),
            )?])
            .await?
        {
            return Ok(None);
        }
        let stored: Option<Versioned<MergePlan>> =
            self.documents.get(&self.documents.plan_key()).await?;
        Ok(stored.filter(|stored| stored.value.generation == value.generation))
    }

    /// Marks the facts of a plan as merged, records the merge and deletes the plan. Returns false
    /// if another worker was faster.
    async fn finish_plan(
        &self,
        merged: &Option<Versioned<MergeProgress>>,
        plan: Versioned<MergePlan>,
    ) -> Result<bool, MemoryError> {
        let Versioned {
            value: plan,
            version: plan_version,
        } = plan;
        let now = self.cx.now();
        let next = MergeProgress {
            generation: plan.generation + 1,
            at_ms: now.as_millisecond(),
        };
        let mut changes = vec![
            put_change(self.documents.merged_key(), &next, expected_version(merged))?,
            DocumentChange::Delete {
                key: self.documents.plan_key(),
                expect: Expected::Version(plan_version),
            },
        ];
        let mut days: BTreeMap<Date, BTreeSet<String>> = BTreeMap::new();
        for (date, id) in &plan.facts {
            days.entry(*date).or_default().insert(id.clone());
        }
        for (date, ids) in days {
            let merged_before: Option<Versioned<MergedDay>> =
                self.documents.get(&self.documents.day_key(date)).await?;
            let mut merged_ids = merged_before
                .as_ref()
                .map(|stored| stored.value.0.clone())
                .unwrap_or_default();
            merged_ids.extend(ids);
            changes.push(put_change(
                self.documents.day_key(date),
                &MergedDay(merged_ids),
                expected_version(&merged_before),
            )?);
        }
        let facts = plan.facts.into_iter().map(|(_, id)| id).collect();
        let record = MergeRecord {
            at: now,
            facts,
            by: plan.by,
            shown: plan.shown.unwrap_or_default(),
        };
        changes.push(put_change(
            self.documents.record_key(next.generation),
            &record,
            Expected::Any,
        )?);
        if let Some(old) = next.generation.checked_sub(MAX_RECORDS) {
            changes.push(DocumentChange::Delete {
                key: self.documents.record_key(old),
                expect: Expected::Any,
            });
        }
        self.documents.commit(changes).await
    }
}
