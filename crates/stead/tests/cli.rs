//! The first capability's acceptance list, through the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cli/approvals.rs"]
mod approvals;
#[path = "cli/children.rs"]
mod children;
#[path = "cli/context.rs"]
mod context;
#[path = "cli/endings.rs"]
mod endings;
#[path = "cli/execute.rs"]
mod execute;
#[path = "cli/layouts.rs"]
mod layouts;
#[path = "cli/list.rs"]
mod list;
#[path = "cli/malformed.rs"]
mod malformed;
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/offload.rs"]
mod offload;
#[path = "cli/pipes.rs"]
mod pipes;
#[path = "cli/places.rs"]
mod places;
#[path = "cli/planning.rs"]
mod planning;
#[path = "cli/processes.rs"]
mod processes;
#[path = "cli/profiles.rs"]
mod profiles;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/sessions.rs"]
mod sessions;
#[path = "cli/skills.rs"]
mod skills;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/usage.rs"]
mod usage;
#[path = "cli/wires.rs"]
mod wires;
#[path = "cli/workspace.rs"]
mod workspace;
