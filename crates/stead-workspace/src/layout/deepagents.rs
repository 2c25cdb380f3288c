//! Deep Agents: `AGENTS.md` files that are remembered, and folders of skills.

use super::{Draft, Layout, LoadCx, stead};
use crate::{ContextFile, Shown, Tree};
use stead_vfs::{Protected, VPath};

/// The tag around every memory file.
const TAG: &str = "agent_memory";

/// Reads stead's own `agent.yaml`, if it is there: a folder of Deep Agents has no settings of its own.
pub(super) async fn load<'a>(cx: &'a LoadCx<'a>) -> Draft<'a> {
    let mut draft = Draft::new(Layout::Deepagents, tree(), cx);
    draft.dotenv(".env").await;
    stead::settings(&mut draft, "agent.yaml").await;
    stead::add_given(&mut draft).await;
    stead::refuse_agent(&mut draft);
    // Files that were given are memory like the others.
    for file in &mut draft.tree.context {
        TAG.clone_into(&mut file.tag);
        file.shown = Shown::WithoutComments;
    }
    draft
}

fn tree() -> Tree {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    Tree {
        context: ["AGENTS.md", ".deepagents/AGENTS.md"].map(|file| ContextFile::new(path(file), TAG)).to_vec(),
        memory: None,
        days: None,
        knowledge: None,
        skills: [".deepagents/skills", ".agents/skills", "skills"].map(path).to_vec(),
        flavor: crate::skills::Flavor::Standard,
        subagents: None,
        tools: Some(path("tools.json")),
        runtime: path(".stead"),
        usage: None,
        conversations: None,
        tasks: None,
        home: None,
        protected: Protected::DEEPAGENTS,
    }
}
