//! The files of a new workspace.

use crate::ScaffoldFile;

/// The files of a new workspace.
pub(super) const SCAFFOLD: [ScaffoldFile; 9] = [
    ScaffoldFile {
        path: "agent/AGENT.md",
        content: include_str!("../../scaffold/openpaw/AGENT.md"),
    },
    ScaffoldFile {
        path: "agent/SOUL.md",
        content: include_str!("../../scaffold/openpaw/SOUL.md"),
    },
    ScaffoldFile {
        path: "agent/USER.md",
        content: include_str!("../../scaffold/openpaw/USER.md"),
    },
    ScaffoldFile {
        path: "agent/HEARTBEAT.md",
        content: include_str!("../../scaffold/openpaw/HEARTBEAT.md"),
    },
    ScaffoldFile {
        path: "agent/skills/writing-style/SKILL.md",
        content: include_str!("../../scaffold/openpaw/writing-style.md"),
    },
    ScaffoldFile {
        path: "config/agent.yaml",
        content: include_str!("../../scaffold/openpaw/agent.yaml"),
    },
    ScaffoldFile {
        path: "config/.env",
        content: include_str!("../../scaffold/openpaw/env"),
    },
    ScaffoldFile {
        path: "config/crons/daily-summary.yaml",
        content: include_str!("../../scaffold/openpaw/daily-summary.yaml"),
    },
    ScaffoldFile {
        path: ".gitignore",
        content: include_str!("../../scaffold/openpaw/gitignore"),
    },
];
