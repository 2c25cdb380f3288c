//! The place for tests of the shell parser and the command rules; one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/bash_oracle.rs"]
mod bash_oracle;
#[path = "all/rule_bypasses.rs"]
mod rule_bypasses;
#[path = "all/rules.rs"]
mod rules_table;

use stead_shell::CommandRules;

fn rules(json: &str) -> CommandRules {
    serde_json::from_str(json).unwrap()
}
