//! Parsing database URLs, and messages without passwords.
//!
//! Effects: none.

use crate::StoreError;

/// A database named by a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseTarget<'a> {
    /// A file, or `:memory:`.
    Sqlite(&'a str),
    Postgres,
    Mysql,
}

/// Returns the database that `url` names.
pub(super) fn parse_target(url: &str) -> Result<DatabaseTarget<'_>, StoreError> {
    let refused = |why: &str| Err(StoreError::Setup(format!("the URL of the store: {why}")));
    match url.split_once(':') {
        Some(("sqlite", rest)) => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() {
                return refused("sqlite: needs a file, or :memory:");
            }
            if path.contains('?') {
                return refused("sqlite: takes no options");
            }
            Ok(DatabaseTarget::Sqlite(path))
        }
        Some(("postgres" | "postgresql", _)) => Ok(DatabaseTarget::Postgres),
        Some(("mysql" | "mariadb", _)) => Ok(DatabaseTarget::Mysql),
        _ => refused("it begins with sqlite:, postgres://, mysql:// or mariadb://"),
    }
}

/// Returns `said` without the password of `url`, in case a server repeats it.
pub(super) fn without_password(said: String, url: &str) -> String {
    let Some((user_info, _)) = url
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'))
    else {
        return said;
    };
    let Some((_, password)) = user_info.split_once(':') else {
        return said;
    };
    let mut said = said;
    for secret in [password.to_owned(), percent_decode(password)] {
        if !secret.is_empty() {
            said = said.replace(&secret, "***");
        }
    }
    said
}

/// Decodes text with percent-encoded bytes.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex
            .filter(|_| first == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_blotted_out_as_written_and_as_meant() {
        let url = "postgres://me:p%40ss@db/agents";
        assert_eq!(
            without_password("no p@ss and no p%40ss".to_owned(), url),
            "no *** and no ***"
        );
        for url in [
            "sqlite:p@x",
            "postgres://db/agents",
            "postgres://me@db/agents",
            "postgres://me:@db/x",
        ] {
            assert_eq!(
                without_password("as it was".to_owned(), url),
                "as it was",
                "{url}"
            );
        }
    }

    #[test]
    fn the_scheme_decides() {
        assert_eq!(
            parse_target("sqlite:a/b.db").unwrap(),
            DatabaseTarget::Sqlite("a/b.db")
        );
        assert_eq!(
            parse_target("sqlite:///a/b.db").unwrap(),
            DatabaseTarget::Sqlite("/a/b.db")
        );
        assert_eq!(
            parse_target("sqlite::memory:").unwrap(),
            DatabaseTarget::Sqlite(":memory:")
        );
        assert_eq!(
            parse_target("postgresql://x").unwrap(),
            DatabaseTarget::Postgres
        );
        assert_eq!(
            parse_target("mariadb://x/y").unwrap(),
            DatabaseTarget::Mysql
        );
        for wrong in ["redis://x", "sqlite:", "sqlite:a?mode=ro", "agents", ""] {
            assert!(
                matches!(parse_target(wrong), Err(StoreError::Setup(_))),
                "{wrong}"
            );
        }
    }
}
