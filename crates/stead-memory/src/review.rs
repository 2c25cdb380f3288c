//! The review of long-term memory: what people are shown of it, and their decisions about it.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the store (writes).

use crate::Memory;
use crate::due::MAX_FAILURES;
use crate::error::MemoryError;
use crate::fact::{Fact, FactSource};
use crate::fact_document::FactDocument;
use crate::fact_files::FactFiles;
use crate::job::{job_description, tenant_jobs};
use crate::merge_record::MergeRecord;
use crate::owner_memory::OwnerMemory;
use crate::progress::{MergeProgress, Versioned};
use jiff::{Timestamp, ToSpan};
use serde::Serialize;
use std::collections::HashSet;
use stead_core::{Owner, SessionId};
use stead_store::Documents;
use stead_vfs::VPath;

/// The most dead letters that a status lists.
const MAX_DEAD: usize = 50;

/// A fact and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LocatedFact {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The id of the fact.
    pub id: String,
    /// The text of the fact.
    pub text: String,
    /// The sources of the fact.
    #[serde(serialize_with = "as_maps")]
    pub sources: Vec<FactSource>,
}

fn as_maps<S: serde::Serializer>(sources: &[FactSource], serializer: S) -> Result<S::Ok, S::Error> {
    let maps = sources.iter().map(|source| {
        source
            .0
            .iter()
            .cloned()
            .collect::<std::collections::BTreeMap<_, _>>()
    });
    serializer.collect_seq(maps)
}

/// A line of curated memory with its sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlameLine {
    /// The line, from 1.
    pub line: usize,
    /// The text, without sources.
    pub text: String,
    /// The sources; empty if a person wrote the line.
    #[serde(serialize_with = "as_maps")]
    pub sources: Vec<FactSource>,
}

/// The status of a memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryStatus {
    /// Whether facts are extracted from sessions.
    pub flushes: bool,
    /// The model that the settings name for memory.
    pub model: Option<String>,
    /// The sessions that wait to be looked through.
    pub waiting: Vec<PendingSession>,
    /// About how many tokens of them are new.
    pub waiting_tokens: u64,
    /// From how many tokens on they are looked through.
    pub flush_tokens: u64,
    /// When they are looked through if nothing else happens. In the past if that is due.
    pub due_at: Option<Timestamp>,
    /// The path of curated memory.
    pub memory: String,
    /// The number of facts that were not merged yet.
    pub unmerged: usize,
    /// The number of quarantined facts.
    pub quarantined: usize,
    /// The number of merges.
    pub merges: u64,
    /// The time of the last merge.
    pub merged_at: Option<Timestamp>,
    /// When new facts are merged.
    pub merge_due_at: Option<Timestamp>,
    /// Work that failed at every attempt.
    pub dead: Vec<DeadJob>,
}

/// A session that waits to be looked through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingSession {
    /// The session.
    pub session: String,
    /// About how many of its tokens are new.
    pub tokens: u64,
    /// The time of the last of them.
    pub at: Timestamp,
    /// The failed attempts.
    pub failures: u32,
    /// Why the last attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A job that failed at every attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadJob {
    /// The description of the job.
    pub job: String,
    /// The number of attempts.
    pub attempts: u32,
    /// The last error.
    pub reason: String,
}

/// A person's decision about quarantined facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewDecision {
    /// Remember them.
    Approve,
    /// Reject them.
    Reject,
}

/// A selection of quarantined facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactSelection {
    /// All of them.
    All,
    /// The facts with these ids.
    Ids(Vec<String>),
}

impl Memory {
    fn review_memory(&self, owner: &Owner) -> Result<OwnerMemory, MemoryError> {
        OwnerMemory::of_session(&self.cx, owner, &SessionId::sessionless())
    }

    /// Returns the status of the memory of `owner`.
    pub async fn status(&self, owner: &Owner) -> Result<MemoryStatus, MemoryError> {
        let memory = self.review_memory(owner)?;
        let merged: Option<Versioned<MergeProgress>> =
            memory.documents.get(&memory.documents.merged_key()).await?;
        let jobs = tenant_jobs(&*self.cx, &owner.tenant);
        let dead = jobs.dead_letters_of(&owner.user, MAX_DEAD).await?;
        let dead = dead.into_iter().map(|(job, dead)| DeadJob {
            job: job_description(&job.kind),
            attempts: dead.attempts,
            reason: dead.reason,
        });
        let notes = self.notes(&owner.tenant);
        let user = owner.user.as_str();
        let noted = notes.sessions().await?.into_iter().map(|noted| noted.note);
        let waiting: Vec<_> = noted.filter(|note| note.user == user).collect();
        let merges = notes.merges().await?.into_iter().map(|noted| noted.note);
        let merges: Vec<_> = merges.filter(|note| note.user == user).collect();
        let is_dead = |failures: u32| failures >= MAX_FAILURES;
        let dead_flushes = waiting.iter().filter(|note| is_dead(note.failures));
        let dead_flushes = dead_flushes.map(|note| DeadJob {
            job: format!(
                "look through session {} up to entry {}",
                note.session, note.upto
            ),
            attempts: note.failures,
            reason: note.error.clone().unwrap_or_default(),
        });
        let dead_merges = merges.iter().filter(|note| is_dead(note.failures));
        let dead_merges = dead_merges.map(|note| DeadJob {
            job: "merge new facts into curated memory".to_owned(),
            attempts: note.failures,
            reason: note.error.clone().unwrap_or_default(),
        });
        let rule = self.rule();
        let time = |ms: i64| Timestamp::from_millisecond(ms).ok();
        let pending = waiting.iter().map(|note| PendingSession {
            session: note.session.clone(),
            tokens: note.tokens,
            at: time(note.at_ms).unwrap_or_default(),
            failures: note.failures,
            error: note.error.clone(),
        });
        let next_merge = merges.iter().filter(|note| !is_dead(note.failures));
        let next_merge = next_merge.map(|note| note.due_ms).min();
        Ok(MemoryStatus {
            flushes: self.cx.definition().memory_flush_enabled(),
            model: self.cx.definition().config.memory.model.clone(),
            waiting: pending.collect(),
            waiting_tokens: waiting.iter().map(|note| note.tokens).sum(),
            flush_tokens: rule.tokens(),
            due_at: rule.due_ms(&waiting).and_then(time),
            memory: memory.files.memory.to_string(),
            unmerged: memory.unmerged_count().await?,
            quarantined: memory.files.quarantined_facts().await?.len(),
            merges: merged.as_ref().map_or(0, |stored| stored.value.generation),
            merged_at: merged
                .and_then(|stored| Timestamp::from_millisecond(stored.value.at_ms).ok()),
            merge_due_at: next_merge.and_then(time),
            dead: dead.chain(dead_flushes).chain(dead_merges).collect(),
        })
    }

    /// Returns the quarantined facts, oldest first.
    pub async fn review(&self, owner: &Owner) -> Result<Vec<LocatedFact>, MemoryError> {
        self.review_memory(owner)?.files.quarantined_facts().await
    }

    /// Returns the remembered facts: first those of curated memory, then day by day.
    pub async fn list(&self, owner: &Owner) -> Result<Vec<LocatedFact>, MemoryError> {
        self.review_memory(owner)?.files.remembered_facts().await
    }

    /// Returns every line of curated memory with its sources.
    pub async fn blame(&self, owner: &Owner) -> Result<Vec<BlameLine>, MemoryError> {
        let files = self.review_memory(owner)?.files;
        let (document, _) = files.read(&files.memory).await?;
        let blamed =
            document
                .lines()
                .iter()
                .enumerate()
                .map(|(at, line)| match Fact::parse(line) {
                    Some(fact) => BlameLine {
                        line: at + 1,
                        text: format!("- {}", fact.text),
                        sources: fact.sources,
                    },
                    None => BlameLine {
                        line: at + 1,
                        text: line.trim_end().to_owned(),
                        sources: Vec::new(),
                    },
                });
        Ok(blamed.collect())
    }

    /// Returns the last merges, newest first.
    pub async fn records(
        &self,
        owner: &Owner,
        limit: usize,
    ) -> Result<Vec<MergeRecord>, MemoryError> {
        const PAGE: usize = 100;
        let memory = self.review_memory(owner)?;
        let listed = Documents::list(
            &*memory.documents.state.store,
            &memory.documents.state.space,
            &memory.documents.record_prefix(),
            None,
            PAGE,
        )
        .await?;
        let mut records = Vec::new();
        for entry in listed.into_iter().rev().take(limit) {
            records.extend(
                memory
                    .documents
                    .get::<MergeRecord>(&entry.key)
                    .await?
                    .map(|stored| stored.value),
            );
        }
        Ok(records)
    }

    /// Moves quarantined facts to the file of their day, or to the rejected ones. `by` is the
    /// person who decided.
    pub async fn decide(
        &self,
        owner: &Owner,
        which: &FactSelection,
        review: ReviewDecision,
        by: &str,
    ) -> Result<Vec<LocatedFact>, MemoryError> {
        let memory = self.review_memory(owner)?;
        let waiting = memory.files.quarantined_facts().await?;
        if let FactSelection::Ids(ids) = which
            && let Some(unknown) = ids
                .iter()
                .find(|id| !waiting.iter().any(|located| located.id == **id))
        {
            return Err(MemoryError::NoSuchFact(unknown.clone()));
        }
        let selected = |located: &LocatedFact| match which {
            FactSelection::All => true,
            FactSelection::Ids(ids) => ids.contains(&located.id),
        };
        let selected: Vec<LocatedFact> = waiting.into_iter().filter(selected).collect();
        let today = memory.files.date(self.cx.now());
        let days = i64::from(self.cx.definition().config.memory.archive_days);
        for located in &selected {
            let fact = Fact {
                text: located.text.clone(),
                sources: located.sources.clone(),
            };
            let (fact, to) = match review {
                ReviewDecision::Approve => {
                    let noted_date = located
                        .sources
                        .iter()
                        .find_map(|source| source.get("on")?.parse().ok());
                    // The file of an old day may have been archived.
                    let recent = today.checked_sub(days.days()).unwrap_or(today);
                    let date = noted_date.filter(|date| *date >= recent).unwrap_or(today);
                    (fact.with_note("approved_by", by), memory.files.day(date)?)
                }
                ReviewDecision::Reject => {
                    (fact.with_note("rejected_by", by), memory.files.rejected()?)
                }
            };
            // Added before it is removed: a crash in between leaves both, and the next attempt
            // removes one.
            memory.files.append(&to, &[fact]).await?;
            memory.files.remove_fact(&located.path, &located.id).await?;
        }
        if review == ReviewDecision::Approve && !selected.is_empty() {
            memory.enqueue_consolidation().await?;
        }
        Ok(selected)
    }
}

impl FactFiles {
    /// Returns the quarantined facts, oldest first.
    pub(crate) async fn quarantined_facts(&self) -> Result<Vec<LocatedFact>, MemoryError> {
        let mut waiting = Vec::new();
        for date in self.dates("quarantine").await? {
            waiting.extend(self.located_facts(&self.quarantine(date)?).await?);
        }
        Ok(waiting)
    }

    /// Returns the remembered facts: first those of curated memory, then day by day.
    pub(crate) async fn remembered_facts(&self) -> Result<Vec<LocatedFact>, MemoryError> {
        let mut facts = self.located_facts(&self.memory).await?;
        for date in self.dates("").await? {
            facts.extend(self.located_facts(&self.day(date)?).await?);
        }
        Ok(facts)
    }

    async fn located_facts(&self, path: &VPath) -> Result<Vec<LocatedFact>, MemoryError> {
        let (document, _) = self.read(path).await?;
        let located = document.facts().map(|(at, fact)| LocatedFact {
            path: path.to_string(),
            line: at + 1,
            id: fact.id().to_owned(),
            text: fact.text,
            sources: fact.sources,
        });
        Ok(located.collect())
    }

    /// Removes the fact `id` from a file.
    pub(crate) async fn remove_fact(&self, path: &str, id: &str) -> Result<(), MemoryError> {
        let path = VPath::parse(path).map_err(|error| MemoryError::Files(error.into()))?;
        self.change(&path, |document| {
            let lines = lines_of(document, id);
            document.remove_lines(&lines);
        })
        .await
    }
}

fn lines_of(document: &FactDocument, id: &str) -> HashSet<usize> {
    document
        .facts()
        .filter(|(_, fact)| fact.id() == id)
        .map(|(at, _)| at)
        .collect()
}
