//! `switch_agent`: another agent goes on with the conversation.

use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{Access, Change, Effect, Risk};
use stead_tools::{Output, TitleForm, ToolCx, ToolError, TypedTool, typed};

/// Switches to one of those that the agent that acts may switch to.
#[derive(Clone)]
pub(super) struct SwitchAgent {
    /// The agents it may switch to.
    pub(super) targets: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchArgs {
    /// The agent to switch to.
    to: String,
}

impl TypedTool for SwitchAgent {
    type Args = SwitchArgs;
    const NAME: &'static str = "switch_agent";
    const ALIASES: &'static [&'static str] = &["AgentSwitch", "agent.switch"];
    const DESCRIPTION: &'static str = "Switch to another agent, which goes on with this conversation: from the next step \
        on, with its own instructions, model and tools.";
    const RISK: Risk = Risk {
        effect: Effect::Reads,
        parallel_safe: false,
        repeatable: true,
    };

    fn accesses(&self, _: &SwitchArgs) -> Vec<Access> {
        Vec::new()
    }

    fn titled(&self) -> Option<TitleForm> {
        Some(TitleForm::of::<super::title::AgentSwitch>(typed(
            self.clone(),
        )))
    }

    async fn call(&self, _: &ToolCx, args: SwitchArgs) -> Result<Output, ToolError> {
        if !self.targets.contains(&args.to) {
            let known = self.targets.join(", ");
            return Err(ToolError::Tell(format!(
                "this agent may not switch to {:?}; it may to: {known}",
                args.to
            )));
        }
        Ok(Output::text(format!("switched_to: {}", args.to))
            .changing(Change::Agent { to: args.to }))
    }
}
