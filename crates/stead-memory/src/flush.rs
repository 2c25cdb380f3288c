//! Flushing sessions: extracting facts from the entries of their journals that were not looked
//! through yet. Sessions are looked through together: one question is about as many as fit.
//!
//! The order makes a crash harmless at any point. The extraction of a session is recorded before its
//! first fact is written, on condition that its mark did not move; facts have ids and are written
//! once; moving the mark and deleting the record is the last step.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the store (writes),
//! the journal (reads), the model.

use crate::context::MemoryContext;
use crate::error::MemoryError;
use crate::extract::{EXTRACT_PROMPT, ExtractionPart};
use crate::fact::Fact;
use crate::owner_memory::OwnerMemory;
use crate::progress::{
    ExtractedFact, Extraction, FlushMark, JobDocuments, Versioned, expected_version, put_change,
};
use crate::transcript::{TranscriptChunk, first_chunk, pieces};
use std::sync::Arc;
use stead_core::{
    ChainSum, Entry, JournalLine, Owner, SessionChange, SessionId, SessionModel, text_tokens,
};
use stead_store::{DocumentChange, Expected, StoreError};

/// This fraction of a question stays free, because token counts are estimates.
const SPARE_FRACTION: u64 = 8;
/// The smallest part of a session that is shown, however small the context window.
const MIN_CHUNK_TOKENS: u64 = 64;
/// The heading of a session in a question about several.
const HEADING_TOKENS: u64 = 16;
/// How many conflicts with other workers there may be before the job fails.
const MAX_TRIES: usize = 1_000;

/// The result of flushing sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct FlushReport {
    /// The number of facts that were added to the file of their day.
    pub facts: usize,
    /// The number of facts that were quarantined.
    pub quarantined: usize,
}

impl std::ops::AddAssign for FlushReport {
    fn add_assign(&mut self, other: Self) {
        self.facts += other.facts;
        self.quarantined += other.quarantined;
    }
}

/// A session to flush, and its journal.
#[derive(Debug)]
pub(crate) struct FlushSession {
    pub(crate) id: SessionId,
    lines: Vec<JournalLine>,
    /// The last entry to look through.
    upto: u64,
}

/// A session whose next part is not extracted yet.
struct OpenPart<'a> {
    session: &'a FlushSession,
    from: u64,
    mark: Option<Versioned<FlushMark>>,
    /// The record of an extraction that does not begin at the mark.
    outdated: Option<Versioned<Extraction>>,
}

/// Sessions that may be looked through together: they have one memory, and their conversations were
/// sent to the same provider.
#[derive(Debug)]
pub(crate) struct FlushGroup {
    memory: OwnerMemory,
    /// The provider and endpoint; `None` if the context chooses its own.
    sent_to: Option<(String, Option<String>)>,
    pub(crate) sessions: Vec<FlushSession>,
}

/// Adds a session of `owner`, up to entry `upto`, to the group that it belongs to. Returns false if
/// there is no such session.
pub(crate) async fn add_to_group(
    groups: &mut Vec<FlushGroup>,
    cx: &Arc<dyn MemoryContext>,
    owner: &Owner,
    (id, upto): (&SessionId, u64),
) -> Result<bool, MemoryError> {
    let lines = match cx.sessions(owner).read(id).await {
        Ok(lines) if lines.is_empty() => return Ok(false),
        Ok(lines) => lines,
        // The session was removed in the meantime.
        Err(StoreError::NotFound(_)) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let used = used_model(&lines);
    let other = match &used {
        Some(used) => cx.for_session_model(used)?,
        None => None,
    };
    let sent_to = used
        .filter(|_| other.is_some())
        .map(|used| (used.provider().to_owned(), used.base_url));
    let memory = OwnerMemory::of_session(&other.unwrap_or_else(|| cx.clone()), owner, id)?;
    let session = FlushSession {
        id: id.clone(),
        lines,
        upto,
    };
    let same = groups.iter_mut().find(|group| {
        group.sent_to == sent_to && group.memory.documents.scope == memory.documents.scope
    });
    match same {
        Some(group) => group.sessions.push(session),
        None => groups.push(FlushGroup {
            memory,
            sent_to,
            sessions: vec![session],
        }),
    }
    Ok(true)
}

impl FlushGroup {
    /// Extracts the facts of all sessions of the group.
    pub(crate) async fn flush(&self) -> Result<FlushReport, MemoryError> {
        let memory = &self.memory;
        let mut flushed = FlushReport::default();
        for _ in 0..MAX_TRIES {
            let mut open = Vec::new();
            let mut progressed = false;
            for session in &self.sessions {
                match memory.next_part(session).await? {
                    NextPart::Nothing => {}
                    NextPart::Open(part) => open.push(part),
                    NextPart::Extracted(extraction, mark) => {
                        flushed += memory.apply(session, &extraction, &mark).await?;
                        progressed = true;
                    }
                }
            }
            if progressed {
                continue;
            }
            if open.is_empty() {
                return Ok(flushed);
            }
            memory.extract_open(open).await?;
        }
        Err(MemoryError::Contended(memory.files.days.clone()))
    }
}

/// What comes next in a session.
enum NextPart<'a> {
    Nothing,
    /// The extraction of an earlier attempt, or of this one.
    Extracted(Versioned<Extraction>, Option<Versioned<FlushMark>>),
    Open(OpenPart<'a>),
}

impl FlushSession {
    /// The last entry to look through.
    pub(crate) fn upto(&self) -> u64 {
        self.upto
    }

    /// The checksum of the first line, which is not that of a later session of the same name.
    fn born(&self) -> ChainSum {
        self.lines
            .first()
            .map_or(ChainSum::START, |first| first.sum)
    }

    /// The time of the last entry up to `seq`.
    fn time_of(&self, seq: u64) -> jiff::Timestamp {
        let mut lines = self.lines.iter().rev();
        lines
            .find(|line| line.seq <= seq)
            .map(|line| line.at)
            .unwrap_or_default()
    }
}

impl OwnerMemory {
    async fn next_part<'a>(&self, session: &'a FlushSession) -> Result<NextPart<'a>, MemoryError> {
        let mark: Option<Versioned<FlushMark>> = self
            .documents
            .get(&JobDocuments::mark_key(&session.id))
            .await?;
        let known_mark = mark.as_ref().map(|stored| stored.value);
        let from = session
            .lines
            .first()
            .map_or(0, |first| flush_start(first, known_mark));
        if from >= session.upto {
            return Ok(NextPart::Nothing);
        }
        let known: Option<Versioned<Extraction>> = self
            .documents
            .get(&JobDocuments::extraction_key(&session.id))
            .await?;
        Ok(match known {
            Some(known) if known.value.from == from && known.value.born == session.born() => {
                NextPart::Extracted(known, mark)
            }
            outdated => NextPart::Open(OpenPart {
                session,
                from,
                mark,
                outdated,
            }),
        })
    }

    /// Stores the facts of an extraction and moves the mark.
    async fn apply(
        &self,
        session: &FlushSession,
        extraction: &Versioned<Extraction>,
        mark: &Option<Versioned<FlushMark>>,
    ) -> Result<FlushReport, MemoryError> {
        let written = self.store_facts(&extraction.value).await?;
        let moved = FlushMark {
            seq: extraction.value.upto,
            born: session.born(),
        };
        let changes = vec![
            put_change(
                JobDocuments::mark_key(&session.id),
                &moved,
                expected_version(mark),
            )?,
            DocumentChange::Delete {
                key: JobDocuments::extraction_key(&session.id),
                expect: Expected::Version(extraction.version),
            },
        ];
        // On a conflict another worker was faster, with the same facts.
        self.documents.commit(changes).await?;
        Ok(written)
    }

    /// Asks for the facts in the next parts of as many sessions as fit into one question, and
    /// records them. A session whose mark moved in the meantime is left as it is.
    async fn extract_open(&self, open: Vec<OpenPart<'_>>) -> Result<(), MemoryError> {
        let limit = self.question_tokens();
        let room = limit.saturating_sub(text_tokens(EXTRACT_PROMPT) + limit / SPARE_FRACTION);
        let room = room.max(MIN_CHUNK_TOKENS);
        let mut left = room;
        let mut asked: Vec<(OpenPart<'_>, TranscriptChunk)> = Vec::new();
        for part in open {
            let OpenPart { session, from, .. } = &part;
            let new = pieces(&session.lines, *from, session.upto);
            let Some(chunk) = first_chunk(new, session.upto, room) else {
                self.record(&part, Vec::new(), Vec::new(), session.upto)
                    .await?;
                continue;
            };
            let tokens = chunk.tokens() + HEADING_TOKENS;
            // What does not fit beside others is asked about in the next question.
            if asked.is_empty() || tokens <= left {
                left = left.saturating_sub(tokens);
                asked.push((part, chunk));
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let sessions = self.cx.sessions(&self.owner);
        let parts = asked.iter().map(|(part, chunk)| ExtractionPart {
            session: &part.session.id,
            born: part.session.born(),
            from: part.from,
            date: self.files.date(part.session.time_of(chunk.upto)),
            chunk,
        });
        let parts: Vec<ExtractionPart<'_>> = parts.collect();
        let found = self.extract(&parts, sessions.redactor()).await?;
        for ((part, chunk), facts) in asked.iter().zip(found) {
            self.record(part, facts.trusted, facts.outside, chunk.upto)
                .await?;
        }
        Ok(())
    }

    /// Records the extraction of a part, unless the mark moved.
    async fn record(
        &self,
        part: &OpenPart<'_>,
        trusted: Vec<ExtractedFact>,
        outside: Vec<ExtractedFact>,
        upto: u64,
    ) -> Result<(), MemoryError> {
        let session = part.session;
        let extraction = Extraction {
            from: part.from,
            upto,
            born: session.born(),
            date: self.files.date(session.time_of(upto)),
            trusted,
            outside,
        };
        let still = DocumentChange::Check {
            key: JobDocuments::mark_key(&session.id),
            expect: expected_version(&part.mark),
        };
        let put = put_change(
            JobDocuments::extraction_key(&session.id),
            &extraction,
            expected_version(&part.outdated),
        )?;
        // If another worker was faster, its extraction is used.
        self.documents.commit(vec![still, put]).await?;
        Ok(())
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
