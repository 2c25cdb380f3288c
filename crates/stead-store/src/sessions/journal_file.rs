//! Opening and reading the file of a journal.
//!
//! Effects: the local disk (reads).

use super::long_journal::read_lines;
use crate::regular_file::open_regular;
use crate::{Position, StoreError, TornTail};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use stead_core::{Entry, JournalLine, LineError, SessionId, SessionState};

/// Verifies the journal of `id` and folds its lines into `state`. Returns the end of the intact part
/// and the torn rest.
pub(super) fn fold(
    path: &Path,
    id: &SessionId,
    text: &[u8],
    state: &mut SessionState,
) -> Result<(Position, Option<TornTail>), StoreError> {
    read_lines(path, text, |line| {
        check_session_id(path, id, &line)?;
        state
            .apply(line.seq, &line.entry)
            .map_err(|cause| StoreError::Inconsistent {
                path: path.to_owned(),
                cause,
            })
    })
}

/// Whether the last line of a journal is the one at `position`.
pub(super) fn ends_at(file: &File, position: Position) -> bool {
    let end = format!("{}\"}}\n", position.sum);
    let mut bytes = vec![0; end.len()];
    let start = position.bytes.checked_sub(end.len() as u64);
    start.is_some_and(|start| {
        file.read_exact_at(&mut bytes, start).is_ok() && bytes == end.as_bytes()
    })
}

/// Checks that a journal belongs to `id`. A journal under another name is refused, because two
/// sessions would become one.
pub(super) fn check_session_id(
    path: &Path,
    id: &SessionId,
    line: &JournalLine,
) -> Result<(), StoreError> {
    match &line.entry {
        Entry::Session(start) if start.session != *id => {
            let cause = LineError::Malformed(format!("it belongs to session {}", start.session));
            Err(StoreError::Damaged {
                path: path.to_owned(),
                line: line.seq,
                cause,
            })
        }
        _ => Ok(()),
    }
}

/// Reads a journal from its open file.
pub(super) fn read_whole(mut file: &File) -> io::Result<Vec<u8>> {
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut text = Vec::new();
    text.try_reserve_exact(size).map_err(io::Error::other)?;
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// Reads the journal at `path`.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, StoreError> {
    let read = open_regular(path, OFlags::RDONLY).and_then(|file| read_whole(&file));
    read.map_err(|cause| StoreError::io(path, cause))
}
