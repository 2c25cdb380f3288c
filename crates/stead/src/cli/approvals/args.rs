//! The arguments of `stead approvals`, the commands about questions that wait for a person.
//!
//! Effects: none.

use crate::cli::args::{OutputFormat, RunFlags};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the pending questions of all sessions
    #[command(
        after_help = "Examples:\n  stead approvals list\n  stead approvals list -s weekly --json        one session, for programs"
    )]
    List(SessionScopeArgs),
    /// Show a question: arguments, what would happen, and how it may be answered
    #[command(after_help = "Example:\n  stead approvals show call_1")]
    Show {
        /// The call, or the beginning of its id
        id: String,
        #[command(flatten)]
        place: SessionScopeArgs,
    },
    /// Approve calls as they are
    #[command(after_help = "Examples:
  stead approvals approve call_1
  stead approvals approve call_1 --always      and do not ask about such calls again
  stead approvals approve --all -s weekly      all that wait in a session")]
    Approve {
        /// The calls, or the beginnings of their ids
        #[arg(required_unless_present = "all", value_name = "ID")]
        ids: Vec<String>,
        /// All pending questions of the session
        #[arg(long, requires = "session", conflicts_with = "ids")]
        all: bool,
        /// Grant this for good: calls like these (these commands, this folder, this tool) are not
        /// asked about any more
        #[arg(long)]
        always: bool,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Approve a call with other arguments
    #[command(
        after_help = "Example:\n  stead approvals edit call_1 '{\"file_path\": \"a.txt\", \"content\": \"hello\"}'"
    )]
    Edit {
        /// The call, or the beginning of its id
        id: String,
        /// All its arguments, as a JSON object; `-` reads standard input
        args: String,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Reject calls, with a reason
    #[command(
        after_help = "Examples:\n  stead approvals reject call_1 --reason \"use the staging database\"\n  stead approvals reject --all -s weekly"
    )]
    Reject {
        /// The calls, or the beginnings of their ids
        #[arg(required_unless_present = "all", value_name = "ID")]
        ids: Vec<String>,
        /// All pending questions of the session
        #[arg(long, requires = "session", conflicts_with = "ids")]
        all: bool,
        /// The reason, as the model will read it
        #[arg(long, value_name = "WORDS")]
        reason: Option<String>,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Give the result of a call instead of running it
    #[command(after_help = "Examples:
  stead approvals respond call_1 \"the colour is blue\"
  ./carry-it-out | stead approvals respond call_1 -")]
    Respond {
        /// The call, or the beginning of its id
        id: String,
        /// The result; `-` reads standard input
        result: String,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// List the grants that `--always` made
    #[command(after_help = "Example:\n  stead approvals rules --json")]
    Rules(AgentScopeArgs),
    /// Revoke a grant: its calls ask again from the next run on
    #[command(after_help = "Example:\n  stead approvals revoke 3fa9")]
    Revoke {
        /// The rule, or the beginning of its id
        id: String,
        #[command(flatten)]
        of: AgentScopeArgs,
    },
}

/// The selection of questions, and the form of the output.
#[derive(Debug, Args)]
pub(crate) struct SessionScopeArgs {
    /// Only those of this session
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) of: AgentScopeArgs,
}

/// The agent, and the form of the output.
#[derive(Debug, Args)]
pub(crate) struct AgentScopeArgs {
    /// The agent to use, where the workspace defines several
    #[arg(short = 'a', long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of an answer.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The session, where the id of a call is ambiguous
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The name of the person who answers [default: the user of -u, or your login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// The hash of the arguments you saw (`show --json`); the answer is refused if they have
    /// changed
    #[arg(long, value_name = "HASH")]
    pub(crate) hash: Option<String>,
    /// Leave the run parked; `stead run -s SESSION --resume` resumes it
    #[arg(long, conflicts_with_all = ["approve", "mode", "output"])]
    pub(crate) no_resume: bool,
    #[command(flatten)]
    pub(crate) turn: RunFlags,
    /// The form of the resumed run's output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Print one JSON object: what was answered, what still waits, and how the run ended
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
}

impl ApprovalsCommand {
    /// Whether the command changes nothing.
    pub(crate) fn only_shows(&self) -> bool {
        match self {
            Self::List(_) | Self::Show { .. } | Self::Rules(_) => true,
            Self::Approve { .. }
            | Self::Edit { .. }
            | Self::Reject { .. }
            | Self::Respond { .. }
            | Self::Revoke { .. } => false,
        }
    }
}
