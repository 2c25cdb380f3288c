//! Tools that whoever runs the agent carries out.

use crate::{Executor, Output, Tool, ToolCx, ToolError};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use stead_core::{PathAccess, ToolSpec};

/// A tool that never runs here: each call waits, and its result is what someone answers.
///
/// The gate judges it like any other by `spec.risk`.
///
/// ```
/// use serde_json::json;
/// use std::sync::Arc;
/// use stead_core::{Risk, ToolSpec};
/// use stead_tools::{Hands, client_tool};
///
/// let tool = client_tool(ToolSpec {
///     name: "pick_colour".into(),
///     aliases: Vec::new(),
///     description: "Lets the person pick a colour.".into(),
///     parameters: Arc::new(json!({"type": "object", "properties": {"title": {"type": "string"}}})),
///     risk: Risk::READS,
/// });
/// assert_eq!(tool.hands(), Hands::Client);
/// ```
pub fn client_tool(spec: ToolSpec) -> Arc<dyn Tool> {
    Arc::new(ClientExecutedTool { spec })
}

struct ClientExecutedTool {
    spec: ToolSpec,
}

impl Tool for ClientExecutedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn accesses(&self, _: &Value) -> Vec<PathAccess> {
        Vec::new()
    }

    fn executor(&self) -> Executor {
        Executor::Client
    }

    fn call<'a>(&'a self, _: &'a ToolCx, _: Value) -> BoxFuture<'a, Result<Output, ToolError>> {
        let text = format!(
            "{} is carried out by whoever runs the agent; it cannot be called here",
            self.spec.name
        );
        Box::pin(async move { Err(ToolError::RespondToModel(text)) })
    }
}
