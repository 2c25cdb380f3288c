//! What `.gitignore` and `.ignore` files say, wherever they were read from.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::sync::Arc;

/// A longer ignore file is not a list somebody wrote.
pub(crate) const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;

/// The contents of a directory's ignore files.
#[derive(Debug, Default)]
pub(crate) struct IgnoreFiles {
    pub(crate) ignore: Option<Vec<u8>>,
    pub(crate) gitignore: Option<Vec<u8>>,
    /// A repository's own root: the `.gitignore`s above have no say below it.
    pub(crate) is_repository: bool,
}

/// The ignore files of a directory and of those above it.
#[derive(Debug)]
pub(crate) struct Ignores {
    above: Option<Arc<Ignores>>,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    is_repository: bool,
}

impl Ignores {
    /// What holds in the directory `path`; the same as `above` if it has no such files.
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

    /// Whether `path` is to be left out. `.ignore` files have the last word, then the nearest file
    /// has.
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

/// Whether a path is a directory's.
#[derive(Debug, Clone, Copy)]
pub(crate) enum IsDir {
    Yes,
    No,
}

/// Lines that are no pattern are passed over, as git does.
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
