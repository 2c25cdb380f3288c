//! The place for tests of the `stead` command line through the real binary; one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cli/approvals.rs"]
mod approvals;
#[path = "cli/closed_pipes.rs"]
mod closed_pipes;
#[path = "cli/compaction.rs"]
mod compaction;
#[path = "cli/damage.rs"]
mod damage;
#[path = "cli/execute.rs"]
mod execute;
#[path = "cli/folder_trust.rs"]
mod folder_trust;
#[path = "cli/foreign_promises.rs"]
mod foreign_promises;
#[path = "cli/hostile_folders.rs"]
mod hostile_folders;
#[path = "cli/hostile_sessions.rs"]
mod hostile_sessions;
#[path = "cli/layouts.rs"]
mod layouts;
#[path = "cli/list.rs"]
mod list;
#[path = "cli/logging.rs"]
mod logging;
#[path = "cli/malformed_workspaces.rs"]
mod malformed_workspaces;
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/model_wires.rs"]
mod model_wires;
#[path = "cli/nested_calls.rs"]
mod nested_calls;
#[path = "cli/offload.rs"]
mod offload;
#[path = "cli/output_schema.rs"]
mod output_schema;
#[path = "cli/personal_settings.rs"]
mod personal_settings;
#[path = "cli/places.rs"]
mod places;
#[path = "cli/plan_mode.rs"]
mod plan_mode;
#[path = "cli/profiles.rs"]
mod profiles;
#[path = "cli/projects.rs"]
mod projects;
#[path = "cli/request_weight.rs"]
mod request_weight;
#[path = "cli/run_output.rs"]
mod run_output;
#[path = "cli/screens.rs"]
mod screens;
#[path = "cli/searches.rs"]
mod searches;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/session_locks.rs"]
mod session_locks;
#[path = "cli/session_model.rs"]
mod session_model;
#[path = "cli/sessions.rs"]
mod sessions;
#[path = "cli/shipped_workspaces.rs"]
mod shipped_workspaces;
#[path = "cli/skills.rs"]
mod skills;
#[path = "cli/subagent_crashes.rs"]
mod subagent_crashes;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/terminal_output.rs"]
mod terminal_output;
#[path = "cli/usage.rs"]
mod usage;
#[path = "cli/workspace.rs"]
mod workspace;
