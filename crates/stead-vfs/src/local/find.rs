//! Glob and grep on the local disk.

use super::Local;
use super::error;
use super::ignores::Ignores;
use super::keep::Keep;
use super::root::{self, READING};
use super::walk::{self, Start, Stop, Visitor, walk};
use crate::glob::{Dots, PathGlob};
use crate::search::{
    Bounds, Case, FileMatches, GlobQuery, GlobResult, GrepLine, GrepMode, GrepQuery, GrepResult, LineKind, SearchError,
    Syntax, Visible,
};
use crate::{FileKind, VPath, VfsError};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};
use ignore::types::{Types, TypesBuilder};
use rustix::fs::{Mode, OFlags};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

/// Of a longer line only this much is reported.
const MAX_LINE_BYTES: usize = 2000;

impl Local {
    pub(super) fn glob(&self, query: &GlobQuery, bounds: &Bounds) -> Result<GlobResult, SearchError> {
        let glob = PathGlob::new(&query.pattern)?;
        let start = self.start(&query.root)?;
        let stop = Stop::new(bounds.cancel.clone(), bounds.deadline);
        let found = Keep::new(bounds.limit);
        let from = relative_start(&start.path);
        walk(start, glob.dots(), &stop, || Names { glob: &glob, from, visible: &bounds.visible, found: &found });
        if stop.cancelled() {
            return Err(SearchError::Cancelled);
        }
        let mut paths = found.into_results().map(|(path, (), _)| vpath(&path)).collect::<Result<Vec<_>, _>>()?;
        let truncated = paths.len() > bounds.limit;
        paths.truncate(bounds.limit);
        Ok(GlobResult { paths, truncated, timed_out: stop.timed_out(), failed: Vec::new(), unasked: 0 })
    }

    pub(super) fn grep(&self, query: &GrepQuery, bounds: &Bounds) -> Result<GrepResult, SearchError> {
        let matcher = matcher(query)?;
        let glob = query.glob.as_deref().map(PathGlob::new).transpose()?;
        let types = query.file_type.as_deref().map(types).transpose()?;
        let stop = Stop::new(bounds.cancel.clone(), bounds.deadline);
        let found = Keep::new(bounds.limit);
        let content = |from| Content {
            searcher: searcher(query.mode),
            matcher: matcher.clone(),
            mode: query.mode,
            glob: glob.as_ref(),
            types: types.as_ref(),
            from,
            visible: &bounds.visible,
            stop: &stop,
            found: &found,
            unreadable: 0,
        };
        let visitors = match self.root.stat(Path::new(query.root.as_str())).map(|stat| root::kind(&stat)) {
            Ok(FileKind::File) => {
                let path = self.root.resolve(&query.root)?;
                let dir = self.root.open_dir(Path::new(path.parent().unwrap_or(VPath::root()).as_str()));
                let dir = dir.map_err(|e| error::at(&path, e)).map_err(SearchError::Vfs)?;
                let mut visitor = content(path.as_str().len() - path.name().len());
                let name = CString::new(path.name()).map_err(|e| error::at(&path, io::Error::from(e)))?;
                visitor.file(dir.as_fd(), &name, path.as_str());
                vec![visitor]
            }
            Ok(FileKind::Directory | FileKind::Other) | Err(_) => {
                let start = self.start(&query.root)?;
                let dots = glob.as_ref().map_or(Dots::Hidden, PathGlob::dots);
                let from = relative_start(&start.path);
                walk(start, dots, &stop, || content(from))
            }
        };
        let unreadable = visitors.iter().map(|visitor| visitor.unreadable).sum();
        drop(visitors);
        if stop.cancelled() {
            return Err(SearchError::Cancelled);
        }
        let (files, truncated) = cut(found, bounds.limit)?;
        Ok(GrepResult { files, truncated, timed_out: stop.timed_out(), unreadable, failed: Vec::new(), unasked: 0 })
    }

    /// The search root without links, open, with the ignore files above it.
    fn start(&self, path: &VPath) -> Result<Start, VfsError> {
        let path = self.root.resolve(path)?;
        let failed = |e| error::at(&path, e);
        let mut dir = self.root.open_dir(Path::new("")).map_err(failed)?;
        let mut walked = String::new();
        let mut ignores: Option<Arc<Ignores>> = None;
        for part in path.parts() {
            ignores = Ignores::below(ignores, dir.as_fd(), &walked, walk::ignore_files(dir.as_fd()));
            dir = root::subdirectory(dir.as_fd(), part.as_ref()).map_err(failed)?;
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(part);
        }
        Ok(Start { dir, path: walked, ignores })
    }
}

/// Where the part of a path begins that patterns see.
fn relative_start(search_root: &str) -> usize {
    if search_root.is_empty() { 0 } else { search_root.len() + 1 }
}

fn vpath(path: &str) -> Result<VPath, SearchError> {
    VPath::parse(path).map_err(|e| SearchError::Vfs(e.into()))
}

/// The first `limit` matches, and whether there are more.
fn cut(found: Keep<FileMatches>, limit: usize) -> Result<(Vec<FileMatches>, bool), SearchError> {
    let mut files = Vec::new();
    let mut room = limit;
    for (_, mut file, weight) in found.into_results() {
        if weight <= room {
            room -= weight;
            files.push(file);
            continue;
        }
        if room > 0 {
            let matching = file.lines.iter().enumerate().filter(|(_, line)| line.kind == LineKind::Match);
            let cut_at = matching.map(|(at, _)| at).nth(room).unwrap_or(file.lines.len());
            file.lines.truncate(cut_at);
            file.count = room as u64;
            files.push(file);
        }
        return Ok((files, true));
    }
    Ok((files, false))
}

/// Collects the names that match.
struct Names<'a> {
    glob: &'a PathGlob,
    from: usize,
    visible: &'a Visible,
    found: &'a Keep<()>,
}

impl Visitor for Names<'_> {
    fn enter(&mut self, path: &str) -> bool {
        self.glob.may_enter(&path[self.from..]) && !self.found.is_beyond(path)
    }

    fn file(&mut self, _: BorrowedFd<'_>, _: &CStr, path: &str) {
        if self.glob.matches(&path[self.from..]) && !self.found.is_beyond(path) && self.visible.allows(path) {
            self.found.add(path, (), 1);
        }
    }
}

/// Collects the lines that match.
struct Content<'a> {
    searcher: Searcher,
    matcher: RegexMatcher,
    mode: GrepMode,
    glob: Option<&'a PathGlob>,
    types: Option<&'a Types>,
    from: usize,
    visible: &'a Visible,
    stop: &'a Stop,
    found: &'a Keep<FileMatches>,
    unreadable: usize,
}

impl Content<'_> {
    fn wants(&self, path: &str) -> bool {
        self.glob.is_none_or(|glob| glob.matches(&path[self.from..]))
            && self.types.is_none_or(|types| types.matched(path, false).is_whitelist())
            && !self.found.is_beyond(path)
            && self.visible.allows(path)
    }

    fn search(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Lines> {
        let file: File = rustix::fs::openat(dir, name, READING | OFlags::NOFOLLOW, Mode::empty())?.into();
        // A file needs no more lines than the limit, and one to prove that there are more.
        let mut lines = Lines { mode: self.mode, most: self.found.limit() as u64 + 1, lines: Vec::new(), count: 0 };
        self.searcher.search_reader(&self.matcher, Watched { file, stop: self.stop }, &mut lines)?;
        Ok(lines)
    }
}

impl Visitor for Content<'_> {
    fn enter(&mut self, path: &str) -> bool {
        self.glob.is_none_or(|glob| glob.may_enter(&path[self.from..])) && !self.found.is_beyond(path)
    }

    fn file(&mut self, dir: BorrowedFd<'_>, name: &CStr, path: &str) {
        if !self.wants(path) {
            return;
        }
        match self.search(dir, name) {
            Ok(Lines { count: 0, .. }) => {}
            Ok(Lines { lines, count, .. }) => {
                let Ok(file) = VPath::parse(path) else { return };
                let weight = match self.mode {
                    GrepMode::Content { .. } => count as usize,
                    GrepMode::Files | GrepMode::Count => 1,
                };
                self.found.add(path, FileMatches { path: file, lines, count }, weight);
            }
            // A file that is gone by now was never there.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.unreadable += usize::from(!self.stop.now()),
        }
    }
}

/// A file that reads as failed once it is time to stop.
struct Watched<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.now() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

/// The matching lines of one file.
struct Lines {
    mode: GrepMode,
    most: u64,
    lines: Vec<GrepLine>,
    count: u64,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], number: Option<u64>, kind: LineKind) {
        self.lines.push(GrepLine { number: number.unwrap_or(0), text: text(bytes), kind });
    }
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        Ok(match self.mode {
            GrepMode::Content { .. } => {
                self.push(found.bytes(), found.line_number(), LineKind::Match);
                self.count < self.most
            }
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
            self.lines.clear();
            self.count = 0;
        }
        Ok(())
    }
}

/// A line as text, without its end, clipped at a character.
fn text(bytes: &[u8]) -> String {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let is_inside = |&at: &usize| line[at] & 0b1100_0000 == 0b1000_0000;
    let end = (0..=MAX_LINE_BYTES).rev().find(|at| !is_inside(at)).unwrap_or(MAX_LINE_BYTES);
    format!("{} […{} more bytes]", String::from_utf8_lossy(&line[..end]), line.len() - end)
}

fn matcher(query: &GrepQuery) -> Result<RegexMatcher, SearchError> {
    RegexMatcherBuilder::new()
        .case_insensitive(query.case == Case::Insensitive)
        .fixed_strings(query.syntax == Syntax::Literal)
        .multi_line(true)
        // `$` before CRLF as well; the searcher must agree, or it leaves its fast path.
        .crlf(true)
        .ban_byte(Some(0))
        .build(&query.pattern)
        .map_err(|e| SearchError::Pattern(e.to_string()))
}

fn searcher(mode: GrepMode) -> Searcher {
    let (numbers, context) = match mode {
        GrepMode::Content { context } => (true, context),
        GrepMode::Files | GrepMode::Count => (false, 0),
    };
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(numbers)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

fn types(name: &str) -> Result<Types, SearchError> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name).build().map_err(|_| SearchError::FileType(name.to_owned()))
}
