//! A folder opened as a workspace: its files, the agent they define, and what is read from them anew
//! for every turn. It reads files and changes none.
//!
//! Effects: workspace files (reads), the local disk (reads).

use crate::folder_trust::{placeholder_variable, restrict, server_parts};
use crate::layout::{
    ParsedSubagent, SettingsText, definition_id, detect_layout, is_project_agent, load_profiles,
    parse_subagent,
};
use crate::profile::{ParsedProfile, built_in_profiles};
use crate::{
    AgentConfig, AgentRole, AgentSpec, Definition, FeatureSwitch, Finding, FolderTrust, Handler,
    HookSpec, Layout, LoadCx, OpenOptions, ProfileLayer, ReadWindow, Severity, TextReader,
    ToolsConfig, offload_folder,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{AccessKind, Hint, VerdictKind};
use stead_model::KeyPolicy;
use stead_place::{DefaultDir, PlaceSettings, SessionPersistence, SurroundingProject};
use stead_search::Embed;
use stead_skills::{SkillFlavor, SkillLayer, SkillLibrary, SkillOrigin, SourceError};
use stead_vfs::{
    CheckedRule, FileKind, Guarded, Protected, ReadTrace, Rule, Rules, Traced, VPath, Vfs, VfsError,
};

/// A workspace: its files and the agent they define.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The files it was opened from: everything for a local place, a template for a shared one.
    pub files: Arc<dyn Vfs>,
    /// The agent that the files define.
    pub definition: Definition,
    /// The cached reader of files that every turn needs.
    pub reader: Arc<TextReader>,
    /// The cached reader of skills.
    pub library: Arc<SkillLibrary>,
    /// The person's own folder, which has skills for all workspaces.
    pub home: Option<Arc<dyn Vfs>>,
    /// The folder of this machine for derived data of places that are not folders.
    pub cache: Option<PathBuf>,
    /// The embedding model of searches, if the settings name one.
    pub embedder: Option<Arc<dyn Embed>>,
    spec_cache: Arc<SpecCache>,
    /// The profiles of the harness and of the person.
    built_in: Arc<[ProfileLayer]>,
    profiles: Arc<ProfileCache>,
    /// How far the folder was trusted when it was opened.
    pub trust: FolderTrust,
    /// Which endpoints may be sent which keys.
    pub keys: Arc<KeyPolicy>,
    /// The compiled `permissions:`.
    pub rules: Arc<Rules>,
    /// The files that the definition was read from.
    trace: ReadTrace,
    /// The rules for files shown in the prompt. Nobody can be asked there, so asking denies.
    unattended_rules: Arc<Rules>,
}

/// Parsed definitions of subagents with the text they were parsed from.
type SpecCache = Mutex<HashMap<VPath, (Arc<str>, CachedSpec)>>;

/// What a file in the folder of subagents was parsed to.
#[derive(Debug, Clone)]
enum CachedSpec {
    Valid(Arc<AgentSpec>),
    Broken,
    NoDefinition,
}

/// Parsed profiles with the text they were parsed from.
type ProfileCache = Mutex<HashMap<VPath, (Arc<str>, Result<Arc<ParsedProfile>, Vec<Finding>>)>>;

/// The maximum size of a definition of a subagent, a profile and `tools.json`.
const MAX_READ_BYTES: u64 = 1024 * 1024;
/// The maximum number of profiles.
const MAX_PROFILES: usize = 100;
/// The maximum number of subagents in a folder.
const MAX_SUBAGENTS: usize = 1000;

/// The folder in which a project keeps skills for all agents, by the Agent Skills standard.
const STANDARD_SKILLS: &str = ".agents/skills";
/// The folders of skills for all workspaces in a person's home.
const GLOBAL_SKILLS: [&str; 3] = [".agentscope/skills", ".stead/skills", STANDARD_SKILLS];

/// Reads the settings of a folder through its layout.
async fn read_definition(layout: Layout, cx: &LoadCx<'_>) -> Definition {
    let mut draft = (layout.def().load)(layout, cx).await;
    load_profiles(&mut draft).await;
    draft.finish()
}

/// Returns a policy that also knows the endpoints of the platform, which is the person's.
fn extended_policy(policy: &Arc<KeyPolicy>, definition: &Definition) -> Arc<KeyPolicy> {
    let endpoints = &definition.platform_endpoints;
    if endpoints.is_empty() {
        return policy.clone();
    }
    let mut policy = KeyPolicy::clone(policy);
    for (model, url) in endpoints {
        let provider = model.split(':').next().unwrap_or_default();
        policy.allow(provider, url);
    }
    Arc::new(policy)
}

/// Notes an error for each hook that would send a provider's key to an address.
fn refuse_keys_of_hooks(definition: &mut Definition, keys: &KeyPolicy) {
    for hook in &definition.hooks {
        let Handler::Http { url, headers, .. } = &hook.handler else {
            continue;
        };
        let mut texts = std::iter::once(url).chain(headers.values());
        if let Some(variable) = texts.find_map(|text| keys.provider_key_in(text)) {
            let text = format!(
                "handler: the key in {variable} is sent to the endpoints of its provider alone"
            );
            definition.findings.push(Finding::error(&hook.source, text));
        }
    }
}

/// Returns the rules that keep an agent from changing the scripts and prompts of its hooks.
fn hook_file_rules(hooks: &[HookSpec]) -> Vec<CheckedRule> {
    let files = hooks.iter().flat_map(|hook| &hook.files);
    // Of a folder whose files a hook runs by a pattern, everything in it.
    let paths = files.flat_map(|path| {
        let path = glob_escape(path.as_str());
        [format!("{path}/**"), path]
    });
    let paths: Vec<String> = paths.collect();
    let rule = Rule {
        operations: vec![AccessKind::Write],
        paths,
        mode: VerdictKind::Deny,
    };
    CheckedRule::new(0, rule).into_iter().collect()
}

/// Returns the rules that keep an agent from reading and changing files that are a person's alone.
fn private_rules(private: &[VPath]) -> Vec<CheckedRule> {
    let paths = private.iter().flat_map(|path| {
        let path = glob_escape(path.as_str());
        [format!("{path}/**"), path]
    });
    let rule = Rule {
        operations: vec![AccessKind::Read, AccessKind::Write],
        paths: paths.collect(),
        mode: VerdictKind::Deny,
    };
    CheckedRule::new(0, rule).into_iter().collect()
}

/// Returns a pattern that matches exactly `path`.
fn glob_escape(path: &str) -> String {
    let escape = |c: char| match c {
        '*' | '?' | '[' | '{' | '}' | '\\' => format!("[{c}]"),
        _ => c.to_string(),
    };
    path.chars().map(escape).collect()
}

/// Reads `tools.json`: the values of its variables are redacted in journals, and what has no effect
/// is noted. Mistakes that stop a run are reported by the turn setup.
async fn read_tools_config(
    files: &Arc<dyn Vfs>,
    definition: &mut Definition,
    lookup: &(dyn Fn(&str) -> Option<String> + Sync),
) {
    let off = definition
        .config
        .disable
        .contains(FeatureSwitch::ToolsConfig);
    let Some(path) = definition.paths.tools.as_ref().filter(|_| !off) else {
        return;
    };
    let window = ReadWindow::Whole {
        limit: MAX_READ_BYTES,
    };
    let Ok(Some(read)) = TextReader::default().read(&**files, path, window).await else {
        return;
    };
    let own = &definition.config.variables;
    let known = |name: &str| own.get(name).cloned().or_else(|| lookup(name));
    let dialect = definition.layout.tools_dialect();
    let parse = |lookup: &dyn Fn(&str) -> Option<String>| {
        ToolsConfig::parse(path.as_str(), &read.text, dialect, lookup)
    };
    if let Ok((config, findings)) = parse(&known) {
        if let (false, Ok((shown, _))) = (config.servers.is_empty(), parse(&placeholder_variable)) {
            let parts = server_parts(path.as_str(), &shown);
            definition.declared_parts.extend(parts);
        }
        definition.config.secrets.extend(config.secrets);
        definition.findings.extend(findings);
    }
}

/// Why a workspace cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The settings are invalid.
    #[error("{}", lines(.0))]
    Invalid(Vec<Finding>),
    /// The folder would act, and nobody trusts it.
    #[error("{0}")]
    Untrusted(String),
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
            Self::Invalid(_) | Self::Untrusted(_) | Self::Files(_) => None,
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

/// The subagents of a workspace.
#[derive(Debug, Clone, Default)]
pub struct SubagentSpecs {
    /// The definitions by name.
    pub specs: BTreeMap<String, Arc<AgentSpec>>,
    /// The names of subagents with an invalid definition.
    pub broken: BTreeSet<String>,
}

impl Workspace {
    /// Opens the workspace in `files`, taking variables from `lookup`.
    pub async fn open(
        files: Arc<dyn Vfs>,
        options: &OpenOptions,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<Self, WorkspaceError> {
        Self::inspect(files, options, lookup).await.refuse_errors()
    }

    /// Returns the workspace if its settings have no error and it may be opened, or else why not.
    pub fn refuse_errors(self) -> Result<Self, WorkspaceError> {
        if let FolderTrust::Refused(_, reason) = &self.trust {
            return Err(WorkspaceError::Untrusted(reason.clone()));
        }
        let findings = self.definition.findings.iter();
        let errors: Vec<Finding> = findings
            .filter(|finding| finding.severity == Severity::Error)
            .cloned()
            .collect();
        match errors.is_empty() {
            true => Ok(self),
            false => Err(WorkspaceError::Invalid(errors)),
        }
    }

    /// Opens the workspace in `files` even if its settings have errors, to look at it. Such a
    /// workspace is not to be run: faulty settings have their defaults.
    pub async fn inspect(
        files: Arc<dyn Vfs>,
        options: &OpenOptions,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Self {
        let layout = match options.layout {
            Some(layout) => layout,
            None => detect_layout(&*files).await,
        };
        let traced = Arc::new(Traced::new(files.clone()));
        let traced_files: Arc<dyn Vfs> = traced.clone();
        let cx = LoadCx {
            files: &traced_files,
            variables: lookup,
            options,
        };
        let mut definition = read_definition(layout, &cx).await;
        read_tools_config(&files, &mut definition, lookup).await;
        let trust = FolderTrust::decide(options.trust.as_deref(), &definition, &*files).await;
        let variables: &(dyn Fn(&str) -> Option<String> + Sync) = match trust.is_restricted() {
            false => lookup,
            true => &placeholder_variable,
        };
        if trust.is_restricted() {
            definition = read_definition(layout, &LoadCx { variables, ..cx }).await;
            read_tools_config(&files, &mut definition, variables).await;
            restrict(&mut definition);
        }
        let trace = traced.trace();
        let keys = extended_policy(&options.keys, &definition);
        refuse_keys_of_hooks(&mut definition, &keys);
        let own = definition.config.variables.clone();
        let known = |name: &str| own.get(name).cloned().or_else(|| variables(name));
        let embedder = definition
            .config
            .search
            .embedder(&known, &keys)
            .map(|embedder| Arc::new(embedder) as Arc<dyn Embed>);
        let key = definition
            .config
            .search
            .embedding
            .as_ref()
            .and_then(|settings| settings.api_key.clone());
        definition.config.secrets.extend(key);
        let permissions = &definition.config.permissions;
        let rules = Rules::from_checked(permissions, definition.paths.protected)
            .narrowed_by(&hook_file_rules(&definition.hooks))
            .narrowed_by(&private_rules(&options.private_paths));
        let unattended = Arc::new(rules.without_asking());
        let secrets = Arc::new(Rules::from_checked(&[], Protected::NONE));
        let home = options
            .home
            .clone()
            .map(|home| Arc::new(Guarded::hiding_denied(home, secrets)) as Arc<dyn Vfs>);
        Self {
            files,
            definition,
            trust,
            keys,
            rules: Arc::new(rules),
            reader: Arc::default(),
            library: Arc::default(),
            home,
            cache: options.cache.clone(),
            embedder,
            trace,
            unattended_rules: unattended,
            spec_cache: Arc::default(),
            built_in: built_in_profiles()
                .into_iter()
                .chain(options.profiles.iter().cloned())
                .collect(),
            profiles: Arc::default(),
        }
    }

    /// Returns a file or folder that the definition was read from and that has changed since. What
    /// is read again for every turn may be among them.
    pub async fn changed_source(&self) -> Option<VPath> {
        self.trace.first_change(&*self.files).await
    }

    /// Returns the workspace in the role of one of its agents.
    pub fn for_agent(&self, spec: &AgentSpec, part: AgentRole) -> Self {
        Self {
            definition: self.definition.for_agent(spec, part),
            rules: Arc::new(self.rules.narrowed_by(&spec.permissions)),
            unattended_rules: Arc::new(
                self.unattended_rules
                    .narrowed_by(&spec.permissions)
                    .without_asking(),
            ),
            ..self.clone()
        }
    }

    /// Returns `files` as the prompt shows them: without what may not be read, or only after asking.
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
            home: self.definition.home(),
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

    /// Returns the settings.
    pub fn config(&self) -> &AgentConfig {
        &self.definition.config
    }

    /// Reads the current subagents in `files`. Those in the folder `own` hide others of the same
    /// name.
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
        // Agents of the project were read when the workspace was opened.
        let of_project = self.definition.agents.iter();
        let of_project = of_project.filter(|(_, spec)| is_project_agent(&spec.source));
        all.specs
            .extend(of_project.map(|(name, spec)| (name.clone(), Arc::new(spec.clone()))));
        for folder in [Some(shared), own].into_iter().flatten() {
            let entries = match files.list(folder).await {
                Ok(entries) => entries,
                Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            for entry in entries.into_iter().take(MAX_SUBAGENTS) {
                let Some(id) = definition_id(&entry.name) else {
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
                    CachedSpec::Valid(mut spec) => {
                        if self.trust.is_restricted() {
                            Arc::make_mut(&mut spec).model = None;
                        }
                        all.specs.insert(id.to_owned(), spec);
                    }
                    CachedSpec::NoDefinition => {}
                    // No other agent of this name is used instead: it might be allowed more.
                    CachedSpec::Broken => {
                        all.specs.remove(id);
                        all.broken.insert(id.to_owned());
                    }
                }
            }
        }
        Ok(all)
    }

    fn cached_spec(&self, id: &str, path: VPath, text: Arc<str>) -> CachedSpec {
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
        let spec = match parse_subagent(id, &read, self.definition.layout.def().strictness) {
            Ok(ParsedSubagent::Spec(spec, _)) => CachedSpec::Valid(spec.into()),
            Ok(ParsedSubagent::Skipped(_)) => CachedSpec::NoDefinition,
            Err(_) => CachedSpec::Broken,
        };
        if specs.len() >= 2 * MAX_SUBAGENTS {
            specs.clear();
        }
        specs.insert(path, (text, spec.clone()));
        spec
    }

    /// Returns all current profiles: built in, from `files`, and given by the program. `known` says
    /// whether a tool exists that is not built in.
    ///
    /// Profiles exclude tools, so `files` must not be guarded: a rule that hides a profile must not
    /// disable it.
    pub async fn profiles(
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
            // A profile that is left out might exclude a tool.
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

    /// Reads the current `tools.json` in `files`; without one, every tool is allowed.
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
        let dialect = self.definition.layout.tools_dialect();
        let parsed = ToolsConfig::parse(path.as_str(), &read.text, dialect, &lookup);
        let (mut config, _) = parsed.map_err(|finding| WorkspaceError::Invalid(vec![finding]))?;
        if self.trust.is_restricted() {
            config.servers.clear();
        }
        Ok(config)
    }

    /// Returns the problems of `tools.json`.
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
        let dialect = self.definition.layout.tools_dialect();
        ToolsConfig::check(path.as_str(), &read.text, dialect, &known)
    }

    /// Returns the layers of skills, lowest first: those for all workspaces, the standard's folder,
    /// installed sources, the workspace's own, and the user's own.
    pub async fn skill_layers(
        &self,
        trees: SkillTrees<'_>,
    ) -> Result<Vec<SkillLayer>, SourceError> {
        let tree = &self.definition.paths;
        let layer = |layer, files: &Arc<dyn Vfs>, root, flavor| SkillLayer {
            origin: layer,
            files: files.clone(),
            root,
            except: Vec::new(),
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
        // A folder of own skills may contain those of installed sources, which are layers above.
        let installed: Vec<VPath> = layers.iter().map(|layer| layer.root.clone()).collect();
        let own = tree.skills.iter().cloned();
        layers.extend(own.map(|folder| SkillLayer {
            except: installed.clone(),
            ..layer(SkillOrigin::Workspace, trees.shared, folder, tree.flavor)
        }));
        layers.extend(
            trees
                .owner_dirs
                .into_iter()
                .map(|(files, folder)| layer(SkillOrigin::User, &files, folder, tree.flavor)),
        );
        Ok(layers)
    }
}

/// Returns the project that contains the workspace in `dir`, for layouts that put workspaces at a
/// fixed path in a project.
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

/// The trees in which skills are searched.
#[derive(Debug)]
pub struct SkillTrees<'a> {
    /// The workspace.
    pub shared: &'a Arc<dyn Vfs>,
    /// The tree in which sources are installed.
    pub installed: &'a Arc<dyn Vfs>,
    /// The folders of one user.
    pub owner_dirs: Vec<(Arc<dyn Vfs>, VPath)>,
}
