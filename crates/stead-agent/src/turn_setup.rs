//! What a turn begins with: the prompt and the tools, as the files say now.

use crate::agent::unknown_tool;
use crate::features::{Contribution, Feature, TurnCx, user_folder};
use crate::{Agent, AgentError, Subagents};
use futures_util::future::try_join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{Owner, SessionId, ToolSpec};
use stead_model::Params;
use stead_tools::{FolderResolver, Registry, Tool};
use stead_vfs::Vfs;
use stead_workspace::{
    Prompt, ResolvedProfile, Section, Surface, ToolLists, UnknownTools, section_order,
};

/// The prompt and the tools of one turn.
#[derive(Debug)]
pub struct TurnSetup {
    /// What the model is told.
    pub prompt: Prompt,
    /// What it can call.
    pub tools: Registry,
    /// The profiles of the model.
    pub profile: ResolvedProfile,
    /// Settings of each request.
    pub(crate) params: Params,
    /// The same for others who may answer in the model's place, by their names, where their
    /// profiles differ.
    pub(crate) fallback_setups: Vec<(String, TurnSetup)>,
}

impl TurnSetup {
    /// The tools as whoever gave the newest answer was shown them.
    pub(crate) fn tools_shown_to(self, answered: Option<&str>) -> Registry {
        let other = self
            .fallback_setups
            .into_iter()
            .find(|(name, _)| answered == Some(name.as_str()));
        other.map_or(self.tools, |(_, turn)| turn.tools)
    }
}

/// The date in a time zone, or where the machine is.
fn today(timezone: Option<&str>) -> String {
    let now = jiff::Zoned::now();
    let there = timezone
        .and_then(|zone| now.in_tz(zone).ok())
        .unwrap_or(now);
    there.strftime("%Y-%m-%d").to_string()
}

/// Tools that the model's profiles exclude, by canonical name, whether they are there or not; and
/// why.
fn excluded_tools(tools: &Registry, cx: &TurnCx<'_>) -> BTreeMap<String, String> {
    let profile = cx.profile;
    let specs = tools.specs();
    // Names that are not in the table may be those of tools that the program gives.
    let of_spec = |spec: &ToolSpec| {
        let aliases = spec
            .aliases
            .iter()
            .filter(|alias| tools.canonical(alias) == Some(spec.name.as_str()));
        let why = std::iter::once(&spec.name)
            .chain(aliases)
            .find_map(|name| profile.exclusion_reason(name));
        Some((spec.name.clone(), why?))
    };
    let of_name = |name: &String| Some((name.clone(), profile.exclusion_reason(name)?));
    let elsewhere = cx
        .tool_names
        .iter()
        .chain(&profile.profile.exclude)
        .filter_map(of_name);
    elsewhere.chain(specs.iter().filter_map(of_spec)).collect()
}

/// Whether a feature said that it may contribute the tool.
fn is_offered(feature: &dyn Feature, tool: &dyn Tool) -> bool {
    let name = &tool.spec().name;
    feature.offers().iter().any(|known| known.name == name)
}

impl Agent {
    /// What a turn of `session` begins with. Files that did not change since the last turn are not
    /// read again.
    pub(crate) async fn turn_setup(
        &self,
        owner: &Owner,
        session: &SessionId,
        files: &Arc<dyn Vfs>,
        crew: Option<&Arc<Subagents>>,
        planning: bool,
    ) -> Result<TurnSetup, AgentError> {
        let workspace = &self.parts.workspace;
        let place = &self.parts.place;
        let bare = files;
        let files = &workspace.prompt_files(files);
        let own = user_folder(owner, &**files).await;
        let listed = workspace.tools_config(&**files).await?.lists;
        // Another harness may have tools of its own that its lists name; a typo in ours would leave
        // a tool in.
        if workspace.definition.layout.def().unknown_tools == UnknownTools::Refused
            && let Some(name) = unknown_tool(
                listed.allow.iter().flatten().chain(&listed.deny),
                &self.tools,
            )
        {
            return Err(AgentError::NoSuchTool {
                setting: "tools.json",
                name,
            });
        }
        let lists: Vec<ToolLists> = workspace
            .definition
            .tools
            .iter()
            .cloned()
            .chain([listed])
            .collect();
        let brought = self
            .features
            .iter()
            .flat_map(|feature| feature.offers())
            .map(|tool| tool.name.to_owned());
        let names = self
            .tools
            .specs()
            .iter()
            .map(|spec| spec.name.clone())
            .chain(brought)
            .collect::<Vec<_>>();
        // A rule that hides them from the agent must not undo them, so they are read as they lie.
        let profiles = workspace
            .profile_cache(&**bare, |name| self.tools.find(name).is_some())
            .await?;
        let profile_of = |model: &str| ResolvedProfile::new(profiles.iter().cloned(), model);
        let profile = profile_of(self.parts.model.name());
        let cx = TurnCx {
            workspace,
            profile: &profile,
            surface: self.surface(&profile),
            planning,
            files,
            unguarded_files: bare,
            owner,
            subagents: crew,
            user_folder: own,
            session,
            agent: workspace.config().agent_id(),
            working_folder: &self.parts.working_folder,
            sessions: place.sessions(owner),
            index: place.index(owner),
            place: (place.kind(), place.describe()),
            folders: self.folder_resolver(owner, session),
            project: place.project_access(),
            lists: &lists,
            tool_names: &names,
            date: today(workspace.config().timezone.as_deref()),
        };
        let mut turn = self.compose(&cx).await?;
        for model in self.parts.model.facts().names() {
            let other = profile_of(model);
            if other != profile {
                let cx = TurnCx {
                    profile: &other,
                    surface: self.surface(&other),
                    ..cx.clone()
                };
                turn.fallback_setups
                    .push((model.to_owned(), self.compose(&cx).await?));
            }
        }
        Ok(turn)
    }

    /// The turn as one model's profiles have it.
    async fn compose(&self, cx: &TurnCx<'_>) -> Result<TurnSetup, AgentError> {
        let contributed =
            try_join_all(self.features.iter().map(|feature| feature.contribute(cx))).await?;
        let mut sections = Vec::new();
        let mut tools = Vec::new();
        for (feature, contribution) in self.features.iter().zip(contributed) {
            let Contribution {
                sections: more,
                tools: added,
            } = contribution;
            debug_assert!(
                added.iter().all(|tool| is_offered(&**feature, &**tool)),
                "{feature:?} contributes a tool that it does not offer"
            );
            sections.extend(more);
            tools.extend(added);
        }
        let profile = cx.profile;
        if let Some(text) = &profile.profile.prompt_suffix {
            let section = Section::new(
                "profile",
                "profile",
                section_order::SUFFIX,
                text.trim().to_owned(),
            );
            sections.push(section.with_source(profile.suffix_source()));
        }
        let tools = self.tools.with(tools)?;
        let tools = tools
            .excluding(&excluded_tools(&tools, cx))
            .retain_specs(|spec| cx.allows(&spec.name, spec.kind));
        let tools = tools
            .with_surface(cx.surface)
            .with_descriptions(&profile.profile.descriptions);
        let params = profile.profile.params(&self.parts.params);
        Ok(TurnSetup {
            prompt: Prompt::new(sections),
            tools,
            profile: profile.clone(),
            params,
            fallback_setups: Vec::new(),
        })
    }

    /// How tools are named to a model with these profiles.
    fn surface(&self, profile: &ResolvedProfile) -> Surface {
        let definition = &self.parts.workspace.definition;
        profile.surface(
            definition.config.surface,
            definition.layout,
            definition.surface,
        )
    }

    /// Where the folders of a session lie on this machine.
    fn folder_resolver(&self, owner: &Owner, session: &SessionId) -> FolderResolver {
        let place = self.parts.place.clone();
        let owner = owner.clone();
        let session = session.clone();
        Arc::new(move |path| place.local_dir(&owner, &session, path))
    }

    /// What a turn of its usual owner would begin with outside any session.
    pub async fn sessionless_turn(self: &Arc<Self>) -> Result<TurnSetup, AgentError> {
        self.sessionless_turn_of(&self.parts.owner).await
    }

    /// What a turn of `owner` would begin with outside any session.
    pub async fn sessionless_turn_of(
        self: &Arc<Self>,
        owner: &Owner,
    ) -> Result<TurnSetup, AgentError> {
        let session = SessionId::sessionless();
        let files = self.parts.place.files(owner, &session, None);
        let crew = Arc::new(Subagents::new(self.clone(), owner.clone(), session.clone()));
        self.turn_setup(owner, &session, &files, Some(&crew), false)
            .await
    }
}
