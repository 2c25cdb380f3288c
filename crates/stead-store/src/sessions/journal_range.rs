//! Reading a part of a journal file, without holding the rest in memory.
//!
//! Effects: the local disk (reads).

use super::journal::read_line;
use super::journal_file::{check_session_id, ends_at};
use super::{JournalEnd, Position};
use crate::StoreError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use stead_core::{ChainSum, JournalLine, LineError, SessionId};

/// The number of bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// The length of the checksum, `"}` and the line end, with which a line ends.
const LINE_END_BYTES: u64 = 16 + 3;

/// A part of a journal, and the position after it.
#[derive(Debug)]
pub(super) struct JournalRange {
    pub(super) lines: Vec<JournalLine>,
    pub(super) end: Position,
}

/// Reads lines from number `from` on: about `limit_bytes` of them, and at least one if there is one.
/// Lines before `known` are not read if the journal still has that position. A last line without
/// an end is left out.
pub(super) fn read_range(
    (path, file): (&Path, &File),
    id: &SessionId,
    from: u64,
    limit_bytes: usize,
    known: Option<Position>,
) -> Result<JournalRange, StoreError> {
    let failed = |cause| StoreError::io(path, cause);
    let start = known
        .filter(|known| known.seq < from && ends_at(file, *known))
        .unwrap_or(Position::START);
    let skipped = skip_lines(file, start, from.saturating_sub(1)).map_err(failed)?;
    let mut lines = Vec::new();
    let Some(mut at) = skipped else {
        return Ok(JournalRange { lines, end: start });
    };
    let begin = at.bytes;
    let mut text = Vec::new();
    let mut read_to = begin;
    loop {
        let used = usize::try_from(at.bytes - begin).unwrap_or(usize::MAX);
        if used >= limit_bytes && !lines.is_empty() {
            break;
        }
        let rest = text.get(used..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', rest) else {
            let more = read_chunk(file, read_to).map_err(failed)?;
            if more.is_empty() {
                break;
            }
            read_to += more.len() as u64;
            text.extend_from_slice(&more);
            continue;
        };
        let number = at.seq + 1;
        let line =
            read_line(&rest[..end], number, at.sum).map_err(|cause| StoreError::Damaged {
                path: path.to_owned(),
                line: number,
                cause,
            })?;
        check_session_id(path, id, &line)?;
        at = Position {
            seq: number,
            sum: line.sum,
            bytes: at.bytes + end as u64 + 1,
        };
        lines.push(line);
    }
    Ok(JournalRange { lines, end: at })
}

/// Returns the position after line `upto`, or `None` if there are fewer lines. The lines between are
/// counted and not verified.
fn skip_lines(file: &File, start: Position, upto: u64) -> io::Result<Option<Position>> {
    let mut left = upto.saturating_sub(start.seq);
    let mut bytes = start.bytes;
    while left > 0 {
        let chunk = read_chunk(file, bytes)?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let count = memchr::memchr_iter(b'\n', &chunk).count() as u64;
        if count < left {
            left -= count;
            bytes += chunk.len() as u64;
            continue;
        }
        let nth = usize::try_from(left - 1).unwrap_or(usize::MAX);
        let end = memchr::memchr_iter(b'\n', &chunk).nth(nth);
        bytes += end.map_or(chunk.len(), |end| end + 1) as u64;
        left = 0;
    }
    if upto <= start.seq {
        return Ok(Some(start));
    }
    Ok(Some(Position {
        seq: upto,
        sum: sum_before(file, bytes)?,
        bytes,
    }))
}

/// Returns the checksum of the line that ends at `bytes`.
fn sum_before(file: &File, bytes: u64) -> io::Result<ChainSum> {
    let damaged = || io::Error::other(LineError::Checksum);
    let mut end = [0; LINE_END_BYTES as usize];
    let start = bytes.checked_sub(LINE_END_BYTES).ok_or_else(damaged)?;
    file.read_exact_at(&mut end, start)?;
    let hex = std::str::from_utf8(&end[..16]).map_err(|_| damaged())?;
    serde_json::from_value(hex.into()).map_err(|_| damaged())
}

/// Returns the end of the last complete line, or `None` if there is none. Only the last line is read.
pub(super) fn read_end(file: &File) -> io::Result<Option<JournalEnd>> {
    let mut tail = Vec::new();
    let mut start = file.metadata()?.len();
    loop {
        // The last line end, and the one before it.
        let mut ends = memchr::memrchr_iter(b'\n', &tail);
        let last = ends.next();
        let before = ends.next();
        if let (Some(last), true) = (last, before.is_some() || start == 0) {
            let line = &tail[before.map_or(0, |before| before + 1)..last];
            let seq =
                line_number(line).ok_or_else(|| io::Error::other("the last line has no number"))?;
            return Ok(Some(JournalEnd {
                seq,
                bytes: start + last as u64 + 1,
            }));
        }
        if start == 0 {
            return Ok(None);
        }
        // Twice as much each time, so that a long line is not copied again and again.
        let more = (CHUNK_BYTES.max(tail.len()) as u64).min(start);
        start -= more;
        let mut longer = vec![0; usize::try_from(more).unwrap_or(CHUNK_BYTES)];
        file.read_exact_at(&mut longer, start)?;
        longer.append(&mut tail);
        tail = longer;
    }
}

/// Returns the number at the beginning of a line.
fn line_number(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"seq\":")?;
    let end = memchr::memchr(b',', rest)?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

/// Reads the next bytes at an offset; none at the end of the file.
fn read_chunk(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let read = file.read_at(&mut chunk, at)?;
    chunk.truncate(read);
    Ok(chunk)
}
