//! The positions of sections in the prompt. Sections that change rarely come first, so that the
//! start of a request stays the same from turn to turn and can be cached.
//!
//! Effects: none.

/// The description of the harness.
pub const BASE: u16 = 100;
/// The one-line description of the agent's purpose.
pub const PURPOSE: u16 = 110;
/// The agent's own prompt.
pub const PERSONA: u16 = 120;
/// Instructions for using knowledge.
pub const DOMAIN_KNOWLEDGE: u16 = 200;
/// Instructions for recalling memories.
pub const MEMORY_RECALL: u16 = 210;
/// Instructions for saving memories.
pub const MEMORY_PERSISTENCE: u16 = 220;
/// The description of the workspace's files.
pub const WORKSPACE: u16 = 230;
/// The description of the place where commands run.
pub const COMMANDS: u16 = 240;
/// Instructions for the todo list.
pub const TODOS: u16 = 250;
/// Instructions for plan mode.
pub const PLAN_MODE: u16 = 260;
/// Files shown whole; the files of the persona come first.
pub const CONTEXT: u16 = 300;
/// Curated memory.
pub const MEMORY: u16 = 400;
/// Knowledge: the main file, and a list of the others.
pub const KNOWLEDGE: u16 = 500;
/// Further files shown whole.
pub const MORE_CONTEXT: u16 = 600;
/// Skills.
pub const SKILLS: u16 = 700;
/// Actions of a workspace.
pub const ACTIONS: u16 = 720;
/// Agents to switch to.
pub const SWITCHES: u16 = 740;
/// Agents to delegate to.
pub const SUBAGENTS: u16 = 760;
/// Notes that the agent keeps itself.
pub const NOTES: u16 = 800;
/// The first position of sections that change from turn to turn.
pub const VOLATILE: u16 = 900;
/// The date, the system and the session.
pub const SESSION: u16 = 900;
/// The prompt suffix of the model's profile.
pub const SUFFIX: u16 = 950;
