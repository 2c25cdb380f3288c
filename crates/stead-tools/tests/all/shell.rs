//! Command lines: what they run, what the rules say, and the tricks that must not get past them.

#[path = "shell/bash.rs"]
mod bash;
#[path = "shell/rules.rs"]
mod judging;
#[path = "shell/tricks.rs"]
mod tricks;

use stead_tools::shell::CommandRules;

fn rules(json: &str) -> CommandRules {
    serde_json::from_str(json).unwrap()
}
