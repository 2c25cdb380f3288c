//! What a turn begins with: the prompt and the tools, as the files say now.

use crate::agent::unknown_tool;
use crate::features::{Contribution, TurnCx, own_folder};
use crate::{Agent, AgentError, Crew};
use futures_util::future::try_join_all;
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_tools::{Folders, Registry};
use stead_vfs::Vfs;
use stead_workspace::{Layout, Prompt, ToolLists};

/// The prompt and the tools of one turn.
#[derive(Debug)]
pub struct Turn {
    /// What the model is told.
    pub prompt: Prompt,
    /// What it can call.
    pub tools: Registry,
}

/// The date in a time zone, or where the machine is.
fn today(timezone: Option<&str>) -> String {
    let now = jiff::Zoned::now();
    let there = timezone.and_then(|zone| now.in_tz(zone).ok()).unwrap_or(now);
    there.strftime("%Y-%m-%d").to_string()
}

impl Agent {
    /// What a turn of `session` begins with. Files that did not change since the last turn are not read again.
    pub(crate) async fn turn(
        &self,
        owner: &Owner,
        session: &SessionId,
        files: &Arc<dyn Vfs>,
        crew: Option<&Arc<Crew>>,
    ) -> Result<Turn, AgentError> {
        let (workspace, place) = (&self.parts.workspace, &self.parts.place);
        let (bare, files) = (files, &workspace.shown(files));
        let own = own_folder(owner, &**files).await;
        let listed = workspace.tools_config(&**files).await?.lists;
        // Another harness may have tools of its own that its lists name; a typo in ours would leave a tool in.
        if workspace.definition.layout == Layout::Stead
            && let Some(name) = unknown_tool(listed.allow.iter().flatten().chain(&listed.deny), &self.tools)
        {
            return Err(AgentError::NoSuchTool { setting: "tools.json", name });
        }
        let lists: Vec<ToolLists> = workspace.definition.tools.iter().cloned().chain([listed]).collect();
        let brought = self.features.iter().flat_map(|feature| feature.brings()).map(|name| (*name).to_owned());
        let names = self.tools.specs().iter().map(|spec| spec.name.clone()).chain(brought).collect::<Vec<_>>();
        let cx = TurnCx {
            workspace,
            files,
            bare,
            owner,
            crew,
            own,
            session,
            agent: workspace.config().agent(),
            folder: &self.parts.folder,
            sessions: place.sessions(owner),
            index: place.index(owner),
            place: (place.kind(), place.describe()),
            folders: self.folders(owner, session),
            project: place.project(),
            lists: &lists,
            tool_names: &names,
            date: today(workspace.config().timezone.as_deref()),
        };
        let contributed = try_join_all(self.features.iter().map(|feature| feature.contribute(&cx))).await?;
        let (mut sections, mut tools) = (Vec::new(), Vec::new());
        for Contribution { sections: more, tools: added } in contributed {
            sections.extend(more);
            tools.extend(added);
        }
        let tools = self.tools.with(tools)?.keep(|name| cx.allows_tool(name));
        let tools = tools.with_surface(workspace.definition.surface);
        Ok(Turn { prompt: Prompt::new(sections), tools })
    }

    /// Where the folders of a session lie on this machine.
    fn folders(&self, owner: &Owner, session: &SessionId) -> Folders {
        let (place, owner, session) = (self.parts.place.clone(), owner.clone(), session.clone());
        Arc::new(move |path| place.directory(&owner, &session, path))
    }

    /// What a turn of its usual owner would begin with outside any session.
    pub async fn outside_turn(self: &Arc<Self>) -> Result<Turn, AgentError> {
        self.turn_of(&self.parts.owner).await
    }

    /// What a turn of `owner` would begin with outside any session.
    pub async fn turn_of(self: &Arc<Self>, owner: &Owner) -> Result<Turn, AgentError> {
        let session = SessionId::outside();
        let files = self.parts.place.files(owner, &session, None);
        let crew = Arc::new(Crew::new(self.clone(), owner.clone(), session.clone()));
        self.turn(owner, &session, &files, Some(&crew)).await
    }
}
