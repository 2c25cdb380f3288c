//! The place for tests of scaffolded workspaces pass their own check.

use super::{failing, open, tree};
use stead_workspace::{Layout, OpenOptions, scaffold};

#[tokio::test]
async fn a_new_workspace_is_of_its_layout_and_passes_the_check() {
    for layout in [
        Layout::Openpaw,
        Layout::Deepagents,
        Layout::AgentscopePy,
        Layout::DeepagentsDeploy,
    ] {
        let files = scaffold(layout);
        for comments in ["on", "off"] {
            // With the comments taken off, too: what we suggest must work.
            let text = |content: &str| match comments {
                "on" => content.to_owned(),
                _ => content
                    .lines()
                    .map(|line| line.strip_prefix("#- ").unwrap_or(line))
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            let texts: Vec<(&str, String)> = files
                .iter()
                .map(|file| (file.path, text(file.content)))
                .collect();
            let mut texts: Vec<(&str, &str)> = texts
                .iter()
                .map(|(path, text)| (*path, text.as_str()))
                .collect();
            texts.retain(|(path, _)| *path != "config/.env");
            texts.push(("config/.env", "ANTHROPIC_API_KEY=k"));
            let texts = if layout == Layout::Openpaw {
                &texts[..]
            } else {
                &texts[..texts.len() - 1]
            };
            let definition = open(&tree(texts), &OpenOptions::default()).await.unwrap();
            assert_eq!(
                (definition.layout, failing(&definition)),
                (layout, Vec::new()),
                "comments {comments}"
            );
        }
    }
}
