//! Copying files and trees between file systems.
//!
//! Effects: workspace files (writes).

use crate::{Expect, FileKind, ReadRange, VPath, Version, Vfs, VfsError};

/// The number of entries walked at once.
const PAGE: usize = 1000;

/// One end of a copy: a file system and a path in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyEndpoint<'a> {
    pub(crate) vfs: &'a dyn Vfs,
    pub(crate) path: &'a VPath,
}

/// Copies a file, or a directory with its content, to a path that must be absent. On failure the
/// partial copy is removed. Links are copied as what they point to; anything that is neither file
/// nor directory is left out.
pub(crate) async fn copy_tree(
    from: CopyEndpoint<'_>,
    to: CopyEndpoint<'_>,
) -> Result<(), VfsError> {
    match from.vfs.stat(from.path).await?.kind {
        FileKind::File => copy_file(from, to).await.map(drop),
        FileKind::Other => Err(VfsError::Special(from.path.clone())),
        FileKind::Directory => {
            let copied = copy_directory(from, to).await;
            if copied.is_err() {
                // The original failure is reported, not this one.
                let _ = to.vfs.remove(to.path).await;
            }
            copied
        }
    }
}

async fn copy_directory(from: CopyEndpoint<'_>, to: CopyEndpoint<'_>) -> Result<(), VfsError> {
    to.vfs.mkdir(to.path).await?;
    let mut after: Option<VPath> = None;
    loop {
        let walk = from.vfs.walk(from.path, after.as_ref(), PAGE).await?;
        for (path, entry) in &walk.entries {
            let target = rebase(path, from.path, to.path)?;
            match entry.kind {
                FileKind::Directory => to.vfs.mkdir(&target).await?,
                FileKind::File => {
                    let from = CopyEndpoint { path, ..from };
                    let to = CopyEndpoint {
                        path: &target,
                        ..to
                    };
                    match copy_file(from, to).await {
                        // The file was removed during the walk.
                        Err(VfsError::NotFound(gone)) if gone == *path => {}
                        copied => drop(copied?),
                    }
                }
                FileKind::Other => {}
            }
        }
        if !walk.truncated {
            return Ok(());
        }
        after = walk.entries.into_iter().next_back().map(|(path, _)| path);
    }
}

/// Copies a file with its mode bits to a path that must be absent. Returns the version of the copy.
pub(crate) async fn copy_file(
    from: CopyEndpoint<'_>,
    to: CopyEndpoint<'_>,
) -> Result<Version, VfsError> {
    let mode = from.vfs.stat(from.path).await?.mode;
    let (content, _) = from.vfs.read(from.path, ReadRange::ALL).await?;
    let version = to
        .vfs
        .write(to.path, content.clone(), Expect::Absent)
        .await?;
    set_mode(to, mode, &content, version).await
}

/// Sets the mode bits of a file that was just written, if they differ. Returns its new version if
/// it still holds `content`, else the given version, which no longer matches if another writer
/// changed the file.
pub(crate) async fn set_mode(
    to: CopyEndpoint<'_>,
    mode: Option<u32>,
    content: &[u8],
    version: Version,
) -> Result<Version, VfsError> {
    let has = to.vfs.stat(to.path).await?.mode;
    match (mode, has) {
        (Some(wanted), Some(has)) if wanted != has => {
            to.vfs.set_mode(to.path, wanted).await?;
            let (found, now) = to.vfs.read(to.path, ReadRange::ALL).await?;
            Ok(if found == content { now } else { version })
        }
        (Some(_) | None, Some(_) | None) => Ok(version),
    }
}

/// Returns the path below `to` that corresponds to a path below `from`.
pub(crate) fn rebase(path: &VPath, from: &VPath, to: &VPath) -> Result<VPath, VfsError> {
    let rest = path
        .as_str()
        .strip_prefix(from.as_str())
        .unwrap_or(path.as_str());
    Ok(to.join(rest)?)
}
