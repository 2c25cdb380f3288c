//! A file system behind rules.
//!
//! Denied reads and writes are refused here, below every tool. Accesses that need an approval pass,
//! because the gate asks for it; only a search, for which no person is asked file by file, leaves
//! out files that need an approval.
//!
//! The meaning of the rules in detail:
//! - `stat`, `list` and `resolve` are reads. `mkdir` and `set_mode` are writes. The parent
//!   directories that a write creates need no right of their own.
//! - A link needs the right for its name and for its target, also when it is moved or removed.
//! - A directory may be listed if it may be read; entries that may not be read are left out.
//! - Moving or removing a directory needs the right for everything in it. It is refused as a whole,
//!   and the error names the directory: it shows that something in it is denied, but not what.
//! - A caller who may write a file but not read it can find out whether it exists by creating it.
//!
//! Effects: workspace files (writes).

mod judge;
mod search;

pub use judge::{judge_accesses, judge_call};

use crate::lines::{LineRange, LineWindow};
use crate::rules::{ProtectedLinks, Rules};
use crate::{DirEntry, Expect, ReadRange, Search, Stat, VPath, Version, Vfs, VfsError, Walk};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use judge::{AccessExtent, AccessJudge, PathAliases, TouchedPath, path_aliases, protected_links};
use std::sync::Arc;
use stead_core::{AccessKind, VerdictKind};
use tokio::sync::OnceCell;

/// The minimum number of entries walked at once.
const WALK_PAGE: usize = 1000;

/// A file system that enforces rules.
#[derive(Debug, Clone)]
pub struct Guarded {
    inner: Arc<dyn Vfs>,
    /// What listings and searches are taken from: `inner`, or a part of it.
    listed: Arc<dyn Vfs>,
    rules: Arc<Rules>,
    denial: DenialResponse,
    /// The targets of protected links for readers, looked up once; `None` to look them up each
    /// time.
    link_cache: Option<Arc<OnceCell<ProtectedLinks>>>,
}

/// The error for a denied path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DenialResponse {
    /// [`VfsError::Denied`].
    Denied,
    /// [`VfsError::NotFound`].
    Absent,
}

impl Guarded {
    /// Returns `inner` behind `rules`. Denied paths fail with [`VfsError::Denied`].
    pub fn new(inner: Arc<dyn Vfs>, rules: Arc<Rules>) -> Self {
        Self {
            listed: inner.clone(),
            inner,
            rules,
            denial: DenialResponse::Denied,
            link_cache: None,
        }
    }

    /// Takes listings and searches from `listed`, which shows a part of the same files, such as
    /// [`Unlisted`](crate::Unlisted). Everything else is as before.
    pub fn with_listings_of(self, listed: Arc<dyn Vfs>) -> Self {
        Self { listed, ..self }
    }

    /// Returns `inner` without the paths that `rules` deny. They fail with [`VfsError::NotFound`].
    pub fn hiding_denied(inner: Arc<dyn Vfs>, rules: Arc<Rules>) -> Self {
        Self {
            denial: DenialResponse::Absent,
            ..Self::new(inner, rules)
        }
    }

    /// Like [`Self::hiding_denied`], for short use: the targets of protected links are looked up
    /// only once.
    pub fn with_cached_links(inner: Arc<dyn Vfs>, rules: Arc<Rules>) -> Self {
        Self {
            link_cache: Some(Arc::default()),
            ..Self::hiding_denied(inner, rules)
        }
    }

    /// Returns the targets of protected links for readers, if they are cached.
    async fn cached_links(&self) -> Option<&ProtectedLinks> {
        let once = self.link_cache.as_ref()?;
        Some(
            once.get_or_init(|| protected_links(&self.rules, &*self.inner, AccessKind::Read))
                .await,
        )
    }

    /// Returns the targets of protected links for readers.
    async fn read_links(&self) -> ProtectedLinks {
        match self.cached_links().await {
            Some(known) => known.clone(),
            None => protected_links(&self.rules, &*self.inner, AccessKind::Read).await,
        }
    }

    /// Fails if one of the touched paths is denied. The error names that path and no other.
    async fn require(&self, touches: &[TouchedPath]) -> Result<(), VfsError> {
        let known = self.cached_links().await;
        match AccessJudge::new(&self.rules, &*self.inner)
            .with_known_links(known)
            .judge_all(touches)
            .await?
        {
            Some((verdict, at)) if verdict.kind == VerdictKind::Deny => Err(match self.denial {
                DenialResponse::Denied => VfsError::Denied(touches[at].path.clone()),
                DenialResponse::Absent => VfsError::NotFound(touches[at].path.clone()),
            }),
            Some(_) | None => Ok(()),
        }
    }

    fn is_denied(&self, kind: AccessKind, path: &VPath, links: &ProtectedLinks) -> bool {
        self.rules
            .decide_with_links(kind, path.as_str(), links)
            .kind()
            == VerdictKind::Deny
    }

    /// Returns whether an entry of a directory is visible: by its name, its real path and its
    /// target.
    async fn is_visible(
        &self,
        path: &VPath,
        real: &VPath,
        entry: &DirEntry,
        links: &ProtectedLinks,
    ) -> bool {
        if self.is_denied(AccessKind::Read, path, links) {
            return false;
        }
        if real != path && self.is_denied(AccessKind::Read, real, links) {
            return false;
        }
        // A link without a target reveals nothing.
        let end = if entry.link {
            self.inner.resolve(path).await.ok()
        } else {
            None
        };
        end.is_none_or(|end| !self.is_denied(AccessKind::Read, &end, links))
    }

    /// Returns the real path of a readable directory, and the targets of protected links.
    async fn open_directory(&self, path: &VPath) -> Result<(VPath, ProtectedLinks), VfsError> {
        self.require(&[TouchedPath::content(AccessKind::Read, path)])
            .await?;
        let PathAliases { target: end, .. } = path_aliases(&*self.inner, path).await?;
        let end = end.map_err(|error| with_path(path, Some(error)))?;
        Ok((end, self.read_links().await))
    }

    /// Resolves a path for a caller who may read it, or who may write it and must be able to name
    /// the target.
    async fn resolve_visible(&self, path: &VPath) -> Result<VPath, VfsError> {
        let by_name = |kind: &AccessKind| !self.is_denied(*kind, path, &ProtectedLinks::default());
        let kinds: Vec<AccessKind> = [AccessKind::Read, AccessKind::Write]
            .into_iter()
            .filter(by_name)
            .collect();
        if kinds.is_empty() {
            return Err(VfsError::Denied(path.clone()));
        }
        let PathAliases {
            paths, target: end, ..
        } = path_aliases(&*self.inner, path).await?;
        for kind in kinds {
            let links = protected_links(&self.rules, &*self.inner, kind).await;
            if !paths.iter().any(|path| self.is_denied(kind, path, &links)) {
                return end.map_err(|error| with_path(path, Some(error)));
            }
        }
        Err(VfsError::Denied(path.clone()))
    }

    async fn visible_walk(
        &self,
        path: &VPath,
        after: Option<&VPath>,
        limit: usize,
    ) -> Result<Walk, VfsError> {
        let (real, links) = self.open_directory(path).await?;
        let mut after = after.cloned();
        let mut entries = Vec::new();
        // Hidden entries must not use up the limit, so more pages are read until there are enough.
        loop {
            let wanted = limit
                .saturating_add(1)
                .saturating_sub(entries.len())
                .max(WALK_PAGE);
            let walk = self.listed.walk(path, after.as_ref(), wanted).await?;
            after = walk
                .entries
                .last()
                .map(|(child, _)| child.clone())
                .or(after);
            for (child, entry) in walk.entries {
                let rest = child.as_str()[path.as_str().len()..].trim_start_matches('/');
                if self
                    .is_visible(&child, &real.join(rest)?, &entry, &links)
                    .await
                {
                    entries.push((child, entry));
                }
            }
            if entries.len() > limit || !walk.truncated {
                let truncated = entries.len() > limit;
                entries.truncate(limit);
                return Ok(Walk { entries, truncated });
            }
        }
    }
}

impl Vfs for Guarded {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        Box::pin(async move {
            self.require(&[TouchedPath::content(AccessKind::Read, path)])
                .await?;
            self.inner.stat(path).await
        })
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(async move {
            let (real, links) = self.open_directory(path).await?;
            let mut seen = Vec::new();
            for entry in self.listed.list(path).await? {
                let (Ok(child), Ok(really)) = (path.join(&entry.name), real.join(&entry.name))
                else {
                    continue;
                };
                if self.is_visible(&child, &really, &entry, &links).await {
                    seen.push(entry);
                }
            }
            Ok(seen)
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        Box::pin(async move {
            self.require(&[TouchedPath::content(AccessKind::Read, path)])
                .await?;
            self.inner.read(path, range).await
        })
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(async move {
            self.require(&[TouchedPath::content(AccessKind::Read, path)])
                .await?;
            self.inner.read_lines(path, range).await
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            self.require(&[TouchedPath::content(AccessKind::Write, path)])
                .await?;
            self.inner.write(path, data, expect).await
        })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require(&[TouchedPath::new(
                AccessKind::Write,
                path,
                AccessExtent::Tree,
            )])
            .await?;
            self.inner.remove(path).await
        })
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let touches = [
                // The content may become readable at the new path.
                TouchedPath::new(AccessKind::Read, from, AccessExtent::Tree),
                TouchedPath::new(AccessKind::Write, from, AccessExtent::Tree),
                TouchedPath::new(
                    AccessKind::Write,
                    to,
                    AccessExtent::Arrival { from: from.clone() },
                ),
            ];
            self.require(&touches).await?;
            self.inner.rename(from, to).await
        })
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require(&[TouchedPath::content(AccessKind::Write, path)])
                .await?;
            self.inner.mkdir(path).await
        })
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require(&[TouchedPath::content(AccessKind::Write, path)])
                .await?;
            self.inner.set_mode(path, mode).await
        })
    }

    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(self.visible_walk(path, after, limit))
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        Box::pin(self.resolve_visible(path))
    }

    fn search(&self) -> &dyn Search {
        self
    }
}

/// Returns `error` with `path` in place of its own path.
fn with_path(path: &VPath, error: Option<VfsError>) -> VfsError {
    let path = path.clone();
    match error {
        None => VfsError::NotFound(path),
        // A link whose target is not a path here has no target; its text must not be shown.
        Some(VfsError::Path(_) | VfsError::NotFound(_)) => VfsError::NotFound(path),
        Some(VfsError::Exists(_)) => VfsError::Exists(path),
        Some(VfsError::Changed(_)) => VfsError::Changed(path),
        Some(VfsError::IsDirectory(_)) => VfsError::IsDirectory(path),
        Some(VfsError::NotDirectory(_)) => VfsError::NotDirectory(path),
        Some(VfsError::Special(_)) => VfsError::Special(path),
        Some(VfsError::Escapes(_)) => VfsError::Escapes(path),
        Some(VfsError::Denied(_)) => VfsError::Denied(path),
        Some(VfsError::ReadOnly(_)) => VfsError::ReadOnly(path),
        Some(VfsError::Unavailable { cause, .. }) => VfsError::Unavailable { path, cause },
        Some(VfsError::Fenced(_)) => VfsError::Fenced(path),
        Some(VfsError::TooLarge { size, limit, .. }) => VfsError::TooLarge { path, size, limit },
        Some(VfsError::NoSpace(_)) => VfsError::NoSpace(path),
        Some(VfsError::Io { source, .. }) => VfsError::Io { path, source },
    }
}
