//! One journal file: reading and verifying it, and appending to it.
//!
//! Effects: the clock, the local disk (writes).

use super::group_sync::GroupSync;
use super::lock::Lock;
use crate::{Disk, FencingToken, JournalWriter, Position, StoreError, TornTail};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_core::{ChainSum, Entry, JournalLine, Redactor, decode_line, encode_line};
use tokio_util::sync::CancellationToken;

impl Position {
    /// The position before the first line.
    pub(crate) const START: Self = Self {
        seq: 0,
        sum: ChainSum::START,
        bytes: 0,
    };
}

/// Reads and verifies the lines of `text` from `start` on and passes each to `sink`. Returns the end
/// of the intact part and the torn rest.
///
/// A crash can only leave the beginning of a last line, or a blank end: that is torn. Anything else
/// that does not verify is damage, and is left for a person to inspect.
pub(super) fn read_lines_from(
    path: &Path,
    text: &[u8],
    start: Position,
    mut sink: impl FnMut(JournalLine) -> Result<(), StoreError>,
) -> Result<(Position, Option<TornTail>), StoreError> {
    let mut at = start;
    while (at.bytes as usize) < text.len() {
        let rest = &text[at.bytes as usize..];
        let number = at.seq + 1;
        let end = memchr::memchr(b'\n', rest);
        let line = match end {
            Some(end) => read_line(&rest[..end], number, at.sum),
            None => Err(stead_core::LineError::Malformed("it has no end".to_owned())),
        };
        match (line, end) {
            (Ok(line), Some(end)) => {
                at = Position {
                    seq: line.seq,
                    sum: line.sum,
                    bytes: at.bytes + end as u64 + 1,
                };
                sink(line)?;
            }
            (Err(stead_core::LineError::UnknownKind(kind)), _) => {
                let cause = stead_core::LineError::UnknownKind(kind);
                return Err(StoreError::Damaged {
                    path: path.to_owned(),
                    line: number,
                    cause,
                });
            }
            (Err(_), None) if is_torn(rest) => {
                return Ok((
                    at,
                    Some(TornTail {
                        line: number,
                        bytes: rest.len() as u64,
                    }),
                ));
            }
            (Err(cause), _) => {
                return Err(StoreError::Damaged {
                    path: path.to_owned(),
                    line: number,
                    cause,
                });
            }
            (Ok(_), None) => return Ok((at, None)),
        }
    }
    Ok((at, None))
}

/// Checks that imported lines are the complete journal of `id` from its first line.
pub(crate) fn check_lines(
    path: &Path,
    id: &stead_core::SessionId,
    lines: &[Bytes],
) -> Result<Position, StoreError> {
    let mut at = Position::START;
    for text in lines {
        let number = at.seq + 1;
        let damaged = |cause| StoreError::Damaged {
            path: path.to_owned(),
            line: number,
            cause,
        };
        let line = read_line(text, number, at.sum).map_err(damaged)?;
        let foreign = match &line.entry {
            Entry::Session(start) => start.session != *id,
            _ => number == 1,
        };
        if foreign {
            return Err(damaged(stead_core::LineError::Malformed(format!(
                "it is not the journal of session {id}"
            ))));
        }
        at = Position {
            seq: number,
            sum: line.sum,
            bytes: at.bytes + text.len() as u64 + 1,
        };
    }
    Ok(at)
}

pub(crate) fn read_line(
    bytes: &[u8],
    number: u64,
    previous: ChainSum,
) -> Result<JournalLine, stead_core::LineError> {
    let malformed = |why: &str| stead_core::LineError::Malformed(why.to_owned());
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8"))?;
    let line = decode_line(text, previous)?;
    if line.seq == number {
        Ok(line)
    } else {
        Err(malformed(&format!("it says it is line {}", line.seq)))
    }
}

/// Returns whether bytes without a newline can be what a crash left of a line.
fn is_torn(rest: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"{\"seq\":";
    let blank = rest.iter().all(|&byte| byte == 0);
    blank || rest.starts_with(BEGINNING) || BEGINNING.starts_with(rest)
}

/// The writer of one journal file, which holds its lock.
#[derive(Debug)]
pub(crate) struct FileWriter {
    path: PathBuf,
    file: Arc<File>,
    disk: Arc<dyn Disk>,
    redactor: Redactor,
    at: Position,
    /// The directory whose sync makes a new file durable, until that has happened.
    pending_dir_sync: Option<PendingDirSync>,
    /// Set before a write begins and cleared after it succeeded. A write that failed, or whose
    /// future was dropped, leaves the end of the file unknown.
    broken: bool,
    _lock: Lock,
}

/// The directory of a new file, which must be synced.
#[derive(Debug, Clone)]
pub(crate) struct PendingDirSync {
    pub(crate) dir: Arc<File>,
    /// Shares one sync among the files created in the directory.
    pub(crate) group: Arc<GroupSync>,
}

impl FileWriter {
    /// Returns a writer that appends to the locked `file` at `at`.
    pub(crate) fn new(
        path: PathBuf,
        file: Arc<File>,
        disk: Arc<dyn Disk>,
        redactor: Redactor,
        at: Position,
        lock: Lock,
    ) -> Self {
        Self {
            path,
            file,
            disk,
            redactor,
            at,
            pending_dir_sync: None,
            broken: false,
            _lock: lock,
        }
    }

    /// Adds the directory of a file that was just created.
    pub(crate) fn with_pending_dir_sync(self, pending: PendingDirSync) -> Self {
        Self {
            pending_dir_sync: Some(pending),
            ..self
        }
    }

    /// Makes the last write durable, and the name of a file that was just created.
    async fn sync(&mut self) -> std::io::Result<()> {
        let disk = self.disk.clone();
        let file = self.file.clone();
        let content = async {
            tokio::task::spawn_blocking(move || disk.sync(&file))
                .await
                .map_err(std::io::Error::other)?
        };
        match self.pending_dir_sync.clone() {
            None => content.await,
            Some(PendingDirSync { dir, group }) => {
                let disk = self.disk.clone();
                let name = group.sync(move || disk.sync(&dir));
                tokio::try_join!(content, name)?;
                self.pending_dir_sync = None;
                Ok(())
            }
        }
    }

    /// Removes a torn line from the end of the file.
    pub(crate) fn truncate_torn(&self) -> Result<(), StoreError> {
        let cut = self
            .disk
            .set_len(&self.file, self.at.bytes)
            .and_then(|()| self.disk.sync(&self.file));
        cut.map_err(|cause| StoreError::io(&self.path, cause))
    }
}

/// Encodes `entries` after `at`, one line each, and returns the text with the entries as written.
pub(crate) fn encode(
    redactor: &Redactor,
    at: Position,
    entries: Vec<Entry>,
) -> Result<(String, Vec<JournalLine>), (u64, stead_core::LineError)> {
    // As precise as the journal, so that a line read back equals the line written.
    let now = jiff::Timestamp::now();
    let now = jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
    let mut at = at;
    let mut text = String::new();
    let mut lines = Vec::with_capacity(entries.len());
    for entry in entries {
        let seq = at.seq + 1;
        let line = encode_line(seq, now, &entry, at.sum);
        let before = line.1;
        let (encoded, sum) = redactor.redact_line(line, at.sum);
        // What was redacted in the journal must be redacted in memory too, or a resumed session
        // would differ from the live one.
        let entry = if sum == before {
            entry
        } else {
            decode_line(encoded.trim_end_matches('\n'), at.sum)
                .map_err(|cause| (seq, cause))?
                .entry
        };
        text.push_str(&encoded);
        at = Position {
            seq,
            sum,
            bytes: at.bytes + encoded.len() as u64,
        };
        lines.push(JournalLine {
            seq,
            at: now,
            entry,
            sum,
        });
    }
    Ok((text, lines))
}

impl JournalWriter for FileWriter {
    fn append(
        &mut self,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<Vec<JournalLine>, StoreError>> {
        Box::pin(async move {
            if self.broken {
                return Err(StoreError::Broken(self.path.clone()));
            }
            let durable = entries.iter().any(Entry::must_be_durable);
            let (text, lines) =
                encode(&self.redactor, self.at, entries).map_err(|(line, cause)| {
                    StoreError::Damaged {
                        path: self.path.clone(),
                        line,
                        cause,
                    }
                })?;
            self.broken = true;
            // A write into the page cache takes a few microseconds; handing it to another thread
            // takes longer.
            if let Err(cause) = self.disk.write_all(&self.file, text.as_bytes()) {
                // Best effort: the next opening removes the torn line anyway.
                let _ = self.disk.set_len(&self.file, self.at.bytes);
                return Err(StoreError::io(&self.path, cause));
            }
            if durable {
                self.sync()
                    .await
                    .map_err(|cause| StoreError::io(&self.path, cause))?;
            }
            if let Some(last) = lines.last() {
                self.at = Position {
                    seq: last.seq,
                    sum: last.sum,
                    bytes: self.at.bytes + text.len() as u64,
                };
            }
            self.broken = false;
            Ok(lines)
        })
    }

    fn position(&self) -> Position {
        self.at
    }

    fn fence(&self) -> Option<&FencingToken> {
        None
    }

    fn lease_lost(&self) -> CancellationToken {
        // A file lock cannot be taken over.
        CancellationToken::new()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        drop(self);
        Box::pin(async {})
    }
}
