//! What `stead init --layout openharness` writes.

use super::ScaffoldFile;

/// The files of a new workspace of the openharness layout.
pub(super) fn scaffold_openharness() -> Vec<ScaffoldFile> {
    let file = |path, content| ScaffoldFile { path, content };
    vec![
        file("AGENTS.md", include_str!("openharness/AGENTS.md")),
        file(
            ".openharness/settings.yaml",
            include_str!("openharness/settings.yaml"),
        ),
        file(
            ".openharness/models/models.yaml",
            include_str!("openharness/models.yaml"),
        ),
        file(
            ".openharness/agents/plan.md",
            include_str!("openharness/agents/plan.md"),
        ),
        file(
            ".openharness/agents/build.md",
            include_str!("openharness/agents/build.md"),
        ),
        file(
            ".openharness/agents/reviewer.md",
            include_str!("openharness/agents/reviewer.md"),
        ),
        file(".gitignore", include_str!("openharness/gitignore")),
    ]
}
