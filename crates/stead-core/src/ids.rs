//! Identifiers that are safe as file names and store keys by construction.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Longest identifier, in bytes: leaves room for suffixes within a 255-byte file name.
const MAX_ID_BYTES: usize = 128;

/// Why a string is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The empty string.
    #[error("an id must not be empty")]
    Empty,
    /// More than 128 bytes.
    #[error("an id may have at most {MAX_ID_BYTES} bytes, this one has {0}")]
    TooLong(usize),
    /// A separator, dot, white space or control character, or a leading hyphen.
    #[error(
        "an id must not contain {0:?} (no separators, dots, spaces or control characters, no leading hyphen)"
    )]
    Forbidden(char),
}

fn check(text: &str) -> Result<(), IdError> {
    let first = text.chars().next().ok_or(IdError::Empty)?;
    if text.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong(text.len()));
    }
    if first == '-' {
        return Err(IdError::Forbidden('-'));
    }
    let forbidden =
        |c: char| matches!(c, '/' | '\\' | '.' | ':') || c.is_control() || c.is_whitespace();
    text.chars()
        .find(|&c| forbidden(c))
        .map_or(Ok(()), |c| Err(IdError::Forbidden(c)))
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses an identifier; refuses what could leave its directory or hide in a listing.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                check(text.as_ref())?;
                Ok(Self(text.as_ref().into()))
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.to_string()
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

id!(
    /// One conversation.
    SessionId
);
id!(
    /// One agent definition of a workspace.
    AgentId
);
id!(
    /// One input worked to its end.
    RunId
);

/// Why a text cannot name a user or tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The empty string.
    #[error("a user or tenant must have a name")]
    Empty,
    /// More than 256 bytes.
    #[error(
        "the name of a user or tenant may have at most {MAX_NAME_BYTES} bytes, this one has {0}"
    )]
    TooLong(usize),
    /// A control character.
    #[error("the name of a user or tenant must not contain control characters")]
    Control,
}

/// Longest name of a user or tenant, in bytes: an address of mail fits.
const MAX_NAME_BYTES: usize = 256;

/// Names that come from elsewhere: mail addresses, account numbers, `a/b`. Whatever they hold, they
/// only ever reach a path or a key in encoded form, so none can be taken for another.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes any text of 1 to 256 bytes without control characters.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                let text = text.as_ref();
                if text.is_empty() {
                    Err(NameError::Empty)
                } else if text.len() > MAX_NAME_BYTES {
                    Err(NameError::TooLong(text.len()))
                } else if text.chars().any(char::is_control) {
                    Err(NameError::Control)
                } else {
                    Ok(Self(text.into()))
                }
            }

            /// The name as given. Not for paths or keys.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $name {
            /// Whoever gives no name shares this one, and nothing with those who do.
            fn default() -> Self {
                Self("_default".into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// One person or service that talks to an agent.
    UserId
);
name!(
    /// One party among several that share an installation.
    TenantId
);

/// Whose session it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The party.
    pub tenant: TenantId,
    /// The person of that party.
    pub user: UserId,
}

/// Time-ordered, unique text: `prefix` and a UUID v7.
fn fresh(prefix: &str) -> Arc<str> {
    let id = uuid::Uuid::now_v7().simple().to_string();
    format!("{prefix}{id}").into()
}

impl AgentId {
    /// The agent of a workspace that names none.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl SessionId {
    /// Stands where something is done outside any session.
    pub fn sessionless() -> Self {
        Self("outside".into())
    }

    /// A new session id; later ones sort after earlier ones.
    pub fn fresh() -> Self {
        Self(fresh("s"))
    }
}

impl RunId {
    /// A new run id; later ones sort after earlier ones.
    pub fn fresh() -> Self {
        Self(fresh("r"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_refuses_whatever_could_change_a_path() {
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a.b",
            "a\0b",
            "a\nb",
            "-rf",
            "a b",
            "c:",
            &"x".repeat(129),
        ] {
            assert!(SessionId::new(bad).is_err(), "{bad:?} was accepted");
        }
        for good in ["s1", "Ünïcode", "a-b_c", &"x".repeat(128)] {
            assert_eq!(SessionId::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn fresh_ids_are_valid_and_sorted() {
        let a = SessionId::fresh();
        let b = SessionId::fresh();
        assert!(a < b);
        assert_eq!(SessionId::new(a.as_str()), Ok(a));
    }
}
