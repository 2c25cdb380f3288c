//! What `stead init --layout` writes for the layouts of OpenPaw, Deep Agents and AgentScope's
//! Python workspaces.

use crate::ScaffoldFile;

macro_rules! files {
    ($($path:literal = $from:literal),* $(,)?) => {
        [$(ScaffoldFile { path: $path, content: include_str!($from) }),*]
    };
}

/// The files of a new OpenPaw workspace.
pub(crate) fn scaffold_openpaw() -> [ScaffoldFile; 9] {
    files![
        "agent/AGENT.md" = "openpaw/AGENT.md",
        "agent/SOUL.md" = "openpaw/SOUL.md",
        "agent/USER.md" = "openpaw/USER.md",
        "agent/HEARTBEAT.md" = "openpaw/HEARTBEAT.md",
        "agent/skills/writing-style/SKILL.md" = "openpaw/writing-style.md",
        "config/agent.yaml" = "openpaw/agent.yaml",
        "config/.env" = "openpaw/env",
        "config/crons/daily-summary.yaml" = "openpaw/daily-summary.yaml",
        ".gitignore" = "openpaw/gitignore",
    ]
}

/// The files of a new Deep Agents folder.
pub(crate) fn scaffold_deepagents() -> [ScaffoldFile; 3] {
    files![
        ".deepagents/AGENTS.md" = "deepagents/AGENTS.md",
        ".deepagents/skills/note-taking/SKILL.md" = "deepagents/note-taking.md",
        ".gitignore" = "deepagents/gitignore",
    ]
}

/// The files of a new AgentScope-Python work directory.
pub(crate) fn scaffold_agentscope_py() -> [ScaffoldFile; 4] {
    files![
        "AGENTS.md" = "agentscope-py/AGENTS.md",
        ".mcp" = "agentscope-py/mcp.json",
        "skills/.seed/note-taking/SKILL.md" = "deepagents/note-taking.md",
        ".gitignore" = "agentscope-py/gitignore",
    ]
}
