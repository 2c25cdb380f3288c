//! What `stead init` writes.

mod openharness;
mod other_layouts;

use crate::Layout;
use openharness::scaffold_openharness;
use other_layouts::{scaffold_agentscope_py, scaffold_deepagents, scaffold_openpaw};

/// A file of a new workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaffoldFile {
    /// Where.
    pub path: &'static str,
    /// What.
    pub content: &'static str,
}

/// The files of a new workspace of this layout.
pub fn scaffold(layout: Layout) -> Vec<ScaffoldFile> {
    match layout {
        Layout::Stead | Layout::Agentscope => vec![
            ScaffoldFile {
                path: "AGENTS.md",
                content: include_str!("scaffold/AGENTS.md"),
            },
            ScaffoldFile {
                path: "agent.yaml",
                content: include_str!("scaffold/agent.yaml"),
            },
            ScaffoldFile {
                path: ".gitignore",
                content: include_str!("scaffold/gitignore"),
            },
        ],
        Layout::Openharness => scaffold_openharness(),
        Layout::Openpaw => scaffold_openpaw().into(),
        Layout::Deepagents => scaffold_deepagents().into(),
        Layout::AgentscopePy => scaffold_agentscope_py().into(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_settings_we_write_are_settings_we_accept() {
        for file in super::scaffold(crate::Layout::Stead)
            .iter()
            .filter(|file| file.path == "agent.yaml")
        {
            crate::AgentConfig::parse(file.content, &|_| None).unwrap();
            // With every comment taken off, too: what we suggest must work.
            let on: Vec<String> = file
                .content
                .lines()
                .map(|l| l.strip_prefix("#- ").unwrap_or(l).to_owned())
                .collect();
            crate::AgentConfig::parse(&on.join("\n"), &|_| Some("x".into())).unwrap();
        }
    }
}
