//! Tasks that outlive conversations.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_tools::task_tools;
use stead_workspace::WorkspaceError;

/// Tasks that outlive conversations.
#[derive(Debug)]
pub(super) struct TasksFeature;

impl Feature for TasksFeature {
    fn name(&self) -> &'static str {
        "tasks"
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
            Ok(Contribution {
                tools: tools.unwrap_or_default(),
                ..Contribution::default()
            })
        })
    }
}
