//! Composing the turn setup: system prompt, tools and request parameters, from the files as they
//! are now.
//!
//! Effects: the clock, the environment, workspace files (reads), the local disk (reads).

use crate::agent::unknown_tool;
use crate::features::{Contribution, Feature, TurnCx, user_folder};
use crate::{Agent, AgentError, Session};
use futures_util::future::try_join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::ToolSpec;
use stead_model::Params;
use stead_store::FencingToken;
use stead_tools::builtin::{EXECUTE, TOOL_SEARCH, USE_TOOL};
use stead_tools::{FolderResolver, Registry, Tool};
use stead_vfs::{VPath, Vfs};
use stead_workspace::{
    FeatureSwitch, Prompt, ResolvedProfile, Section, Surface, ToolLists, UnknownTools,
    section_order,
};

/// Models with smaller context windows are shown few tools, unless a profile says otherwise.
const SMALL_WINDOW_TOKENS: u64 = 16_384;

/// The system prompt, tools and request parameters of one turn.
#[derive(Debug)]
pub struct TurnSetup {
    /// The system prompt.
    pub prompt: Prompt,
    /// The tools that the model can call.
    pub tools: Registry,
    /// The profile of the model.
    pub profile: ResolvedProfile,
    /// The parameters of each request.
    pub(crate) params: Params,
    /// The setups of fallback models, by name, where their profile differs.
    pub(crate) fallback_setups: Vec<(String, TurnSetup)>,
}

impl TurnSetup {
    /// Composes the setup of the next turn of `session`. Files that did not change since the last
    /// turn are not read again.
    pub(crate) async fn compose(
        session: &Session,
        fence: Option<&FencingToken>,
    ) -> Result<Self, AgentError> {
        let agent = &**session.agent();
        let workspace = agent.workspace();
        let place = agent.place();
        let owner = session.owner();
        let unguarded = session.files(fence);
        let files = workspace.prompt_files(&unguarded);
        let lists = tool_lists(agent, &*files).await?;
        let names = tool_names(agent);
        // Profiles are read without the file rules: a rule that hides them from the agent must not
        // switch them off.
        let profiles = workspace
            .profiles(&*unguarded, |name| agent.tools.find(name).is_some())
            .await?;
        let profile_of = |model: &str| ResolvedProfile::new(profiles.iter().cloned(), model);
        let profile = profile_of(agent.model().name());
        let cx = TurnCx {
            workspace,
            profile: &profile,
            surface: surface(agent, &profile),
            planning: session.state().is_planning(),
            files: &files,
            unguarded_files: &unguarded,
            owner,
            subagents: Some(session.subagents()),
            user_folder: user_folder(&workspace.definition, owner, &*files).await,
            session: session.id(),
            agent: workspace.config().agent_id(),
            working_folder: &agent.parts.working_folder,
            sessions: place.sessions(owner),
            index: place.index(owner),
            place: (place.kind(), place.describe()),
            folders: folder_resolver(session),
            project: place.project_access(),
            lists: &lists,
            tool_names: &names,
            small_window: match session.window() {
                Some(window) => window < SMALL_WINDOW_TOKENS,
                None => false,
            },
            date: today(workspace.config().timezone.as_deref()),
        };
        let mut turn = Self::for_profile(agent, &cx).await?;
        for model in agent.model().facts().names() {
            let other = profile_of(model);
            if other != profile {
                let cx = TurnCx {
                    profile: &other,
                    surface: surface(agent, &other),
                    ..cx.clone()
                };
                turn.fallback_setups
                    .push((model.to_owned(), Self::for_profile(agent, &cx).await?));
            }
        }
        Ok(turn)
    }

    /// Composes the setup for the model whose profile `cx` has.
    async fn for_profile(agent: &Agent, cx: &TurnCx<'_>) -> Result<Self, AgentError> {
        let contributed =
            try_join_all(agent.features.iter().map(|feature| feature.contribute(cx))).await?;
        let mut sections = Vec::new();
        let mut tools = Vec::new();
        for (feature, contribution) in agent.features.iter().zip(contributed) {
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
        let tools = agent.tools.with(tools)?;
        let tools = tools
            .excluding(&excluded_tools(&tools, cx))
            .retain_specs(|spec| cx.allows(&spec.name, spec.kind));
        let tools = tools
            .with_surface(cx.surface)
            .with_descriptions(&profile.profile.descriptions)
            .showing(cx.shown_tools(), &|name| cx.names_tool(name));
        let params = profile.profile.params(&agent.parts.params);
        Ok(Self {
            prompt: Prompt::new(sections),
            tools,
            profile: profile.clone(),
            params,
            fallback_setups: Vec::new(),
        })
    }

    /// Returns the tools as they were shown to the model that gave the last answer.
    pub(crate) fn tools_shown_to(self, answered: Option<&str>) -> Registry {
        let other = self
            .fallback_setups
            .into_iter()
            .find(|(name, _)| answered == Some(name.as_str()));
        other.map_or(self.tools, |(_, turn)| turn.tools)
    }
}

/// Returns today's date in `timezone`, or in the time zone of the machine if there is none.
fn today(timezone: Option<&str>) -> String {
    let now = jiff::Zoned::now();
    let there = timezone
        .and_then(|zone| now.in_tz(zone).ok())
        .unwrap_or(now);
    there.strftime("%Y-%m-%d").to_string()
}

/// Returns the tools that the model's profile excludes, and commands where there is no folder to run
/// them in, by canonical name, with the reason. Tools that are not registered are included.
fn excluded_tools(tools: &Registry, cx: &TurnCx<'_>) -> BTreeMap<String, String> {
    let profile = cx.profile;
    let specs = tools.specs();
    // Names that are not in the table may be tools that the program added.
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
    let commands = without_folder(tools, cx);
    let commands = commands.map(|why| (EXECUTE.name.to_owned(), why.to_owned()));
    elsewhere
        .chain(specs.iter().filter_map(of_spec))
        .chain(commands)
        .collect()
}

/// Returns why commands are missing, if it is because the files are in no folder of this machine.
fn without_folder(tools: &Registry, cx: &TurnCx<'_>) -> Option<&'static str> {
    let is_off = cx
        .definition()
        .config
        .disable
        .contains(FeatureSwitch::Shell);
    let is_there =
        (cx.folders)(&VPath::root()).is_some() || tools.canonical(EXECUTE.name).is_some();
    (!is_off && !is_there).then_some(
        "commands run in a folder of this machine, and the files of this session are in none: they are in a \
         store, or laid over the shared files for a user",
    )
}

/// Whether a feature said that it may contribute the tool.
fn is_offered(feature: &dyn Feature, tool: &dyn Tool) -> bool {
    let name = &tool.spec().name;
    feature.offers().iter().any(|known| known.name == name)
}

/// Returns all lists that narrow the tools: those of the settings, and that of `tools.json`.
async fn tool_lists(agent: &Agent, files: &dyn Vfs) -> Result<Vec<ToolLists>, AgentError> {
    let workspace = agent.workspace();
    let listed = workspace.tools_config(files).await?.lists;
    let named = listed.allow.iter().flatten().chain(&listed.deny);
    // Lists of other harnesses may name tools that only those have. In our own layout, a
    // misspelt name in a deny list would leave the tool available.
    if workspace.definition.layout.def().unknown_tools == UnknownTools::Refused
        && let Some(name) = unknown_tool(named, &agent.tools)
    {
        return Err(AgentError::NoSuchTool {
            setting: "tools.json",
            name,
        });
    }
    let settings = workspace.definition.tools.iter().cloned();
    Ok(settings.chain([listed]).collect())
}

/// Returns the canonical names of all tools that a turn may have.
fn tool_names(agent: &Agent) -> Vec<String> {
    let of_turns = agent
        .features
        .iter()
        .flat_map(|feature| feature.offers())
        .map(|tool| tool.name.to_owned());
    let specs = agent.tools.specs();
    let always = specs.iter().map(|spec| spec.name.clone());
    let of_registry = [TOOL_SEARCH, USE_TOOL].map(|tool| tool.name.to_owned());
    always.chain(of_turns).chain(of_registry).collect()
}

/// The surface for a model with this profile.
fn surface(agent: &Agent, profile: &ResolvedProfile) -> Surface {
    let definition = &agent.workspace().definition;
    profile.surface(
        definition.config.surface,
        definition.layout,
        definition.surface,
    )
}

/// Resolves folders of a session to directories of this machine.
fn folder_resolver(session: &Session) -> FolderResolver {
    let place = session.agent().place().clone();
    let owner = session.owner().clone();
    let session = session.id().clone();
    Arc::new(move |path| place.local_dir(&owner, &session, path))
}
