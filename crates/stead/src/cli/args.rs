//! The arguments of all commands; commands with many flags have a file each.
//!
//! Effects: none.

mod sessions;
mod skills;
mod trust;
mod workspace;

pub(crate) use sessions::{ExportFormat, SearchBounds, SessionsArgs, SessionsCommand};
pub(crate) use skills::{SkillsArgs, SkillsCommand};
pub(crate) use trust::{AuthArgs, AuthCommand, TrustArgs, TrustCommand, TrustDirArgs};
pub(crate) use workspace::{CopyArgs, WorkspaceArgs, WorkspaceCommand};

use super::approvals::args::ApprovalsArgs;
use super::choose_session::SessionFlags;
use super::memory::args::MemoryArgs;
use super::trust::UntrustedFolder;
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use stead::core::{PermissionMode, SessionChange, SetEntry, SpendAmount, Usd};
use stead::workspace::Layout;

/// A folder of plain files becomes an agent.
#[derive(Debug, Parser)]
#[command(name = "stead", version, about, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

const EXAMPLES: &str = "\
Without a command, `stead` on a terminal opens a chat.

Examples:
  stead demo                                   watch an agent work; needs no key and no network
  stead init my-agent                          make a workspace
  stead run -C my-agent \"Tidy up notes.md\"     one task, then exit
  stead run -s plan --resume                   resume an interrupted session
  stead chat -C my-agent -m ollama:qwen3       talk to it in the terminal
  stead sessions list                          what happened so far
  stead approvals list                         calls that wait for your approval

Exit codes: 0 completed, 1 failed, 2 bad usage or settings, 3 waiting for a decision,
            4 a limit was reached, 130 interrupted";

/// Flags that most commands share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GlobalArgs {
    /// The workspace [default: $STEAD_WORKSPACE or $AGENTSCOPE_WORKSPACE, or the nearest one from
    /// the current folder upward]
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The user whose sessions and files are used [default: the workspace's default user]
    #[arg(short = 'u', long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The layout of the workspace [default: detected]
    #[arg(long, global = true, value_name = "LAYOUT", value_parser = layout)]
    pub(crate) layout: Option<Layout>,
    /// Include this whole file in the prompt, as a context file; may be repeated
    #[arg(
        long = "context-file",
        alias = "memory",
        global = true,
        value_name = "FILE"
    )]
    pub(crate) context_files: Vec<String>,
    /// Also read skills from this folder of the workspace; may be repeated
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) skills: Vec<String>,
    /// Trust the folder as it is now, and remember it (`stead trust --help`)
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Write logs to standard error; -vv for more. `RUST_LOG` overrides it, and `chat` logs to a
    /// file
    #[arg(short = 'v', long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// The agent to use, where the workspace defines several. Set by the commands that take one.
    #[arg(skip)]
    pub(crate) agent: Option<String>,
    /// The model to use instead of the workspace's. Set by the commands that take one.
    #[arg(skip)]
    pub(crate) model: Option<String>,
    /// The permission mode, which overrides the workspace's setting. Set by the commands without a
    /// session.
    #[arg(skip)]
    pub(crate) mode: Option<PermissionMode>,
    /// What the command does with a folder that nobody trusts. Set for each command.
    #[arg(skip)]
    pub(crate) untrusted: UntrustedFolder,
}

/// Parses an amount that is added to a budget: `0.50` is dollars, `50000t` tokens.
pub(crate) fn raise(text: &str) -> Result<SpendAmount, String> {
    let given = match text.strip_suffix('t') {
        Some(tokens) => tokens.parse().ok().map(|tokens| SpendAmount {
            tokens,
            ..SpendAmount::default()
        }),
        None => text
            .trim_start_matches('$')
            .parse()
            .ok()
            .and_then(Usd::from_dollars)
            .map(|usd| SpendAmount { usd, tokens: 0 }),
    };
    let wrong = || format!("{text:?} is not an amount: write dollars as 0.50, tokens as 50000t");
    given.filter(|amount| !amount.is_zero()).ok_or_else(wrong)
}

pub(crate) fn mode(text: &str) -> Result<PermissionMode, String> {
    text.parse()
}

fn layout(text: &str) -> Result<Layout, String> {
    text.parse()
}

impl GlobalArgs {
    /// Returns these flags with the agent that a command was given.
    pub(crate) fn with_agent(&self, agent: Option<&String>) -> Self {
        Self {
            agent: agent.cloned(),
            ..self.clone()
        }
    }

    /// Returns the flags and values that make another command use the same agent.
    pub(crate) fn agent_args(&self) -> Vec<OsString> {
        let single = [
            ("-C", self.workspace.clone().map(PathBuf::into_os_string)),
            ("--layout", self.layout.map(|it| it.to_string().into())),
            ("-u", self.user.clone().map(OsString::from)),
            ("-m", self.model.clone().map(OsString::from)),
            ("-a", self.agent.clone().map(OsString::from)),
        ];
        let single = single
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value?)));
        let context_files = self
            .context_files
            .iter()
            .map(|file| ("--context-file", file));
        let skills = self.skills.iter().map(|dir| ("--skills", dir));
        let repeated = context_files
            .chain(skills)
            .map(|(flag, value)| (flag, OsString::from(value)));
        single
            .chain(repeated)
            .flat_map(|(flag, value)| [OsString::from(flag), value])
            .collect()
    }

    /// Returns these flags with the model that a command was given.
    pub(crate) fn with_model(&self, model: Option<&String>) -> Self {
        Self {
            model: model.cloned(),
            ..self.clone()
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Make a workspace
    Init(InitArgs),
    /// Run one input to its end
    Run(RunArgs),
    /// Talk to the agent in the terminal
    Chat(ChatArgs),
    /// Watch a scripted agent work on a real workspace; needs no key and no network
    Demo(DemoArgs),
    /// Call one tool through the same gate as the agent
    Tool(ToolArgs),
    /// Show the assembled prompt, section by section
    Prompt(PromptArgs),
    /// Check the workspace strictly
    Check(CheckArgs),
    /// Show the value of a setting and which file set it
    #[command(
        after_help = "Examples:\n  stead explain policy.max_steps\n  stead explain              every setting that is set\n  stead explain profiles     what is different for the model"
    )]
    Explain(ExplainArgs),
    /// Print the JSON schema of a settings file, for editors
    #[command(
        after_help = "Example:\n  stead schema > .stead.schema.json   then, first in agent.yaml:\n  # yaml-language-server: $schema=.stead.schema.json"
    )]
    Schema(SchemaArgs),
    /// List, show, search, fork, rewind, trust, undo, replay, export or remove sessions
    #[command(alias = "session")]
    Sessions(SessionsArgs),
    /// Move a workspace between places: a folder, a store
    Workspace(WorkspaceArgs),
    /// Install, list, update, remove, publish or check skills
    #[command(alias = "skill")]
    Skills(SkillsArgs),
    /// Show, search, review, edit and merge long-term memory
    Memory(MemoryArgs),
    /// List, show and answer calls that wait for a person; list and revoke grants
    #[command(alias = "approval")]
    Approvals(ApprovalsArgs),
    /// Choose which folders may act: run hooks, name endpoints, set permissions
    Trust(TrustArgs),
    /// Store, list and remove keys of providers
    Auth(AuthArgs),
    /// Remove old undo data and files left by crashes
    Gc(GcArgs),
    /// List the workspaces in a folder, of any layout
    List(ListArgs),
    /// Show providers and keys, and what is known about models
    #[command(after_help = "Examples:
  stead models                          providers, keys, known models
  stead models ollama:qwen3             window, answer, abilities and price, with their sources")]
    Models(ModelsArgs),
    /// Show tokens and money used, by day, session, model or user
    #[command(after_help = "Examples:
  stead usage                           by day
  stead usage --by model --since 2026-03-01
  stead usage --rebuild                 rebuild the file from the journals")]
    Usage(UsageArgs),
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  stead completions bash > ~/.local/share/bash-completion/completions/stead"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder [default: the workspace]
    pub(crate) dir: Option<PathBuf>,
    /// The folder in which the new one is made
    #[arg(long, value_name = "DIR", requires = "dir")]
    pub(crate) path: Option<PathBuf>,
    /// The model to put into the settings
    #[arg(short, long, value_name = "PROVIDER:MODEL")]
    pub(crate) model: Option<String>,
    /// The kind of channel to put into the settings, in the openpaw layout
    #[arg(long, value_name = "KIND")]
    pub(crate) channel: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  stead run \"What is in this folder?\"
  cat app.log | stead run \"Why did it stop?\"      what is piped in is attached
  stead run -c \"Go on\"                            continue the newest session
  echo \"Summarise\" | stead run -s weekly --output json
  stead run -s weekly --resume --approve all
  stead run -s weekly --agent build \"Go on\"       switch to another agent; the session keeps it
  stead run --plan \"Tidy up the notes\"            look and plan first; nothing is changed until you agree
  stead run -s weekly --resume --raise 0.50       resume after a budget was used up")]
pub(crate) struct RunArgs {
    /// The input; without it, or with `-`, standard input is the input. What is piped in beside an
    /// input is attached to it. `@path` and `@"path with spaces"` attach files of the workspace
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) session: SessionFlags,
    /// Resume the session without new input [without -s: the newest session with an open run]
    #[arg(long, conflicts_with = "input")]
    pub(crate) resume: bool,
    /// Start in plan mode: only reading is allowed until you agree to a plan
    #[arg(long, conflicts_with = "resume")]
    pub(crate) plan: bool,
    /// Pin the input, so that the model always sees it word for word
    #[arg(long, conflicts_with = "resume")]
    pub(crate) pin: bool,
    /// Answer with JSON that conforms to this JSON schema, or fail
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) output_schema: Option<PathBuf>,
    /// With --resume, add to the budget of a run that had used it up: dollars (0.50) or tokens
    /// (50000t)
    #[arg(long, value_name = "AMOUNT", value_parser = raise)]
    pub(crate) raise: Option<SpendAmount>,
    #[command(flatten)]
    pub(crate) turn: RunFlags,
    /// The form of the output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Do not start the background memory worker after this run
    #[arg(long)]
    pub(crate) no_background: bool,
}

/// Flags of commands that run an agent.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunFlags {
    /// The agent to use, where the workspace defines several; the session keeps it
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Use this model (provider:model) instead of the workspace's
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How approval questions are answered; `ask` prompts on a terminal and otherwise parks the run
    #[arg(long, value_enum, default_value_t = ApproveMode::Ask)]
    pub(crate) approve: ApproveMode,
    /// How freely the agent may act from now on in this session [possible values: default,
    /// accept_edits, explore, dont_ask, bypass]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<PermissionMode>,
    /// If another process uses the session, wait at most this many seconds for the input's turn
    /// [default: no limit; `--wait` alone: 3600]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "3600")]
    pub(crate) wait: Option<u64>,
}

impl RunFlags {
    /// Returns the session settings that the flags change.
    pub(crate) fn session_changes(&self) -> Vec<SetEntry> {
        let mode = self.mode.map(|to| SetEntry {
            change: SessionChange::mode(to),
            by: "--mode".to_owned(),
        });
        let agent = self.agent.clone();
        let agent = agent.map(|to| SetEntry {
            change: SessionChange::Agent { to },
            by: "--agent".to_owned(),
        });
        mode.into_iter().chain(agent).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer; what the agent does goes to standard error
    Text,
    /// One JSON object at the end
    Json,
    /// Every event as one JSON object per line
    Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveMode {
    /// Ask the person at the terminal; elsewhere park
    Ask,
    /// Answer yes to every question of this run
    All,
    /// Answer no to every question of this run
    None,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Inside, /help lists commands and keys. Messages during a run are handled as /queue says
(collect, followup, steer, steer-backlog, interrupt); `queue:` of agent.yaml says it for all sessions.
Exit codes: 0 when left at an idle prompt, 130 when left during a run or by a signal"
)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) session: SessionFlags,
    /// Choose the session from a list
    #[arg(long, conflicts_with_all = ["session", "newest"])]
    pub(crate) pick: bool,
    #[command(flatten)]
    pub(crate) turn: RunFlags,
}

impl ChatArgs {
    /// Returns the arguments of a chat that was given none.
    pub(crate) fn try_parse_from_nothing() -> Result<Self, clap::Error> {
        let command = Self::augment_args(clap::Command::new("chat").no_binary_name(true));
        let none: [&str; 0] = [];
        Self::from_arg_matches(&command.try_get_matches_from(none)?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder of the demo's workspace [default: a temporary one, removed afterwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Do not slow the model down to reading speed
    #[arg(long)]
    pub(crate) fast: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  stead tool                       list the tools
  stead tool ls
  stead tool read_file '{\"file_path\": \"AGENTS.md\", \"limit\": 5}'
  stead tool delete_file '{\"file_path\": \"agent.yaml\"}' --explain
  stead tool execute '{\"command\": \"cargo test\"}'     ends with the exit code of the command")]
pub(crate) struct ToolArgs {
    /// The tool; without it the tools are listed
    pub(crate) name: Option<String>,
    /// Its arguments as a JSON object
    #[arg(default_value = "{}")]
    pub(crate) args: String,
    /// The agent to use, where the workspace defines several
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Use this model (provider:model) instead of the workspace's, with its profiles
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Show what the gate would decide and why, without calling the tool
    #[arg(long, requires = "name", conflicts_with = "approve")]
    pub(crate) explain: bool,
    /// The permission mode, over the workspace's own [possible values: default, accept_edits,
    /// explore, dont_ask, bypass]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<PermissionMode>,
    /// How a question about the call is answered
    #[arg(long, value_enum, default_value_t = ApproveMode::Ask)]
    pub(crate) approve: ApproveMode,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The agent to use, where the workspace defines several
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Use this model (provider:model) instead of the workspace's, with its profiles
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only the table of sections
    #[arg(long)]
    pub(crate) summary: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The setting, as a path of keys [default: every setting that is set]
    pub(crate) key: Option<String>,
    /// Use this model (provider:model) instead of the workspace's, with its profiles
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The folder that holds the workspaces [default: the current one]
    pub(crate) dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The file
    #[arg(value_enum, default_value_t = SettingsFile::Agent)]
    pub(crate) file: SettingsFile,
}

/// A file that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SettingsFile {
    /// agent.yaml
    Agent,
    /// tools.json
    Tools,
    /// profiles/*.yaml
    Profile,
}

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// What usage is grouped by
    #[arg(long, value_enum, default_value_t = UsageBy::Day)]
    pub(crate) by: UsageBy,
    /// The first day, as YYYY-MM-DD, in the agent's time zone
    #[arg(long, value_name = "DAY")]
    pub(crate) since: Option<jiff::civil::Date>,
    /// The last day
    #[arg(long, value_name = "DAY")]
    pub(crate) until: Option<jiff::civil::Date>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Rebuild the usage file from the journals, and show nothing else
    #[arg(long, conflicts_with_all = ["by", "since", "until"])]
    pub(crate) rebuild: bool,
}

/// What usage is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageBy {
    Day,
    Session,
    Model,
    User,
    /// Answers, subagents, memory, summaries, hooks
    Purpose,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// The model, as provider:model [default: list all known models]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
