//! The place for tests of the shell parser and the command rules; one module per subject.

#[path = "shell/bash_oracle.rs"]
mod bash_oracle;
#[path = "shell/rule_bypasses.rs"]
mod rule_bypasses;
#[path = "shell/rules.rs"]
mod rules_table;

use stead_tools::shell::CommandRules;

fn rules(json: &str) -> CommandRules {
    serde_json::from_str(json).unwrap()
}
