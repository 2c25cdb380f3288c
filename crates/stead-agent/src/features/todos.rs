//! The list of things to do.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead_tools::{Tool, todo_tools};
use stead_workspace::{Section, WorkspaceError, section_order};

/// The list of things to do.
#[derive(Debug)]
pub(super) struct TodosFeature;

impl Feature for TodosFeature {
    fn name(&self) -> &'static str {
        "todos"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        todo_tools()
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            if !cx.has_tool("write_todos") {
                return Ok(Contribution::default());
            }
            let tool = cx.name_of("write_todos");
            let text = format!(
                "## Things to do\nFor work of three steps or more, keep a list with `{tool}`: write it before you \
                 begin, mark one step as in progress when you start it and as completed as soon as it is done. For \
                 less, do without."
            );
            Ok(vec![Section::new(
                "todos",
                self.name(),
                section_order::TODOS,
                text,
            )]
            .into())
        })
    }
}
