//! Part of the local backend: glob and grep on the local disk.
//!
//! Effects: the clock, the local disk (reads).

use super::LocalInner;
use super::error;
use super::first_results::FirstResults;
use super::ignores;
use super::root::{self, READING};
use super::walk::{self, Visitor, WalkStart, WalkStop, walk};
use crate::glob::{DotFiles, PathGlob};
use crate::grep::{self, MatchCollector, relative_start};
use crate::ignores::Ignores;
use crate::search::{
    Bounds, FileMatches, FileSearchError, GlobQuery, GlobResult, GrepMode, GrepQuery, GrepResult,
    Visible,
};
use crate::{FileKind, VPath, VfsError};
use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::types::Types;
use rustix::fs::{Mode, OFlags};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

impl LocalInner {
    pub(super) fn glob(
        &self,
        query: &GlobQuery,
        bounds: &Bounds,
    ) -> Result<GlobResult, FileSearchError> {
        let glob = PathGlob::new(&query.pattern)?;
        let start = self.start(&query.root)?;
        let stop = WalkStop::new(bounds.cancel.clone(), bounds.deadline);
        let found = FirstResults::new(bounds.limit);
        let from = relative_start(&start.path);
        walk(start, glob.dot_files(), &stop, || NameVisitor {
            glob: &glob,
            from,
            visible: &bounds.visible,
            found: &found,
        });
        if stop.cancelled() {
            return Err(FileSearchError::Cancelled);
        }
        let mut paths = found
            .into_results()
            .map(|(path, (), _)| vpath(&path))
            .collect::<Result<Vec<_>, _>>()?;
        let truncated = paths.len() > bounds.limit;
        paths.truncate(bounds.limit);
        Ok(GlobResult {
            paths,
            truncated,
            timed_out: stop.timed_out(),
            failed: stop.unsearched_parts(),
            needs_approval: 0,
        })
    }

    pub(super) fn grep(
        &self,
        query: &GrepQuery,
        bounds: &Bounds,
    ) -> Result<GrepResult, FileSearchError> {
        let matcher = grep::matcher(query)?;
        let glob = query.glob.as_deref().map(PathGlob::new).transpose()?;
        let types = query.file_type.as_deref().map(grep::types).transpose()?;
        let stop = WalkStop::new(bounds.cancel.clone(), bounds.deadline);
        let found = FirstResults::new(bounds.limit);
        let content = |from| ContentVisitor {
            searcher: grep::searcher(query.mode, query.syntax),
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
        let visitors = match self
            .root
            .stat(Path::new(query.root.as_str()))
            .map(|stat| root::kind(&stat))
        {
            Ok(FileKind::File) => {
                let path = self.root.resolve(&query.root)?;
                let dir = self
                    .root
                    .open_dir(Path::new(path.parent().unwrap_or(VPath::root()).as_str()));
                let dir = dir
                    .map_err(|e| error::at(&path, e))
                    .map_err(FileSearchError::Vfs)?;
                let mut visitor = content(path.as_str().len() - path.name().len());
                let name =
                    CString::new(path.name()).map_err(|e| error::at(&path, io::Error::from(e)))?;
                visitor.file(dir.as_fd(), &name, path.as_str());
                vec![visitor]
            }
            Ok(FileKind::Directory | FileKind::Other) | Err(_) => {
                let start = self.start(&query.root)?;
                let dots = glob.as_ref().map_or(DotFiles::Hidden, PathGlob::dot_files);
                let from = relative_start(&start.path);
                walk(start, dots, &stop, || content(from))
            }
        };
        let unreadable = visitors.iter().map(|visitor| visitor.unreadable).sum();
        drop(visitors);
        if stop.cancelled() {
            return Err(FileSearchError::Cancelled);
        }
        let found = found.into_results().map(|(_, file, weight)| (file, weight));
        let (files, truncated) = grep::truncate_matches(found, bounds.limit);
        Ok(GrepResult {
            files,
            truncated,
            timed_out: stop.timed_out(),
            unreadable,
            failed: stop.unsearched_parts(),
            needs_approval: 0,
        })
    }

    /// Opens the search root, with links resolved, and loads the ignore files above it.
    fn start(&self, path: &VPath) -> Result<WalkStart, VfsError> {
        let path = self.root.resolve(path)?;
        let failed = |e| error::at(&path, e);
        let mut dir = self.root.open_dir(Path::new("")).map_err(failed)?;
        let mut walked = String::new();
        let mut levels: Option<Arc<Ignores>> = None;
        for part in path.parts() {
            levels = ignores::below(
                levels,
                dir.as_fd(),
                &walked,
                walk::ignore_files(dir.as_fd()),
            );
            dir = root::subdirectory(dir.as_fd(), part.as_ref()).map_err(failed)?;
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(part);
        }
        Ok(WalkStart {
            dir,
            path: walked,
            ignores: levels,
        })
    }
}

fn vpath(path: &str) -> Result<VPath, FileSearchError> {
    VPath::parse(path).map_err(|e| FileSearchError::Vfs(e.into()))
}

/// Collects matching names.
struct NameVisitor<'a> {
    glob: &'a PathGlob,
    from: usize,
    visible: &'a Visible,
    found: &'a FirstResults<()>,
}

impl Visitor for NameVisitor<'_> {
    fn enter(&mut self, path: &str) -> bool {
        self.glob.may_enter(&path[self.from..]) && !self.found.is_beyond(path)
    }

    fn file(&mut self, _: BorrowedFd<'_>, _: &CStr, path: &str) {
        if self.glob.matches(&path[self.from..])
            && !self.found.is_beyond(path)
            && self.visible.allows(path)
        {
            self.found.add(path, (), 1);
        }
    }
}

/// Collects matching lines.
struct ContentVisitor<'a> {
    searcher: Searcher,
    matcher: RegexMatcher,
    mode: GrepMode,
    glob: Option<&'a PathGlob>,
    types: Option<&'a Types>,
    from: usize,
    visible: &'a Visible,
    stop: &'a WalkStop,
    found: &'a FirstResults<FileMatches>,
    unreadable: usize,
}

impl ContentVisitor<'_> {
    fn accepts(&self, path: &str) -> bool {
        self.glob
            .is_none_or(|glob| glob.matches(&path[self.from..]))
            && self
                .types
                .is_none_or(|types| types.matched(path, false).is_whitelist())
            && !self.found.is_beyond(path)
            && self.visible.allows(path)
    }

    fn search(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<MatchCollector> {
        let file: File =
            rustix::fs::openat(dir, name, READING | OFlags::NOFOLLOW, Mode::empty())?.into();
        let mut lines = MatchCollector::new(self.mode, self.found.limit());
        grep::search(
            &mut self.searcher,
            &self.matcher,
            StoppableFile {
                file,
                stop: self.stop,
            },
            &mut lines,
        )?;
        Ok(lines)
    }
}

impl Visitor for ContentVisitor<'_> {
    fn enter(&mut self, path: &str) -> bool {
        self.glob
            .is_none_or(|glob| glob.may_enter(&path[self.from..]))
            && !self.found.is_beyond(path)
    }

    fn file(&mut self, dir: BorrowedFd<'_>, name: &CStr, path: &str) {
        if !self.accepts(path) {
            return;
        }
        match self.search(dir, name) {
            Ok(MatchCollector { count: 0, .. }) => {}
            Ok(MatchCollector { lines, count, .. }) => {
                let Ok(file) = VPath::parse(path) else { return };
                let weight = grep::result_count(self.mode, count);
                self.found.add(
                    path,
                    FileMatches {
                        path: file,
                        lines,
                        count,
                    },
                    weight,
                );
            }
            // A file that was removed meanwhile has no matches.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.unreadable += usize::from(!self.stop.should_stop()),
        }
    }
}

/// A file whose reads fail once the search must stop.
struct StoppableFile<'a> {
    file: File,
    stop: &'a WalkStop,
}

impl Read for StoppableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.should_stop() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}
