//! Windows of lines of files of any size.
//!
//! A scan reads blocks, counts line ends, and keeps only the lines of the window. It leaves
//! checkpoints on its way, so that the next window of the same version starts close to its first
//! line.
//!
//! Effects: workspace files (reads).

use crate::{ReadRange, VPath, Version, Vfs, VfsError};
use memchr::{memchr, memchr_iter};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of bytes read at once, which fits the second-level cache.
pub(crate) const BLOCK_BYTES: u64 = 256 * 1024;
/// The number of bytes requested at once from a remote file system: a whole chunk of a store.
const FETCH_BYTES: u64 = 2 * BLOCK_BYTES;
/// The number of bytes between checkpoints, a multiple of the block.
const STRIDE_BYTES: u64 = 4 * BLOCK_BYTES;
/// The number of files whose checkpoints are kept.
const INDEXED_FILES: usize = 64;
/// The number of bytes read after the window only to count the lines of the file.
const COUNT_AHEAD_BYTES: u64 = 8 * 1024 * 1024;
/// A NUL within this many bytes of the start makes a file binary.
const HEAD_BYTES: usize = 8 * 1024;
/// The number of attempts to read a file that changes meanwhile, if it cannot be held open.
const RETRIES: usize = 3;

/// A range of lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The number of lines to skip.
    pub skip: u64,
    /// The maximum number of lines.
    pub take: usize,
    /// The maximum number of bytes kept of each line.
    pub max_line_bytes: usize,
    /// The number of kept bytes after which no further line begins.
    pub max_bytes: usize,
}

/// A window of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineWindow {
    /// The lines, without `\n`. Empty for a binary file.
    pub lines: Vec<FileLine>,
    /// The number of lines of the whole file, if known without reading much more than the window.
    pub total: Option<u64>,
    /// Whether the file has a NUL byte near its start.
    pub binary: bool,
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The version that the window belongs to.
    pub version: Version,
}

/// A line, or the beginning of a long one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLine {
    /// The bytes that were kept.
    pub text: Vec<u8>,
    /// The number of bytes of the line that were not kept.
    pub dropped_bytes: u64,
}

impl FileLine {
    fn push(&mut self, bytes: &[u8], max: usize) {
        let kept = bytes.len().min(max.saturating_sub(self.text.len()));
        self.text.extend_from_slice(&bytes[..kept]);
        self.dropped_bytes += (bytes.len() - kept) as u64;
    }
}

/// Returns whether the start of a file shows that it is not text.
pub(crate) fn is_binary(head: &[u8]) -> bool {
    memchr(0, &head[..head.len().min(HEAD_BYTES)]).is_some()
}

/// What is known about the line ends of one version of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checkpoints {
    /// The number of line ends in the first `i + 1` strides.
    ends: Vec<u64>,
    /// The number of lines of the whole file.
    total: Option<u64>,
}

impl Checkpoints {
    /// Returns where to start in order to find line `skip`: an offset and the number of line ends
    /// before it.
    fn before(&self, skip: u64) -> (u64, u64) {
        // Strictly before: at a checkpoint with exactly `skip` line ends, that line may have begun
        // already.
        match self.ends.partition_point(|&ends| ends < skip) {
            0 => (0, 0),
            i => (i as u64 * STRIDE_BYTES, self.ends[i - 1]),
        }
    }
}

/// A scan over the blocks of a file: [`LineScan::offset`] tells where to read, [`LineScan::push`]
/// takes the block.
#[derive(Debug)]
pub(crate) struct LineScan {
    range: LineRange,
    size: u64,
    offset: u64,
    ends: u64,
    checkpoints: Checkpoints,
    window: WindowBuilder,
    last_byte: u8,
}

/// The window that is being collected.
#[derive(Debug)]
struct WindowBuilder {
    lines: Vec<FileLine>,
    bytes: usize,
    state: WindowState,
}

#[derive(Debug)]
enum WindowState {
    Before,
    Between,
    Within(FileLine),
    After,
}

impl LineScan {
    pub(crate) fn new(range: LineRange, size: u64, checkpoints: Checkpoints) -> Self {
        let (offset, ends) = checkpoints.before(range.skip);
        let state = match (range.take, range.skip) {
            (0, _) => WindowState::After,
            (_, 0) => WindowState::Between,
            (_, _) => WindowState::Before,
        };
        let window = WindowBuilder {
            lines: Vec::new(),
            bytes: 0,
            state,
        };
        Self {
            range,
            size,
            offset,
            ends,
            checkpoints,
            window,
            last_byte: b'\n',
        }
    }

    /// Returns where the next block begins, or `None` when the scan is done.
    pub(crate) fn offset(&self) -> Option<u64> {
        let left = self.size.saturating_sub(self.offset);
        let wanted = match self.window.state {
            WindowState::Before | WindowState::Between | WindowState::Within(_) => true,
            WindowState::After => self.checkpoints.total.is_none() && left <= COUNT_AHEAD_BYTES,
        };
        (left > 0 && wanted).then_some(self.offset)
    }

    /// Takes the block at [`LineScan::offset`]: [`BLOCK_BYTES`], or the rest of the file.
    pub(crate) fn push(&mut self, block: &[u8]) {
        let Some(&last) = block.last() else {
            self.size = self.offset;
            return;
        };
        self.last_byte = last;
        self.window.push(block, self.ends, &self.range);
        self.ends += memchr_iter(b'\n', block).count() as u64;
        self.offset += block.len() as u64;
        if self.offset == (self.checkpoints.ends.len() as u64 + 1) * STRIDE_BYTES {
            self.checkpoints.ends.push(self.ends);
        }
    }

    /// Returns the window and all checkpoints that are now known.
    pub(crate) fn finish(mut self, version: Version) -> (LineWindow, Checkpoints) {
        if self.offset >= self.size && self.checkpoints.total.is_none() {
            self.checkpoints.total = Some(self.ends + u64::from(self.last_byte != b'\n'));
        }
        if let WindowState::Within(line) = self.window.state {
            self.window.lines.push(line);
        }
        let total = self.checkpoints.total;
        (
            LineWindow {
                lines: self.window.lines,
                total,
                binary: false,
                size: self.size,
                version,
            },
            self.checkpoints,
        )
    }
}

impl WindowBuilder {
    fn push(&mut self, block: &[u8], ends_before: u64, range: &LineRange) {
        let mut rest = block;
        if matches!(self.state, WindowState::Before) {
            let nth = (range.skip - ends_before - 1) as usize;
            let Some(end) = memchr_iter(b'\n', block).nth(nth) else {
                return;
            };
            rest = &block[end + 1..];
            self.state = WindowState::Between;
        }
        while !rest.is_empty() {
            let mut line = match std::mem::replace(&mut self.state, WindowState::Between) {
                WindowState::Within(line) => line,
                WindowState::Between => FileLine::default(),
                done @ (WindowState::Before | WindowState::After) => {
                    self.state = done;
                    return;
                }
            };
            let end = memchr(b'\n', rest);
            line.push(&rest[..end.unwrap_or(rest.len())], range.max_line_bytes);
            rest = end.map_or(&[], |end| &rest[end + 1..]);
            match end {
                None => self.state = WindowState::Within(line),
                Some(_) => {
                    self.bytes += line.text.len();
                    self.lines.push(line);
                    if self.lines.len() >= range.take || self.bytes >= range.max_bytes {
                        self.state = WindowState::After;
                    }
                }
            }
        }
    }
}

/// Passes fetched bytes to the scan block by block, so that it ends at the same block on every file
/// system and gives the same result.
fn push_blocks(scan: &mut LineScan, fetched: &[u8]) {
    if fetched.is_empty() {
        scan.push(fetched);
    }
    for block in fetched.chunks(BLOCK_BYTES as usize) {
        if scan.offset().is_some() {
            scan.push(block);
        }
    }
}

/// Reads a window by ranged reads.
pub(crate) async fn read_lines_by_range<V: Vfs + ?Sized>(
    vfs: &V,
    path: &VPath,
    range: LineRange,
) -> Result<LineWindow, VfsError> {
    'again: for _ in 0..RETRIES {
        let (first, version) = vfs
            .read(
                path,
                ReadRange {
                    offset: 0,
                    len: FETCH_BYTES,
                },
            )
            .await?;
        let mut size = first.len() as u64;
        // A full result may be the beginning of more.
        if size == FETCH_BYTES {
            let stat = vfs.stat(path).await?;
            if stat.version != version {
                continue 'again;
            }
            size = stat.size;
        }
        if is_binary(&first) {
            return Ok(LineWindow {
                lines: Vec::new(),
                total: None,
                binary: true,
                size,
                version,
            });
        }
        let mut scan = LineScan::new(range, size, Checkpoints::default());
        if scan.offset() == Some(0) {
            push_blocks(&mut scan, &first);
        }
        while let Some(offset) = scan.offset() {
            let (fetched, now) = vfs
                .read(
                    path,
                    ReadRange {
                        offset,
                        len: FETCH_BYTES,
                    },
                )
                .await?;
            if now != version {
                continue 'again;
            }
            push_blocks(&mut scan, &fetched);
        }
        return Ok(scan.finish(version).0);
    }
    Err(VfsError::Changed(path.clone()))
}

/// The checkpoints of the most recently read files, by path and version.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    newest_last: Mutex<Vec<(VPath, Version, Arc<Checkpoints>)>>,
}

impl LineIndex {
    /// Returns the checkpoints of this version of the file.
    pub(crate) fn get(&self, path: &VPath, version: &Version) -> Option<Arc<Checkpoints>> {
        let mut files = self
            .newest_last
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let at = files
            .iter()
            .position(|(p, v, _)| p == path && v == version)?;
        let file = files.remove(at);
        let known = Arc::clone(&file.2);
        files.push(file);
        Some(known)
    }

    /// Stores checkpoints, dropping other versions of the file and the least recently used file.
    pub(crate) fn put(&self, path: &VPath, version: &Version, checkpoints: Checkpoints) {
        if checkpoints.ends.is_empty() {
            return;
        }
        let mut files = self
            .newest_last
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        files.retain(|(p, _, _)| p != path);
        if files.len() == INDEXED_FILES {
            files.remove(0);
        }
        files.push((path.clone(), version.clone(), Arc::new(checkpoints)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(
        content: &[u8],
        range: LineRange,
        known: Checkpoints,
    ) -> (Vec<String>, Option<u64>, Checkpoints) {
        let mut scan = LineScan::new(range, content.len() as u64, known);
        while let Some(offset) = scan.offset() {
            let rest = &content[offset as usize..];
            scan.push(&rest[..rest.len().min(BLOCK_BYTES as usize)]);
        }
        let (lines, checkpoints) = scan.finish(Version("v".into()));
        let texts = lines
            .lines
            .into_iter()
            .map(|l| String::from_utf8(l.text).unwrap())
            .collect();
        (texts, lines.total, checkpoints)
    }

    fn range(skip: u64, take: usize) -> LineRange {
        LineRange {
            skip,
            take,
            max_line_bytes: 1 << 20,
            max_bytes: usize::MAX,
        }
    }

    #[test]
    fn a_last_line_counts_with_or_without_its_end() {
        for (content, lines) in [
            ("", vec![]),
            ("\n", vec![""]),
            ("a", vec!["a"]),
            ("a\n", vec!["a"]),
            ("a\n\nb", vec!["a", "", "b"]),
        ] {
            let total = Some(lines.len() as u64);
            let lines: Vec<_> = lines.into_iter().map(str::to_owned).collect();
            let expected = (
                lines,
                total,
                Checkpoints {
                    ends: Vec::new(),
                    total,
                },
            );
            assert_eq!(
                scan(content.as_bytes(), range(0, 10), Checkpoints::default()),
                expected,
                "{content:?}"
            );
        }
    }

    #[test]
    fn a_long_line_is_clipped_and_the_window_ends_at_its_byte_limit() {
        let bounds = LineRange {
            skip: 0,
            take: 9,
            max_line_bytes: 3,
            max_bytes: 4,
        };
        let mut scan = LineScan::new(bounds, 12, Checkpoints::default());
        scan.push(b"abcdef\nxy\nz\n");
        let line = |text: &str, dropped_bytes| FileLine {
            text: text.into(),
            dropped_bytes,
        };
        assert_eq!(
            scan.finish(Version("v".into())).0.lines,
            [line("abc", 3), line("xy", 0)]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 16))]
        /// Sizes cover several strides; known checkpoints must never change the content of a
        /// window.
        #[test]
        fn a_window_equals_splitting_the_file(lens in prop::collection::vec(0usize..4000, 1..2500), skip in 0u64..2600, take in 0usize..40) {
            let all: Vec<String> = lens.iter().enumerate().map(|(i, len)| format!("{i}:{}", "x".repeat(*len))).collect();
            let content = all.join("\n");
            let expected: Vec<String> = all.iter().skip(skip as usize).take(take).cloned().collect();
            let (cold, _, known) = scan(content.as_bytes(), range(skip, take), Checkpoints::default());
            let (warm, total, _) = scan(content.as_bytes(), range(skip, take), known);
            prop_assert_eq!(&cold, &expected);
            prop_assert_eq!(&warm, &expected);
            prop_assert!(total.is_none_or(|total| total == all.len() as u64));
        }
    }
}
