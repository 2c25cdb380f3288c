//! The file names of the file store: any text, encoded as a file name.
//!
//! Effects: none.

use crate::Space;
use sha2::{Digest, Sha256};

/// The maximum length of an encoded name, which leaves room for a suffix below the 255 bytes that
/// file systems allow.
const MAX_NAME_BYTES: usize = 200;
/// The length of the readable prefix of a shortened name.
const KEPT_BYTES: usize = 100;
/// The separator before the hash of a shortened name. No encoded name contains it.
const HASH_SEPARATOR: char = '~';

/// Returns the folder name of a space. The space's name contains no `+`, so that can replace the
/// separator.
pub(super) fn space_folder_name(space: &Space) -> String {
    match space.as_str() {
        "" => "+".to_owned(),
        name => hash_if_too_long(name.replace('/', "+"), name),
    }
}

/// Returns the file name of a key. Letters, digits, `_`, `-` and `.` stay as they are; every other
/// byte and a leading `.` becomes its number.
pub(super) fn key_file_name(key: &str) -> String {
    // No other key encodes to a lone `%`.
    if key.is_empty() {
        return "%".to_owned();
    }
    let mut name = String::with_capacity(key.len());
    for (at, byte) in key.bytes().enumerate() {
        match byte {
            b'.' if at == 0 => name.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                name.push(char::from(byte))
            }
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    hash_if_too_long(name, key)
}

/// Returns the key of a file name, or `None` if the name was shortened.
pub(super) fn key_from_file_name(name: &str) -> Option<String> {
    if name == "%" {
        return Some(String::new());
    }
    if name.contains(HASH_SEPARATOR) {
        return None;
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, more @ ..] = rest else {
            return None;
        };
        rest = more;
        let digits = [*high, *low];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn hash_if_too_long(name: String, whole: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let digest = Sha256::digest(whole.as_bytes());
    let hex = digest
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("{}{HASH_SEPARATOR}{hex}", &name[..KEPT_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_short_and_told_apart() {
        let long = "ä".repeat(550);
        let keys = [
            "",
            ".",
            "..",
            "a",
            "a.b",
            ".a",
            "a/b",
            "%",
            "~",
            "a~b",
            "A",
            "a b",
            "\u{10ffff}",
            long.as_str(),
        ];
        let names: Vec<String> = keys.iter().map(|key| key_file_name(key)).collect();
        for (name, key) in names.iter().zip(keys) {
            assert!(
                name.len() <= 200 && !name.starts_with('.') && !name.contains('/'),
                "{name}"
            );
            let told = key_from_file_name(name);
            assert!(
                told.as_deref() == Some(key) || (told.is_none() && key == long),
                "{key}: {name}"
            );
        }
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn spaces_are_folders_beside_each_other() {
        assert_eq!(
            space_folder_name(&Space::new(["agents", "a/b"])),
            "agents+a%2Fb"
        );
        assert_eq!(space_folder_name(&Space::new([""; 0])), "+");
        let long = |id: &str| space_folder_name(&Space::new([id.repeat(300)]));
        assert!(long("a").len() <= 200 && long("a") != long("b"));
    }
}
