//! Walking any file system by its listings.
//!
//! Effects: workspace files (reads).

use crate::{DirEntry, FileKind, VPath, Vfs, VfsError, vfs::Walk};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};

/// The number of directories listed at once.
const LISTED_AT_ONCE: usize = 8;

/// Returns the first `limit` entries below `root` that come after `after`, in path order.
///
/// Directories are listed in path order too, skipping those whose entries would all come too early
/// or too late, so a page costs about as many listings as it has directories.
pub(crate) async fn walk_by_listing<V: Vfs + ?Sized>(
    vfs: &V,
    root: &VPath,
    after: Option<&VPath>,
    limit: usize,
) -> Result<Walk, VfsError> {
    let mut found: BTreeMap<VPath, DirEntry> = BTreeMap::new();
    let mut open = BTreeSet::from([root.clone()]);
    loop {
        let wanted = |directory: &VPath| {
            found.len() <= limit || found.keys().next_back().is_some_and(|k| *k > *directory)
        };
        let next: Vec<VPath> = open
            .iter()
            .take(LISTED_AT_ONCE)
            .filter(|directory| wanted(directory))
            .cloned()
            .collect();
        if next.is_empty() {
            break;
        }
        let lists = join_all(next.iter().map(|directory| vfs.list(directory))).await;
        for (directory, entries) in next.iter().zip(lists) {
            open.remove(directory);
            let entries = match entries {
                Ok(entries) => entries,
                // The directory was removed during the walk.
                Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) if directory != root => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            for entry in entries {
                // A tree that cannot be named as a whole is neither copied nor judged in part.
                let path = directory
                    .join(&entry.name)
                    .map_err(|_| too_long(directory))?;
                if entry.kind == FileKind::Directory && !entry.link && !is_past(&path, after) {
                    open.insert(path.clone());
                }
                if after.is_none_or(|after| path > *after) {
                    found.insert(path, entry);
                }
            }
        }
        // One entry beyond the limit is kept to show that there are more.
        while found.len() > limit.saturating_add(1) {
            found.pop_last();
        }
    }
    let truncated = found.len() > limit;
    Ok(Walk {
        entries: found.into_iter().take(limit).collect(),
        truncated,
    })
}

/// Returns whether everything below `directory` comes before `after`.
fn too_long(directory: &VPath) -> VfsError {
    let limit = VPath::MAX_BYTES;
    VfsError::Io {
        path: directory.clone(),
        source: std::io::Error::other(format!("it holds a path of more than {limit} bytes")),
    }
}

fn is_past(directory: &VPath, after: Option<&VPath>) -> bool {
    // `0` is the character after `/`.
    after.is_some_and(|after| {
        !directory.contains(after) && *after.as_str() > *format!("{directory}0")
    })
}
