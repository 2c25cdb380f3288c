//! Spaces: isolated parts of a store.
//!
//! Effects: none.

use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// The maximum length of a space's name in bytes, which leaves room for the key in every backend's
/// index.
const MAX_SPACE_BYTES: usize = 400;

/// An isolated part of a store, named by a list of ids.
///
/// Ids may be any text. Each is encoded so that different lists give different names: letters,
/// digits, `_` and `-` stay as they are, every other byte becomes its number. So no id can contain
/// the separator, leave its space, or collide with an id that looks like it. A name that would be
/// too long ends in a hash of the whole name.
///
/// ```
/// use stead_store::Space;
/// assert_eq!(Space::new(["agents", "main", "users", "a/b"]).as_str(), "agents/main/users/a%2Fb");
/// assert_ne!(Space::new(["a", "b"]), Space::new(["a/b"]));
/// assert_ne!(Space::new([""; 0]), Space::new([""]));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(Arc<str>);

impl Space {
    /// Returns the space named by `ids`.
    pub fn new<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let encoded: Vec<String> = ids.into_iter().map(|id| encode(id.as_ref())).collect();
        Self(hash_if_too_long(encoded.join("/")))
    }

    /// Returns a space within this one.
    pub fn within(&self, id: &str) -> Self {
        Self(hash_if_too_long(format!("{}/{}", self.0, encode(id))))
    }

    /// Returns the name of the space: unique, and safe in a key, a path or a statement's parameter.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Encodes one id as a part of a name. Also used where an id becomes a folder.
pub(crate) fn encode(id: &str) -> String {
    // No other id encodes to a lone `%`, so it can stand for the empty id.
    if id.is_empty() {
        return "%".to_owned();
    }
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// Returns the name of a folder for `ids`. It differs from the folder of any other ids and from
/// names that people usually give folders.
pub fn folder_name(ids: &[&str]) -> String {
    /// Leaves room within the 255 bytes of a file name.
    const MAX_FOLDER_BYTES: usize = 200;
    let name: String = ids.iter().map(|id| format!("@{}", encode(id))).collect();
    if name.len() <= MAX_FOLDER_BYTES {
        format!("@{name}")
    } else {
        format!("@@#{}", hex(&name))
    }
}

fn hex(name: &str) -> String {
    Sha256::digest(name.as_bytes())
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

fn hash_if_too_long(name: String) -> Arc<str> {
    if name.len() <= MAX_SPACE_BYTES {
        return name.into();
    }
    // No encoded id contains `#`, so a hashed name never equals a plain one.
    format!("{}#{}", &name[..MAX_SPACE_BYTES - 65], hex(&name)).into()
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Space({self})")
    }
}
