//! The files feature: it offers the file tools.
//!
//! Effects: none.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_tools::{ToolIdentity, builtin, file_tools};
use stead_workspace::WorkspaceError;

/// The feature with the file tools.
#[derive(Debug)]
pub(super) struct FilesFeature;

impl Feature for FilesFeature {
    fn name(&self) -> &'static str {
        "files"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        builtin::FILE_TOOLS
    }

    fn contribute<'a>(
        &'a self,
        _: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async { Ok(file_tools().into()) })
    }
}
