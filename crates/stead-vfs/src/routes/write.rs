//! Part of `Routes`: writing through mounts, and moving between them.
//!
//! Effects: workspace files (writes).

use super::Routes;
use crate::copy::{self, CopyEndpoint};
use crate::{Expect, VPath, Version, Vfs, VfsError, rebase};
use bytes::Bytes;

impl Routes {
    pub(super) async fn write_routed(
        &self,
        path: &VPath,
        data: Bytes,
        expect: Expect,
    ) -> Result<Version, VfsError> {
        if self.is_fixed(path) && !path.is_root() {
            // A mount point is a directory like any other.
            return Err(match expect {
                Expect::Any => VfsError::IsDirectory(path.clone()),
                Expect::Absent => VfsError::Exists(path.clone()),
                Expect::Version(_) => VfsError::Changed(path.clone()),
            });
        }
        let route = self.route(path)?;
        route
            .vfs
            .write(&route.inner_path, data, expect)
            .await
            .map_err(|e| route.map_error(e))
    }

    pub(super) async fn mkdir_routed(&self, path: &VPath) -> Result<(), VfsError> {
        if self.is_fixed(path) {
            return Ok(());
        }
        let route = self.route(path)?;
        route
            .vfs
            .mkdir(&route.inner_path)
            .await
            .map_err(|e| route.map_error(e))
    }

    pub(super) async fn remove_routed(&self, path: &VPath) -> Result<(), VfsError> {
        if self.is_fixed(path) {
            return Err(VfsError::Denied(path.clone()));
        }
        let route = self.route(path)?;
        route
            .vfs
            .remove(&route.inner_path)
            .await
            .map_err(|e| route.map_error(e))
    }

    pub(super) async fn rename_routed(&self, from: &VPath, to: &VPath) -> Result<(), VfsError> {
        if from.is_root() || self.is_fixed(from) {
            return Err(VfsError::Denied(from.clone()));
        }
        let source = self.route(from)?;
        let target = self.route(to)?;
        if source.at == target.at && !self.is_fixed(to) {
            let renamed = source
                .vfs
                .rename(&source.inner_path, &target.inner_path)
                .await;
            return renamed.map_err(|e| source.map_error(e));
        }
        self.stat(from).await?;
        if from.contains(to) {
            return Err(rebase::into_itself(from));
        }
        if to.is_root() {
            return Err(VfsError::Denied(to.clone()));
        }
        match self.stat(to).await {
            Ok(_) => return Err(VfsError::Exists(to.clone())),
            Err(VfsError::NotFound(_)) => {}
            Err(other) => return Err(other),
        }
        copy::copy_tree(
            CopyEndpoint {
                vfs: self,
                path: from,
            },
            CopyEndpoint {
                vfs: self,
                path: to,
            },
        )
        .await?;
        self.remove_routed(from).await
    }
}
