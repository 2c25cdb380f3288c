//! What a person allowed for good: a narrow rule, made by answering a question with "always".

use super::Judged;
use serde::{Deserialize, Serialize};
use std::fmt;
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

impl Granted {
    /// The narrowest rule that makes calls like this one free; none where no rule should: a person must see each.
    pub fn offer(call: &Judged) -> Option<Self> {
        if call.tainted.is_some() || call.flagged.is_some() {
            return None;
        }
        if let Some(command) = &call.command {
            return Self::commands(&command.text);
        }
        let named: Vec<VPath> = named(call).into_iter().map(VPath::parse).collect::<Result<_, _>>().ok()?;
        match named.split_first() {
            None => Some(Self::Calls),
            Some((first, rest)) => {
                // A file of the root would open the whole workspace, so it is granted alone.
                let folder = first.parent().filter(|folder| !folder.is_root()).unwrap_or_else(|| first.clone());
                let all = rest.iter().chain(&call.lies).all(|path| folder.contains(path));
                (all && !folder.is_root()).then(|| Self::Folder(folder.to_string()))
            }
        }
    }

    /// The rule for commands like this one. Here `stead_tools::shell::suggest` is asked once it is there; until then
    /// no rule is offered for commands.
    fn commands(_command: &str) -> Option<Self> {
        None
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands(patterns) => write!(f, "commands like {}", patterns.join(", ")),
            Self::Folder(folder) => write!(f, "in {folder}"),
            Self::Calls => f.write_str("every call"),
        }
    }
}

/// The paths that a call names.
fn named(call: &Judged) -> Vec<&str> {
    PATHS.iter().filter_map(|name| call.args.get(*name)?.as_str()).collect()
}

/// Parameters that name a file.
const PATHS: [&str; 6] = ["file_path", "path", "from", "to", "cwd", "directory"];

impl Grant {
    /// Whether a call is among those it allows.
    pub fn covers(&self, call: &Judged) -> bool {
        self.tool == call.tool
            && match &self.what {
                Granted::Commands(_) => false,
                Granted::Folder(folder) => call.command.is_none() && within(folder, call),
                Granted::Calls => call.command.is_none(),
            }
    }
}

/// Whether a call names files, and only such as lie below `folder`.
fn within(folder: &str, call: &Judged) -> bool {
    let Ok(folder) = VPath::parse(folder) else { return false };
    let named = named(call);
    let inside = |path: &&str| VPath::parse(path).is_ok_and(|path| folder.contains(&path));
    !named.is_empty() && named.iter().all(inside) && call.lies.iter().all(|path| folder.contains(path))
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
