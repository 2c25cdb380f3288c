//! A call that is ready to be judged and executed.
//!
//! Effects: tools.

use crate::{CallPlan, Output, PlanView, SessionView, Surface, Tool, ToolCx, ToolError};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use stead_core::ToolSpec;
use stead_vfs::Vfs;

/// A call with its tool, its arguments as the schema wants them, and its plan.
///
/// [`Registry::prepare`](crate::Registry::prepare) makes it, once per call. Everything that follows
/// uses it: the gate, the question to a person, and the execution.
pub struct PreparedCall {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) args: Value,
    pub(crate) plan: CallPlan,
    pub(crate) surface: Surface,
}

impl PreparedCall {
    /// Creates a call that will be refused because the tool is filtered out. Its arguments were not
    /// checked, so its plan names only the command it would run, if there is one.
    pub(crate) fn of_filtered_out(tool: Arc<dyn Tool>, args: Value) -> Self {
        let plan = tool.plan(args.clone()).unwrap_or_default();
        Self {
            tool,
            args,
            plan: plan.without_accesses(),
            surface: Surface::Snake,
        }
    }

    /// Returns what the tool is.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Returns the arguments, as the schema wants them.
    pub fn args(&self) -> &Value {
        &self.args
    }

    /// Returns what the call would do.
    pub fn plan(&self) -> &CallPlan {
        &self.plan
    }

    /// Returns what the lazy parts of the plan may look at.
    pub fn view<'a>(&self, files: &'a dyn Vfs, session: &'a SessionView) -> PlanView<'a> {
        PlanView {
            files,
            session,
            surface: self.surface,
        }
    }

    /// Carries the call out.
    pub async fn call(self, cx: ToolCx) -> Result<Output, ToolError> {
        let cx = ToolCx {
            surface: self.surface,
            ..cx
        };
        self.tool.call(&cx, self.plan).await
    }
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedCall")
            .field("tool", &self.spec().name)
            .field("args", &self.args)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
