//! Cached reading of the files that every turn needs.
//!
//! Effects: workspace files (reads).

use crate::WorkspaceError;
use crate::layout::decode_text;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use stead_vfs::{FileKind, ReadRange, Stat, VPath, Version, Vfs, VfsError};

/// The maximum size of the cache. Users of a shared place may each have their own files.
const MAX_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// A reader of text files that caches them by version.
#[derive(Debug, Default)]
pub struct TextReader {
    cache: Mutex<TextCache>,
}

#[derive(Debug, Default)]
struct TextCache {
    texts: HashMap<(VPath, Version, ReadWindow), Arc<str>>,
    bytes: usize,
}

/// The part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadWindow {
    /// The whole file; an error if it has more than `limit` bytes.
    Whole {
        /// The maximum number of bytes.
        limit: u64,
    },
    /// The whole lines among the first `limit` bytes.
    Head {
        /// The maximum number of bytes.
        limit: u64,
    },
    /// The whole lines among the last `limit` bytes.
    Tail {
        /// The maximum number of bytes.
        limit: u64,
    },
}

/// A file, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The text.
    pub text: Arc<str>,
    /// The size of the whole file in bytes.
    pub size: u64,
}

impl Excerpt {
    /// Returns the number of bytes that were left out.
    pub fn cut_bytes(&self) -> u64 {
        self.size.saturating_sub(self.text.len() as u64)
    }
}

impl TextReader {
    /// Reads the file at `path`. Returns none if there is no such file.
    pub async fn read(
        &self,
        files: &dyn Vfs,
        path: &VPath,
        window: ReadWindow,
    ) -> Result<Option<Excerpt>, WorkspaceError> {
        let stat = match files.stat(path).await {
            Ok(stat) => stat,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match stat.kind {
            FileKind::File => {}
            FileKind::Directory => return Err(VfsError::IsDirectory(path.clone()).into()),
            FileKind::Other => return Err(VfsError::Special(path.clone()).into()),
        }
        if let ReadWindow::Whole { limit } = window
            && stat.size > limit
        {
            return Err(VfsError::TooLarge {
                path: path.clone(),
                size: stat.size,
                limit,
            }
            .into());
        }
        let size = stat.size;
        let key = (path.clone(), stat.version.clone(), window);
        if let Some(text) = self.lock().texts.get(&key) {
            return Ok(Some(Excerpt {
                text: text.clone(),
                size,
            }));
        }
        let text: Arc<str> = load(files, path, &stat, window).await?.into();
        self.cache_text(key, text.clone());
        Ok(Some(Excerpt { text, size }))
    }

    fn cache_text(&self, key: (VPath, Version, ReadWindow), text: Arc<str>) {
        let mut kept = self.lock();
        if kept.bytes + text.len() > MAX_CACHE_BYTES {
            *kept = TextCache::default();
        }
        kept.bytes += text.len();
        kept.texts.insert(key, text);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TextCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn load(
    files: &dyn Vfs,
    path: &VPath,
    stat: &Stat,
    window: ReadWindow,
) -> Result<String, WorkspaceError> {
    let range = match window {
        ReadWindow::Whole { .. } => ReadRange::ALL,
        ReadWindow::Head { limit } => ReadRange {
            offset: 0,
            len: limit,
        },
        ReadWindow::Tail { limit } => ReadRange {
            offset: stat.size.saturating_sub(limit),
            len: limit,
        },
    };
    let (bytes, _) = files.read(path, range).await?;
    let mut bytes: Vec<u8> = bytes.into();
    match window {
        ReadWindow::Head { limit } if stat.size > limit => {
            bytes.truncate(
                bytes
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or_else(|| whole_char_bytes(&bytes), |at| at + 1),
            );
        }
        ReadWindow::Tail { limit } if stat.size > limit => {
            let line = bytes
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| at + 1)
                .filter(|at| *at < bytes.len());
            let start = line.unwrap_or_else(|| {
                bytes
                    .iter()
                    .position(|byte| !is_continuation_byte(*byte))
                    .unwrap_or(0)
            });
            bytes.drain(..start);
        }
        ReadWindow::Whole { .. } | ReadWindow::Head { .. } | ReadWindow::Tail { .. } => {}
    }
    let text = decode_text(path.as_str(), bytes)
        .map_err(|finding| WorkspaceError::Invalid(vec![finding]))?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or(text.clone(), str::to_owned))
}

/// Whether a byte is a continuation byte of UTF-8.
fn is_continuation_byte(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns the length of the longest prefix that ends at a character boundary.
fn whole_char_bytes(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_vfs::{Expect, StoreVfs};

    #[tokio::test]
    async fn a_window_begins_and_ends_at_lines_and_characters() {
        let files = StoreVfs::in_memory();
        let path = VPath::parse("a.md").unwrap();
        files
            .write(&path, "öne\ntwo\nthrée".into(), Expect::Any)
            .await
            .unwrap();
        let reader = TextReader::default();
        let read = async |window| reader.read(&files, &path, window).await;
        let text = async |window| read(window).await.unwrap().unwrap().text.to_string();
        assert_eq!(
            text(ReadWindow::Whole { limit: 100 }).await,
            "öne\ntwo\nthrée"
        );
        assert_eq!(text(ReadWindow::Head { limit: 7 }).await, "öne\n");
        assert_eq!(text(ReadWindow::Head { limit: 1 }).await, "");
        assert_eq!(text(ReadWindow::Tail { limit: 9 }).await, "thrée");
        assert_eq!(text(ReadWindow::Tail { limit: 2 }).await, "e");
        assert!(read(ReadWindow::Whole { limit: 3 }).await.is_err());
        assert_eq!(
            reader
                .read(
                    &files,
                    &VPath::parse("none").unwrap(),
                    ReadWindow::Head { limit: 1 }
                )
                .await
                .unwrap(),
            None
        );
    }
}
