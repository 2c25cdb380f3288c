//! Windows of lines of files of any size.
//!
//! A scan reads blocks, counts line ends, and keeps only the lines of the window. Where it passed,
//! it leaves checkpoints, so that the next window of the same version starts close by.

use crate::{ReadRange, VPath, Version, Vfs, VfsError};
use memchr::{memchr, memchr_iter};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes read at once: fits the second-level cache.
pub(crate) const BLOCK_BYTES: u64 = 256 * 1024;
/// Bytes asked for at once of a place that is not read where it lies: a whole chunk of a store.
const FETCH_BYTES: u64 = 2 * BLOCK_BYTES;
/// Bytes between checkpoints: a multiple of the block.
const STRIDE_BYTES: u64 = 4 * BLOCK_BYTES;
/// Files whose checkpoints are remembered.
const INDEXED_FILES: usize = 64;
/// Bytes after the window that are still read, only to know the number of lines.
const COUNT_AHEAD_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes at the start of a file in which a NUL makes it binary.
const HEAD_BYTES: usize = 8 * 1024;
/// Tries to read a file that changes meanwhile, where it cannot be held open.
const RETRIES: usize = 3;

/// Which lines of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// Lines to pass over.
    pub skip: u64,
    /// At most this many lines.
    pub take: usize,
    /// Of each line keep this many bytes.
    pub max_line_bytes: usize,
    /// Begin no further line once this many bytes are kept.
    pub max_bytes: usize,
}

/// A window of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineWindow {
    /// The lines, without `\n`. Empty for a binary file.
    pub lines: Vec<FileLine>,
    /// Lines of the whole file, where that is known without reading much more than the window.
    pub total: Option<u64>,
    /// Whether the file holds a NUL byte near its start.
    pub binary: bool,
    /// Bytes of the whole file.
    pub size: u64,
    /// The version all this belongs to.
    pub version: Version,
}

/// A line, or the beginning of a long one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLine {
    /// The bytes kept.
    pub text: Vec<u8>,
    /// Bytes of the line that were not kept.
    pub dropped_bytes: u64,
}

impl FileLine {
    fn push(&mut self, bytes: &[u8], max: usize) {
        let kept = bytes.len().min(max.saturating_sub(self.text.len()));
        self.text.extend_from_slice(&bytes[..kept]);
        self.dropped_bytes += (bytes.len() - kept) as u64;
    }
}

/// Whether the start of a file shows that it is not text.
pub(crate) fn is_binary(head: &[u8]) -> bool {
    memchr(0, &head[..head.len().min(HEAD_BYTES)]).is_some()
}

/// What is known about the line ends of one version of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checkpoints {
    /// Line ends in the first `i + 1` strides.
    ends: Vec<u64>,
    /// Lines of the whole file.
    total: Option<u64>,
}

impl Checkpoints {
    /// Where to begin in order to find the start of line `skip`: an offset and the line ends before
    /// it.
    fn before(&self, skip: u64) -> (u64, u64) {
        // Strictly before: at a checkpoint with exactly `skip` ends that line may have begun
        // already.
        match self.ends.partition_point(|&ends| ends < skip) {
            0 => (0, 0),
            i => (i as u64 * STRIDE_BYTES, self.ends[i - 1]),
        }
    }
}

/// A scan over the blocks of a file: say where to read with [`Scan::offset`], give it to
/// [`Scan::push`].
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

/// The part of the file that is asked for.
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

    /// Where the next block begins; none when the scan is done.
    pub(crate) fn offset(&self) -> Option<u64> {
        let left = self.size.saturating_sub(self.offset);
        let wanted = match self.window.state {
            WindowState::Before | WindowState::Between | WindowState::Within(_) => true,
            WindowState::After => self.checkpoints.total.is_none() && left <= COUNT_AHEAD_BYTES,
        };
        (left > 0 && wanted).then_some(self.offset)
    }

    /// Takes the block at [`Scan::offset`]: [`BLOCK_BYTES`], or what is left of the file.
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

    /// The window, and all checkpoints now known.
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

/// The scan ends at the same block wherever the file lies, so that it tells the same of it.
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

/// Reads a window through ranged reads of any place.
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
        // All that was asked for may be the beginning of more.
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

/// Checkpoints of the files read last, by path and version.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    newest_last: Mutex<Vec<(VPath, Version, Arc<Checkpoints>)>>,
}

impl LineIndex {
    /// What is known about this version of the file.
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

    /// Remembers checkpoints, forgetting other versions of the file and the file used longest ago.
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
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Large enough for several strides; known checkpoints must never change what a window
        /// shows.
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
