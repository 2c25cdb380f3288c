//! The command line of the adapter.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Runs the work that the benchmark measures
#[derive(Debug, Parser)]
#[command(name = "stead-bench")]
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
    /// Subagents in waves, with a model that takes no time
    Children {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long, default_value_t = 20)]
        waves: usize,
        #[arg(long, default_value_t = 50)]
        width: usize,
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
    pub(crate) layers: BenchLayers,
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    pub(crate) ops: Vec<BenchOp>,
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
pub(crate) enum BenchLayers {
    /// Nothing
    Bare,
    /// The memory of undo
    Recorded,
    /// All that an agent's tools go through
    Agent,
}

/// An operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchOp {
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

impl BenchCommand {
    /// Whether many sessions or clients work at once.
    pub(crate) fn is_concurrent(&self) -> bool {
        match self {
            Self::Many { .. } | Self::Hold { .. } => true,
            Self::Place(args) => args.clients > 1,
            Self::Run { .. }
            | Self::Dump { .. }
            | Self::Turn { .. }
            | Self::Search { .. }
            | Self::Children { .. }
            | Self::Save { .. }
            | Self::Restore { .. } => false,
        }
    }
}
