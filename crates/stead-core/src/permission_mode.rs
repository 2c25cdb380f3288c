//! Permission modes: what happens to a call where no rule decides.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What happens where no rule decides. Rules and protected files apply in every mode.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Reads, and writes inside the workspace, are allowed; everything else asks.
    #[default]
    Default,
    /// Changes of an attached project are allowed too.
    AcceptEdits,
    /// Only reads are allowed; everything else is denied.
    Explore,
    /// Calls that would ask are denied.
    DontAsk,
    /// Calls that only this mode would ask about are allowed. Calls that a rule asks about, and
    /// flagged ones, still ask.
    Bypass,
}

impl PermissionMode {
    /// All modes.
    pub const ALL: [Self; 5] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Explore,
        Self::DontAsk,
        Self::Bypass,
    ];

    /// Whether some call is allowed or asked about in this mode that `other` denies, or is allowed
    /// here and asked about there.
    pub fn is_wider_than(self, other: Self) -> bool {
        self.freedom() > other.freedom()
    }

    /// Returns the place of this mode in the order of the modes by what they let calls do.
    fn freedom(self) -> u8 {
        match self {
            Self::Explore => 0,
            Self::DontAsk => 1,
            Self::Default => 2,
            Self::AcceptEdits => 3,
            Self::Bypass => 4,
        }
    }

    /// Returns the name used in settings, journals and on the command line.
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
