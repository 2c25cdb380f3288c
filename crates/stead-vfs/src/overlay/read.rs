//! Reading through both layers of an overlay.
//!
//! Effects: workspace files (reads).

use super::masks::{self, Masks};
use super::{Overlay, OverlayLayer};
use crate::lines::{LineRange, LineWindow};
use crate::{DirEntry, FileKind, ReadRange, Stat, VPath, Version, VfsError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;

impl Overlay {
    /// Returns what is at `path` and in which layer. A directory in both layers is upper's.
    pub(super) fn find<'a>(
        &'a self,
        path: &'a VPath,
    ) -> BoxFuture<'a, Result<(OverlayLayer, Stat), VfsError>> {
        Box::pin(async move {
            let tagged = |layer: OverlayLayer, stat: Stat| {
                let version = layer.tagged(&stat.version);
                (layer, Stat { version, ..stat })
            };
            match self.in_upper(path, self.upper.stat(path)).await? {
                Some(stat) => Ok(tagged(OverlayLayer::Upper, stat)),
                None => Ok(tagged(
                    OverlayLayer::Lower,
                    self.if_visible(path, self.lower.stat(path)).await?,
                )),
            }
        })
    }

    /// Returns the upper tree's result if it has an entry at `path`.
    async fn in_upper<T>(
        &self,
        path: &VPath,
        asked: BoxFuture<'_, Result<T, VfsError>>,
    ) -> Result<Option<T>, VfsError> {
        if masks::is_reserved(path) {
            return Err(VfsError::NotFound(path.clone()));
        }
        match asked.await {
            Ok(found) => Ok(Some(found)),
            Err(VfsError::NotFound(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Returns the result of lower for a path that upper does not have.
    async fn in_lower<T>(&self, path: &VPath, found: Result<T, VfsError>) -> Result<T, VfsError> {
        match found {
            // The overlay decides whether the parent is a file or a directory of upper.
            Err(VfsError::NotDirectory(_)) => match path.parent() {
                None => Err(VfsError::NotDirectory(path.clone())),
                Some(parent) => match self.find(&parent).await {
                    Ok((_, stat)) if stat.kind == FileKind::Directory => {
                        Err(VfsError::NotFound(path.clone()))
                    }
                    Ok(_) | Err(VfsError::NotDirectory(_)) => {
                        Err(VfsError::NotDirectory(path.clone()))
                    }
                    Err(VfsError::NotFound(_)) => Err(VfsError::NotFound(path.clone())),
                    Err(other) => Err(other),
                },
            },
            found => found,
        }
    }

    /// Returns `found` of lower, unless lower is masked at `path` or where its links lead. Both are
    /// requested at once, because each may be a round trip to a server.
    pub(super) async fn if_visible<T>(
        &self,
        path: &VPath,
        asked: BoxFuture<'_, Result<T, VfsError>>,
    ) -> Result<T, VfsError> {
        let hidden = async {
            let masks = self.masks.current().await?;
            self.is_hidden(&masks, path).await
        };
        let (hidden, found) = futures_util::join!(hidden, asked);
        if hidden? {
            return Err(VfsError::NotFound(path.clone()));
        }
        self.in_lower(path, found).await
    }

    async fn is_hidden(&self, masks: &Masks, path: &VPath) -> Result<bool, VfsError> {
        Ok(masks.hides(path)
            || (*masks != Masks::default() && masks.hides(&self.resolve_lower(path).await?)))
    }

    /// Resolves `path` in lower. A path that lower denies resolves to nothing.
    pub(super) async fn resolve_lower(&self, path: &VPath) -> Result<VPath, VfsError> {
        match self.lower.resolve(path).await {
            Err(VfsError::Denied(_) | VfsError::NotFound(_)) => Ok(path.clone()),
            end => end,
        }
    }

    /// Returns what lower shows at `path`, ignoring upper.
    pub(super) async fn stat_lower(&self, path: &VPath) -> Result<Option<Stat>, VfsError> {
        let masks = self.masks.current().await?;
        if self.is_hidden(&masks, path).await? {
            return Ok(None);
        }
        match self.lower.stat(path).await {
            Ok(stat) => Ok(Some(stat)),
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_) | VfsError::Denied(_)) => {
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    pub(super) async fn list_both(&self, path: &VPath) -> Result<Vec<DirEntry>, VfsError> {
        let upper = self.in_upper(path, self.upper.list(path)).await?;
        let masks = self.masks.current().await?;
        let lower = match self.is_hidden(&masks, path).await? {
            true => None,
            false => match (self.lower.list(path).await, &upper) {
                (Ok(entries), _) => Some(entries),
                (
                    Err(VfsError::NotFound(_) | VfsError::NotDirectory(_) | VfsError::Denied(_)),
                    Some(_),
                ) => None,
                // It is a file or below one: the result of the overlay decides.
                (Err(VfsError::NotDirectory(_)), None) => {
                    self.find(path).await?;
                    return Err(VfsError::NotDirectory(path.clone()));
                }
                (Err(other), _) => return Err(other),
            },
        };
        if upper.is_none() && lower.is_none() {
            return Err(VfsError::NotFound(path.clone()));
        }
        let mut merged: BTreeMap<String, DirEntry> = BTreeMap::new();
        for entry in lower.into_iter().flatten() {
            let masked = path.join(&entry.name).is_ok_and(|path| masks.hides(&path));
            if !masked {
                merged.insert(entry.name.clone(), entry);
            }
        }
        merged.extend(
            upper
                .into_iter()
                .flatten()
                .map(|entry| (entry.name.clone(), entry)),
        );
        let is_own = |name: &str| {
            path.is_root() && VPath::parse(name).is_ok_and(|path| masks::is_reserved(&path))
        };
        Ok(merged
            .into_values()
            .filter(|entry| !is_own(&entry.name))
            .collect())
    }

    pub(super) async fn read_either(
        &self,
        path: &VPath,
        range: ReadRange,
    ) -> Result<(Bytes, Version), VfsError> {
        let tagged = |layer: OverlayLayer, (bytes, version): (Bytes, Version)| {
            (bytes, layer.tagged(&version))
        };
        if let Some(read) = self.in_upper(path, self.upper.read(path, range)).await? {
            return Ok(tagged(OverlayLayer::Upper, read));
        }
        Ok(tagged(
            OverlayLayer::Lower,
            self.if_visible(path, self.lower.read(path, range)).await?,
        ))
    }

    pub(super) async fn read_lines_either(
        &self,
        path: &VPath,
        range: LineRange,
    ) -> Result<LineWindow, VfsError> {
        let tagged = |layer: OverlayLayer, lines: LineWindow| {
            let version = layer.tagged(&lines.version);
            LineWindow { version, ..lines }
        };
        if let Some(lines) = self
            .in_upper(path, self.upper.read_lines(path, range))
            .await?
        {
            return Ok(tagged(OverlayLayer::Upper, lines));
        }
        Ok(tagged(
            OverlayLayer::Lower,
            self.if_visible(path, self.lower.read_lines(path, range))
                .await?,
        ))
    }
}
