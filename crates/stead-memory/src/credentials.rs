//! Recognises keys and passwords by their form. The secrets of this process are redacted by value;
//! these are other secrets.
//!
//! Effects: none.

/// Prefixes of keys that providers issue, and the shortest length of such a key.
const KEY_PREFIXES: [(&str, usize); 16] = [
    ("sk-", 20),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("hf_", 30),
    ("npm_", 30),
    ("rk_live_", 20),
    ("sk_live_", 20),
    ("eyJ", 60),
];

/// Words that are followed by a secret.
const SECRET_LABELS: [&str; 7] = [
    "password",
    "passwd",
    "passphrase",
    "secret key",
    "api key",
    "access token",
    "private key",
];

/// Whether a text contains something that looks like a key or a password.
pub(crate) fn holds_credentials(text: &str) -> bool {
    text.contains("-----BEGIN")
        || text.split(is_separator).any(is_key)
        || names_a_secret(&text.to_lowercase())
}

fn is_separator(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_key(word: &str) -> bool {
    KEY_PREFIXES
        .iter()
        .any(|(start, least)| word.starts_with(start) && word.len() >= *least)
}

/// Matches `password: x`, `password = x` and `the password is x`, but not `the password is kept in
/// the vault`.
fn names_a_secret(text: &str) -> bool {
    SECRET_LABELS.iter().any(|name| {
        text.match_indices(name).any(|(at, _)| {
            let rest = text[at + name.len()..].trim_start();
            let value = rest
                .strip_prefix([':', '='])
                .or_else(|| rest.strip_prefix("is "))
                .map(str::trim_start);
            value
                .and_then(|value| value.split_whitespace().next())
                .is_some_and(looks_like_password)
        })
    })
}

/// Whether a word contains digits or symbols, as words of a language do not.
fn looks_like_password(word: &str) -> bool {
    let word = word.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | ',' | '.' | ';'));
    word.len() >= 5 && word.chars().any(|c| !c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_passwords_are_known_by_their_look_and_talk_about_them_is_not() {
        let table = [
            ("Key is sk-ant-api03-abcdefghijklmnop", true),
            ("uses AKIAIOSFODNN7EXAMPLE and more", true),
            ("The password is hunter2!", true),
            ("password: tr0ub4dor", true),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", true),
            (
                "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
                true,
            ),
            ("The password is kept in the vault", false),
            ("Passwords are rotated every 90 days", false),
            ("Prefers tabs. Uses sk-learn.", false),
            ("The api key is in KeePass", false),
        ];
        for (text, expected) in table {
            assert_eq!(holds_credentials(text), expected, "{text}");
        }
    }
}
