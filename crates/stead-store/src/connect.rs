//! A store by its URL.

/// What a person may see of a URL: not who they are, nor what they prove it by.
pub(crate) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // No server, so there is nobody to log in to; but a query may still hold a secret.
        let end = url.find(['?', '#']).unwrap_or(url.len());
        return url[..end].to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // A password with an unescaped `/`, `?` or `#` in it: where it ends, nobody can tell.
    if path.contains('@') {
        return format!("{scheme}://…");
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let path = &path[..path.find(['?', '#']).unwrap_or(path.len())];
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_credentials_are_shown() {
        let table = [
            ("redis://127.0.0.1:6379/", "redis://127.0.0.1:6379/"),
            ("redis://:secret@host/1", "redis://host/1"),
            ("rediss://user:secret@host:6380/1?x=secret#secret", "rediss://host:6380/1"),
            ("postgres://user:se@cret@db.local/agents", "postgres://db.local/agents"),
            ("mysql://user:se/cret@db.local/agents", "mysql://…"),
            ("mysql://user:se?cret@db.local/agents", "mysql://…"),
            ("postgres://db.local/agents?password=secret", "postgres://db.local/agents"),
            ("postgres://db.local?password=se@cret", "postgres://…"),
            ("sqlite:folder/file.db?key=secret", "sqlite:folder/file.db"),
            ("memory:", "memory:"),
        ];
        for (url, shown) in table {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
