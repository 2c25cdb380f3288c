//! Part of `Routes`: reading through mounts, and the directories that exist because of them.
//!
//! Effects: workspace files (reads).

use super::{Route, Routes};
use crate::{DirEntry, FileKind, Stat, VPath, Version, VfsError, Walk, walk};
use std::collections::BTreeMap;

impl Routes {
    /// Returns the file system that holds the file at `path`. Fails if something is mounted there
    /// or below.
    pub(super) fn file_route(&self, path: &VPath) -> Result<Route<'_>, VfsError> {
        if self.is_fixed(path) {
            Err(VfsError::IsDirectory(path.clone()))
        } else {
            self.route(path)
        }
    }

    pub(super) async fn stat_routed(&self, path: &VPath) -> Result<Stat, VfsError> {
        let route = self.route(path)?;
        let found = route
            .vfs
            .stat(&route.inner_path)
            .await
            .map_err(|e| route.map_error(e));
        match found {
            Ok(stat) if stat.kind != FileKind::Directory && self.is_fixed(path) => {
                Ok(mount_parent_stat())
            }
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) if self.is_fixed(path) => {
                Ok(mount_parent_stat())
            }
            found => found,
        }
    }

    pub(super) async fn list_routed(&self, path: &VPath) -> Result<Vec<DirEntry>, VfsError> {
        let route = self.route(path)?;
        let listed = match route
            .vfs
            .list(&route.inner_path)
            .await
            .map_err(|e| route.map_error(e))
        {
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) if self.is_fixed(path) => {
                Vec::new()
            }
            listed => listed?,
        };
        let mut entries: BTreeMap<String, DirEntry> = listed
            .into_iter()
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        let start = path.parts().count();
        for name in self
            .mounts_below(path)
            .filter_map(|(at, _)| at.parts().nth(start))
        {
            let is_directory = |entry: &DirEntry| entry.kind == FileKind::Directory && !entry.link;
            if !entries.get(name).is_some_and(is_directory) {
                entries.insert(name.to_owned(), mount_entry(name));
            }
        }
        Ok(entries.into_values().collect())
    }

    pub(super) async fn walk_routed(
        &self,
        path: &VPath,
        after: Option<&VPath>,
        limit: usize,
    ) -> Result<Walk, VfsError> {
        let route = self.route(path)?;
        // If only one file system is concerned, it walks itself. `after` is passed on only if it is
        // in it.
        let own_after = match after {
            None => Some(None),
            Some(after) if route.at.contains(after) && *after != route.at => {
                Some(Some(self.resolve_inner(&route, after)?))
            }
            Some(_) => None,
        };
        match own_after {
            Some(own_after) if self.mounts_below(path).next().is_none() => {
                let walk = route
                    .vfs
                    .walk(&route.inner_path, own_after.as_ref(), limit)
                    .await
                    .map_err(|e| route.map_error(e))?;
                let entries = walk
                    .entries
                    .into_iter()
                    .map(|(own, entry)| (route.to_full(&own), entry))
                    .collect();
                Ok(Walk { entries, ..walk })
            }
            Some(_) | None => walk::walk_by_listing(self, path, after, limit).await,
        }
    }

    fn resolve_inner(&self, route: &Route<'_>, path: &VPath) -> Result<VPath, VfsError> {
        Ok(VPath::parse(
            path.as_str()
                .strip_prefix(route.at.as_str())
                .unwrap_or_default(),
        )?)
    }
}

/// Returns the metadata of a directory that exists only because something is mounted below it.
fn mount_parent_stat() -> Stat {
    let version = Version("mount".into());
    Stat {
        kind: FileKind::Directory,
        size: 0,
        modified_ms: 0,
        version,
        mode: None,
        hash: None,
    }
}

fn mount_entry(name: &str) -> DirEntry {
    DirEntry {
        name: name.to_owned(),
        kind: FileKind::Directory,
        size: 0,
        modified_ms: 0,
        link: false,
        mode: None,
        hash: None,
    }
}
