//! Rebuilding the usage log from the journals.
//!
//! Effects: the clock, the store (writes), the journal (reads).

use super::UsageLog;
use super::record::{Purpose, UsageRecord};
use crate::AgentError;
use std::collections::BTreeSet;
use stead_core::{Entry, JournalLine, Owner, SessionId};

/// The result of rebuilding a usage log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct RebuildReport {
    /// The number of lines that were written from the journals.
    pub made: usize,
    /// The number of lines that were kept because no journal of this user has them: those of
    /// other users, of removed sessions, of memory and hooks.
    pub kept: usize,
}

impl UsageLog {
    /// Writes the lines of the owner again from the journals. Lines that no journal has are kept.
    pub async fn rebuild(&self) -> Result<RebuildReport, AgentError> {
        let owner = &self.owner;
        let sessions = self.place.sessions(owner);
        // Lines that are appended during the rebuild are kept as they are.
        let started = jiff::Timestamp::now();
        let mut made = Vec::new();
        let mut in_journals = BTreeSet::new();
        for summary in sessions.list_all().await? {
            let lines = sessions.read(&summary.id).await?;
            made.extend(
                records_of(owner, &summary.id, &lines)
                    .into_iter()
                    .filter(|record| record.at <= started),
            );
            in_journals.insert(summary.id.to_string());
        }
        let user = owner.user.to_string();
        let format = self.format.clone();
        let count = made.len();
        let (send_kept, kept) = tokio::sync::oneshot::channel();
        let rewrite = move |lines: Vec<String>| {
            let is_rebuilt = |record: &UsageRecord| {
                let has_entry = match record.purpose {
                    Purpose::Answer | Purpose::Subagent | Purpose::Compaction => true,
                    Purpose::Memory | Purpose::Hook => false,
                };
                has_entry
                    && record.at <= started
                    && record.user == user
                    && in_journals.contains(&record.session)
            };
            let old: Vec<UsageRecord> = lines
                .iter()
                .filter_map(|line| UsageRecord::parse(line))
                .collect();
            let mut all: Vec<UsageRecord> = old
                .into_iter()
                .filter(|record| !is_rebuilt(record))
                .collect();
            // Fails only if the caller was cancelled; the lines are correct all the same.
            let _ = send_kept.send(all.len());
            all.extend(made);
            all.sort_by_key(|record| record.at);
            all.iter().map(|record| record.to_line(&format)).collect()
        };
        self.lines.rewrite(Box::new(rewrite)).await?;
        Ok(RebuildReport {
            made: count,
            kept: kept.await.unwrap_or_default(),
        })
    }
}

/// Returns the calls of a journal. Entries that a fork copied count in the original session.
fn records_of(owner: &Owner, session: &SessionId, lines: &[JournalLine]) -> Vec<UsageRecord> {
    let copied = lines.first().map_or(0, |line| match &line.entry {
        Entry::Session(start) => start.parent.as_ref().map_or(0, |parent| parent.seq),
        _ => 0,
    });
    let spawned = lines.first().and_then(|line| match &line.entry {
        Entry::Session(start) => start.spawned.as_ref(),
        _ => None,
    });
    let record = |line: &JournalLine| {
        let new = |purpose, model: &str| UsageRecord {
            at: line.at,
            ..UsageRecord::new(&owner.user, session, purpose, model)
        };
        match &line.entry {
            Entry::Model(reply) => Some(
                new(Purpose::of_answers(spawned), &reply.model)
                    .for_run(&reply.run)
                    .with_usage(reply.usage, reply.cost),
            ),
            Entry::Compaction(compaction) => {
                let record = new(Purpose::Compaction, compaction.model.as_deref()?)
                    .with_usage(compaction.usage, compaction.cost);
                Some(match &compaction.run {
                    Some(run) => record.for_run(run),
                    None => record,
                })
            }
            Entry::Session(_)
            | Entry::User(_)
            | Entry::Call(_)
            | Entry::Result(_)
            | Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Notice(_)
            | Entry::Steer(_)
            | Entry::Set(_)
            | Entry::Pin(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_) => None,
        }
    };
    lines
        .iter()
        .filter(|line| line.seq > copied)
        .filter_map(record)
        .collect()
}
