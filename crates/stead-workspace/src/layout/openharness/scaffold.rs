//! The files of a new workspace of the openharness layout.
//!
//! Effects: none.

use crate::ScaffoldFile;

/// The files of a new workspace.
pub(super) const SCAFFOLD: [ScaffoldFile; 7] = [
    ScaffoldFile {
        path: "AGENTS.md",
        content: include_str!("../../scaffold/openharness/AGENTS.md"),
    },
    ScaffoldFile {
        path: ".openharness/settings.yaml",
        content: include_str!("../../scaffold/openharness/settings.yaml"),
    },
    ScaffoldFile {
        path: ".openharness/models/models.yaml",
        content: include_str!("../../scaffold/openharness/models.yaml"),
    },
    ScaffoldFile {
        path: ".openharness/agents/plan.md",
        content: include_str!("../../scaffold/openharness/agents/plan.md"),
    },
    ScaffoldFile {
        path: ".openharness/agents/build.md",
        content: include_str!("../../scaffold/openharness/agents/build.md"),
    },
    ScaffoldFile {
        path: ".openharness/agents/reviewer.md",
        content: include_str!("../../scaffold/openharness/agents/reviewer.md"),
    },
    ScaffoldFile {
        path: ".gitignore",
        content: include_str!("../../scaffold/openharness/gitignore"),
    },
];
