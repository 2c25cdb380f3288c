//! The tool `switch_agent`: another agent continues the conversation.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{Risk, SessionChange, ToolEffect};
use stead_tools::{CallPlan, Output, ToolCx, ToolDef, ToolError, TypedTool, builtin};

/// Switches to another agent of the workspace.
pub(super) struct SwitchAgentTool {
    /// The agents that can be switched to.
    pub(super) targets: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchAgentArgs {
    /// The agent to switch to.
    to: String,
}

impl TypedTool for SwitchAgentTool {
    type Args = SwitchAgentArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::SWITCH_AGENT,
        Risk {
            effect: ToolEffect::Reads,
            parallel_safe: false,
            repeatable: true,
        },
        "Switch to another agent, which goes on with this conversation: from the next step \
        on, with its own instructions, model and tools.",
    )
    .title_form::<super::title::AgentSwitchTitle>();

    fn plan(&self, args: &SwitchAgentArgs) -> CallPlan {
        // A grant is limited to this agent.
        CallPlan::default().with_named_paths([args.to.clone()])
    }

    async fn call(&self, _: &ToolCx, args: SwitchAgentArgs) -> Result<Output, ToolError> {
        if !self.targets.contains(&args.to) {
            let known = self.targets.join(", ");
            return Err(ToolError::RespondToModel(format!(
                "this agent may not switch to {:?}; it may to: {known}",
                args.to
            )));
        }
        Ok(Output::text(format!("switched_to: {}", args.to))
            .with_change(SessionChange::Agent { to: args.to }))
    }
}
