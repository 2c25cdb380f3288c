//! The files of a new workspace of any layout.
//!
//! Effects: none.

use crate::Layout;

/// A file of a new workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaffoldFile {
    /// The path from the root of the workspace.
    pub path: &'static str,
    /// The text.
    pub content: &'static str,
}

/// What a person chooses for a new workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScaffoldChoices {
    /// The model, as `provider:model`.
    pub model: Option<String>,
    /// The kind of the channel, such as `telegram`.
    pub channel: Option<String>,
}

/// Returns the text of the file at a path with the choices put in, or why they cannot be used. Files
/// without place for them are returned as they are.
pub type ConfigureScaffold = fn(&ScaffoldChoices, ScaffoldFile) -> Result<String, String>;

/// Returns the files of a new workspace of this layout.
pub fn scaffold(layout: Layout) -> Vec<ScaffoldFile> {
    layout.def().scaffold.to_vec()
}

/// Returns the paths and texts of a new workspace with the choices put in, or why they cannot be
/// used.
pub fn configured_scaffold(
    layout: Layout,
    choices: &ScaffoldChoices,
) -> Result<Vec<(&'static str, String)>, String> {
    let def = layout.def();
    let text = |file: ScaffoldFile| match def.configure_scaffold {
        Some(configure) => configure(choices, file),
        None if *choices == ScaffoldChoices::default() => Ok(file.content.to_owned()),
        None => Err(format!(
            "a new {layout} workspace has no settings for a model or a channel"
        )),
    };
    let files = def.scaffold.iter();
    files.map(|file| Ok((file.path, text(*file)?))).collect()
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
