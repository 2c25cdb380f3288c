//! The title forms `SubAgent` and `AgentSwitch`: delegation tools with the names of OpenHarness.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stead_core::ArgumentAliases;
use stead_tools::TypedTitleForm;

/// The form of `task` with the names of OpenHarness.
pub(super) struct SubAgentTitle;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubAgentTitleArgs {
    /// What the task is about, in a few words.
    description: String,
    /// The whole task: the agent sees nothing else of this conversation.
    prompt: String,
    /// Which agent does it; may be left out if there is only one.
    #[serde(default)]
    subagent_name: Option<String>,
    /// An earlier task: its agent goes on, whoever else is named.
    #[serde(default)]
    task_id: Option<String>,
    /// Do not wait for it.
    #[serde(default)]
    run_in_background: Option<bool>,
}

impl TypedTitleForm for SubAgentTitle {
    type Args = SubAgentTitleArgs;
    const DESCRIPTION: &'static str = "Hands a task to another agent, which works on it in a conversation of its own and \
        reports back. Several calls at once work side by side.";
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases::of_names(&[
        ("subagent_type", "subagent_name"),
        ("agent", "subagent_name"),
    ]);

    fn to_canonical(args: SubAgentTitleArgs) -> Value {
        json!({
            "agent": args.subagent_name, "description": args.description, "prompt": args.prompt,
            "task_id": args.task_id, "background": args.run_in_background,
        })
    }
}

/// The form of `switch_agent` with the names of OpenHarness.
pub(super) struct AgentSwitchTitle;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentSwitchTitleArgs {
    /// The agent to switch to.
    to: String,
}

impl TypedTitleForm for AgentSwitchTitle {
    type Args = AgentSwitchTitleArgs;
    const DESCRIPTION: &'static str =
        "Switches to another agent, which goes on with this conversation.";

    fn to_canonical(args: AgentSwitchTitleArgs) -> Value {
        json!({"to": args.to})
    }
}
