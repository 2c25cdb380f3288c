//! The arguments of `stead memory`, the commands about long-term memory.
//!
//! Effects: none.

use crate::cli::args::SearchBounds;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Find lines of memory, the best matches first
    #[command(after_help = "Examples:
  stead memory search 'where does heron live'
  stead memory search '\"exact words\"' --since 2026-11-01 --json")]
    Search {
        /// Words to look for; "words in quotes" must stand together
        text: String,
        #[command(flatten)]
        bounds: SearchBounds,
    },
    /// Show the state of memory: pending facts, merges, failures
    Status(JsonArgs),
    /// Show the facts from untrusted content that wait for you
    #[command(after_help = "Examples:
  stead memory review
  stead memory approve 4f0c12ab34cd      it will be remembered
  stead memory reject --all              none of them will")]
    Review(JsonArgs),
    /// Accept pending facts
    #[command(
        after_help = "Examples:\n  stead memory approve 4f0c12ab34cd 77aa01fe2b90\n  stead memory approve --all"
    )]
    Approve(FactSelectionArgs),
    /// Reject pending facts
    #[command(after_help = "Example:\n  stead memory reject 4f0c12ab34cd")]
    Reject(FactSelectionArgs),
    /// List the facts that are remembered, with their ids
    List(JsonArgs),
    /// Show each line of curated memory with its date, session, entry and speaker
    #[command(after_help = "Example:\n  stead memory blame | grep agent")]
    Blame(JsonArgs),
    /// Show what the last merges changed
    #[command(
        after_help = "Examples:\n  stead memory diff          the last one\n  stead memory diff -n 5     the last five"
    )]
    Diff {
        /// How many merges, newest first
        #[arg(short, long, default_value_t = 1, value_name = "N")]
        number: usize,
        #[command(flatten)]
        form: JsonArgs,
    },
    /// Edit curated memory in $EDITOR; changes made by others meanwhile are kept
    Edit,
    /// Extract facts from sessions now
    #[command(
        after_help = "Examples:\n  stead memory flush             all sessions\n  stead memory flush -s plan     one of them"
    )]
    Flush {
        /// The session [default: all]
        #[arg(short, long, value_name = "ID")]
        session: Option<String>,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        form: JsonArgs,
    },
    /// Merge new facts into curated memory, now
    Consolidate {
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        form: JsonArgs,
    },
    /// Do the queued memory work until nothing is due
    #[command(hide = true)]
    Work {
        #[command(flatten)]
        model: ModelArgs,
        /// The maximum number of seconds to work
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        seconds: u64,
    },
}

/// The form of the output.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A selection of facts.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct FactSelectionArgs {
    /// The facts, by id
    pub(crate) ids: Vec<String>,
    /// All pending facts
    #[arg(long)]
    pub(crate) all: bool,
}

/// The agent and model to use.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// The agent to use, where the workspace defines several
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Use this model (provider:model), unless memory.model is set
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

impl MemoryCommand {
    /// Whether the command changes nothing and calls no model.
    pub(crate) fn only_shows(&self) -> bool {
        match self {
            Self::Search { .. }
            | Self::Status(_)
            | Self::Review(_)
            | Self::List(_)
            | Self::Blame(_)
            | Self::Diff { .. } => true,
            Self::Approve(_)
            | Self::Reject(_)
            | Self::Edit
            | Self::Flush { .. }
            | Self::Consolidate { .. }
            | Self::Work { .. } => false,
        }
    }
}
