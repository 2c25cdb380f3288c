//! The commands about sessions, and the bounds of a search.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

const NO_DATE: &str = "this is no date; write 2026-11-16 or 2026-11-16T09:30:00Z";

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
    stead::agent::parse_since(text).ok_or_else(|| NO_DATE.to_owned())
}

fn until(text: &str) -> Result<jiff::Timestamp, String> {
    stead::agent::parse_until(text).ok_or_else(|| NO_DATE.to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// What there is, newest first; those of subagents only with --all
    List {
        /// Those of subagents, too
        #[arg(short, long)]
        all: bool,
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
    /// Make the context of a session smaller: a summary stands for all but the newest messages;
    /// nothing is erased
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
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
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
pub(crate) enum ExportFormat {
    Markdown,
    Json,
}
