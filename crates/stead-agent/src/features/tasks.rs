//! The tasks feature: tools for the task list of the workspace, which sessions share.
//!
//! Effects: none.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_tools::{ToolIdentity, builtin, task_tools};
use stead_workspace::WorkspaceError;

/// The tools of the task list.
#[derive(Debug)]
pub(super) struct TasksFeature;

impl Feature for TasksFeature {
    fn name(&self) -> &'static str {
        "tasks"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        builtin::TASK_TOOLS
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let timezone = cx.definition().config.timezone.as_deref();
            let tools = cx
                .definition()
                .paths
                .tasks
                .as_ref()
                .map(|file| task_tools(file, timezone));
            Ok(tools.unwrap_or_default().into())
        })
    }
}
