//! Part of `Guarded`: searching behind rules. Denied files do not appear in the results or in
//! their number.
//!
//! Effects: workspace files (reads).

use super::judge::{TouchedPath, path_aliases};
use super::{Guarded, with_path};
use crate::VPath;
use crate::rules::RuleDecision;
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search, UnsearchedPart,
    Visible,
};
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{AccessKind, VerdictKind};

/// What a search reveals about a file.
#[derive(Debug, Clone, Copy)]
enum SearchReveals {
    Name,
    Content,
}

/// The files that a search left out because reading them needs an approval. A set, because a file
/// system may ask twice about one file.
type OmittedFiles = Arc<Mutex<BTreeSet<Box<str>>>>;

impl Guarded {
    /// Returns `bounds` in which only files are visible that the search may reveal.
    async fn restrict_bounds(
        &self,
        root: &VPath,
        bounds: Bounds,
        reveals: SearchReveals,
    ) -> Result<(Bounds, OmittedFiles), FileSearchError> {
        self.require(&[TouchedPath::content(AccessKind::Read, root)])
            .await?;
        let links = self.read_links().await;
        // If the root itself needs an approval, the person was asked, and the answer applies to
        // everything that the same rule covers.
        let answered: Vec<usize> = path_aliases(&*self.inner, root)
            .await?
            .paths
            .iter()
            .filter_map(|path| {
                asking_rule(
                    &self
                        .rules
                        .decide_with_links(AccessKind::Read, path.as_str(), &links),
                )
            })
            .collect();
        let rules = self.rules.clone();
        let before = bounds.visible.clone();
        let left_out = OmittedFiles::default();
        let asked = left_out.clone();
        let is_visible = move |path: &str| {
            let decided = rules.decide_with_links(AccessKind::Read, path, &links);
            if !before.allows(path) || decided.kind() == VerdictKind::Deny {
                return false;
            }
            let unanswered = |decided: &RuleDecision<'_>| {
                asking_rule(decided).is_some_and(|rule| !answered.contains(&rule))
            };
            let leaves_out = match reveals {
                SearchReveals::Content => unanswered(&decided),
                // A caller who may list a directory may see the names in it.
                SearchReveals::Name => {
                    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                    unanswered(&rules.decide_with_links(AccessKind::Read, directory, &links))
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

    /// Returns those parts that could not be searched and may be shown.
    async fn visible_failures(&self, failed: Vec<UnsearchedPart>) -> Vec<UnsearchedPart> {
        let links = self.read_links().await;
        failed
            .into_iter()
            .filter(|part| !self.is_denied(AccessKind::Read, &part.path, &links))
            .collect()
    }
}

impl Search for Guarded {
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>> {
        Box::pin(async move {
            let root = query.root.clone();
            let (bounds, left_out) = self
                .restrict_bounds(&root, bounds, SearchReveals::Name)
                .await?;
            let found = self
                .listed
                .search()
                .glob(query, bounds)
                .await
                .map_err(|error| with_root(&root, error))?;
            let failed = self.visible_failures(found.failed).await;
            let needs_approval = found.needs_approval + omitted_count(&left_out);
            Ok(GlobResult {
                failed,
                needs_approval,
                ..found
            })
        })
    }

    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>> {
        Box::pin(async move {
            let root = query.root.clone();
            let (bounds, left_out) = self
                .restrict_bounds(&root, bounds, SearchReveals::Content)
                .await?;
            let found = self
                .listed
                .search()
                .grep(query, bounds)
                .await
                .map_err(|error| with_root(&root, error))?;
            let failed = self.visible_failures(found.failed).await;
            let needs_approval = found.needs_approval + omitted_count(&left_out);
            Ok(GrepResult {
                failed,
                needs_approval,
                ..found
            })
        })
    }
}

/// Returns the rule, if its decision is to ask.
fn asking_rule(decided: &RuleDecision<'_>) -> Option<usize> {
    match decided {
        RuleDecision::Rule {
            index,
            mode: VerdictKind::Ask,
            ..
        } => Some(*index),
        RuleDecision::Rule { .. }
        | RuleDecision::Protected(_)
        | RuleDecision::LinkTarget(_)
        | RuleDecision::NoRule => None,
    }
}

fn omitted_count(left_out: &OmittedFiles) -> usize {
    left_out
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .len()
}

/// Returns the error with the requested root, because a link's target must not be shown.
fn with_root(root: &VPath, error: FileSearchError) -> FileSearchError {
    match error {
        FileSearchError::Vfs(error) => FileSearchError::Vfs(with_path(root, Some(error))),
        FileSearchError::Pattern(_)
        | FileSearchError::Glob { .. }
        | FileSearchError::FileType(_)
        | FileSearchError::Cancelled => error,
    }
}
