//! Opens a directory of plain files as an agent.
//!
//! A folder is opened as a [`Workspace`]: its [`Layout`] is detected, and the module of that layout
//! loads the folder into one [`Definition`] of the agent. Problems are [`Finding`]s with their file,
//! line and column.
//!
//! ```
//! use std::sync::Arc;
//! use stead_vfs::{Expect, StoreVfs, VPath, Vfs};
//! use stead_workspace::{OpenOptions, Workspace};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let files: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
//! let settings = "model: anthropic:claude-sonnet-4-5\npolicy: {max_stepps: 20}";
//! files.write(&VPath::parse("agent.yaml")?, settings.into(), Expect::Absent).await?;
//!
//! let error = Workspace::open(files, &OpenOptions::default(), &|_| None).await.unwrap_err();
//! assert!(error.to_string().starts_with("agent.yaml:2:10: "), "{error}");
//! assert!(error.to_string().contains("did you mean `max_steps`?"), "{error}");
//! # Ok::<(), stead_vfs::VfsError>(()) }).unwrap();
//! ```
//!
//! - [`AgentConfig`]: the settings. [`SettingsDocument`]: any settings file, with the position of
//!   each value.
//! - [`Section`], [`Prompt`]: the system prompt. [`TextReader`]: files that are read for every turn.
//!
//! Effects: none.

mod agent_spec;
mod approval;
mod budget;
mod client_tool;
mod compaction;
mod config;
mod definition;
mod dotenv;
mod execute;
mod feature_switch;
mod finding;
mod folder_trust;
mod for_agent;
mod front_matter;
mod hooks;
mod layout;
mod memory;
mod offload;
mod personal_settings;
mod plan;
mod policy;
mod profile;
mod prompt;
mod queue;
mod scaffold;
mod schedule;
mod schema;
mod search;
pub mod section_order;
mod settings_document;
mod strict_value;
mod text_reader;
mod tool_lists;
mod trust;
mod workspace;

pub use agent_spec::{AgentMode, AgentRole, AgentSpec, SpecPolicy, SubagentIsolation};
pub use approval::{Approval, ApprovalCondition};
pub use budget::BudgetSettings;
pub use client_tool::ClientToolSettings;
pub use compaction::CompactionSettings;
pub use config::{AgentConfig, SkillMode, SkillSettings};
pub use definition::{
    ContextFile, ContextRendering, Definition, FixedText, Nested, ProcessVariable, SettingOrigin,
    WorkspacePaths,
};
pub use dotenv::parse_dotenv;
pub use execute::ExecuteSettings;
pub use feature_switch::{DisabledFeatures, FeatureSwitch};
pub use finding::{Finding, FindingSource, OpenOption, Severity};
pub use folder_trust::{
    ActingKind, ActingPart, FolderTrust, PartChange, RecordedPart, TrustAnswer, TrustDecision,
    TrustFingerprint, TrustJudge, TrustRecord, TrustRequest, acting_parts,
};
pub use for_agent::general_purpose;
pub use front_matter::FrontMatter;
pub use hooks::{
    Capability, Handler, HookEvent, HookSpec, HookTrigger, HttpMethod, Matcher, OnFailure, Program,
    RunEndFilter,
};
pub use layout::{
    AgentChoice, AgentToolLists, BuiltInSurface, CheckName, InnerDirs, Layout, LayoutDef,
    LayoutMark, LoadCx, MarkRank, MarkStrength, ModelUse, OpenOptions, Strictness, UnknownTools,
    WorkspaceNameError, check_workspace_name, detect_layout, is_secret_variable, try_detect_layout,
};
pub use memory::{FlushAfter, MemoryModelChoice, MemorySettings};
pub use offload::{OffloadSettings, offload_folder};
pub use personal_settings::{PersonalProvider, PersonalSettings};
pub use plan::PlanSettings;
pub use policy::{Policy, UndoSettings};
pub use profile::{
    GeneralPurpose, Profile, ProfileFile, ProfileKey, ProfileKeyError, ProfileLayer,
    ProfileSetting, ProfileSource, ResolvedProfile, merge as merge_profiles,
};
pub use prompt::{Prompt, Section, SectionCut, SectionGroup, element, enclose, escape_xml};
pub use queue::{DropPolicy, QueueSettings};
pub use scaffold::{
    ConfigureScaffold, ScaffoldChoices, ScaffoldFile, configured_scaffold, scaffold,
};
pub use schema::{agent_schema, profile_schema, tools_schema};
pub use search::{ConfiguredEmbedder, SearchSettings};
pub use settings_document::SettingsDocument;
pub use stead_core::QueueMode;
pub use stead_core::SourcePosition;
pub use stead_tools::Surface;
use stead_tools::closest_name;
pub use text_reader::{Excerpt, ReadWindow, TextReader};
pub use tool_lists::{
    EmptyAllow, McpServer, ToolLists, ToolsConfig, ToolsDialect, Transport, tool_problem,
};
pub use trust::TrustSettings;
pub use workspace::{SkillTrees, SubagentSpecs, Workspace, WorkspaceError};
