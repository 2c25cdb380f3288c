//! What a person decided about a folder.
//!
//! Effects: the clock.

use super::{ActingKind, TrustFingerprint, TrustRequest};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What a person decided about a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    /// The real path of the folder.
    pub path: PathBuf,
    /// The decision.
    pub answer: TrustAnswer,
    /// The time of the decision.
    pub at: jiff::Timestamp,
    /// The fingerprint of the files that the parts come from.
    pub fingerprint: TrustFingerprint,
    /// The parts that the person was shown.
    pub parts: Vec<RecordedPart>,
}

/// The decision about a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustAnswer {
    /// The folder may act.
    Trusted,
    /// The folder is opened for reading alone, without the parts that act.
    ReadOnly,
}

/// A part of a folder that acts, as a person was shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedPart {
    /// What kind of part it is.
    pub kind: ActingKind,
    /// The file that it is written in.
    pub source: String,
    /// What it does.
    pub summary: String,
    /// The fingerprint of its files; none if one is too large.
    pub fingerprint: Option<TrustFingerprint>,
}

/// How a part differs from what a person decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartChange {
    /// It is as it was.
    Same,
    /// It was not there.
    New,
    /// It does the same, and a file that it comes from was changed.
    Changed,
    /// It is no longer there.
    Gone,
}

/// The maximum length of a part on one line.
const MAX_LINE_CHARS: usize = 400;
/// How much of it is the end of the part, where a long command may do what it is for.
const END_CHARS: usize = 120;

impl RecordedPart {
    /// Returns the part on one line. Whatever the folder wrote, it cannot look like several lines.
    pub fn line(&self) -> String {
        self.line_after("")
    }

    /// Returns the part on one line, with `word` between its file and what it does.
    pub fn line_after(&self, word: &str) -> String {
        let whole = format!("{}: {word}{}", self.source, self.summary);
        let visible = whole.chars().flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        });
        let mut shown: Vec<char> = Vec::new();
        for c in visible {
            // Blanks must not push the end out of sight.
            match (c.is_whitespace(), shown.last()) {
                (true, Some(' ')) => {}
                (true, _) => shown.push(' '),
                (false, _) => shown.push(c),
            }
        }
        let hidden = shown.len().saturating_sub(MAX_LINE_CHARS);
        if hidden == 0 {
            return shown.into_iter().collect();
        }
        let end = shown.split_off(shown.len() - END_CHARS);
        let start: String = shown[..MAX_LINE_CHARS - END_CHARS].iter().collect();
        let end: String = end.into_iter().collect();
        format!("{start}… ({hidden} more characters) …{end}")
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.kind, &self.source, &self.summary) == (other.kind, &other.source, &other.summary)
    }
}

impl TrustRecord {
    /// Returns the record of a decision that was just made; none if the folder cannot be trusted.
    pub fn new(path: PathBuf, answer: TrustAnswer, request: &TrustRequest) -> Option<Self> {
        Some(Self {
            path,
            answer,
            at: jiff::Timestamp::now(),
            fingerprint: request.fingerprint.clone().ok()?,
            parts: request.parts.clone(),
        })
    }

    /// Returns the name of the file that keeps the decision about the folder at `path`.
    pub fn file_name(path: &Path) -> String {
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let name: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{name}.json")
    }

    /// Whether the decision is about exactly these parts.
    pub fn covers(&self, request: &TrustRequest) -> bool {
        request.fingerprint.as_ref() == Ok(&self.fingerprint)
    }

    /// Returns the parts of `request`, and those of the record that are gone, with what changed.
    pub fn changes<'a>(&'a self, request: &'a TrustRequest) -> Vec<(PartChange, &'a RecordedPart)> {
        let change = |part: &RecordedPart| match self.parts.iter().find(|old| old.is_like(part)) {
            None => PartChange::New,
            Some(old) if old.fingerprint == part.fingerprint => PartChange::Same,
            Some(_) => PartChange::Changed,
        };
        let now = request.parts.iter().map(|part| (change(part), part));
        let is_gone = |old: &&RecordedPart| !request.parts.iter().any(|part| part.is_like(old));
        let gone = self.parts.iter().filter(is_gone);
        now.chain(gone.map(|part| (PartChange::Gone, part)))
            .collect()
    }
}
