//! Writing to the upper layer of an overlay, and masking the lower one.
//!
//! Effects: the clock, randomness, workspace files (writes).

use super::masks;
use super::{Overlay, OverlayLayer};
use crate::copy::{self, CopyEndpoint};
use crate::{Expect, FileKind, Stat, VPath, Version, VfsError, rebase};
use bytes::Bytes;
use futures_util::stream::BoxStream;

impl Overlay {
    pub(super) async fn write_upper(
        &self,
        path: &VPath,
        data: Bytes,
        expect: Expect,
    ) -> Result<Version, VfsError> {
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        require_free(path)?;
        let written = match expect {
            Expect::Absent => self.write_new(path, data).await,
            Expect::Any => self.write_any(path, data).await,
            Expect::Version(version) => self.write_known(path, data, &version).await,
        }?;
        Ok(OverlayLayer::Upper.tagged(&written))
    }

    pub(super) async fn stream_upper(
        &self,
        path: &VPath,
        source: BoxStream<'_, Bytes>,
    ) -> Result<Version, VfsError> {
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        require_free(path)?;
        let lower = match self.find(path).await {
            Ok((_, stat)) if stat.kind != FileKind::File => {
                return Err(not_a_file(path, stat.kind));
            }
            Ok((OverlayLayer::Lower, stat)) => Some(stat),
            Ok((OverlayLayer::Upper, _)) | Err(VfsError::NotFound(_)) => None,
            Err(other) => return Err(other),
        };
        let written = self.upper.write_stream(path, source).await?;
        let version = match lower.and_then(|stat| stat.mode) {
            Some(mode) => {
                self.upper.set_mode(path, mode).await?;
                self.upper.stat(path).await?.version
            }
            None => written,
        };
        Ok(OverlayLayer::Upper.tagged(&version))
    }

    async fn write_new(&self, path: &VPath, data: Bytes) -> Result<Version, VfsError> {
        // The write itself finds out whether upper has something there.
        match self.if_visible(path, self.lower.stat(path)).await {
            // Unless a file of upper is in the way.
            Ok(_) => self
                .find(path)
                .await
                .and(Err(VfsError::Exists(path.clone()))),
            Err(VfsError::NotFound(_)) => self.upper.write(path, data, Expect::Absent).await,
            Err(other) => Err(other),
        }
    }

    async fn write_any(&self, path: &VPath, data: Bytes) -> Result<Version, VfsError> {
        match self.find(path).await {
            Ok((_, stat)) if stat.kind != FileKind::File => Err(not_a_file(path, stat.kind)),
            Ok((OverlayLayer::Lower, stat)) => {
                self.write_over(path, data, &stat, Expect::Any).await
            }
            Ok((OverlayLayer::Upper, _)) | Err(VfsError::NotFound(_)) => {
                self.upper.write(path, data, Expect::Any).await
            }
            Err(other) => Err(other),
        }
    }

    async fn write_known(
        &self,
        path: &VPath,
        data: Bytes,
        version: &Version,
    ) -> Result<Version, VfsError> {
        if let Some(own) = OverlayLayer::Upper.untagged(version) {
            // Upper's file is the visible one, so upper alone decides whether it has that version.
            return self.upper.write(path, data, Expect::Version(own)).await;
        }
        let changed = || VfsError::Changed(path.clone());
        match self.find(path).await {
            Ok((_, stat)) if stat.version != *version => Err(changed()),
            Ok((_, stat)) if stat.kind != FileKind::File => Err(not_a_file(path, stat.kind)),
            Ok((_, stat)) => match self.write_over(path, data, &stat, Expect::Absent).await {
                Err(VfsError::Exists(_)) => Err(changed()),
                written => written,
            },
            Err(VfsError::NotFound(_)) => Err(changed()),
            Err(other) => Err(other),
        }
    }

    /// Writes a file to upper in place of lower's, keeping the mode bits.
    async fn write_over(
        &self,
        path: &VPath,
        data: Bytes,
        lower: &Stat,
        expect: Expect,
    ) -> Result<Version, VfsError> {
        let version = self.upper.write(path, data.clone(), expect).await?;
        copy::set_mode(
            CopyEndpoint {
                vfs: &*self.upper,
                path,
            },
            lower.mode,
            &data,
            version,
        )
        .await
    }

    pub(super) async fn remove_both(&self, path: &VPath) -> Result<(), VfsError> {
        if path.is_root() {
            return Err(VfsError::Denied(path.clone()));
        }
        let (layer, _) = self.find(path).await?;
        if layer == OverlayLayer::Lower || self.stat_lower(path).await?.is_some() {
            self.masks.add(path).await?;
        }
        match layer {
            OverlayLayer::Upper => self.remove_from_upper(path).await,
            OverlayLayer::Lower => Ok(()),
        }
    }

    async fn remove_from_upper(&self, path: &VPath) -> Result<(), VfsError> {
        match self.upper.remove(path).await {
            // Another writer removed it.
            Err(VfsError::NotFound(_)) => Ok(()),
            removed => removed,
        }
    }

    pub(super) async fn rename_both(&self, from: &VPath, to: &VPath) -> Result<(), VfsError> {
        if from.is_root() {
            return Err(VfsError::Denied(from.clone()));
        }
        let (layer, stat) = self.find(from).await?;
        if from == to {
            return Err(VfsError::Exists(to.clone()));
        }
        if from.contains(to) {
            return Err(rebase::into_itself(from));
        }
        if to.is_root() {
            return Err(VfsError::Denied(to.clone()));
        }
        require_free(to)?;
        match self.find(to).await {
            Ok(_) => return Err(VfsError::Exists(to.clone())),
            Err(VfsError::NotFound(_)) => {}
            Err(other) => return Err(other),
        }
        let below = self.stat_lower(from).await?;
        let is_merged = below
            .as_ref()
            .is_some_and(|below| below.kind == FileKind::Directory);
        match (layer, stat.kind) {
            (OverlayLayer::Lower, FileKind::File) => {
                let source = CopyEndpoint {
                    vfs: &*self.lower,
                    path: from,
                };
                let target = CopyEndpoint {
                    vfs: &*self.upper,
                    path: to,
                };
                copy::copy_file(source, target).await?;
                self.masks.add(from).await
            }
            (OverlayLayer::Lower, _) | (OverlayLayer::Upper, FileKind::Directory) if is_merged => {
                self.move_merged(from, to).await
            }
            (OverlayLayer::Upper | OverlayLayer::Lower, _) => {
                if below.is_some() {
                    // Masked first, or lower's entry would show where upper's just was.
                    self.masks.add(from).await?;
                }
                self.upper.rename(from, to).await
            }
        }
    }

    /// Moves a directory with content of lower: a copy is made under a hidden name and then moved
    /// to the new path.
    async fn move_merged(&self, from: &VPath, to: &VPath) -> Result<(), VfsError> {
        let staged = masks::fresh_name()?;
        let shown = |error| {
            rebase::error(error, |path| {
                if staged.contains(path) {
                    to.clone()
                } else {
                    path.clone()
                }
            })
        };
        copy::copy_tree(
            CopyEndpoint {
                vfs: self,
                path: from,
            },
            CopyEndpoint {
                vfs: &*self.upper,
                path: &staged,
            },
        )
        .await
        .map_err(shown)?;
        if let Err(error) = self.upper.rename(&staged, to).await {
            // The original failure is reported, not this one.
            let _ = self.upper.remove(&staged).await;
            return Err(shown(error));
        }
        self.masks.add(from).await?;
        self.remove_from_upper(from).await
    }

    pub(super) async fn mkdir_upper(&self, path: &VPath) -> Result<(), VfsError> {
        require_free(path)?;
        match self.find(path).await {
            Ok((_, stat)) if stat.kind == FileKind::Directory => Ok(()),
            Ok(_) => Err(VfsError::NotDirectory(path.clone())),
            Err(VfsError::NotFound(_)) => self.upper.mkdir(path).await,
            Err(other) => Err(other),
        }
    }

    pub(super) async fn set_mode_upper(&self, path: &VPath, mode: u32) -> Result<(), VfsError> {
        let (layer, stat) = self.find(path).await?;
        if stat.kind != FileKind::File {
            return Err(not_a_file(path, stat.kind));
        }
        if layer == OverlayLayer::Lower {
            match copy::copy_file(
                CopyEndpoint {
                    vfs: &*self.lower,
                    path,
                },
                CopyEndpoint {
                    vfs: &*self.upper,
                    path,
                },
            )
            .await
            {
                // Another writer created it.
                Err(VfsError::Exists(_)) => {}
                copied => drop(copied?),
            }
        }
        self.upper.set_mode(path, mode).await
    }
}

/// Refuses the overlay's own names.
fn require_free(path: &VPath) -> Result<(), VfsError> {
    if masks::is_reserved(path) {
        Err(VfsError::Denied(path.clone()))
    } else {
        Ok(())
    }
}

fn not_a_file(path: &VPath, kind: FileKind) -> VfsError {
    match kind {
        FileKind::Directory => VfsError::IsDirectory(path.clone()),
        FileKind::File | FileKind::Other => VfsError::Special(path.clone()),
    }
}
