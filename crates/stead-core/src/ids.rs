//! Identifiers that are safe as file names and store keys by construction.
//!
//! Effects: the clock, randomness.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The maximum length of an identifier in bytes, which leaves room for suffixes within a 255-byte
/// file name.
const MAX_ID_BYTES: usize = 128;

/// The reason why a text is not a valid identifier.
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
            /// Parses an identifier. Refuses text that could leave its directory or hide in a
            /// listing.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                check(text.as_ref())?;
                Ok(Self(text.as_ref().into()))
            }

            /// Returns the identifier as text.
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
id!(
    /// One command that waits, or waited, in the inbox of a session.
    InputId
);

/// The reason why a text cannot name a user or tenant.
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

/// The maximum length of the name of a user or tenant in bytes, enough for an email address.
const MAX_NAME_BYTES: usize = 256;

/// Names that come from elsewhere: email addresses, account numbers, `a/b`. They are always encoded
/// in paths and keys, so no name can be mistaken for another.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Accepts any text of 1 to 256 bytes without control characters.
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

            /// Returns the name as given. Not for paths or keys.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $name {
            /// Returns the name shared by everybody who gives none.
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
    /// A person or service that talks to an agent.
    UserId
);
name!(
    /// A tenant of an installation.
    TenantId
);

/// The owner of a session, a file tree or a budget.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The tenant.
    pub tenant: TenantId,
    /// The user of that tenant.
    pub user: UserId,
}

/// Returns a unique, time-ordered text: `prefix` and a UUID v7.
fn fresh(prefix: &str) -> Arc<str> {
    let id = uuid::Uuid::now_v7().simple().to_string();
    format!("{prefix}{id}").into()
}

/// The characters of random ids: digits and lower-case letters, without `i`, `l`, `o` and `u`, which
/// are easily misread.
const ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The number of random characters, of 5 bits each, in a session id.
const RANDOM_ID_LENGTH: usize = 16;

/// Returns a unique text: `prefix` and random characters. The random bits of a UUID v4 are all but
/// six in the middle, so its two ends are used.
fn random(prefix: &str) -> String {
    let bits = uuid::Uuid::new_v4().as_u128();
    let ends = (bits >> 88 << 40) | (bits & ((1 << 40) - 1));
    let digits = (0..RANDOM_ID_LENGTH).map(|at| {
        let digit = (ends >> (5 * at)) & 31;
        char::from(ID_ALPHABET[digit as usize])
    });
    prefix.chars().chain(digits).collect()
}

impl AgentId {
    /// Returns the id of the default agent.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl SessionId {
    /// Returns the id that is used outside any session.
    pub fn sessionless() -> Self {
        Self("outside".into())
    }

    /// Returns a new session id: random from its second character on, so that a few characters name
    /// a session among the others of a person.
    pub fn fresh() -> Self {
        Self(random("s").into())
    }

    /// Returns whether the id has the form of those that Stead gives, now or in earlier versions, and
    /// is not a name that a person chose.
    pub fn is_generated(&self) -> bool {
        let Some(rest) = self.0.strip_prefix('s') else {
            return false;
        };
        let is_hex = rest
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let is_random = rest.bytes().all(|b| ID_ALPHABET.contains(&b));
        match rest.len() {
            RANDOM_ID_LENGTH => is_random,
            32 => is_hex,
            _ => false,
        }
    }
}

impl RunId {
    /// Returns a new run id; later ones sort after earlier ones.
    pub fn fresh() -> Self {
        Self(fresh("r"))
    }
}

impl InputId {
    /// Returns a new input id; later ones sort after earlier ones.
    pub fn fresh() -> Self {
        Self(fresh("i"))
    }

    /// Returns a new id for the input with this number in its inbox. Ids of one inbox sort by
    /// number.
    pub fn numbered(number: u64) -> Self {
        Self(fresh(&format!("i{number:016x}-")))
    }

    /// Returns the number in the inbox, or `None` for an id that no inbox gave.
    pub fn number(&self) -> Option<u64> {
        let (number, unique) = self.0.strip_prefix('i')?.split_once('-')?;
        let is_exact = number.len() == 16 && !unique.is_empty();
        u64::from_str_radix(number, 16).ok().filter(|_| is_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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
    fn fresh_ids_are_valid_and_those_of_runs_are_sorted() {
        let a = RunId::fresh();
        let b = RunId::fresh();
        assert!(a < b);
        assert_eq!(RunId::new(a.as_str()), Ok(a));
    }

    #[test]
    fn a_few_characters_name_a_session_among_a_thousand() {
        let ids: BTreeSet<String> = (0..1_000)
            .map(|_| SessionId::fresh().as_str().to_owned())
            .collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| id.len() == 17));
        let short: BTreeSet<&str> = ids.iter().map(|id| &id[..9]).collect();
        assert_eq!(short.len(), 1_000);
        for id in &ids {
            assert!(SessionId::new(id).unwrap().is_generated(), "{id}");
        }
        for (id, generated) in [
            ("s01a1eb154f3a7c21b8e9d0a1b2c3d4e5", true),
            ("weekly", false),
            ("s1", false),
            ("summary-of-notes", false),
            ("sabcdefghjkmnpqri", false),
        ] {
            assert_eq!(
                SessionId::new(id).unwrap().is_generated(),
                generated,
                "{id}"
            );
        }
    }

    #[test]
    fn an_input_id_tells_its_number() {
        let ids = [9, 10, u64::MAX].map(InputId::numbered);
        assert!(ids.is_sorted());
        assert_eq!(
            ids.map(|id| InputId::new(id.as_str()).unwrap().number()),
            [Some(9), Some(10), Some(u64::MAX)]
        );
        for other in [InputId::fresh(), InputId::new("i0-a").unwrap()] {
            assert_eq!(other.number(), None, "{other}");
        }
    }
}
