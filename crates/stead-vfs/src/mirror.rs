//! Making one tree equal to another, copying only what differs.
//!
//! Effects: workspace files (writes).

use crate::{ContentHash, DirEntry, Expect, FileKind, ReadRange, VPath, Vfs, VfsError, Walk};
use futures_util::{StreamExt, TryStreamExt, stream, try_join};
use std::collections::BTreeMap;

/// The number of files compared or copied at once.
const AT_ONCE: usize = 16;
/// Trees with more entries are refused.
const MAX_ENTRIES: usize = 1_000_000;

/// The steps that make one tree equal to another.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CopyPlan {
    /// The differences, in path order.
    pub steps: Vec<CopyStep>,
    /// The number of files that are equal in both trees.
    pub unchanged: usize,
    /// Files that are not copied.
    pub skipped: Vec<VPath>,
    /// The total size of the files to copy.
    pub bytes: u64,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyStep {
    /// The path, the same in both trees.
    pub path: VPath,
    /// The action for the path.
    pub action: CopyAction,
}

/// The action for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyAction {
    /// Create a directory.
    MakeDirectory,
    /// Create a file.
    Create,
    /// Replace a file whose content or permission bits differ.
    Update,
    /// Delete a file or directory that is not in the source.
    Delete,
}

/// Decides which paths are part of a tree that is copied.
pub type CopyFilter = dyn Fn(&VPath) -> Included + Send + Sync;

/// Whether a path is part of the tree that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Included {
    /// It is copied.
    Yes,
    /// It is left unchanged in both trees and reported as skipped.
    Skipped,
    /// It is not part of the workspace and is left unchanged in both trees.
    No,
}

impl CopyPlan {
    /// Compares two trees by content.
    pub async fn new(from: &dyn Vfs, to: &dyn Vfs, part: &CopyFilter) -> Result<Self, VfsError> {
        let mut plan = Self::default();
        let CopyTree {
            entries: source,
            excluded: left_alone,
        } = collect_tree(from, part).await?;
        plan.skipped.extend(
            left_alone
                .into_iter()
                .filter(|path| part(path) != Included::No),
        );
        let CopyTree {
            entries: target,
            excluded: left_alone,
        } = collect_tree(to, part).await?;
        // A directory is deleted only if nothing in it must be left unchanged.
        let holds = |directory: &VPath| left_alone.iter().any(|path| directory.contains(path));
        let mut compared = Vec::new();
        let mut blocked: Vec<VPath> = Vec::new();
        for (path, entry) in &source {
            let there = target.get(path).map(|there| there.kind);
            let action = match (entry.kind, there) {
                (FileKind::Directory, Some(FileKind::Directory)) => continue,
                (FileKind::File, Some(FileKind::File)) => {
                    compared.push((path, entry, &target[path]));
                    continue;
                }
                // A path that must be left unchanged is in the way.
                _ if holds(path) || blocked.iter().any(|above: &VPath| above.contains(path)) => {
                    plan.skipped.push(path.clone());
                    blocked.push(path.clone());
                    continue;
                }
                (FileKind::Directory, None) => CopyAction::MakeDirectory,
                (FileKind::Directory, Some(_)) => {
                    plan.steps.push(CopyStep {
                        path: path.clone(),
                        action: CopyAction::Delete,
                    });
                    CopyAction::MakeDirectory
                }
                (FileKind::File | FileKind::Other, None) => CopyAction::Create,
                (FileKind::File | FileKind::Other, Some(_)) => {
                    plan.steps.push(CopyStep {
                        path: path.clone(),
                        action: CopyAction::Delete,
                    });
                    CopyAction::Create
                }
            };
            if action == CopyAction::Create {
                plan.bytes += entry.size;
            }
            plan.steps.push(CopyStep {
                path: path.clone(),
                action,
            });
        }
        let differ: Vec<(&VPath, &DirEntry, bool)> = stream::iter(compared)
            .map(|(path, here, there)| async move {
                Ok::<_, VfsError>((path, here, differs(from, to, path, here, there).await?))
            })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        for (path, entry, differs) in differ {
            if differs {
                plan.bytes += entry.size;
                plan.steps.push(CopyStep {
                    path: path.clone(),
                    action: CopyAction::Update,
                });
            } else {
                plan.unchanged += 1;
            }
        }
        let mut gone: Vec<&VPath> = Vec::new();
        for path in target
            .keys()
            .filter(|path| !source.contains_key(*path) && !holds(path))
        {
            // Entries below a directory are deleted with it.
            let replaced =
                |step: &CopyStep| step.action == CopyAction::Delete && step.path.contains(path);
            if gone.iter().any(|directory| directory.contains(path))
                || plan.steps.iter().any(replaced)
            {
                continue;
            }
            gone.push(path);
            plan.steps.push(CopyStep {
                path: path.clone(),
                action: CopyAction::Delete,
            });
        }
        plan.steps
            .sort_by(|a, b| (&a.path, order(a.action)).cmp(&(&b.path, order(b.action))));
        Ok(plan)
    }

    /// Executes the plan and calls `done` for every completed step. If it is interrupted, a new
    /// plan continues from there.
    pub async fn apply(
        &self,
        from: &dyn Vfs,
        to: &dyn Vfs,
        done: &(dyn Fn(&CopyStep) + Send + Sync),
    ) -> Result<(), VfsError> {
        for step in self
            .steps
            .iter()
            .filter(|step| step.action == CopyAction::Delete)
        {
            match to.remove(&step.path).await {
                Ok(()) | Err(VfsError::NotFound(_)) => done(step),
                Err(error) => return Err(error),
            }
        }
        for step in self
            .steps
            .iter()
            .filter(|step| step.action == CopyAction::MakeDirectory)
        {
            to.mkdir(&step.path).await?;
            done(step);
        }
        let files = self
            .steps
            .iter()
            .filter(|step| matches!(step.action, CopyAction::Create | CopyAction::Update));
        stream::iter(files.map(Ok::<_, VfsError>))
            .try_for_each_concurrent(AT_ONCE, |step| async move {
                let ((content, _), stat) =
                    try_join!(from.read(&step.path, ReadRange::ALL), from.stat(&step.path))?;
                let expect = if step.action == CopyAction::Create {
                    Expect::Absent
                } else {
                    Expect::Any
                };
                match to.write(&step.path, content.clone(), expect).await {
                    // Another writer created the file since.
                    Err(VfsError::Exists(_)) => {
                        drop(to.write(&step.path, content, Expect::Any).await?)
                    }
                    written => drop(written?),
                }
                if let Some(mode) = stat.mode {
                    to.set_mode(&step.path, mode & 0o777).await?;
                }
                done(step);
                Ok(())
            })
            .await
    }
}

/// Orders the actions at one path: it is cleared before something else takes its place.
fn order(action: CopyAction) -> u8 {
    match action {
        CopyAction::Delete => 0,
        CopyAction::MakeDirectory => 1,
        CopyAction::Create => 2,
        CopyAction::Update => 3,
    }
}

/// The entries of a tree that are copied, and the paths that are not.
struct CopyTree {
    entries: BTreeMap<VPath, DirEntry>,
    /// Paths that are not part of the copy, links, special files, and names that no path can hold.
    excluded: Vec<VPath>,
}

async fn collect_tree(files: &dyn Vfs, part: &CopyFilter) -> Result<CopyTree, VfsError> {
    let Walk { entries, truncated } = files.walk(&VPath::root(), None, MAX_ENTRIES).await?;
    if truncated {
        let size = entries.len() as u64;
        let limit = MAX_ENTRIES as u64;
        return Err(VfsError::TooLarge {
            path: VPath::root(),
            size,
            limit,
        });
    }
    let mut tree = CopyTree {
        entries: BTreeMap::new(),
        excluded: Vec::new(),
    };
    for (path, entry) in entries {
        match part(&path) {
            Included::Yes if entry.link || entry.kind == FileKind::Other => {
                tree.excluded.push(path)
            }
            Included::Yes => drop(tree.entries.insert(path, entry)),
            Included::Skipped | Included::No => tree.excluded.push(path),
        }
    }
    Ok(tree)
}

async fn differs(
    from: &dyn Vfs,
    to: &dyn Vfs,
    path: &VPath,
    here: &DirEntry,
    there: &DirEntry,
) -> Result<bool, VfsError> {
    if here.size != there.size || hash(from, path, here).await? != hash(to, path, there).await? {
        return Ok(true);
    }
    Ok(here
        .mode
        .zip(there.mode)
        .is_some_and(|(here, there)| here & 0o111 != there & 0o111))
}

async fn hash(files: &dyn Vfs, path: &VPath, entry: &DirEntry) -> Result<ContentHash, VfsError> {
    match entry.hash {
        Some(hash) => Ok(hash),
        None => ContentHash::of_large(path, &files.read(path, ReadRange::ALL).await?.0).await,
    }
}
