//! How freely an agent may act.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How freely an agent may act, where no rule says otherwise. Rules and protected files hold in
/// every mode.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Reads, and writes inside the workspace, are allowed; the rest asks.
    #[default]
    Default,
    /// Changes of an attached project are allowed too.
    AcceptEdits,
    /// Only reads; the rest is denied.
    Explore,
    /// What would ask is denied.
    DontAsk,
    /// What this mode alone would ask about is allowed. What a rule asks about, and what is
    /// flagged, still asks.
    Bypass,
}

impl PermissionMode {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Explore,
        Self::DontAsk,
        Self::Bypass,
    ];

    /// The name used in settings, journals and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "accept_edits",
            Self::Explore => "explore",
            Self::DontAsk => "dont_ask",
            Self::Bypass => "bypass",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PermissionMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let named = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        named.ok_or_else(|| format!("{text:?} is no permission mode; they are: {}", known()))
    }
}
