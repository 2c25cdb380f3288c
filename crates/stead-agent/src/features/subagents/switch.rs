//! `switch_agent`: another agent goes on with the conversation.

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{PathAccess, Risk, SessionChange, ToolEffect};
use stead_tools::{Output, TitleForm, ToolCx, ToolError, TypedTool, typed_tool};

/// Switches to one of those that the agent that acts may switch to.
#[derive(Clone)]
pub(super) struct SwitchAgentTool {
    /// The agents it may switch to.
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
    const NAME: &'static str = "switch_agent";
    const ALIASES: &'static [&'static str] = &["AgentSwitch", "agent.switch"];
    const DESCRIPTION: &'static str = "Switch to another agent, which goes on with this conversation: from the next step \
        on, with its own instructions, model and tools.";
    const RISK: Risk = Risk {
        effect: ToolEffect::Reads,
        parallel_safe: false,
        repeatable: true,
    };

    fn accesses(&self, _: &SwitchAgentArgs) -> Vec<PathAccess> {
        Vec::new()
    }

    fn title_form(&self) -> Option<TitleForm> {
        Some(TitleForm::of::<super::title::AgentSwitchTitle>(typed_tool(
            self.clone(),
        )))
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
