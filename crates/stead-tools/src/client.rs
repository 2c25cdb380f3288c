//! Tools that the client carries out.
//!
//! Effects: none.

use crate::{CallPlan, Output, PlanError, Tool, ToolCx, ToolError};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use stead_core::{Executor, ToolKind, ToolSpec};

/// Parameters that name a file by convention.
const PATH_PARAMETERS: [&str; 6] = ["file_path", "path", "from", "to", "cwd", "directory"];

/// Returns a tool that never runs here: each call waits, and its result is what the client answers.
///
/// The gate judges it like any other tool by `spec.risk`.
///
/// ```
/// use serde_json::json;
/// use stead_core::{Executor, Risk, ToolSpec};
/// use stead_tools::client_tool;
///
/// let spec = ToolSpec::new("pick_colour", "Lets the person pick a colour.", Risk::READS)
///     .with_parameters(json!({"type": "object", "properties": {"title": {"type": "string"}}}));
/// assert_eq!(client_tool(spec).spec().executor, Executor::Client);
/// ```
pub fn client_tool(spec: ToolSpec) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        executor: Executor::Client,
        kind: ToolKind::Client,
        ..spec
    };
    Arc::new(ClientExecutedTool { spec })
}

struct ClientExecutedTool {
    spec: ToolSpec,
}

impl Tool for ClientExecutedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn plan(&self, args: Value) -> Result<CallPlan, PlanError> {
        Ok(CallPlan::default().with_named_paths(conventional_paths(&args)))
    }

    fn call<'a>(&'a self, _: &'a ToolCx, _: CallPlan) -> BoxFuture<'a, Result<Output, ToolError>> {
        let text = format!(
            "{} is carried out by whoever runs the agent; it cannot be called here",
            self.spec.name
        );
        Box::pin(async move { Err(ToolError::RespondToModel(text)) })
    }
}

/// Returns the paths in the arguments of a tool that does not say itself which files it touches.
pub(crate) fn conventional_paths(args: &Value) -> Vec<String> {
    let path = |name: &&str| args.get(*name)?.as_str().map(str::to_owned);
    PATH_PARAMETERS.iter().filter_map(path).collect()
}
