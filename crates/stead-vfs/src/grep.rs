//! Searching one file and truncating results: the parts that all grep implementations share.
//!
//! Effects: none.

use crate::search::{
    Case, FileMatches, FileSearchError, GrepLine, GrepMode, GrepQuery, LineKind, Syntax,
};
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish,
    SinkMatch,
};
use ignore::types::{Types, TypesBuilder};
use std::io::{self, Read};

/// Longer lines are reported up to this length.
const MAX_LINE_BYTES: usize = 2000;
/// The memory for one file. A file with a longer line is not searched further, and neither is a
/// larger file for matches of several lines, which need all of it at once.
const MAX_HEAP_BYTES: usize = 32 * 1024 * 1024;

/// Returns the offset in a path where the part begins that patterns are matched with.
pub(crate) fn relative_start(search_root: &str) -> usize {
    if search_root.is_empty() {
        0
    } else {
        search_root.len() + 1
    }
}

/// Returns the first `limit` matches and whether there are more.
pub(crate) fn truncate_matches(
    found: impl Iterator<Item = (FileMatches, usize)>,
    limit: usize,
) -> (Vec<FileMatches>, bool) {
    let mut files = Vec::new();
    let mut room = limit;
    for (mut file, weight) in found {
        if weight <= room {
            room -= weight;
            files.push(file);
            continue;
        }
        if room > 0 {
            let matching = file
                .lines
                .iter()
                .enumerate()
                .filter(|(_, line)| line.kind == LineKind::Match);
            let cut_at = matching
                .map(|(at, _)| at)
                .nth(room)
                .unwrap_or(file.lines.len());
            file.lines.truncate(cut_at);
            file.count = room as u64;
            files.push(file);
        }
        return (files, true);
    }
    (files, false)
}

/// Returns how many results a file with `count` matching lines counts as.
pub(crate) fn result_count(mode: GrepMode, count: u64) -> usize {
    match mode {
        GrepMode::Content { .. } => usize::try_from(count).unwrap_or(usize::MAX),
        GrepMode::Files | GrepMode::Count => 1,
    }
}

/// The matching lines of one file.
pub(crate) struct MatchCollector {
    mode: GrepMode,
    max_matches: u64,
    pub(crate) lines: Vec<GrepLine>,
    pub(crate) count: u64,
}

impl MatchCollector {
    /// Returns a collector for one file, which needs one line more than the limit to show that
    /// there are more.
    pub(crate) fn new(mode: GrepMode, limit: usize) -> Self {
        Self {
            mode,
            max_matches: (limit as u64).saturating_add(1),
            lines: Vec::new(),
            count: 0,
        }
    }
}

/// Puts the lines that a searcher finds into a collector.
struct MatchSink<'a> {
    matcher: &'a RegexMatcher,
    lines: &'a mut MatchCollector,
}

impl MatchSink<'_> {
    fn push(&mut self, bytes: &[u8], number: Option<u64>, kind: LineKind) {
        // A long line is shown around its first match.
        let around = match kind {
            LineKind::Match if bytes.len() > MAX_LINE_BYTES => {
                let found = self.matcher.find(bytes).ok().flatten();
                found.map_or(0, |found| found.start())
            }
            LineKind::Match | LineKind::Context => 0,
        };
        self.lines.lines.push(GrepLine {
            number: number.unwrap_or(0),
            text: clipped_text(bytes, around),
            kind,
        });
    }
}

impl Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        // More than one only if a match may span lines.
        for (line, number) in found.lines().zip(0..) {
            self.lines.count += 1;
            match self.lines.mode {
                GrepMode::Content { .. } => {
                    self.push(
                        line,
                        found.line_number().map(|first| first + number),
                        LineKind::Match,
                    );
                }
                GrepMode::Files => return Ok(false),
                GrepMode::Count => {}
            }
        }
        Ok(match self.lines.mode {
            GrepMode::Content { .. } => self.lines.count < self.lines.max_matches,
            GrepMode::Files => false,
            GrepMode::Count => true,
        })
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        match near.kind() {
            SinkContextKind::Before | SinkContextKind::After | SinkContextKind::Other => {
                self.push(near.bytes(), near.line_number(), LineKind::Context);
            }
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_some() {
            self.lines.lines.clear();
            self.lines.count = 0;
        }
        Ok(())
    }
}

/// Collects the matching lines of `content`.
pub(crate) fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    content: impl Read,
    lines: &mut MatchCollector,
) -> io::Result<()> {
    let sink = MatchSink {
        matcher,
        lines: &mut *lines,
    };
    if !searcher.multi_line_with_matcher(matcher) {
        return searcher.search_reader(matcher, content, sink);
    }
    // In this mode the searcher looks for NUL only at the beginning and in matches.
    let mut content = NulDetector {
        content,
        binary: false,
    };
    searcher.search_reader(matcher, &mut content, sink)?;
    if content.binary {
        lines.lines.clear();
        lines.count = 0;
    }
    Ok(())
}

/// A reader that records whether it has read a NUL byte.
struct NulDetector<R> {
    content: R,
    binary: bool,
}

impl<R: Read> Read for NulDetector<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.content.read(buffer)?;
        self.binary |= buffer[..len].contains(&0);
        Ok(len)
    }
}

/// Returns a line as text without its end. A long one is cut, at character boundaries, so that the
/// byte at `around` is shown.
fn clipped_text(bytes: &[u8], around: usize) -> String {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let is_inside = |at: usize| {
        line.get(at)
            .is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
    };
    let boundary = |at: usize| (0..=at).rev().find(|at| !is_inside(*at)).unwrap_or(at);
    // The beginning of a line often says what it is about, so it is kept where the match allows.
    let start = match around < MAX_LINE_BYTES / 2 {
        true => 0,
        false => boundary(around.min(line.len()) - MAX_LINE_BYTES / 4),
    };
    let end = match start + MAX_LINE_BYTES {
        end if end >= line.len() => line.len(),
        end => boundary(end),
    };
    let before = match start {
        0 => String::new(),
        start => format!("[…{start} bytes before] "),
    };
    let after = match line.len() - end {
        0 => String::new(),
        1 => " […1 more byte]".to_owned(),
        rest => format!(" […{rest} more bytes]"),
    };
    format!(
        "{before}{}{after}",
        String::from_utf8_lossy(&line[start..end])
    )
}

pub(crate) fn matcher(query: &GrepQuery) -> Result<RegexMatcher, FileSearchError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(query.case == Case::Insensitive)
        .multi_line(true)
        .ban_byte(Some(0));
    // `$` also matches before CRLF. For single lines the searcher must use the same setting, or it
    // leaves its fast path.
    let built = match query.syntax {
        Syntax::Regex => builder.crlf(true).build(&query.pattern),
        Syntax::Literal => builder.crlf(true).fixed_strings(true).build(&query.pattern),
        Syntax::Multiline => builder
            .dot_matches_new_line(true)
            .build(&format!("(?R){}", query.pattern)),
    };
    built.map_err(|e| FileSearchError::Pattern(e.to_string()))
}

pub(crate) fn searcher(mode: GrepMode, syntax: Syntax) -> Searcher {
    let (numbers, before, after) = match mode {
        GrepMode::Content { before, after } => (true, before, after),
        GrepMode::Files | GrepMode::Count => (false, 0, 0),
    };
    let mut builder = SearcherBuilder::new();
    builder
        .line_number(numbers)
        .before_context(before)
        .after_context(after)
        .heap_limit(Some(MAX_HEAP_BYTES))
        .binary_detection(BinaryDetection::quit(0));
    match syntax {
        Syntax::Regex | Syntax::Literal => builder.line_terminator(LineTerminator::crlf()),
        Syntax::Multiline => builder.multi_line(true),
    };
    builder.build()
}

pub(crate) fn types(name: &str) -> Result<Types, FileSearchError> {
    let mut builder = TypesBuilder::new();
    builder
        .add_defaults()
        .select(name)
        .build()
        .map_err(|_| FileSearchError::FileType(name.to_owned()))
}
