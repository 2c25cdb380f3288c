//! The shell feature: the `execute` tool, and the section of the prompt about commands.
//!
//! Effects: none.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead_sandbox::Sandbox;
use stead_tools::builtin::EXECUTE;
use stead_tools::{ToolIdentity, execute_tool};
use stead_vfs::VPath;
use stead_workspace::{Section, WorkspaceError, section_order};

/// The feature for commands. It is active if the workspace is a folder of this machine.
#[derive(Debug)]
pub(super) struct ShellFeature {
    /// The sandbox of the commands.
    pub(super) sandbox: Arc<dyn Sandbox>,
}

impl Feature for ShellFeature {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        &[EXECUTE]
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            if !cx.allows_tool(&EXECUTE) || (cx.folders)(&VPath::root()).is_none() {
                return Ok(Contribution::default());
            }
            let seconds = cx.definition().config.policy.tool_timeout_seconds;
            let tool = execute_tool(self.sandbox.clone(), cx.folders.clone(), seconds);
            let section = Section::new(
                "commands",
                self.name(),
                section_order::COMMANDS,
                self.text(cx, seconds),
            );
            Ok(Contribution {
                sections: vec![section],
                tools: vec![tool],
            })
        })
    }
}

impl ShellFeature {
    /// Returns the text about commands.
    fn text(&self, cx: &TurnCx<'_>, seconds: u64) -> String {
        let tool = cx.name_of(&EXECUTE);
        let place = self.sandbox.describe();
        // The gate allows commands without a rule only behind all walls.
        let asks = match self.sandbox.isolation().is_complete() {
            true => "",
            false => {
                " Unless a rule allows it, a command waits for the person's yes: ask for few and clear ones."
            }
        };
        format!(
            "## Commands\nCommands of `{tool}` run {place}, in the folder of the workspace, without input and without the \
             harness's keys.{asks} After {seconds} s, or its own `timeout`, a command is stopped with all that it \
             started; use a server in the command that starts it."
        )
    }
}
