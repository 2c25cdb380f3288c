//! The command line of the benchmark adapter.
//!
//! Effects: none.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use stead::workspace::FlushAfter;

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
    /// Run one session to its final text
    Run {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        prompt: String,
    },
    /// Run one session, then print one line per message
    Dump {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        prompt: String,
        #[arg(long, default_value_t = 600)]
        clip: usize,
    },
    /// Run many sessions at the same time
    Many {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        prompts_file: PathBuf,
    },
    /// Measure the setup of turns
    Turn {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long, default_value_t = 20)]
        rounds: usize,
    },
    /// Measure queries on an index of many lines
    Search {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long, default_value_t = 100_000)]
        lines: usize,
        #[arg(long, default_value_t = 400)]
        rounds: usize,
    },
    /// Measure subagents in waves, with a model that takes no time
    Children {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long, default_value_t = 20)]
        waves: usize,
        #[arg(long, default_value_t = 50)]
        width: usize,
    },
    /// Count the model calls of a day of use, with a model that takes no time
    Day {
        #[arg(long)]
        workdir: PathBuf,
        /// When facts are looked for
        #[arg(long, value_enum)]
        after: DayFlush,
    },
    /// Keep many sessions open
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
    /// Load a session of N messages
    Restore {
        #[command(flatten)]
        common: BenchCommon,
        #[arg(long)]
        dir: PathBuf,
    },
    /// Write N sessions of one run
    MakeSessions {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long)]
        sessions: usize,
    },
    /// Measure subscriptions to some of N sessions
    Follow {
        #[arg(long)]
        workdir: PathBuf,
        #[arg(long)]
        sessions: usize,
    },
    /// Measure operations per second in the place that a workspace names
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
    /// The number of parallel clients, each in its own directory
    #[arg(long, default_value_t = 1)]
    pub(crate) clients: usize,
    /// The number of milliseconds for which each operation is measured
    #[arg(long, default_value_t = 1000)]
    pub(crate) ms: u64,
    /// The size of every file and journal line in bytes
    #[arg(long, default_value_t = 4096)]
    pub(crate) bytes: usize,
    /// The number of files in each directory
    #[arg(long, default_value_t = 100)]
    pub(crate) files: usize,
}

/// The layers between an operation and the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchLayers {
    /// No layers
    Bare,
    /// The undo log
    Recorded,
    /// All layers that an agent's tools use
    Agent,
}

/// An operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchOp {
    /// A new file
    Write,
    /// A write to a file of known version
    Overwrite,
    Read,
    Stat,
    /// A listing of a directory
    List,
    /// An append to a session's journal
    Append,
}

/// When facts are looked for.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum DayFlush {
    Run,
    Idle,
}

impl From<DayFlush> for FlushAfter {
    fn from(after: DayFlush) -> Self {
        match after {
            DayFlush::Run => Self::Run,
            DayFlush::Idle => Self::Idle,
        }
    }
}

impl BenchCommand {
    /// Whether many sessions or clients work at the same time.
    pub(crate) fn is_concurrent(&self) -> bool {
        match self {
            Self::Many { .. } | Self::Hold { .. } => true,
            Self::Place(args) => args.clients > 1,
            Self::Run { .. }
            | Self::Dump { .. }
            | Self::Turn { .. }
            | Self::Search { .. }
            | Self::Children { .. }
            | Self::Day { .. }
            | Self::Save { .. }
            | Self::Restore { .. }
            | Self::MakeSessions { .. }
            | Self::Follow { .. } => false,
        }
    }
}
