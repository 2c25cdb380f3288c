//! The place for tests of the agent loop against scripted and fake models; one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/agent_switching.rs"]
mod agent_switching;
#[path = "all/approval_answers.rs"]
mod approval_answers;
#[path = "all/approval_crashes.rs"]
mod approval_crashes;
#[path = "all/broken_model_streams.rs"]
mod broken_model_streams;
#[path = "all/budgets.rs"]
mod budgets;
#[path = "all/coding_session.rs"]
mod coding_session;
#[path = "all/command_conditions.rs"]
mod command_conditions;
#[path = "all/compaction.rs"]
mod compaction;
#[path = "all/concurrent_appends.rs"]
mod concurrent_appends;
#[path = "all/conversation_archives.rs"]
mod conversation_archives;
#[path = "all/crash_scenario.rs"]
mod crash_scenario;
#[path = "all/crashes.rs"]
mod crashes;
#[path = "all/disk_faults.rs"]
mod disk_faults;
#[path = "all/execute.rs"]
mod execute;
#[path = "all/gate_entry_points/mod.rs"]
mod gate_entry_points;
#[path = "all/hooks/mod.rs"]
mod hooks;
#[path = "all/kill_points.rs"]
mod kill_points;
#[path = "all/lookup.rs"]
mod lookup;
#[path = "all/malicious_model.rs"]
mod malicious_model;
#[path = "all/manuals.rs"]
mod manuals;
#[path = "all/many_sessions.rs"]
mod many_sessions;
#[path = "all/memory/mod.rs"]
mod memory;
#[path = "all/nested_calls/mod.rs"]
mod nested_calls;
#[path = "all/offload.rs"]
mod offload;
#[path = "all/offload_crashes.rs"]
mod offload_crashes;
#[path = "all/parked_calls.rs"]
mod parked_calls;
#[path = "all/path_escapes.rs"]
mod path_escapes;
#[path = "all/permission_oracle.rs"]
mod permission_oracle;
#[path = "all/permissions.rs"]
mod permissions;
#[path = "all/plan_mode.rs"]
mod plan_mode;
#[path = "all/plan_mode_bypasses.rs"]
mod plan_mode_bypasses;
#[path = "all/profiles/mod.rs"]
mod profiles;
#[path = "all/prompt_cache_prefix.rs"]
mod prompt_cache_prefix;
#[path = "all/run_limits.rs"]
mod run_limits;
#[path = "all/shell_rule_bypasses.rs"]
mod shell_rule_bypasses;
#[path = "all/skills.rs"]
mod skills;
#[path = "all/steering.rs"]
mod steering;
#[path = "all/subagents.rs"]
mod subagents;
#[path = "all/subagents_plan_mode.rs"]
mod subagents_plan_mode;
#[path = "all/support.rs"]
mod support;
#[path = "all/taint.rs"]
mod taint;
#[path = "all/tenant_fixtures.rs"]
mod tenant_fixtures;
#[path = "all/tenants.rs"]
mod tenants;
#[path = "all/todos_plans_and_modes.rs"]
mod todos_plans_and_modes;
#[path = "all/tool_search.rs"]
mod tool_search;
#[path = "all/tool_titles.rs"]
mod tool_titles;
#[path = "all/turn_setup.rs"]
mod turn_setup;
#[path = "all/unbounded_output.rs"]
mod unbounded_output;
#[path = "all/undo.rs"]
mod undo;
