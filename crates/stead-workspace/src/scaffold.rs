//! The files of a new workspace.

use crate::Layout;

/// A file of a new workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaffoldFile {
    /// The path from the root of the workspace.
    pub path: &'static str,
    /// The text.
    pub content: &'static str,
}

/// Returns the files of a new workspace of this layout.
pub fn scaffold(layout: Layout) -> Vec<ScaffoldFile> {
    layout.def().scaffold.to_vec()
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
            // The suggested settings must be valid, too, when their comment signs are removed.
            let on: Vec<String> = file
                .content
                .lines()
                .map(|l| l.strip_prefix("#- ").unwrap_or(l).to_owned())
                .collect();
            crate::AgentConfig::parse(&on.join("\n"), &|_| Some("x".into())).unwrap();
        }
    }
}
