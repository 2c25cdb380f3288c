//! The todos feature: the tool for the todo list of a session, and when to use it.
//!
//! Effects: none.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_tools::{ToolIdentity, builtin, todo_tools};
use stead_workspace::{Section, WorkspaceError, section_order};

/// The tool and the section of the todo list.
#[derive(Debug)]
pub(super) struct TodosFeature;

impl Feature for TodosFeature {
    fn name(&self) -> &'static str {
        "todos"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        &[builtin::WRITE_TODOS]
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let tools = todo_tools();
            if !cx.has_tool(&builtin::WRITE_TODOS) {
                return Ok(tools.into());
            }
            let tool = cx.name_of(&builtin::WRITE_TODOS);
            let text = format!(
                "## Things to do\nFor work of three steps or more, keep a list with `{tool}`: write it before you begin, and \
                 mark each step when you start it and as soon as it is done."
            );
            let section = Section::new("todos", self.name(), section_order::TODOS, text);
            Ok(Contribution {
                sections: vec![section],
                tools,
            })
        })
    }
}
