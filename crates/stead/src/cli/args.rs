//! Every command and flag, in one table.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use stead::workspace::Layout;

/// A folder of plain files becomes an agent.
#[derive(Debug, Parser)]
#[command(name = "stead", version, about, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  stead demo                                   watch an agent work; needs no key and no network
  stead init my-agent                          make a workspace
  stead run -C my-agent \"Tidy up notes.md\"     one task, then exit
  stead run -s plan --resume                   go on where an interrupted session stopped
  stead chat -C my-agent -m ollama:qwen3       talk to it in the terminal
  stead sessions list                          what happened so far

Exit codes: 0 completed, 1 failed, 2 bad usage or settings, 3 waiting for a decision,
            4 a limit was reached, 130 interrupted";

/// Flags that most commands share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Common {
    /// The workspace [default: $STEAD_WORKSPACE, or the nearest one from the current folder upward]
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Whose sessions and files [default: the workspace's own]
    #[arg(short = 'u', long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// How the workspace is laid out [default: it is detected]
    #[arg(long, global = true, value_name = "LAYOUT", value_parser = layout)]
    pub(crate) layout: Option<Layout>,
    /// Another file to show whole in the prompt; may be repeated
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) memory: Vec<String>,
    /// Another folder of skills in the workspace; may be repeated
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) skills: Vec<String>,
    /// The agent of a workspace that defines several; given by the commands that run one.
    #[arg(skip)]
    pub(crate) agent: Option<String>,
    /// The model over the workspace's own setting; given by the commands that ask one.
    #[arg(skip)]
    pub(crate) model: Option<String>,
}

fn layout(text: &str) -> Result<Layout, String> {
    text.parse()
}

impl Common {
    /// The same workspace with the agent that a command was given.
    pub(crate) fn with_agent(&self, agent: Option<&String>) -> Self {
        Self { agent: agent.cloned(), ..self.clone() }
    }

    /// The same workspace with the model that a command was given.
    pub(crate) fn with_model(&self, model: Option<&String>) -> Self {
        Self { model: model.cloned(), ..self.clone() }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a workspace
    Init(InitArgs),
    /// Work one input to its end
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
    /// Say what a setting is, and which file set it
    #[command(
        after_help = "Examples:\n  stead explain policy.max_steps\n  stead explain              every setting that is set"
    )]
    Explain(ExplainArgs),
    /// Print the JSON schema of a settings file, for editors
    #[command(
        after_help = "Example:\n  stead schema > .stead.schema.json   then, first in agent.yaml:\n  # yaml-language-server: $schema=.stead.schema.json"
    )]
    Schema(SchemaArgs),
    /// List, show, search, fork, rewind, undo, replay, export or remove sessions
    #[command(alias = "session")]
    Sessions(SessionsArgs),
    /// Search what is remembered across sessions
    Memory(MemoryArgs),
    /// Move a workspace between places: a folder, a store
    Workspace(WorkspaceArgs),
    /// Install, list, update, remove, publish or check skills
    #[command(alias = "skill")]
    Skills(SkillsArgs),
    /// Remove what is no longer needed: old before-images, leftovers of crashes
    Gc(GcArgs),
    /// List the workspaces in a folder, whichever their layout
    List(ListArgs),
    /// Show providers, keys and prices
    Models(ModelsArgs),
    /// Print completions for a shell
    #[command(after_help = "Example:\n  stead completions bash > ~/.local/share/bash-completion/completions/stead")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The benchmark's adapter
    #[command(hide = true)]
    Bench(BenchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkspaceArgs {
    #[command(subcommand)]
    pub(crate) command: WorkspaceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Make the store like this folder: its files become what all users share, its sessions go along
    #[command(after_help = "Examples:
  stead workspace push --dry-run                     to the store that agent.yaml names
  stead workspace push postgres://db.local/agents    to another one")]
    Push {
        /// The store [default: filesystem.url of agent.yaml]
        url: Option<String>,
        #[command(flatten)]
        how: CopyArgs,
    },
    /// Make this folder like the store
    Pull {
        /// The store [default: filesystem.url of agent.yaml]
        url: Option<String>,
        #[command(flatten)]
        how: CopyArgs,
    },
    /// Make one place like another; a place is a folder or the URL of a store
    #[command(after_help = "Examples:
  stead workspace copy my-agent sqlite:/var/lib/agents.db
  stead workspace copy redis://old/ postgres://new/agents --dry-run")]
    Copy {
        /// The source
        #[arg(value_name = "SRC")]
        from: String,
        /// The destination
        #[arg(value_name = "DST")]
        to: String,
        #[command(flatten)]
        how: CopyArgs,
    },
}

/// How a workspace is moved.
#[derive(Debug, Clone, Args)]
pub(crate) struct CopyArgs {
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The agent in the store [default: name in the workspace's agent.yaml]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The namespace in the store [default: filesystem.namespace in agent.yaml]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Leave sessions where they are
    #[arg(long)]
    pub(crate) no_sessions: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: SkillsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// Install the skills of a repository, a directory, an archive or a store
    #[command(after_help = "Examples:
  stead skills add https://git.example/team/skills.git#v1.2   a branch, tag or commit
  stead skills add 'https://${TOKEN}@git.example/team/skills.git'
  stead skills add ../shared-skills                           a directory
  stead skills add skills.tar.gz --name team                  an archive
  stead skills add 'postgres://me:${PW}@db.example/team'      what was published to a store

A secret is named, never written: ${VARIABLE} is kept, its value is not (quote it, or the shell fills
it in). What is installed lies in .stead/skills/, and .stead/skills.json says where it came from.")]
    Add {
        /// Where from: URL[#REV], a path, or the URL of a store
        source: String,
        /// What to call it [default: the last part of its address]
        #[arg(long)]
        name: Option<String>,
    },
    /// Which skills there are, from where, which are hidden by others, and what is wrong
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an installed source with its skills
    Remove {
        /// The source, as `list` names it
        name: String,
    },
    /// Fetch installed sources again
    #[command(after_help = "Examples:
  stead skills update          all sources
  stead skills update team     one of them")]
    Update {
        /// The source [default: all]
        name: Option<String>,
    },
    /// Put the skills of a directory into a store, for others to add from there
    #[command(after_help = "Examples:
  stead skills publish skills sqlite:/srv/team/skills.db
  stead skills publish skills 'postgres://me:${PW}@db.example/team'")]
    Publish {
        /// The directory
        dir: PathBuf,
        /// The store: sqlite:FILE, postgres://…, mysql://… or redis://…
        #[arg(value_name = "STORE_URL")]
        store: String,
    },
    /// Check all skills strictly against the Agent Skills standard; exit code 2 if the workspace's own are not valid
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Say what would be removed, and remove nothing
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
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  stead run \"What is in this folder?\"
  echo \"Summarise\" | stead run -s weekly --output json
  stead run -s weekly --resume --approve all")]
pub(crate) struct RunArgs {
    /// What to do; `-` or nothing reads standard input. `@path` attaches a file of the workspace
    pub(crate) input: Option<String>,
    /// The session to continue, or the name of a new one
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Go on with the session without new input
    #[arg(long, requires = "session", conflicts_with = "input")]
    pub(crate) resume: bool,
    /// Pin the input: the model is shown it word for word however long the session becomes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) pin: bool,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
    /// What is printed
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

/// How a run is carried out.
#[derive(Debug, Clone, Args)]
pub(crate) struct TurnArgs {
    /// The agent, of a workspace that defines several
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The model as provider:model, over the workspace's own setting
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Who answers when a call asks: `ask` asks on a terminal and parks elsewhere
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    pub(crate) approve: Approve,
    /// Wait for a session that another process uses, at most this many seconds; without a number, an hour
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "3600")]
    pub(crate) wait: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answer; what the agent does goes to standard error
    Text,
    /// One JSON object at the end
    Json,
    /// Every event as one JSON object per line
    Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask the person at the terminal; elsewhere park
    Ask,
    /// Yes to every question of this run
    All,
    /// No to every question of this run
    None,
}

#[derive(Debug, Args)]
#[command(after_help = "Inside, /help lists commands and keys.
Exit codes: 0 when left at an idle prompt, 130 when left while a run went on or by a signal")]
pub(crate) struct ChatArgs {
    /// The session to continue, or the name of a new one
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) turn: TurnArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the demo's workspace is made [default: a temporary folder, removed afterwards]
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
  stead tool delete_file '{\"file_path\": \"agent.yaml\"}' --explain")]
pub(crate) struct ToolArgs {
    /// The tool; without it the tools are listed
    pub(crate) name: Option<String>,
    /// Its arguments as a JSON object
    #[arg(default_value = "{}")]
    pub(crate) args: String,
    /// The agent, of a workspace that defines several
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Say what the gate would decide and why, without calling
    #[arg(long)]
    pub(crate) explain: bool,
    /// Who answers when the call asks
    #[arg(long, value_enum, default_value_t = Approve::Ask)]
    pub(crate) approve: Approve,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// The agent, of a workspace that defines several
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
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
    /// The setting, as a path of keys; without it, every one that is set
    pub(crate) key: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The folder the workspaces lie in [default: the current one]
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
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

/// What narrows a search.
#[derive(Debug, Args)]
pub(crate) struct SearchBounds {
    /// Print JSON, one hit a line
    #[arg(long)]
    pub(crate) json: bool,
    /// At most this many hits
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub(crate) limit: u16,
    /// Only from this day on: 2026-11-16, or a moment
    #[arg(long, value_name = "DAY", value_parser = since)]
    pub(crate) since: Option<jiff::Timestamp>,
    /// Only up to this day, which counts
    #[arg(long, value_name = "DAY", value_parser = until)]
    pub(crate) until: Option<jiff::Timestamp>,
}

fn since(text: &str) -> Result<jiff::Timestamp, String> {
    stead::agent::since(text).ok_or_else(|| NO_DATE.to_owned())
}

fn until(text: &str) -> Result<jiff::Timestamp, String> {
    stead::agent::until(text).ok_or_else(|| NO_DATE.to_owned())
}

const NO_DATE: &str = "this is no date; write 2026-11-16 or 2026-11-16T09:30:00Z";

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Find lines of memory
    Search {
        /// Words to look for, the best matches first; "words in quotes" must stand together
        text: String,
        #[command(flatten)]
        bounds: SearchBounds,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// What there is, newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a conversation
    Show {
        /// The session
        id: String,
        /// Whole tool results and arguments, and parts that were rewound
        #[arg(long)]
        full: bool,
        /// Print the journal's entries as JSON
        #[arg(long)]
        json: bool,
    },
    /// Find text in all sessions
    Search {
        /// Words to look for, the best matches first; "words in quotes" must stand together
        text: String,
        #[command(flatten)]
        bounds: SearchBounds,
    },
    /// Copy a session, whole or up to the point before a turn
    Fork {
        /// The session
        id: String,
        /// The turn (as `show` numbers them) before which the copy ends
        #[arg(long, value_name = "TURN")]
        before: Option<usize>,
        /// The name of the new session
        #[arg(long, value_name = "ID")]
        to: Option<String>,
    },
    /// Continue from the point before a turn; nothing is erased
    Rewind {
        /// The session
        id: String,
        /// The turn (as `show` numbers them)
        #[arg(long, value_name = "TURN")]
        before: usize,
        /// Take back what was done to files since then, too; refused if someone else changed them
        #[arg(long)]
        files: bool,
    },
    /// Make the context of a session smaller: a summary stands for all but the newest messages; nothing is erased
    #[command(after_help = "Examples:
  stead sessions compact weekly
  stead sessions compact weekly --focus 'the decisions about the database'")]
    Compact {
        /// The session
        id: String,
        /// What the summary must keep above all
        #[arg(long, value_name = "TEXT")]
        focus: Option<String>,
        /// The model as provider:model, over the workspace's own setting
        #[arg(short, long, value_name = "MODEL")]
        model: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Pin an input: the model is shown it word for word however long the session becomes
    Pin {
        /// The session
        id: String,
        /// The turn (as `show` numbers them)
        #[arg(long, value_name = "TURN")]
        turn: usize,
        /// No longer
        #[arg(long)]
        off: bool,
    },
    /// Take back what a run did to files; refused if someone else changed them since
    #[command(after_help = "Examples:
  stead sessions undo --dry-run          what taking back the newest run would change
  stead sessions undo -s weekly          take back the newest run of that session
  stead sessions undo r01a1e1c2          that run; the beginning of its id will do")]
    Undo {
        /// The run [default: the newest that changed a file]
        run: Option<String>,
        /// Only runs of this session
        #[arg(short, long, value_name = "ID")]
        session: Option<String>,
        /// Show what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Play a recorded session again without model or tools, checking every step
    Replay {
        /// The session
        id: String,
        /// Print JSON events
        #[arg(long)]
        json: bool,
    },
    /// Write a session as Markdown or JSON
    Export {
        /// The session
        id: String,
        /// The format
        #[arg(long, value_enum, default_value_t = Format::Markdown)]
        format: Format,
        /// The file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove a session for good
    Rm {
        /// The sessions
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Markdown,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Args)]
pub(crate) struct BenchCommon {
    #[arg(long)]
    pub(crate) base_url: Option<String>,
    #[arg(long)]
    pub(crate) workdir: PathBuf,
    #[arg(long)]
    pub(crate) stream: bool,
    #[arg(long, default_value = "openai")]
    pub(crate) api: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// One session to its final text
    Run {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        prompt: String,
    },
    /// The same, then one line per message
    Dump {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        prompt: String,
        #[arg(long, default_value_t = 600)]
        clip: usize,
    },
    /// Many sessions at once
    Many {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        prompts_file: PathBuf,
    },
    /// What turns begin with, again and again
    Turn {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long, default_value_t = 20)]
        rounds: usize,
    },
    /// Questions to an index of many lines
    Search {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long, default_value_t = 100_000)]
        lines: usize,
        #[arg(long, default_value_t = 400)]
        rounds: usize,
    },
    /// Many sessions, kept live
    Hold {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        prompts_file: Option<PathBuf>,
    },
    /// Write a session of N messages
    Save {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        messages: usize,
    },
    /// Load it again
    Restore {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        dir: PathBuf,
    },
    /// Operations per second in the place that a workspace names
    Place(PlaceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    #[arg(long)]
    pub(crate) workdir: PathBuf,
    #[arg(long, value_enum)]
    pub(crate) layers: Layers,
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    pub(crate) ops: Vec<Op>,
    /// How many work at once, each in a directory of its own
    #[arg(long, default_value_t = 1)]
    pub(crate) clients: usize,
    /// How long each operation is measured
    #[arg(long, default_value_t = 1000)]
    pub(crate) ms: u64,
    /// Bytes of every file and journal line
    #[arg(long, default_value_t = 4096)]
    pub(crate) bytes: usize,
    /// Files in each directory
    #[arg(long, default_value_t = 100)]
    pub(crate) files: usize,
}

/// What lies between an operation and the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layers {
    /// Nothing
    Bare,
    /// The memory of undo
    Recorded,
    /// All that an agent's tools go through
    Agent,
}

/// An operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Op {
    /// A new file
    Write,
    /// A file of known version
    Overwrite,
    Read,
    Stat,
    /// A whole directory
    List,
    /// An entry to a session's journal
    Append,
}
