//! The files that a search looks at: a walk without hidden and ignored files.
//!
//! Effects: workspace files (reads).

use crate::glob::{DotFiles, PathGlob};
use crate::ignores::{IgnoreFiles, Ignores, IsDir, MAX_IGNORE_FILE_BYTES};
use crate::{DirEntry, FileKind, ReadRange, VPath, Vfs, VfsError};
use futures_util::future::join;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of entries walked at once.
const PAGE: usize = 4000;

/// The files below a directory, in path order.
pub(super) struct FileWalk<'a, V: ?Sized> {
    vfs: &'a V,
    start: VPath,
    dots: DotFiles,
    glob: Option<&'a PathGlob>,
    /// The offset in a path where the part begins that the glob is matched with.
    from: usize,
    progress: WalkProgress,
    /// Every directory that was entered. Entries of other directories are skipped.
    entered: HashMap<VPath, DirIgnores>,
}

#[derive(Debug)]
enum WalkProgress {
    Begin,
    After(VPath),
    Done,
}

/// The ignore files that apply in a directory.
#[derive(Debug, Clone)]
enum DirIgnores {
    /// Not loaded yet; those of the parent directories.
    Inherited(Option<Arc<Ignores>>),
    Loaded(Option<Arc<Ignores>>),
}

/// A part of the walk: all entries from its first to its last.
struct WalkPage {
    entries: Vec<(VPath, DirEntry)>,
    is_last: bool,
}

/// What a page says about a path.
enum PageEntry {
    Found(FileKind),
    Absent,
    /// The page ends before the path.
    Unknown,
}

impl<'a, V: Vfs + ?Sized> FileWalk<'a, V> {
    pub(super) fn new(
        vfs: &'a V,
        start: &VPath,
        dots: DotFiles,
        glob: Option<&'a PathGlob>,
        from: usize,
    ) -> Self {
        let start = start.clone();
        Self {
            vfs,
            start,
            dots,
            glob,
            from,
            progress: WalkProgress::Begin,
            entered: HashMap::new(),
        }
    }

    /// Returns the next files with their sizes, or `None` when there are no more.
    pub(super) async fn next_page(&mut self) -> Result<Option<Vec<(VPath, u64)>>, VfsError> {
        let after = match &self.progress {
            WalkProgress::Done => return Ok(None),
            WalkProgress::Begin => None,
            WalkProgress::After(last) => Some(last),
        };
        let walk = self.vfs.walk(&self.start, after, PAGE).await?;
        if matches!(self.progress, WalkProgress::Begin) {
            let above = ignores_above(self.vfs, &self.start).await?;
            self.entered
                .insert(self.start.clone(), DirIgnores::Inherited(above));
        }
        self.progress = match walk.entries.last() {
            Some((last, _)) if walk.truncated => WalkProgress::After(last.clone()),
            Some(_) | None => WalkProgress::Done,
        };
        let page = WalkPage {
            entries: walk.entries,
            is_last: !walk.truncated,
        };
        let mut files = Vec::new();
        for (path, entry) in &page.entries {
            if let Some(size) = self.visit_entry(&page, path, entry).await? {
                files.push((path.clone(), size));
            }
        }
        Ok(Some(files))
    }

    /// Enters a directory. Returns the size of a file that is to be searched.
    async fn visit_entry(
        &mut self,
        page: &WalkPage,
        path: &VPath,
        entry: &DirEntry,
    ) -> Result<Option<u64>, VfsError> {
        let Some(parent) = path.parent() else {
            return Ok(None);
        };
        let ignores = match self.entered.get(&parent) {
            None => return Ok(None),
            Some(DirIgnores::Loaded(ignores)) => ignores.clone(),
            Some(DirIgnores::Inherited(above)) => {
                let above = above.clone();
                let files = ignore_files(self.vfs, &parent, Some(page)).await?;
                let ignores = Ignores::below(above, parent.as_str(), files);
                self.entered
                    .insert(parent, DirIgnores::Loaded(ignores.clone()));
                ignores
            }
        };
        if entry.name == ".git"
            || (entry.name.starts_with('.') && self.dots == DotFiles::Hidden)
            || entry.link
        {
            return Ok(None);
        }
        let left_out = |is_dir| {
            ignores
                .as_ref()
                .is_some_and(|ignores| ignores.is_ignored(path.as_str(), is_dir))
        };
        match entry.kind {
            FileKind::File if !left_out(IsDir::No) => Ok(Some(entry.size)),
            FileKind::Directory if !left_out(IsDir::Yes) => {
                if self
                    .glob
                    .is_none_or(|glob| glob.may_enter(&path.as_str()[self.from..]))
                {
                    self.entered
                        .insert(path.clone(), DirIgnores::Inherited(ignores));
                }
                Ok(None)
            }
            FileKind::File | FileKind::Directory | FileKind::Other => Ok(None),
        }
    }
}

/// Returns the ignore files of all directories above `path`, from the root down.
pub(crate) async fn ignores_above<V: Vfs + ?Sized>(
    vfs: &V,
    path: &VPath,
) -> Result<Option<Arc<Ignores>>, VfsError> {
    let mut above: Vec<VPath> = std::iter::successors(path.parent(), VPath::parent).collect();
    above.reverse();
    let mut level = None;
    for directory in above {
        level = Ignores::below(
            level,
            directory.as_str(),
            ignore_files(vfs, &directory, None).await?,
        );
    }
    Ok(level)
}

/// Reads the ignore files of a directory whose first entry is in `page`.
async fn ignore_files<V: Vfs + ?Sized>(
    vfs: &V,
    directory: &VPath,
    page: Option<&WalkPage>,
) -> Result<IgnoreFiles, VfsError> {
    let (Ok(git), Ok(gitignore), Ok(ignore)) = (
        directory.join(".git"),
        directory.join(".gitignore"),
        directory.join(".ignore"),
    ) else {
        return Ok(IgnoreFiles::default());
    };
    let known = |path: &VPath| page.map_or(PageEntry::Unknown, |page| page.entry(path));
    let kind = async |path: &VPath| match known(path) {
        PageEntry::Found(kind) => Ok(Some(kind)),
        PageEntry::Absent => Ok(None),
        PageEntry::Unknown => match vfs.stat(path).await {
            Ok(stat) => Ok(Some(stat.kind)),
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_) | VfsError::Path(_)) => Ok(None),
            // A link out of the root, or a file that may not be read, is not an ignore file.
            Err(VfsError::Escapes(_) | VfsError::Denied(_) | VfsError::Special(_)) => {
                Ok(Some(FileKind::Other))
            }
            Err(other) => Err(other),
        },
    };
    let load = async |path: &VPath| match kind(path).await? {
        Some(FileKind::File) => {
            let range = ReadRange {
                offset: 0,
                len: MAX_IGNORE_FILE_BYTES,
            };
            // A file that cannot be read has no rules.
            Ok(vfs
                .read(path, range)
                .await
                .ok()
                .map(|(bytes, _)| bytes.to_vec()))
        }
        Some(FileKind::Directory | FileKind::Other) | None => Ok::<_, VfsError>(None),
    };
    let (git, (ignore, gitignore)) = join(kind(&git), join(load(&ignore), load(&gitignore))).await;
    Ok(IgnoreFiles {
        ignore: ignore?,
        gitignore: gitignore?,
        is_repository: git?.is_some(),
    })
}

impl WalkPage {
    /// Returns what the page says about a path that is not before its first entry.
    fn entry(&self, path: &VPath) -> PageEntry {
        match self.entries.binary_search_by(|(other, _)| other.cmp(path)) {
            Ok(at) => {
                let entry = &self.entries[at].1;
                PageEntry::Found(if entry.link {
                    FileKind::Other
                } else {
                    entry.kind
                })
            }
            Err(at) if self.is_last || at < self.entries.len() => PageEntry::Absent,
            Err(_) => PageEntry::Unknown,
        }
    }
}
