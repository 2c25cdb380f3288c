//! The arguments of `stead sessions`, and the limits of a search.
//!
//! Effects: none.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use stead::store::PageCursor;

const NO_DATE: &str = "this is not a date; write 2026-11-16 or 2026-11-16T09:30:00Z";

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

/// The limits of a search.
#[derive(Debug, Args)]
pub(crate) struct SearchBounds {
    /// Print JSON, one hit per line
    #[arg(long)]
    pub(crate) json: bool,
    /// At most this many hits
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub(crate) limit: u16,
    /// From this day on (2026-11-16), or from this moment (2026-11-16T09:30:00Z)
    #[arg(long, value_name = "DAY", value_parser = since)]
    pub(crate) since: Option<jiff::Timestamp>,
    /// Until this day (inclusive)
    #[arg(long, value_name = "DAY", value_parser = until)]
    pub(crate) until: Option<jiff::Timestamp>,
}

fn since(text: &str) -> Result<jiff::Timestamp, String> {
    stead::agent::parse_since(text).ok_or_else(|| NO_DATE.to_owned())
}

fn until(text: &str) -> Result<jiff::Timestamp, String> {
    stead::agent::parse_until(text).ok_or_else(|| NO_DATE.to_owned())
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first
    List {
        /// All sessions, also those of subagents
        #[arg(short, long, conflicts_with_all = ["limit", "after"])]
        all: bool,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = positive)]
        limit: usize,
        /// Go on after the session whose `cursor` this is (`--json`)
        #[arg(long, value_name = "CURSOR")]
        after: Option<PageCursor>,
        /// Print JSON: an array of sessions, each with the `cursor` that --after takes
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
    /// Give a session a title, by which it is listed and found
    #[command(after_help = "Examples:
  stead sessions name s7k3 \"Move to PostgreSQL\"
  stead run -s \"Move to PostgreSQL\" \"Go on\"")]
    Name {
        /// The session
        id: String,
        /// The title
        title: String,
    },
    /// Copy a session into a new one, whole or up to an input
    #[command(after_help = "Examples:
  stead sessions show weekly                        the inputs are numbered
  stead sessions fork weekly --to weekly-2          copy all of it
  stead sessions fork weekly --before 3             copy what came before input 3")]
    Fork {
        /// The session
        id: String,
        /// Copy only what came before this input (as `show` numbers them)
        #[arg(long, value_name = "TURN")]
        before: Option<usize>,
        /// The name of the new session
        #[arg(long, value_name = "ID")]
        to: Option<String>,
    },
    /// Return a session to the point before an input; the journal keeps what came after
    #[command(after_help = "Examples:
  stead sessions show weekly                        the inputs are numbered
  stead sessions rewind weekly --before 3           forget input 3 and what followed
  stead sessions rewind weekly --before 3 --files   restore the files as well")]
    Rewind {
        /// The session
        id: String,
        /// The input (as `show` numbers them)
        #[arg(long, value_name = "TURN")]
        before: usize,
        /// Also restore the files that were changed since; refused if someone else changed them
        #[arg(long)]
        files: bool,
    },
    /// Summarise all but the newest messages of a session; the journal keeps them
    #[command(after_help = "Examples:
  stead sessions compact weekly
  stead sessions compact weekly --focus 'the decisions about the database'")]
    Compact {
        /// The session
        id: String,
        /// What the summary must keep in any case
        #[arg(long, value_name = "TEXT")]
        focus: Option<String>,
        /// Use this model (provider:model) instead of the workspace's
        #[arg(short, long, value_name = "MODEL")]
        model: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Pin an input, so that the model always sees it word for word
    Pin {
        /// The session
        id: String,
        /// The input (as `show` numbers them)
        #[arg(long, value_name = "TURN")]
        turn: usize,
        /// Unpin
        #[arg(long)]
        off: bool,
    },
    /// Vouch for all that a session has taken in so far; it is no longer tainted
    #[command(after_help = "Examples:
  stead sessions show weekly --full     look at what it read
  stead sessions trust weekly           from here on it is asked no more than a fresh session
  stead sessions trust weekly --json    print what you vouched for

Untrusted content that comes later taints the session again.")]
    Trust {
        /// The session
        id: String,
        /// The name of the person who says so [default: the user of -u, or your login name]
        #[arg(long, value_name = "NAME")]
        by: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Undo what a run did to files; refused if someone else changed them since
    #[command(after_help = "Examples:
  stead sessions undo --dry-run          show what undoing the newest run would change
  stead sessions undo -s weekly          undo the newest run of that session
  stead sessions undo r01a1e1c2          undo that run; the beginning of its id is enough")]
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
    #[command(after_help = "Examples:
  stead sessions export weekly                      Markdown, to standard output
  stead sessions export weekly --format json -f weekly.json")]
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

impl SessionsCommand {
    /// Whether the command changes nothing and calls no model.
    pub(crate) fn only_shows(&self) -> bool {
        match self {
            Self::List { .. }
            | Self::Show { .. }
            | Self::Search { .. }
            | Self::Replay { .. }
            | Self::Export { .. } => true,
            Self::Name { .. }
            | Self::Fork { .. }
            | Self::Rewind { .. }
            | Self::Compact { .. }
            | Self::Pin { .. }
            | Self::Trust { .. }
            | Self::Undo { .. }
            | Self::Rm { .. } => false,
        }
    }
}
