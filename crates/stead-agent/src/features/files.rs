//! The file tools.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead_tools::{Tool, file_tools};
use stead_workspace::WorkspaceError;

/// The file tools.
#[derive(Debug)]
pub(super) struct FilesFeature;

impl Feature for FilesFeature {
    fn name(&self) -> &'static str {
        "files"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        file_tools()
    }

    fn contribute<'a>(
        &'a self,
        _: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async { Ok(Contribution::default()) })
    }
}
