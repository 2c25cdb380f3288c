//! `.gitignore` and `.ignore` rules, independent of where the files are read from.
//!
//! Effects: none.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::sync::Arc;

/// Longer files are not treated as ignore files.
pub(crate) const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;

/// The contents of a directory's ignore files.
#[derive(Debug, Default)]
pub(crate) struct IgnoreFiles {
    pub(crate) ignore: Option<Vec<u8>>,
    pub(crate) gitignore: Option<Vec<u8>>,
    /// Whether the directory is the root of a repository, below which `.gitignore` files above do
    /// not apply.
    pub(crate) is_repository: bool,
}

/// The ignore files of a directory and its parents.
#[derive(Debug)]
pub(crate) struct Ignores {
    above: Option<Arc<Ignores>>,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    is_repository: bool,
}

impl Ignores {
    /// Returns the rules that apply in the directory `path`: those of `above` if it has no ignore
    /// files.
    pub(crate) fn below(
        above: Option<Arc<Self>>,
        path: &str,
        files: IgnoreFiles,
    ) -> Option<Arc<Self>> {
        let IgnoreFiles {
            ignore,
            gitignore,
            is_repository,
        } = files;
        if ignore.is_none() && gitignore.is_none() && !is_repository {
            return above;
        }
        let rules = |text: Option<Vec<u8>>| text.and_then(|text| parse(path, &text));
        Some(Arc::new(Self {
            above,
            ignore: rules(ignore),
            gitignore: rules(gitignore),
            is_repository,
        }))
    }

    /// Returns whether `path` is ignored. `.ignore` files take precedence, then the nearest file
    /// does.
    pub(crate) fn is_ignored(&self, path: &str, is_dir: IsDir) -> bool {
        let verdict = |list: &Option<Gitignore>| match list
            .as_ref()?
            .matched(path, matches!(is_dir, IsDir::Yes))
        {
            ignore::Match::None => None,
            ignore::Match::Ignore(_) => Some(true),
            ignore::Match::Whitelist(_) => Some(false),
        };
        let mut within_repository = true;
        let mut by_git = None;
        for level in self.self_and_ancestors() {
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

    fn self_and_ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.above.as_deref())
    }
}

/// Whether a path is a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IsDir {
    Yes,
    No,
}

/// Parses an ignore file. Invalid lines are skipped, as in git.
fn parse(path: &str, text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(path);
    for line in String::from_utf8_lossy(text)
        .trim_start_matches('\u{feff}')
        .lines()
    {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
