//! Reading all lines of a journal, a long one on several threads.
//!
//! A line says which checksum it has, and the next line continues it. So a part of a journal can be
//! verified without the parts before it. Lines are passed on in their order, and the first problem
//! is the one that is returned, as if one thread had read them all.
//!
//! Effects: none.

use super::journal::read_lines_from;
use crate::{Position, StoreError, TornTail};
use memchr::{memchr, memchr_iter};
use std::path::Path;
use std::thread::{self, Builder};
use stead_core::{ChainSum, JournalLine};

/// The least length of a part. Verifying it takes about twenty times as long as starting a thread.
const PART_BYTES: usize = 256 * 1024;

type ReadEnd = (Position, Option<TornTail>);

/// Some lines of a journal.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    /// The journal up to the end of the part.
    text: &'a [u8],
    /// Where the part begins.
    start: Position,
}

/// Reads and verifies all lines of `text` and passes each to `sink`. Returns the end of the intact
/// part and the torn rest.
pub(super) fn read_lines(
    path: &Path,
    text: &[u8],
    sink: impl FnMut(JournalLine) -> Result<(), StoreError>,
) -> Result<ReadEnd, StoreError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    read_parts(
        path,
        &parts(text, threads.min(text.len() / PART_BYTES)),
        sink,
    )
}

/// Returns `text` in at most `count` parts of about the same length.
fn parts(text: &[u8], count: usize) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut start = Position::START;
    for number in 1..count {
        let begin = start.bytes as usize;
        let middle = (text.len() / count * number).max(begin);
        let Some(rest) = memchr(b'\n', &text[middle..]) else {
            break;
        };
        let end = middle + rest + 1;
        parts.push(Part {
            text: &text[..end],
            start,
        });
        start = Position {
            seq: start.seq + memchr_iter(b'\n', &text[begin..end]).count() as u64,
            // A line without a sum is damaged, and is returned as the first problem.
            sum: last_sum(&text[begin..end]).unwrap_or(ChainSum::START),
            bytes: end as u64,
        };
    }
    parts.push(Part { text, start });
    parts
}

/// Returns the checksum that the last of some lines says it has.
fn last_sum(lines: &[u8]) -> Option<ChainSum> {
    ChainSum::claimed_by(lines.strip_suffix(b"\n")?)
}

/// Reads each part on a thread of its own, and passes all lines to `sink` on this one.
fn read_parts(
    path: &Path,
    parts: &[Part<'_>],
    mut sink: impl FnMut(JournalLine) -> Result<(), StoreError>,
) -> Result<ReadEnd, StoreError> {
    let Some((first, others)) = parts.split_first() else {
        return Ok((Position::START, None));
    };
    thread::scope(|scope| {
        let started = others.iter().map(|part| {
            let thread = Builder::new().name("stead-journal".into());
            let started = thread.spawn_scoped(scope, || collect(path, *part));
            (part, started)
        });
        let others: Vec<_> = started.collect();
        let mut end = read_lines_from(path, first.text, first.start, &mut sink)?;
        for (part, started) in others {
            let (lines, part_end) = match started.map(|thread| thread.join()) {
                Ok(Ok(read)) => read,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // There are too many threads.
                Err(_) => collect(path, *part),
            };
            lines.into_iter().try_for_each(&mut sink)?;
            end = part_end?;
        }
        Ok(end)
    })
}

/// Returns the lines of a part up to the first problem, and how it ends.
fn collect(path: &Path, part: Part<'_>) -> (Vec<JournalLine>, Result<ReadEnd, StoreError>) {
    let mut lines = Vec::new();
    let end = read_lines_from(path, part.text, part.start, |line| {
        lines.push(line);
        Ok(())
    });
    (lines, end)
}

#[cfg(test)]
mod tests {
    use super::super::journal::encode;
    use super::*;
    use stead_core::{Entry, Notice, NoticeKind, Redactor, RunId};

    fn journal(lines: usize) -> Vec<u8> {
        let notice = |number: usize| {
            let text = format!("notice {number} {}", "ä".repeat(number % 7));
            let run = RunId::new("r1").unwrap();
            Entry::Notice(Notice::new(run, NoticeKind::Context, text))
        };
        let entries = (0..lines).map(notice).collect();
        let (text, _) = encode(&Redactor::default(), Position::START, entries).unwrap();
        text.into_bytes()
    }

    /// What reading gives, as text: the lines that were passed on, and the end.
    fn read(text: &[u8], count: usize) -> (Vec<JournalLine>, String) {
        let mut lines = Vec::new();
        let end = read_parts(Path::new("j"), &parts(text, count), |line| {
            lines.push(line);
            Ok(())
        });
        (lines, format!("{end:?}"))
    }

    #[test]
    fn a_journal_in_parts_is_the_journal() {
        for lines in [0, 1, 2, 3, 10, 41] {
            let text = journal(lines);
            let whole = read(&text, 1);
            assert_eq!(whole.0.len(), lines);
            for count in [0, 2, 3, 4, 7, 100] {
                assert_eq!(read(&text, count), whole, "{lines} lines in {count} parts");
            }
        }
    }

    #[test]
    fn the_first_problem_is_reported_wherever_it_is() {
        let sound = journal(9);
        for at in 0..sound.len() {
            let mut changed = sound.clone();
            changed[at] ^= 1;
            let mut shortened = sound.clone();
            shortened.remove(at);
            for text in [&changed[..], &shortened, &sound[..at]] {
                let whole = read(text, 1);
                for count in [2, 3, 5] {
                    assert_eq!(read(text, count), whole, "byte {at} in {count} parts");
                }
            }
        }
    }

    #[test]
    fn what_the_receiver_refuses_ends_the_reading() {
        let text = journal(20);
        let mut seen = 0;
        let refused = read_parts(Path::new("j"), &parts(&text, 4), |line| {
            seen = line.seq;
            match line.seq {
                13 => Err(StoreError::Conflict("enough".to_owned())),
                _ => Ok(()),
            }
        });
        assert!(matches!(refused, Err(StoreError::Conflict(_))));
        assert_eq!(seen, 13);
    }
}
