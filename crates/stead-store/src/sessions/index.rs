//! `sessions.jsonl`: the summaries for listings, derived from the journals, which take precedence.
//!
//! Each line after the first is one summary, and of several lines of a session the last one counts.
//! A change is one more line; now and then the file is written anew without what is outdated.
//!
//! Effects: the clock, the local disk (writes).

use crate::regular_file::{MAX_STATE_FILE_BYTES, open_regular, read_regular};
use crate::{Disk, Position, SessionSummary, StoreError};
use rustix::fs::{AtFlags, FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use stead_core::{SessionId, SessionState};

const INDEX_FILE: &str = "sessions.jsonl";
/// The index of earlier versions.
const OLD_INDEX_FILE: &str = "sessions.json";
const INDEX_VERSION: u32 = 2;
const FILE_MODE: u32 = 0o600;
const LINE_START: &[u8] = b"{\"id\":\"";
/// The bytes that may be outdated in a small file.
const MIN_COMPACTION_BYTES: u64 = 64 * 1024;
const MAX_HEADER_BYTES: usize = 200;

/// The first line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct IndexHeader {
    version: u32,
    /// The length of the file when nothing in it was outdated.
    compact_bytes: u64,
}

/// The content of the file.
#[derive(Debug, Default)]
pub(crate) struct SessionIndex {
    text: Vec<u8>,
}

/// The last line of each session, by its id as it is written in JSON.
#[derive(Debug)]
pub(crate) struct IndexLines<'a> {
    lines: HashMap<&'a [u8], &'a [u8]>,
}

impl SessionIndex {
    /// Reads the index. An absent, broken or older file gives an empty index, because it can be
    /// rebuilt.
    pub(crate) fn load(dir: &Path) -> Self {
        let text = read_regular(&dir.join(INDEX_FILE), MAX_STATE_FILE_BYTES).unwrap_or_default();
        match parse_header(&text) {
            Some(_) => Self { text },
            None => Self::default(),
        }
    }

    /// Finds the lines of the sessions without parsing them.
    pub(crate) fn lines(&self) -> IndexLines<'_> {
        let mut lines = HashMap::new();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &self.text) {
            let line = &self.text[start..end];
            start = end + 1;
            if let Some(id) = raw_id(line) {
                lines.insert(id, line);
            }
        }
        IndexLines { lines }
    }

    /// Appends summaries to the file. Waits briefly for another process that does the same; the
    /// next listing notices an index that is out of date.
    pub(crate) fn append(
        path: &Path,
        dir: &File,
        disk: &dyn Disk,
        changes: &[SessionSummary],
    ) -> Result<(), StoreError> {
        for _ in 0..20 {
            match rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let written = append_locked(path, dir, disk, changes);
                    let _ = rustix::fs::flock(dir, FlockOperation::Unlock);
                    return written.map_err(|cause| StoreError::io(path.join(INDEX_FILE), cause));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(())
    }
}

impl IndexLines<'_> {
    /// Returns the summary of a session, if there is one that can be read.
    pub(crate) fn get(&self, id: &SessionId) -> Option<SessionSummary> {
        let quoted = serde_json::to_string(id).ok()?;
        let raw = quoted.get(1..quoted.len() - 1)?;
        serde_json::from_slice(self.lines.get(raw.as_bytes())?).ok()
    }
}

fn append_locked(
    path: &Path,
    dir: &File,
    disk: &dyn Disk,
    changes: &[SessionSummary],
) -> io::Result<()> {
    let mut text = Vec::new();
    for summary in changes {
        serde_json::to_writer(&mut text, summary)?;
        text.push(b'\n');
    }
    let Some((file, header)) = open(path) else {
        if path.join(OLD_INDEX_FILE).exists() {
            let _ = disk.remove(dir.as_fd(), Path::new(OLD_INDEX_FILE), AtFlags::empty());
        }
        return replace(dir, disk, &text);
    };
    let before = file.metadata()?.len();
    // A line that was cut off must not merge with the next one.
    let mut last = [b'\n'];
    file.read_exact_at(&mut last, before.saturating_sub(1))?;
    if last != *b"\n" {
        text.insert(0, b'\n');
    }
    disk.write_all(&file, &text)?;
    let after = before + text.len() as u64;
    if after > header.compact_bytes * 2 + MIN_COMPACTION_BYTES {
        compact(path, dir, disk)?;
    }
    Ok(())
}

/// Writes the file anew with the last line of each session that has a journal.
fn compact(path: &Path, dir: &File, disk: &dyn Disk) -> io::Result<()> {
    let index = SessionIndex::load(path);
    let mut text = Vec::new();
    for line in index.lines().lines.into_values() {
        let id = serde_json::from_slice(line).map(|summary: SessionSummary| summary.id);
        let is_there = |id: &SessionId| path.join(super::journal_name(id)).exists();
        if id.is_ok_and(|id| is_there(&id)) {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }
    replace(dir, disk, &text)
}

/// Replaces the file by one with these lines.
fn replace(dir: &File, disk: &dyn Disk, lines: &[u8]) -> io::Result<()> {
    let header = IndexHeader {
        version: INDEX_VERSION,
        compact_bytes: lines.len() as u64,
    };
    let mut text = serde_json::to_vec(&header)?;
    text.push(b'\n');
    text.extend_from_slice(lines);
    disk.replace(dir.as_fd(), Path::new(INDEX_FILE), &text, FILE_MODE)
}

/// Opens the file for appending, if it is an index of this version.
fn open(path: &Path) -> Option<(File, IndexHeader)> {
    let flags = OFlags::RDWR | OFlags::APPEND;
    let file = open_regular(&path.join(INDEX_FILE), flags).ok()?;
    let mut start = [0; MAX_HEADER_BYTES];
    let read = file.read_at(&mut start, 0).ok()?;
    let header = parse_header(start.get(..read)?)?;
    Some((file, header))
}

fn parse_header(text: &[u8]) -> Option<IndexHeader> {
    let end = memchr::memchr(b'\n', text)?;
    serde_json::from_slice(&text[..end])
        .ok()
        .filter(|header: &IndexHeader| header.version == INDEX_VERSION)
}

/// Returns the id at the beginning of a line, as it is written in JSON.
fn raw_id(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(LINE_START)?;
    // An id contains no backslash, so one before a quote makes the quote a part of the id.
    let end = memchr::memchr_iter(b'"', rest).find(|&at| at == 0 || rest[at - 1] != b'\\')?;
    Some(&rest[..end])
}

impl SessionSummary {
    /// Returns the summary of `state` for listings.
    pub(crate) fn of(
        id: &SessionId,
        state: &SessionState,
        position: Position,
        updated_ms: i64,
    ) -> Self {
        Self {
            id: id.clone(),
            title: state.title.clone(),
            parent: state.spawned.as_ref().map(|spawned| spawned.by.clone()),
            updated_ms,
            entries: position.seq,
            runs: state.runs,
            outcome: if state.run.is_some() {
                None
            } else {
                state.last_outcome
            },
            model: state.model.clone(),
            usage: state.usage,
            cost: state.cost,
            bytes: position.bytes,
            damage: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OsDisk, open_dir};

    fn summary(id: &str, runs: u64) -> SessionSummary {
        let id = SessionId::new(id).unwrap();
        SessionSummary {
            title: "a \"title\"".repeat(20),
            runs,
            ..SessionSummary::of(&id, &SessionState::default(), Position::START, 0)
        }
    }

    #[test]
    fn the_last_line_of_a_session_counts_and_the_file_does_not_grow_forever() {
        let dir = tempfile::tempdir().unwrap();
        let open = open_dir(dir.path()).unwrap();
        let old = dir.path().join(OLD_INDEX_FILE);
        std::fs::write(&old, "{}").unwrap();
        let ids = ["a", "b\"c", "ä"];
        for id in ids {
            let name = super::super::journal_name(&SessionId::new(id).unwrap());
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        for runs in 0..1000 {
            let changes: Vec<_> = ids.iter().map(|id| summary(id, runs)).collect();
            SessionIndex::append(dir.path(), &open, &OsDisk, &changes).unwrap();
        }
        assert!(!old.exists());
        let gone = [summary("gone", 1)];
        SessionIndex::append(dir.path(), &open, &OsDisk, &gone).unwrap();
        let index = SessionIndex::load(dir.path());
        let lines = index.lines();
        for id in ids {
            let wanted = summary(id, 999);
            assert_eq!(lines.get(&wanted.id), Some(wanted));
        }
        let bytes = std::fs::metadata(dir.path().join(INDEX_FILE))
            .unwrap()
            .len();
        assert!(bytes < 2 * MIN_COMPACTION_BYTES, "{bytes}");
        compact(dir.path(), &open, &OsDisk).unwrap();
        let text = std::fs::read_to_string(dir.path().join(INDEX_FILE)).unwrap();
        assert_eq!(text.lines().count(), 1 + ids.len(), "{text}");
    }

    #[test]
    fn a_line_that_was_cut_off_takes_no_other_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let open = open_dir(dir.path()).unwrap();
        let append =
            |summary| SessionIndex::append(dir.path(), &open, &OsDisk, &[summary]).unwrap();
        append(summary("a", 1));
        let path = dir.path().join(INDEX_FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "{\"id\":\"b\",\"titl").unwrap();
        append(summary("c", 3));
        let index = SessionIndex::load(dir.path());
        let found = ["a", "b", "c"].map(|id| index.lines().get(&SessionId::new(id).unwrap()));
        assert_eq!(found, [Some(summary("a", 1)), None, Some(summary("c", 3))]);
    }
}
