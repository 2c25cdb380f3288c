//! A place behind rules.
//!
//! What may not be read or written is refused here, below every tool, whoever holds the place. What
//! a person must be asked about passes, for asking is the gate's part; only a search, which nobody
//! is asked about file by file, leaves out what asks.
//!
//! The choices where a rule could mean more than one thing:
//! - Looking at a path, listing it, and asking where it leads are reads. Making a directory and
//!   setting mode bits are writes. The directories that a write makes on its way need no right of
//!   their own.
//! - A link needs the right for its name and for what it leads to; to move or remove it as well.
//! - A directory may be listed if it may itself be read; names in it that may not are left out.
//! - Moving or removing a directory needs the right on everything in it. It is refused as a whole,
//!   and the error names the directory: that something in it is denied can be told from that, what
//!   it is cannot.
//! - Who may write a file but not read it can still tell whether it exists, by creating it.

mod judge;
mod search;

pub use judge::judge;

use crate::lines::{LineRange, LineWindow};
use crate::rules::{ProtectedLinks, Rules};
use crate::{DirEntry, Expect, ReadRange, Search, Stat, VPath, Version, Vfs, VfsError, Walk};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use judge::{AccessExtent, AccessJudge, PathAliases, TouchedPath, path_aliases, protected_links};
use std::sync::Arc;
use stead_core::{AccessKind, VerdictKind};
use tokio::sync::OnceCell;

/// How much of a tree is looked at at once, at least.
const WALK_PAGE: usize = 1000;

/// A place in which only what the rules allow exists.
#[derive(Debug, Clone)]
pub struct Guarded {
    inner: Arc<dyn Vfs>,
    rules: Arc<Rules>,
    denial: DenialResponse,
    /// What protected names lead to for readers, found out once; none where it is looked up each
    /// time.
    link_cache: Option<Arc<OnceCell<ProtectedLinks>>>,
}

/// What a denied path answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DenialResponse {
    /// That it is denied.
    Denied,
    /// That nothing is there.
    Absent,
}

impl Guarded {
    /// `inner`, behind `rules`.
    pub fn new(inner: Arc<dyn Vfs>, rules: Arc<Rules>) -> Self {
        Self {
            inner,
            rules,
            denial: DenialResponse::Denied,
            link_cache: None,
        }
    }

    /// `inner` without what `rules` deny: it answers as if it were not there.
    pub fn hiding_denied(inner: Arc<dyn Vfs>, rules: Arc<Rules>) -> Self {
        Self {
            inner,
            rules,
            denial: DenialResponse::Absent,
            link_cache: None,
        }
    }

    /// The same for a short look: what protected names lead to is found out once, not with every
    /// question.
    pub fn with_cached_links(inner: Arc<dyn Vfs>, rules: Arc<Rules>) -> Self {
        Self {
            link_cache: Some(Arc::default()),
            ..Self::hiding_denied(inner, rules)
        }
    }

    /// What protected names lead to for readers, where that is found out once.
    async fn cached_links(&self) -> Option<&ProtectedLinks> {
        let once = self.link_cache.as_ref()?;
        Some(
            once.get_or_init(|| protected_links(&self.rules, &*self.inner, AccessKind::Read))
                .await,
        )
    }

    /// What protected names lead to for readers.
    async fn read_links(&self) -> ProtectedLinks {
        match self.cached_links().await {
            Some(known) => known.clone(),
            None => protected_links(&self.rules, &*self.inner, AccessKind::Read).await,
        }
    }

    /// Refuses if one of the touches is denied, naming its path and no other.
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

    async fn require_content(&self, kind: AccessKind, path: &VPath) -> Result<(), VfsError> {
        self.require(&[TouchedPath::new(kind, path, AccessExtent::Content)])
            .await
    }

    fn is_denied(&self, kind: AccessKind, path: &VPath, links: &ProtectedLinks) -> bool {
        self.rules
            .decide_with_links(kind, path.as_str(), links)
            .kind()
            == VerdictKind::Deny
    }

    /// Whether something found below a directory may be seen: by its name, by where that lies, and
    /// by what it leads to.
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
        // One that leads nowhere hides nothing.
        let end = if entry.link {
            self.inner.resolve(path).await.ok()
        } else {
            None
        };
        end.is_none_or(|end| !self.is_denied(AccessKind::Read, &end, links))
    }

    /// Where a directory that may be read really is, and what its links protect.
    async fn open_directory(&self, path: &VPath) -> Result<(VPath, ProtectedLinks), VfsError> {
        self.require_content(AccessKind::Read, path).await?;
        let PathAliases { target: end, .. } = path_aliases(&*self.inner, path).await?;
        let end = end.map_err(|error| with_path(path, Some(error)))?;
        Ok((end, self.read_links().await))
    }

    /// Where a path leads, for those who may read it; and who may only write must be able to say
    /// where to.
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
        // What is hidden must not use up the limit, so more is asked for until enough is seen.
        loop {
            let wanted = limit
                .saturating_add(1)
                .saturating_sub(entries.len())
                .max(WALK_PAGE);
            let walk = self.inner.walk(path, after.as_ref(), wanted).await?;
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
            self.require_content(AccessKind::Read, path).await?;
            self.inner.stat(path).await
        })
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(async move {
            let (real, links) = self.open_directory(path).await?;
            let mut seen = Vec::new();
            for entry in self.inner.list(path).await? {
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
            self.require_content(AccessKind::Read, path).await?;
            self.inner.read(path, range).await
        })
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(async move {
            self.require_content(AccessKind::Read, path).await?;
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
            self.require_content(AccessKind::Write, path).await?;
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
                // What arrives may be readable where it could not be read before.
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
            self.require_content(AccessKind::Write, path).await?;
            self.inner.mkdir(path).await
        })
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require_content(AccessKind::Write, path).await?;
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

/// An error about `path`, whichever path it was about.
fn with_path(path: &VPath, error: Option<VfsError>) -> VfsError {
    let path = path.clone();
    match error {
        None => VfsError::NotFound(path),
        // A link whose target is no path here leads nowhere; its text is not for everyone.
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
