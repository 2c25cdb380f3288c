//! Searching the content of one file of any file system.
//!
//! Effects: workspace files (reads).

use crate::grep::{self, MatchCollector};
use crate::search::{Bounds, FileMatches, FileSearchError, GrepMode, GrepQuery, Syntax, Visible};
use crate::{ReadRange, VPath, Vfs, VfsError};
use bytes::{Buf, Bytes};
use grep_regex::RegexMatcher;
use ignore::types::Types;
use std::io::{self, Read};
use tokio::sync::mpsc;

/// Files up to this size are read in one piece.
const WHOLE_BYTES: u64 = 1024 * 1024;
/// Larger files are read in blocks of this size.
const BLOCK_BYTES: u64 = 512 * 1024;
/// The number of blocks read ahead of the search.
const BLOCKS_AHEAD: usize = 2;
/// Larger contents are searched on a blocking thread.
const MAX_INLINE_SEARCH_BYTES: usize = 128 * 1024;
/// The number of attempts to read a file that changes meanwhile.
const TRIES: usize = 3;

/// The pattern and the filter of a content search.
pub(super) struct ContentSearch {
    matcher: RegexMatcher,
    mode: GrepMode,
    syntax: Syntax,
    types: Option<Types>,
    visible: Visible,
    limit: usize,
}

/// The result of searching a file.
pub(super) enum FileSearchOutcome {
    NoMatch,
    Unreadable,
    Matches(FileMatches),
}

impl ContentSearch {
    pub(super) fn new(query: &GrepQuery, bounds: &Bounds) -> Result<Self, FileSearchError> {
        Ok(Self {
            matcher: grep::matcher(query)?,
            mode: query.mode,
            syntax: query.syntax,
            types: query.file_type.as_deref().map(grep::types).transpose()?,
            visible: bounds.visible.clone(),
            limit: bounds.limit,
        })
    }

    pub(super) fn accepts(&self, path: &str) -> bool {
        self.types
            .as_ref()
            .is_none_or(|types| types.matched(path, false).is_whitelist())
            && self.visible.allows(path)
    }

    pub(super) async fn search<V: Vfs + ?Sized>(
        &self,
        vfs: &V,
        path: VPath,
        size: u64,
    ) -> FileSearchOutcome {
        let searched = if size <= WHOLE_BYTES {
            self.search_whole(vfs, &path).await
        } else {
            self.search_blocks(vfs, &path).await
        };
        match searched {
            Ok(MatchCollector { count: 0, .. }) => FileSearchOutcome::NoMatch,
            Ok(MatchCollector { lines, count, .. }) => {
                FileSearchOutcome::Matches(FileMatches { path, lines, count })
            }
            // A file that was removed meanwhile has no matches.
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => FileSearchOutcome::NoMatch,
            Err(_) => FileSearchOutcome::Unreadable,
        }
    }

    async fn search_whole<V: Vfs + ?Sized>(
        &self,
        vfs: &V,
        path: &VPath,
    ) -> Result<MatchCollector, VfsError> {
        let (content, _) = vfs.read(path, ReadRange::ALL).await?;
        if content.len() <= MAX_INLINE_SEARCH_BYTES {
            return self
                .collect_lines(content.reader())
                .map_err(|e| failed(path, e));
        }
        self.search_blocking(path, content.reader()).await
    }

    /// Reads blocks ahead while earlier ones are searched.
    async fn search_blocks<V: Vfs + ?Sized>(
        &self,
        vfs: &V,
        path: &VPath,
    ) -> Result<MatchCollector, VfsError> {
        for _ in 0..TRIES {
            let (sender, receiver) = mpsc::channel(BLOCKS_AHEAD);
            let feed = async {
                let fed = send_blocks(vfs, path, &sender).await;
                if fed.is_err() {
                    // Without this, the searcher would take the content to end here.
                    let _ = sender.send(StreamBlock::Broken).await;
                }
                drop(sender);
                fed
            };
            let search = self.search_blocking(
                path,
                BlockReader {
                    receiver,
                    rest: Bytes::new(),
                },
            );
            match tokio::join!(feed, search) {
                (Err(VfsError::Changed(_)), _) => {}
                (Err(error), _) => return Err(error),
                (Ok(()), searched) => return searched,
            }
        }
        Err(VfsError::Changed(path.clone()))
    }

    async fn search_blocking(
        &self,
        path: &VPath,
        content: impl Read + Send + 'static,
    ) -> Result<MatchCollector, VfsError> {
        let search = self.clone_for_search();
        let searched = tokio::task::spawn_blocking(move || search.collect_lines(content)).await;
        searched
            .unwrap_or_else(|e| Err(io::Error::other(e)))
            .map_err(|e| failed(path, e))
    }

    fn clone_for_search(&self) -> Self {
        let matcher = self.matcher.clone();
        let visible = self.visible.clone();
        Self {
            matcher,
            mode: self.mode,
            syntax: self.syntax,
            types: None,
            visible,
            limit: self.limit,
        }
    }

    fn collect_lines(&self, content: impl Read) -> io::Result<MatchCollector> {
        let mut lines = MatchCollector::new(self.mode, self.limit);
        let mut searcher = grep::searcher(self.mode, self.syntax);
        grep::search(
            &mut searcher,
            &self.matcher,
            FillingReader(content),
            &mut lines,
        )?;
        Ok(lines)
    }
}

fn failed(path: &VPath, source: io::Error) -> VfsError {
    VfsError::Io {
        path: path.clone(),
        source,
    }
}

/// Sends the blocks of one version of a file, as long as the receiver exists.
async fn send_blocks<V: Vfs + ?Sized>(
    vfs: &V,
    path: &VPath,
    sender: &mpsc::Sender<StreamBlock>,
) -> Result<(), VfsError> {
    let mut offset = 0;
    let mut first = None;
    loop {
        let (block, version) = vfs
            .read(
                path,
                ReadRange {
                    offset,
                    len: BLOCK_BYTES,
                },
            )
            .await?;
        if *first.get_or_insert_with(|| version.clone()) != version {
            return Err(VfsError::Changed(path.clone()));
        }
        offset += block.len() as u64;
        let is_last = (block.len() as u64) < BLOCK_BYTES;
        if sender.send(StreamBlock::Next(block)).await.is_err() || is_last {
            return Ok(());
        }
    }
}

enum StreamBlock {
    Next(Bytes),
    Broken,
}

/// A reader over received blocks.
struct BlockReader {
    receiver: mpsc::Receiver<StreamBlock>,
    rest: Bytes,
}

impl Read for BlockReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            match self.receiver.blocking_recv() {
                Some(StreamBlock::Next(block)) => self.rest = block,
                Some(StreamBlock::Broken) => {
                    return Err(io::Error::other("the rest cannot be read"));
                }
                None => return Ok(0),
            }
        }
        let len = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..len]);
        Ok(len)
    }
}

/// A reader for the searcher of `grep` that fills the buffer as far as possible, so that a binary
/// file is detected after the same number of bytes on every backend.
struct FillingReader<R>(R);

impl<R: Read> Read for FillingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        while len < buffer.len() {
            match self.0.read(&mut buffer[len..])? {
                0 => break,
                read => len += read,
            }
        }
        Ok(len)
    }
}
