//! What a person allowed for good: a narrow rule, made by answering a question with "always".

use super::Judged;
use serde::{Deserialize, Serialize};
use std::fmt;
use stead_tools::shell;
use stead_vfs::VPath;

/// A call that need not be asked about any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// By which it is revoked.
    pub id: String,
    /// The tool, by canonical name.
    pub tool: String,
    /// Which of its calls.
    #[serde(flatten)]
    pub what: Granted,
    /// Who allowed it.
    pub by: String,
    /// When.
    pub at: jiff::Timestamp,
}

/// Which calls of a tool are allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "allows", content = "only", rename_all = "snake_case")]
pub enum Granted {
    /// Commands whose parts are all like one of these patterns.
    Commands(Vec<String>),
    /// Those that name only files below this folder.
    Folder(String),
    /// All of them.
    Calls,
}

/// Parameters that name a file.
const PATHS: [&str; 6] = ["file_path", "path", "from", "to", "cwd", "directory"];

impl Grant {
    /// Whether a call is among those it allows.
    pub fn covers(&self, call: &Judged) -> bool {
        self.tool == call.tool
            && match &self.what {
                Granted::Commands(patterns) => {
                    call.command.as_ref().is_some_and(|command| shell::allows(patterns, &command.text))
                }
                Granted::Folder(folder) => call.command.is_none() && within(folder, call),
                Granted::Calls => call.command.is_none(),
            }
    }
}

/// Whether a call names files, and only such as lie below `folder`.
fn within(folder: &str, call: &Judged) -> bool {
    let Ok(folder) = VPath::parse(folder) else { return false };
    let named: Vec<&str> = PATHS.iter().filter_map(|name| call.args.get(*name)?.as_str()).collect();
    let inside = |path: &&str| VPath::parse(path).is_ok_and(|path| folder.contains(&path));
    !named.is_empty() && named.iter().all(inside)
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.id, self.tool)?;
        match &self.what {
            Granted::Commands(patterns) => write!(f, ": {}", patterns.join(", "))?,
            Granted::Folder(folder) => write!(f, " in {folder}")?,
            Granted::Calls => {}
        }
        write!(f, ", allowed by {})", self.by)
    }
}
