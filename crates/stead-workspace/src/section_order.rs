//! Where sections stand in the prompt: what changes seldom comes first, so that the beginning of a
//! request stays the same from turn to turn.

/// What the harness says of itself.
pub const BASE: u16 = 100;
/// What the agent is for, in a line.
pub const PURPOSE: u16 = 110;
/// The agent's own prompt.
pub const PERSONA: u16 = 120;
/// How to use knowledge.
pub const DOMAIN_KNOWLEDGE: u16 = 200;
/// How to recall.
pub const MEMORY_RECALL: u16 = 210;
/// How to remember.
pub const MEMORY_PERSISTENCE: u16 = 220;
/// Where files lie.
pub const WORKSPACE: u16 = 230;
/// Where commands run.
pub const COMMANDS: u16 = 240;
/// How to keep the things to do.
pub const TODOS: u16 = 250;
/// When to make a plan first.
pub const PLAN_MODE: u16 = 260;
/// Files shown whole; within it the persona's come first.
pub const CONTEXT: u16 = 300;
/// Curated memory.
pub const MEMORY: u16 = 400;
/// Knowledge: its entry, and a list of the rest.
pub const KNOWLEDGE: u16 = 500;
/// More files shown whole.
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
/// From here on, sections change from turn to turn.
pub const VOLATILE: u16 = 900;
/// Date, system and session.
pub const SESSION: u16 = 900;
/// What the profile of a model says last.
pub const SUFFIX: u16 = 950;
