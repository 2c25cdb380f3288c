//! `.gitignore` and `.ignore` files on the way down.

use super::root;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A longer ignore file is not a list somebody wrote.
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;

/// Which ignore files a directory has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) ignore: bool,
    pub(super) gitignore: bool,
    /// A repository's own root: the `.gitignore`s above have no say below it.
    pub(super) git: bool,
}

/// The ignore files of a directory and of those above it.
#[derive(Debug)]
pub(super) struct Ignores {
    above: Option<Arc<Ignores>>,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    is_repository: bool,
}

impl Ignores {
    /// What holds in `dir`, whose path is `path`; the same as `above` if it has no such files.
    pub(super) fn below(above: Option<Arc<Self>>, dir: BorrowedFd<'_>, path: &str, found: Found) -> Option<Arc<Self>> {
        if found == Found::default() {
            return above;
        }
        let ignore = found.ignore.then(|| load(dir, path, ".ignore")).flatten();
        let gitignore = found.gitignore.then(|| load(dir, path, ".gitignore")).flatten();
        Some(Arc::new(Self { above, ignore, gitignore, is_repository: found.git }))
    }

    /// Whether `path` is to be left out. `.ignore` files have the last word, then the nearest file has.
    pub(super) fn leave_out(&self, path: &str, is_dir: IsDir) -> bool {
        let verdict = |list: &Option<Gitignore>| match list.as_ref()?.matched(path, matches!(is_dir, IsDir::Yes)) {
            ignore::Match::None => None,
            ignore::Match::Ignore(_) => Some(true),
            ignore::Match::Whitelist(_) => Some(false),
        };
        let mut within_repository = true;
        let mut by_git = None;
        for level in self.upwards() {
            if let Some(verdict) = verdict(&level.ignore) {
                return verdict;
            }
            if within_repository && by_git.is_none() {
                by_git = verdict(&level.gitignore);
            }
            within_repository &= !level.is_repository;
        }
        by_git.unwrap_or(false)
    }

    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.above.as_deref())
    }
}

/// Whether a path is a directory's.
#[derive(Debug, Clone, Copy)]
pub(super) enum IsDir {
    Yes,
    No,
}

/// Lines that are no pattern are passed over, as git does; a file that cannot be read has none.
fn load(dir: BorrowedFd<'_>, path: &str, name: &str) -> Option<Gitignore> {
    let file: File = rustix::fs::openat(dir, name, root::READING | OFlags::NOFOLLOW, Mode::empty()).ok()?.into();
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_IGNORE_FILE_BYTES).read_to_end(&mut text).ok()?;
    let mut builder = GitignoreBuilder::new(path);
    for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
