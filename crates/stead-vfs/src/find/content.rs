//! Searching the content of one file.

use crate::grep::{self, Lines};
use crate::search::{Bounds, FileMatches, GrepMode, GrepQuery, SearchError, Syntax, Visible};
use crate::{ReadRange, VPath, Vfs, VfsError};
use bytes::{Buf, Bytes};
use grep_regex::RegexMatcher;
use ignore::types::Types;
use std::io::{self, Read};
use tokio::sync::mpsc;

/// A file up to this size is read in one piece.
const WHOLE_BYTES: u64 = 1024 * 1024;
/// Of a larger one, this much at once.
const BLOCK_BYTES: u64 = 512 * 1024;
/// Blocks that wait to be searched.
const BLOCKS_AHEAD: usize = 2;
/// More than this is searched where blocking is fine.
const SEARCHED_HERE_BYTES: usize = 128 * 1024;
/// Tries to read a file that changes meanwhile.
const TRIES: usize = 3;

/// What to look for, and in which files.
pub(super) struct Content {
    matcher: RegexMatcher,
    mode: GrepMode,
    syntax: Syntax,
    types: Option<Types>,
    visible: Visible,
    limit: usize,
}

/// What came of looking into a file.
pub(super) enum Looked {
    Nothing,
    Unreadable,
    Matches(FileMatches),
}

impl Content {
    pub(super) fn new(query: &GrepQuery, bounds: &Bounds) -> Result<Self, SearchError> {
        Ok(Self {
            matcher: grep::matcher(query)?,
            mode: query.mode,
            syntax: query.syntax,
            types: query.file_type.as_deref().map(grep::types).transpose()?,
            visible: bounds.visible.clone(),
            limit: bounds.limit,
        })
    }

    pub(super) fn wants(&self, path: &str) -> bool {
        self.types
            .as_ref()
            .is_none_or(|types| types.matched(path, false).is_whitelist())
            && self.visible.allows(path)
    }

    pub(super) async fn search<V: Vfs + ?Sized>(&self, vfs: &V, path: VPath, size: u64) -> Looked {
        let searched = if size <= WHOLE_BYTES {
            self.whole(vfs, &path).await
        } else {
            self.blocks(vfs, &path).await
        };
        match searched {
            Ok(Lines { count: 0, .. }) => Looked::Nothing,
            Ok(Lines { lines, count, .. }) => Looked::Matches(FileMatches { path, lines, count }),
            // A file that is gone by now was never there.
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => Looked::Nothing,
            Err(_) => Looked::Unreadable,
        }
    }

    async fn whole<V: Vfs + ?Sized>(&self, vfs: &V, path: &VPath) -> Result<Lines, VfsError> {
        let (content, _) = vfs.read(path, ReadRange::ALL).await?;
        if content.len() <= SEARCHED_HERE_BYTES {
            return self.lines(content.reader()).map_err(|e| failed(path, e));
        }
        self.elsewhere(path, content.reader()).await
    }

    /// Reads on while the blocks before are searched.
    async fn blocks<V: Vfs + ?Sized>(&self, vfs: &V, path: &VPath) -> Result<Lines, VfsError> {
        for _ in 0..TRIES {
            let (sender, receiver) = mpsc::channel(BLOCKS_AHEAD);
            let feed = async {
                let fed = feed(vfs, path, &sender).await;
                if fed.is_err() {
                    // Or it would take the content to end here.
                    let _ = sender.send(Block::Broken).await;
                }
                drop(sender);
                fed
            };
            let search = self.elsewhere(
                path,
                Blocks {
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

    async fn elsewhere(
        &self,
        path: &VPath,
        content: impl Read + Send + 'static,
    ) -> Result<Lines, VfsError> {
        let search = self.clone_for_search();
        let searched = tokio::task::spawn_blocking(move || search.lines(content)).await;
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

    fn lines(&self, content: impl Read) -> io::Result<Lines> {
        let mut lines = Lines::new(self.mode, self.limit);
        let mut searcher = grep::searcher(self.mode, self.syntax);
        grep::search(&mut searcher, &self.matcher, Full(content), &mut lines)?;
        Ok(lines)
    }
}

fn failed(path: &VPath, source: io::Error) -> VfsError {
    VfsError::Io {
        path: path.clone(),
        source,
    }
}

/// Sends the blocks of one version of a file, as long as somebody takes them.
async fn feed<V: Vfs + ?Sized>(
    vfs: &V,
    path: &VPath,
    sender: &mpsc::Sender<Block>,
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
        if sender.send(Block::Next(block)).await.is_err() || is_last {
            return Ok(());
        }
    }
}

enum Block {
    Next(Bytes),
    Broken,
}

/// A reader over blocks that come from elsewhere.
struct Blocks {
    receiver: mpsc::Receiver<Block>,
    rest: Bytes,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            match self.receiver.blocking_recv() {
                Some(Block::Next(block)) => self.rest = block,
                Some(Block::Broken) => return Err(io::Error::other("the rest cannot be read")),
                None => return Ok(0),
            }
        }
        let len = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..len]);
        Ok(len)
    }
}

/// Fills the buffer as long as there is something, so that a binary file is known as one after as
/// many bytes as anywhere else.
struct Full<R>(R);

impl<R: Read> Read for Full<R> {
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
