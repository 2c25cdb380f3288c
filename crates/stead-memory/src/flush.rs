//! Flushing a session: extracting facts from the entries of its journal that were not looked
//! through yet.
//!
//! The order makes a crash harmless at any point. The extraction is recorded before the first fact
//! is written, on condition that the mark did not move; facts have ids and are written once; moving
//! the mark and deleting the record is the last step.
//!
//! Effects: workspace files (writes), the store (writes), the journal (reads), the model.

use crate::error::MemoryError;
use crate::extract::{EXTRACT_PROMPT, ExtractionContext};
use crate::fact::Fact;
use crate::owner_memory::OwnerMemory;
use crate::progress::{
    ExtractedFact, Extraction, FlushMark, JobDocuments, Versioned, expected_version, put_change,
};
use crate::transcript::{TranscriptChunk, first_chunk, pieces};
use stead_core::{ChainSum, Entry, JournalLine, SessionChange, SessionModel, text_tokens};
use stead_store::{DocumentChange, Expected, StoreError};

/// This fraction of a question stays free, because token counts are estimates.
const SPARE_FRACTION: u64 = 8;
/// The smallest part of a session that is shown, however small the context window.
const MIN_CHUNK_TOKENS: u64 = 64;
/// How many conflicts with other workers there may be before the job fails.
const MAX_TRIES: usize = 1_000;

/// The result of flushing a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct FlushReport {
    /// The number of facts that were added to the file of their day.
    pub facts: usize,
    /// The number of facts that were quarantined.
    pub quarantined: usize,
}

impl OwnerMemory {
    /// Extracts the facts of its session up to entry `upto`.
    pub(crate) async fn flush(&self, upto: u64) -> Result<FlushReport, MemoryError> {
        let session = &self.session;
        let lines = match self.cx.sessions(&self.owner).read(session).await {
            Ok(lines) => lines,
            // The session was removed in the meantime.
            Err(StoreError::NotFound(_)) => return Ok(FlushReport::default()),
            Err(error) => return Err(error.into()),
        };
        let other = match used_model(&lines) {
            Some(used) => self.cx.for_session_model(&used)?,
            None => None,
        };
        match other {
            Some(cx) => {
                let memory = Self { cx, ..self.clone() };
                memory.flush_lines(&lines, upto).await
            }
            None => self.flush_lines(&lines, upto).await,
        }
    }

    /// Extracts the facts of these lines of its session up to entry `upto`.
    async fn flush_lines(
        &self,
        lines: &[JournalLine],
        upto: u64,
    ) -> Result<FlushReport, MemoryError> {
        let session = &self.session;
        let Some(first) = lines.first() else {
            return Ok(FlushReport::default());
        };
        let born = first.sum;
        let mut flushed = FlushReport::default();
        for _ in 0..MAX_TRIES {
            let mark: Option<Versioned<FlushMark>> =
                self.documents.get(&JobDocuments::mark_key(session)).await?;
            let from = flush_start(first, mark.as_ref().map(|stored| stored.value));
            if from >= upto {
                return Ok(flushed);
            }
            let Some(extraction) = self.next_extraction(lines, (from, upto), &mark).await? else {
                continue;
            };
            let written = self.store_facts(&extraction.value).await?;
            flushed.facts += written.facts;
            flushed.quarantined += written.quarantined;
            let moved = FlushMark {
                seq: extraction.value.upto,
                born,
            };
            let changes = vec![
                put_change(
                    JobDocuments::mark_key(session),
                    &moved,
                    expected_version(&mark),
                )?,
                DocumentChange::Delete {
                    key: JobDocuments::extraction_key(session),
                    expect: Expected::Version(extraction.version),
                },
            ];
            // On a conflict another worker was faster, with the same facts.
            self.documents.commit(changes).await?;
        }
        Err(MemoryError::Contended(self.files.days.clone()))
    }

    /// Returns the next extraction after the mark, which is recorded: that of an earlier attempt,
    /// or one that is asked for now. `None` if the mark moved in the meantime.
    async fn next_extraction(
        &self,
        lines: &[JournalLine],
        (from, upto): (u64, u64),
        mark: &Option<Versioned<FlushMark>>,
    ) -> Result<Option<Versioned<Extraction>>, MemoryError> {
        let session = &self.session;
        let key = JobDocuments::extraction_key(session);
        let born = lines.first().map_or(ChainSum::START, |line| line.sum);
        let known: Option<Versioned<Extraction>> = self.documents.get(&key).await?;
        if let Some(known) = &known
            && known.value.from == from
            && known.value.born == born
        {
            return Ok(Some(known.clone()));
        }
        let part = self.next_chunk(lines, from, upto);
        let last = part.as_ref().map_or(upto, |chunk| chunk.upto);
        let at = lines
            .iter()
            .rev()
            .find(|line| line.seq <= last)
            .map(|line| line.at)
            .unwrap_or_default();
        let date = self.files.date(at);
        let sessions = self.cx.sessions(&self.owner);
        let about = ExtractionContext {
            session,
            born,
            from,
            date,
            redactor: sessions.redactor(),
        };
        let extraction = match &part {
            Some(chunk) => self.extract(chunk, &about).await?,
            None => Extraction {
                from,
                upto,
                born,
                date,
                trusted: Vec::new(),
                outside: Vec::new(),
            },
        };
        let still = DocumentChange::Check {
            key: JobDocuments::mark_key(session),
            expect: expected_version(mark),
        };
        self.documents
            .commit(vec![
                still,
                put_change(key.clone(), &extraction, expected_version(&known))?,
            ])
            .await?;
        // If another worker was faster, its extraction is used.
        let stored: Option<Versioned<Extraction>> = self.documents.get(&key).await?;
        Ok(stored.filter(|stored| stored.value.from == from && stored.value.born == born))
    }

    /// Returns the next part of the session that fits into one question.
    fn next_chunk(&self, lines: &[JournalLine], from: u64, upto: u64) -> Option<TranscriptChunk> {
        let limit = self.question_tokens();
        let chunk_tokens =
            limit.saturating_sub(text_tokens(EXTRACT_PROMPT) + limit / SPARE_FRACTION);
        first_chunk(
            pieces(lines, from, upto),
            upto,
            chunk_tokens.max(MIN_CHUNK_TOKENS),
        )
    }

    /// Writes the facts of an extraction to the files.
    async fn store_facts(&self, extraction: &Extraction) -> Result<FlushReport, MemoryError> {
        let facts = |found: &[ExtractedFact]| -> Vec<Fact> {
            found
                .iter()
                .map(|f| Fact {
                    text: f.text.clone(),
                    sources: vec![f.source.clone()],
                })
                .collect()
        };
        let trusted = facts(&extraction.trusted);
        let outside = facts(&extraction.outside);
        let facts = self
            .files
            .append(&self.files.day(extraction.date)?, &trusted)
            .await?;
        let quarantined = self
            .files
            .quarantine_facts(extraction.date, &outside)
            .await?;
        if !trusted.is_empty() {
            // Before the mark moves: after a crash in between, the facts would never be merged.
            self.enqueue_consolidation().await?;
        }
        Ok(FlushReport { facts, quarantined })
    }
}

/// Returns the model that a session runs with, or the one that gave its last answer.
fn used_model(lines: &[JournalLine]) -> Option<SessionModel> {
    let mut recorded = None;
    let mut answered = None;
    for line in lines {
        match &line.entry {
            Entry::Session(start) => recorded.clone_from(&start.model),
            Entry::Set(set) => {
                if let SessionChange::Model { to } = &set.change {
                    recorded = Some(to.clone());
                }
            }
            Entry::Model(reply) => answered = Some(&reply.model),
            Entry::User(_)
            | Entry::Call(_)
            | Entry::Result(_)
            | Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Notice(_)
            | Entry::Steer(_)
            | Entry::Pin(_)
            | Entry::Compaction(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_) => {}
        }
    }
    recorded.or_else(|| answered.map(SessionModel::named))
}

/// Returns the entry after which extraction begins. Entries that a fork copied belong to the
/// original session.
fn flush_start(first: &JournalLine, mark: Option<FlushMark>) -> u64 {
    if let Some(mark) = mark.filter(|mark| mark.born == first.sum) {
        return mark.seq;
    }
    let Entry::Session(start) = &first.entry else {
        return 0;
    };
    start.parent.as_ref().map_or(0, |parent| parent.seq)
}
