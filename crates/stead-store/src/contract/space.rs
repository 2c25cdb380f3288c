//! Parts of a store that see nothing of each other.

use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// Longest name of a space, in bytes: room for the key beside it in every backend's index.
const MAX_SPACE_BYTES: usize = 400;

/// A part of a store that sees nothing of the others, named by a list of ids.
///
/// Ids may be any text. Each is encoded so that different lists give different names: letters,
/// digits, `_` and `-` stand for themselves, every other byte for its number. No id can therefore
/// hold the separator, climb out, or be taken for another one that merely looks like it. A name
/// that would be too long ends in a hash of all of it.
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
    /// The space named by `ids`.
    pub fn new<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Self {
        let encoded: Vec<String> = ids.into_iter().map(|id| encode(id.as_ref())).collect();
        Self(hash_if_too_long(encoded.join("/")))
    }

    /// A space within this one.
    pub fn within(&self, id: &str) -> Self {
        Self(hash_if_too_long(format!("{}/{}", self.0, encode(id))))
    }

    /// Its name: unique, and safe as part of a key, a path or a statement's parameter.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One id as a part of a name. Also used where an id becomes a folder.
pub(crate) fn encode(id: &str) -> String {
    // No id encodes to a lone `%`, so it is free to stand for the empty one.
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

/// The name of a folder that belongs to `ids`: unlike any name that a person gives a folder by
/// habit, and unlike that of other ids.
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
    // `#` is in no encoded id, so a hashed name is never another's plain one.
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
