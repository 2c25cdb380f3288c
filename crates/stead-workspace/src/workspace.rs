//! A folder opened as a workspace.

use crate::layout::{SettingsText, detect_layout, load, parse_subagent};
use crate::profile::{ParsedProfile, built_in_profiles};
use crate::{
    AgentConfig, AgentRole, AgentSpec, Definition, EmptyAllow, FeatureSwitch, Finding, Layout,
    LoadCx, OpenOptions, ProfileLayer, ReadWindow, TextReader, ToolsConfig, offload_folder,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{Hint, VerdictKind};
use stead_place::{DefaultDir, PlaceSettings, SessionPersistence, SurroundingProject};
use stead_search::Embed;
use stead_skills::{SkillFlavor, SkillLayer, SkillLibrary, SkillOrigin, SourceError};
use stead_vfs::{FileKind, Guarded, Protected, Rule, RuleError, Rules, VPath, Vfs, VfsError};

/// A workspace: its files, and what they say the agent is.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The files it was opened from: everything for a local place, a template for a shared one.
    pub files: Arc<dyn Vfs>,
    /// What they say the agent is.
    pub definition: Definition,
    /// Reads what is needed for every turn.
    pub reader: Arc<TextReader>,
    /// Reads skills.
    pub library: Arc<SkillLibrary>,
    /// The person's own folder, which has skills for all workspaces.
    pub home: Option<Arc<dyn Vfs>>,
    /// Where this machine keeps what is derived from places that are not folders.
    pub cache: Option<PathBuf>,
    /// What tells the meaning of texts to searches, where the settings name it.
    pub embedder: Option<Arc<dyn Embed>>,
    spec_cache: Arc<SpecCache>,
    built_in: Arc<[ProfileLayer]>,
    profiles: Arc<ProfileCache>,
    /// What the agent may read and write, compiled from its `permissions:`.
    pub rules: Arc<Rules>,
    /// The same for what the prompt shows: nobody is asked there, so what asks is left out.
    unattended_rules: Arc<Rules>,
}

/// Definitions of subagents, by the text they were read from: each is parsed once.
type SpecCache = Mutex<HashMap<VPath, (Arc<str>, Option<Arc<AgentSpec>>)>>;

/// Profiles, by the text they were read from: each is parsed once.
type ProfileCache = Mutex<HashMap<VPath, (Arc<str>, Result<Arc<ParsedProfile>, Vec<Finding>>)>>;

/// Largest definition of a subagent, and largest `tools.json`.
const MAX_READ_BYTES: u64 = 1024 * 1024;
/// Most profiles.
const MAX_PROFILES: usize = 100;
/// Most definitions of subagents in a folder.
const MAX_SUBAGENTS: usize = 1000;

/// Where the standard says that a project keeps skills for agents of every make.
const STANDARD_SKILLS: &str = ".agents/skills";
/// Where skills for all workspaces lie in a person's own folder.
const GLOBAL_SKILLS: [&str; 2] = [".stead/skills", STANDARD_SKILLS];

/// Values of variables in `tools.json`, to be kept out of journals. What is wrong with the file is
/// told by a turn.
async fn secrets_of_tools(
    files: &Arc<dyn Vfs>,
    definition: &Definition,
    lookup: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Vec<String> {
    let Some(path) = &definition.paths.tools else {
        return Vec::new();
    };
    let window = ReadWindow::Whole {
        limit: MAX_READ_BYTES,
    };
    let Ok(Some(read)) = TextReader::default().read(&**files, path, window).await else {
        return Vec::new();
    };
    let own = &definition.config.variables;
    let known = |name: &str| own.get(name).cloned().or_else(|| lookup(name));
    let parsed = ToolsConfig::parse(path.as_str(), &read.text, EmptyAllow::Nothing, &known);
    parsed.map(|(config, _)| config.secrets).unwrap_or_default()
}

/// The rule where nobody can be asked.
fn without_asking(rule: Rule) -> Rule {
    let mode = match rule.mode {
        VerdictKind::Ask => VerdictKind::Deny,
        mode @ (VerdictKind::Allow | VerdictKind::Deny) => mode,
    };
    Rule { mode, ..rule }
}

/// Why a folder is not a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Its settings are wrong.
    #[error("{}", lines(.0))]
    Invalid(Vec<Finding>),
    /// Its file rules are wrong.
    #[error("agent.yaml: {0}")]
    Rules(#[from] RuleError),
    /// A file cannot be read.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// Installed skills cannot be read.
    #[error(transparent)]
    Skills(#[from] SourceError),
}

impl WorkspaceError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Skills(error) => error.hint(),
            Self::Invalid(_) | Self::Rules(_) | Self::Files(_) => None,
        }
    }
}

fn lines(findings: &[Finding]) -> String {
    findings
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The agents of a workspace that work can be handed to.
#[derive(Debug, Clone, Default)]
pub struct SubagentSpecs {
    /// By name.
    pub specs: BTreeMap<String, Arc<AgentSpec>>,
    /// Names whose definition cannot be read; `stead check` tells why.
    pub broken: BTreeSet<String>,
}

impl Workspace {
    /// Opens the workspace in `files`, taking variables from `lookup`.
    pub async fn open(
        files: Arc<dyn Vfs>,
        options: &OpenOptions,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<Self, WorkspaceError> {
        let layout = match options.layout {
            Some(layout) => layout,
            None => detect_layout(&*files).await,
        };
        let cx = LoadCx {
            files: &files,
            variables: lookup,
            options,
        };
        let mut definition = load(layout, &cx).await.map_err(WorkspaceError::Invalid)?;
        definition
            .config
            .secrets
            .extend(secrets_of_tools(&files, &definition, lookup).await);
        let own = definition.config.variables.clone();
        let known = |name: &str| own.get(name).cloned().or_else(|| lookup(name));
        let meaning = definition
            .config
            .search
            .embedder(&known)
            .map(|meaning| Arc::new(meaning) as Arc<dyn Embed>);
        let key = definition
            .config
            .search
            .embedding
            .as_ref()
            .and_then(|settings| settings.api_key.clone());
        definition.config.secrets.extend(key);
        let permissions = &definition.config.permissions;
        let rules = Arc::new(Rules::new(permissions, definition.paths.protected)?);
        let unasked: Vec<Rule> = permissions.iter().cloned().map(without_asking).collect();
        let unasked = Arc::new(Rules::new(&unasked, definition.paths.protected)?);
        let secrets = Arc::new(Rules::new(&[], Protected::NONE)?);
        let home = options
            .home
            .clone()
            .map(|home| Arc::new(Guarded::hiding_denied(home, secrets)) as Arc<dyn Vfs>);
        Ok(Self {
            files,
            definition,
            rules,
            reader: Arc::default(),
            library: Arc::default(),
            home,
            cache: options.cache.clone(),
            embedder: meaning,
            unattended_rules: unasked,
            spec_cache: Arc::default(),
            built_in: built_in_profiles().into(),
            profiles: Arc::default(),
        })
    }

    /// The same workspace as one of its agents finds it.
    pub fn for_agent(&self, spec: &AgentSpec, part: AgentRole) -> Self {
        Self {
            definition: self.definition.for_agent(spec, part),
            ..self.clone()
        }
    }

    /// `files` as the prompt shows them: what may not be read, or only after asking, is not there.
    pub fn prompt_files(&self, files: &Arc<dyn Vfs>) -> Arc<dyn Vfs> {
        Arc::new(Guarded::with_cached_links(
            files.clone(),
            self.unattended_rules.clone(),
        ))
    }

    /// Returns the settings of the place where the workspace in the folder `dir` keeps its tree and
    /// its sessions.
    pub fn place_settings(&self, dir: &Path) -> PlaceSettings {
        let config = self.config();
        let paths = &self.definition.paths;
        let agent = config.agent_id();
        let ephemeral = config.disable.contains(FeatureSwitch::SessionPersistence);
        PlaceSettings {
            dir: dir.to_owned(),
            filesystem: config.filesystem.clone(),
            session_store: config.sessions.url.clone(),
            template: self.files.clone(),
            private_paths: Layout::private_paths(),
            runtime: paths.runtime.clone(),
            default_dir: paths.default_dir.clone().map(|dir| DefaultDir {
                dir,
                known_names: self.definition.layout.def().top_level_names,
            }),
            usage: paths.usage.clone(),
            offload: offload_folder(&paths.runtime, &agent).ok(),
            persistence: match ephemeral {
                true => SessionPersistence::Ephemeral,
                false => SessionPersistence::Durable,
            },
            surrounding_project: surrounding_project(dir, self.definition.layout),
            cache: self.cache.clone(),
            agent,
        }
    }

    /// Its settings.
    pub fn config(&self) -> &AgentConfig {
        &self.definition.config
    }

    /// The agents that work can be handed to, as they are now in `files`; those in `own` hide
    /// others of their name.
    pub async fn subagents(
        &self,
        files: &dyn Vfs,
        own: Option<&VPath>,
    ) -> Result<SubagentSpecs, WorkspaceError> {
        let mut all = SubagentSpecs::default();
        let Some(shared) = &self.definition.paths.subagents else {
            let agents = self.definition.agents.iter();
            all.specs = agents
                .map(|(name, spec)| (name.clone(), Arc::new(spec.clone())))
                .collect();
            return Ok(all);
        };
        for folder in [Some(shared), own].into_iter().flatten() {
            let entries = match files.list(folder).await {
                Ok(entries) => entries,
                Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in entries.into_iter().take(MAX_SUBAGENTS) {
                let Some(id) = entry
                    .name
                    .strip_suffix(".md")
                    .filter(|id| !id.is_empty() && !id.starts_with('.'))
                else {
                    continue;
                };
                let Ok(path) = folder.join(&entry.name) else {
                    continue;
                };
                let window = ReadWindow::Whole {
                    limit: MAX_READ_BYTES,
                };
                let Ok(Some(read)) = self.reader.read(files, &path, window).await else {
                    continue;
                };
                match self.cached_spec(id, path, read.text) {
                    Some(spec) => drop(all.specs.insert(id.to_owned(), spec)),
                    // Nobody else takes its place, who may be allowed more.
                    None => {
                        all.specs.remove(id);
                        all.broken.insert(id.to_owned());
                    }
                }
            }
        }
        Ok(all)
    }

    fn cached_spec(&self, id: &str, path: VPath, text: Arc<str>) -> Option<Arc<AgentSpec>> {
        let mut specs = self
            .spec_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((known, spec)) = specs.get(&path)
            && *known == text
        {
            return spec.clone();
        }
        let read = SettingsText {
            file: path.to_string(),
            text: text.to_string(),
        };
        let spec = parse_subagent(id, &read)
            .ok()
            .map(|(spec, _)| Arc::new(spec));
        if specs.len() >= 2 * MAX_SUBAGENTS {
            specs.clear();
        }
        specs.insert(path, (text, spec.clone()));
        spec
    }

    /// Every profile, as they are now in `files`: those that are built in, the workspace's, and
    /// those that the program gives. `known` says of a tool that is in no table whether there is
    /// one of that name.
    ///
    /// They say what may not be called, so `files` must be bare: a rule that hides them must not
    /// undo them.
    pub async fn profile_cache(
        &self,
        files: &dyn Vfs,
        known: impl Fn(&str) -> bool,
    ) -> Result<Vec<ProfileLayer>, WorkspaceError> {
        let read = self.read_profiles(files).await?;
        let unknown = read
            .iter()
            .flat_map(|profile| &profile.unknown_tools)
            .filter(|(name, _)| !known(name));
        let mut wrong = ParsedProfile::duplicate_findings(&read);
        wrong.extend(unknown.map(|(_, finding)| finding.clone()));
        if !wrong.is_empty() {
            return Err(WorkspaceError::Invalid(wrong));
        }
        let own = read.iter().flat_map(|profile| profile.layers());
        Ok(self
            .built_in
            .iter()
            .cloned()
            .chain(own)
            .chain(self.definition.profiles.iter().cloned())
            .collect())
    }

    async fn read_profiles(
        &self,
        files: &dyn Vfs,
    ) -> Result<Vec<Arc<ParsedProfile>>, WorkspaceError> {
        let folder =
            VPath::parse(self.definition.layout.def().profiles_dir).map_err(VfsError::from)?;
        let entries = match files.list(&folder).await {
            Ok(entries) => entries,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let is_profile = |name: &str| {
            !name.starts_with('.')
                && name
                    .strip_suffix(".yaml")
                    .is_some_and(|stem| !stem.is_empty())
        };
        let files_only = entries
            .into_iter()
            .filter(|entry| entry.kind != FileKind::Directory);
        let mut names: Vec<String> = files_only
            .map(|entry| entry.name)
            .filter(|name| is_profile(name))
            .collect();
        names.sort();
        if names.len() > MAX_PROFILES {
            // What is left out might exclude a tool.
            let words = format!(
                "{} profiles; there may be {MAX_PROFILES} at most",
                names.len()
            );
            return Err(WorkspaceError::Invalid(vec![Finding::error(
                folder.as_str(),
                words,
            )]));
        }
        let mut read = Vec::new();
        let mut wrong = Vec::new();
        for name in names {
            let path = folder.join(&name).map_err(VfsError::from)?;
            let window = ReadWindow::Whole {
                limit: MAX_READ_BYTES,
            };
            let Some(text) = self.reader.read(files, &path, window).await? else {
                continue;
            };
            match self.cached_profile(path, text.text) {
                Ok(profile) => read.push(profile),
                Err(findings) => wrong.extend(findings),
            }
        }
        if wrong.is_empty() {
            Ok(read)
        } else {
            Err(WorkspaceError::Invalid(wrong))
        }
    }

    fn cached_profile(
        &self,
        path: VPath,
        text: Arc<str>,
    ) -> Result<Arc<ParsedProfile>, Vec<Finding>> {
        let mut profiles = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, profile)) = profiles.get(&path)
            && *known == text
        {
            return profile.clone();
        }
        let profile = ParsedProfile::parse(path.as_str(), &text).map(Arc::new);
        if profiles.len() >= 2 * MAX_PROFILES {
            profiles.clear();
        }
        profiles.insert(path, (text, profile.clone()));
        profile
    }

    /// Which tools `tools.json` leaves, as it is now in `files`; everything if there is none.
    pub async fn tools_config(&self, files: &dyn Vfs) -> Result<ToolsConfig, WorkspaceError> {
        let off = self.config().disable.contains(FeatureSwitch::ToolsConfig);
        let Some(path) = self.definition.paths.tools.as_ref().filter(|_| !off) else {
            return Ok(ToolsConfig::default());
        };
        let window = ReadWindow::Whole {
            limit: MAX_READ_BYTES,
        };
        let Some(read) = self.reader.read(files, path, window).await? else {
            return Ok(ToolsConfig::default());
        };
        let lookup = |name: &str| self.config().variables.get(name).cloned();
        let empty = self.definition.layout.def().empty_allow;
        let parsed = ToolsConfig::parse(path.as_str(), &read.text, empty, &lookup);
        parsed
            .map(|(config, _)| config)
            .map_err(|finding| WorkspaceError::Invalid(vec![finding]))
    }

    /// What is wrong with `tools.json`, strictly.
    pub async fn check_tools(
        &self,
        files: &dyn Vfs,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Finding> {
        let off = self.config().disable.contains(FeatureSwitch::ToolsConfig);
        let Some(path) = self.definition.paths.tools.as_ref().filter(|_| !off) else {
            return Vec::new();
        };
        let window = ReadWindow::Whole {
            limit: MAX_READ_BYTES,
        };
        let read = match self.reader.read(files, path, window).await {
            Ok(Some(read)) => read,
            Ok(None) => return Vec::new(),
            Err(WorkspaceError::Invalid(findings)) => return findings,
            Err(error) => return vec![Finding::error(path.as_str(), error.to_string())],
        };
        let own = &self.config().variables;
        let known = |name: &str| own.get(name).cloned().or_else(|| lookup(name));
        ToolsConfig::check(path.as_str(), &read.text, &known)
    }

    /// Every folder of skills, lowest first: those that all workspaces share, those of the
    /// standard's own folder, those that were installed, the workspace's, and the user's own.
    pub async fn skill_layers(
        &self,
        trees: SkillTrees<'_>,
    ) -> Result<Vec<SkillLayer>, SourceError> {
        let tree = &self.definition.paths;
        let layer = |layer, files: &Arc<dyn Vfs>, root, flavor| SkillLayer {
            origin: layer,
            files: files.clone(),
            root,
            flavor,
        };
        let mut layers = Vec::new();
        if let Some(home) = &self.home {
            let folders = GLOBAL_SKILLS
                .iter()
                .filter_map(|folder| VPath::parse(folder).ok());
            layers.extend(
                folders
                    .map(|folder| layer(SkillOrigin::Global, home, folder, SkillFlavor::Standard)),
            );
        }
        let standard = VPath::parse(STANDARD_SKILLS)
            .ok()
            .filter(|folder| !tree.skills.contains(folder));
        layers.extend(standard.map(|folder| {
            layer(
                SkillOrigin::Workspace,
                trees.shared,
                folder,
                SkillFlavor::Standard,
            )
        }));
        layers.extend(self.library.repositories(trees.installed).await?);
        let own = tree.skills.iter().cloned();
        layers.extend(
            own.map(|folder| layer(SkillOrigin::Workspace, trees.shared, folder, tree.flavor)),
        );
        layers.extend(
            trees
                .owner_dirs
                .into_iter()
                .map(|(files, folder)| layer(SkillOrigin::User, &files, folder, tree.flavor)),
        );
        Ok(layers)
    }
}

/// Returns the project that the workspace in `dir` lies in, for layouts whose workspaces lie at a
/// fixed path below a project.
fn surrounding_project(dir: &Path, layout: Layout) -> Option<SurroundingProject> {
    let nested = layout.def().nested_dir?;
    let real = dir.canonicalize().ok()?;
    if !real.ends_with(nested) {
        return None;
    }
    let project = real.ancestors().nth(nested.split('/').count())?;
    Some(SurroundingProject {
        dir: project.to_owned(),
        hidden: nested.split('/').next()?,
    })
}

/// Where skills are looked for.
#[derive(Debug)]
pub struct SkillTrees<'a> {
    /// The workspace.
    pub shared: &'a Arc<dyn Vfs>,
    /// Where sources are installed.
    pub installed: &'a Arc<dyn Vfs>,
    /// Folders that are a user's own.
    pub owner_dirs: Vec<(Arc<dyn Vfs>, VPath)>,
}
