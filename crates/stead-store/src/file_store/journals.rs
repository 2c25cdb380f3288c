//! Journals as files of lines that `cat` and `grep` can read.

use super::leases::check_fence;
use super::locked_folder::{LockedFolder, PendingOperation, SpaceSubfolder};
use super::{FileStore, names};
use crate::contract::check_lines;
use crate::{FencingToken, JournalTail, Journals, Space, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

const SUFFIX: &str = ".jsonl";
/// The name of a journal whose file cannot tell it.
const NAME_SUFFIX: &str = ".name";

/// The lines of a file. What follows the last line end was cut off while it was written, and does
/// not count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct JournalExtent {
    lines: u64,
    /// Where the last line begins, and where it ends.
    last_start: u64,
    end: u64,
}

impl Journals for FileStore {
    fn append<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        after: u64,
        lines: &'a [Bytes],
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let journal = journal.to_owned();
        let lines = lines.to_vec();
        let fence = fence.clone();
        Box::pin(async move {
            check_lines(&self.place, &lines)?;
            self.write(space, move |folder| {
                check_fence(folder, &fence)?;
                append(folder, &journal, after, &lines)
            })
            .await
        })
    }

    fn lines<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>> {
        let journal = journal.to_owned();
        Box::pin(self.read(space, move |folder| {
            let file = JournalFile::of(folder, &journal);
            let Some(opened) = file.open()? else {
                return Ok(Vec::new());
            };
            read_lines(&opened, from, max_bytes).map_err(|cause| StoreError::io(file.path, cause))
        }))
    }

    fn tail<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
    ) -> BoxFuture<'a, Result<Option<JournalTail>, StoreError>> {
        let journal = journal.to_owned();
        Box::pin(self.read(space, move |folder| {
            JournalFile::of(folder, &journal).tail()
        }))
    }

    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, JournalTail)>, StoreError>> {
        let after = after.map(str::to_owned);
        Box::pin(self.read(space, move |folder| {
            let mut found = Vec::new();
            for file in folder.names(SpaceSubfolder::Journals)? {
                let Some(stem) = file.strip_suffix(SUFFIX) else {
                    continue;
                };
                let name = match names::key_from_file_name(stem) {
                    Some(name) => name,
                    None => read_journal_name(folder, stem)?,
                };
                if after.as_ref().is_none_or(|after| name > *after) {
                    found.push(name);
                }
            }
            found.sort_unstable();
            let tails =
                found
                    .into_iter()
                    .filter_map(|name| match JournalFile::of(folder, &name).tail() {
                        Ok(tail) => tail.map(|tail| Ok((name, tail))),
                        Err(error) => Some(Err(error)),
                    });
            tails.take(limit).collect()
        }))
    }

    fn erase<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let journal = journal.to_owned();
        let fence = fence.clone();
        Box::pin(self.write(space, move |folder| {
            check_fence(folder, &fence)?;
            let stem = names::key_file_name(&journal);
            folder.remove(SpaceSubfolder::Journals, &format!("{stem}{SUFFIX}"))?;
            folder.remove(SpaceSubfolder::Journals, &format!("{stem}{NAME_SUFFIX}"))
        }))
    }
}

/// A journal's file, which may not be there.
#[derive(Debug)]
struct JournalFile {
    name: String,
    path: PathBuf,
}

impl JournalFile {
    fn of(folder: &LockedFolder, journal: &str) -> Self {
        let name = format!("{}{SUFFIX}", names::key_file_name(journal));
        Self {
            path: folder.file(SpaceSubfolder::Journals, &name),
            name,
        }
    }

    fn open(&self) -> Result<Option<File>, StoreError> {
        match OpenOptions::new().read(true).append(true).open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StoreError::io(&self.path, cause)),
        }
    }

    fn tail(&self) -> Result<Option<JournalTail>, StoreError> {
        let Some(file) = self.open()? else {
            return Ok(None);
        };
        let read = || -> io::Result<Option<JournalTail>> {
            let extent = measure(&file)?;
            if extent.lines == 0 {
                return Ok(None);
            }
            let mut last = vec![
                0;
                usize::try_from(extent.end - 1 - extent.last_start)
                    .map_err(io::Error::other)?
            ];
            file.read_exact_at(&mut last, extent.last_start)?;
            let stat = file.metadata()?;
            let updated_ms = stat.mtime() * 1000 + stat.mtime_nsec() / 1_000_000;
            Ok(Some(JournalTail {
                seq: extent.lines,
                bytes: extent.end,
                last: last.into(),
                updated_ms,
            }))
        };
        read().map_err(|cause| StoreError::io(&self.path, cause))
    }
}

fn append(
    folder: &LockedFolder,
    journal: &str,
    after: u64,
    lines: &[Bytes],
) -> Result<(), StoreError> {
    let file = JournalFile::of(folder, journal);
    let failed = |cause| StoreError::io(&file.path, cause);
    let found = file.open()?;
    let extent = found
        .as_ref()
        .map_or(Ok(JournalExtent::default()), measure)
        .map_err(failed)?;
    if extent.lines != after {
        return Err(StoreError::Conflict(journal.to_owned()));
    }
    if lines.is_empty() {
        return Ok(());
    }
    let (opened, is_new) = match found {
        Some(opened) => (opened, false),
        None => {
            if names::key_from_file_name(&names::key_file_name(journal)).is_none() {
                let name = format!("{}{NAME_SUFFIX}", names::key_file_name(journal));
                folder.replace(SpaceSubfolder::Journals, &name, &[journal.as_bytes()])?;
            }
            (folder.create(SpaceSubfolder::Journals, &file.name)?, true)
        }
    };
    if opened.metadata().map_err(failed)?.len() > extent.end {
        folder.disk().set_len(&opened, extent.end).map_err(failed)?;
    }
    // One line without its end is seen to be cut off. The first of two lines would look whole.
    let is_piece = lines.len() > 1;
    if is_piece {
        folder.record_pending(&PendingOperation::Cut {
            journal: file.name.clone(),
            bytes: extent.end,
        })?;
    }
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    lines.iter().for_each(|line| {
        text.extend_from_slice(line);
        text.push(b'\n');
    });
    if let Err(cause) = folder
        .disk()
        .write_all(&opened, &text)
        .and_then(|()| folder.disk().sync(&opened))
    {
        // Best effort: the next one to come cuts it off anyway, unless it is one whole line.
        let _ = folder.disk().set_len(&opened, extent.end);
        return Err(failed(cause));
    }
    if is_new {
        folder.sync(SpaceSubfolder::Journals)?;
    }
    if is_piece {
        folder.clear_pending()
    } else {
        Ok(())
    }
}

fn read_journal_name(folder: &LockedFolder, stem: &str) -> Result<String, StoreError> {
    let name = format!("{stem}{NAME_SUFFIX}");
    let text = folder
        .read(SpaceSubfolder::Journals, &name)?
        .and_then(|text| String::from_utf8(text).ok());
    text.ok_or_else(|| {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Journals, &name),
            "it does not say a name".to_owned(),
        )
    })
}

fn measure(file: &File) -> io::Result<JournalExtent> {
    const PIECE_BYTES: usize = 256 * 1024;
    let mut extent = JournalExtent::default();
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut piece, at)?;
        if read == 0 {
            return Ok(extent);
        }
        for end in memchr::memchr_iter(b'\n', &piece[..read]) {
            extent = JournalExtent {
                lines: extent.lines + 1,
                last_start: extent.end,
                end: at + end as u64 + 1,
            };
        }
        at += read as u64;
    }
}

fn read_lines(file: &File, from: u64, max_bytes: usize) -> io::Result<Vec<Bytes>> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    for _ in 1..from {
        if reader.skip_until(b'\n')? == 0 {
            return Ok(Vec::new());
        }
    }
    let mut lines = Vec::new();
    let mut bytes = 0;
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line)?;
        bytes += line.len();
        if line.pop() != Some(b'\n') || (bytes > max_bytes && !lines.is_empty()) {
            return Ok(lines);
        }
        lines.push(Bytes::from(line));
    }
}
