//! Searching behind rules: what may not be read does not exist, neither in the results nor in their
//! number.

use super::judge::stands;
use super::{Guarded, about};
use crate::VPath;
use crate::rules::Decided;
use crate::search::{
    Bounds, GlobQuery, GlobResult, GrepQuery, GrepResult, Search, SearchError, Visible,
};
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{AccessKind, VerdictKind};

/// What a search tells of a file.
#[derive(Debug, Clone, Copy)]
enum Tells {
    Name,
    Content,
}

/// The files that a search left out because reading them asks. By path, for a place may ask twice
/// about one.
type LeftOut = Arc<Mutex<BTreeSet<Box<str>>>>;

impl Guarded {
    /// `bounds` in which only what the search may tell is visible.
    async fn bounded(
        &self,
        root: &VPath,
        bounds: Bounds,
        tells: Tells,
    ) -> Result<(Bounds, LeftOut), SearchError> {
        self.content(AccessKind::Read, root).await?;
        let links = self.read_links().await;
        // Where the root itself asks, somebody was asked, and the answer holds for all that the
        // same rule covers.
        let answered: Vec<usize> = stands(&*self.inner, root)
            .await?
            .paths
            .iter()
            .filter_map(|path| asking(&self.rules.decided(AccessKind::Read, path.as_str(), &links)))
            .collect();
        let rules = self.rules.clone();
        let before = bounds.visible.clone();
        let left_out = LeftOut::default();
        let asked = left_out.clone();
        let is_visible = move |path: &str| {
            let decided = rules.decided(AccessKind::Read, path, &links);
            if !before.allows(path) || decided.kind() == VerdictKind::Deny {
                return false;
            }
            let unanswered = |decided: &Decided<'_>| {
                asking(decided).is_some_and(|rule| !answered.contains(&rule))
            };
            let leaves_out = match tells {
                Tells::Content => unanswered(&decided),
                // A name is told to whoever may list the directory it is in.
                Tells::Name => {
                    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                    unanswered(&rules.decided(AccessKind::Read, directory, &links))
                }
            };
            if leaves_out {
                asked
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(path.into());
            }
            !leaves_out
        };
        Ok((
            Bounds {
                visible: Visible::If(Arc::new(is_visible)),
                ..bounds
            },
            left_out,
        ))
    }

    /// Of the parts that could not be searched, those that may be known.
    async fn tellable(&self, failed: Vec<String>) -> Vec<String> {
        let links = self.read_links().await;
        let part = |text: &str| VPath::parse(text.split(": ").next().unwrap_or(text)).ok();
        failed
            .into_iter()
            .filter(|text| part(text).is_none_or(|p| !self.is_denied(AccessKind::Read, &p, &links)))
            .collect()
    }
}

impl Search for Guarded {
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, SearchError>> {
        Box::pin(async move {
            let root = query.root.clone();
            let (bounds, left_out) = self.bounded(&root, bounds, Tells::Name).await?;
            let found = self
                .inner
                .search()
                .glob(query, bounds)
                .await
                .map_err(|error| named(&root, error))?;
            let failed = self.tellable(found.failed).await;
            let unasked = found.unasked + number(&left_out);
            Ok(GlobResult {
                failed,
                unasked,
                ..found
            })
        })
    }

    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, SearchError>> {
        Box::pin(async move {
            let root = query.root.clone();
            let (bounds, left_out) = self.bounded(&root, bounds, Tells::Content).await?;
            let found = self
                .inner
                .search()
                .grep(query, bounds)
                .await
                .map_err(|error| named(&root, error))?;
            let failed = self.tellable(found.failed).await;
            let unasked = found.unasked + number(&left_out);
            Ok(GrepResult {
                failed,
                unasked,
                ..found
            })
        })
    }
}

/// The rule that asks, if it is one.
fn asking(decided: &Decided<'_>) -> Option<usize> {
    match decided {
        Decided::Rule {
            index,
            mode: VerdictKind::Ask,
            ..
        } => Some(*index),
        Decided::Rule { .. } | Decided::Protected(_) | Decided::Led(_) | Decided::Nothing => None,
    }
}

fn number(left_out: &LeftOut) -> usize {
    left_out
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .len()
}

/// The error with the root as it was asked for: a link's target is not for everyone.
fn named(root: &VPath, error: SearchError) -> SearchError {
    match error {
        SearchError::Vfs(error) => SearchError::Vfs(about(root, Some(error))),
        SearchError::Pattern(_)
        | SearchError::Glob { .. }
        | SearchError::FileType(_)
        | SearchError::Cancelled => error,
    }
}
