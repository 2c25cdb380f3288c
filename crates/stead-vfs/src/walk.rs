//! Walking any place by its listings.

use crate::{DirEntry, FileKind, VPath, Vfs, VfsError, vfs::Walk};

/// Everything below `root`, in the order of paths.
pub(crate) async fn by_lists<V: Vfs + ?Sized>(vfs: &V, root: &VPath, limit: usize) -> Result<Walk, VfsError> {
    let mut found: Vec<(VPath, DirEntry)> = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        let entries = match vfs.list(&directory).await {
            Ok(entries) => entries,
            // It went away while we walked.
            Err(VfsError::NotFound(_)) if directory != *root => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let Ok(path) = directory.join(&entry.name) else { continue };
            if entry.kind == FileKind::Directory && !entry.link {
                open.push(path.clone());
            }
            found.push((path, entry));
        }
        if found.len() > limit.saturating_mul(2).saturating_add(1024) {
            // Enough to know that it is too much; which ones are kept is only settled for a whole walk.
            found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            found.truncate(limit);
            return Ok(Walk { entries: found, truncated: true });
        }
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let truncated = found.len() > limit;
    found.truncate(limit);
    Ok(Walk { entries: found, truncated })
}
