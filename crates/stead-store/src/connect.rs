//! Opening a store by its URL.
//!
//! Effects: the clock, randomness, the environment, the local disk (writes), the network.

use crate::{MemoryStore, SqlStore, Store, StoreError};
use std::sync::Arc;

const SCHEMES: &str = "sqlite:, redis://, rediss://, postgres://, mysql://, mariadb:// and memory:";

/// Opens the store at `url`:
///
/// | URL | Store |
/// |---|---|
/// | `memory:` | in this process, empty every time |
/// | `sqlite:FILE` | one file |
/// | `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://…` | Redis, plain or with TLS |
/// | `postgres://USER:PASSWORD@HOST[:PORT]/DATABASE` | PostgreSQL |
/// | `mysql://USER:PASSWORD@HOST[:PORT]/DATABASE` | MySQL or MariaDB |
///
/// The last three need the features `redis`, `postgres` and `mysql`; without one, the error says how
/// to build it in.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = stead_store::connect("memory:").await.unwrap();
/// assert!(!store.is_shared());
/// # });
/// ```
pub async fn connect(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(unknown_scheme(url));
    };
    match scheme {
        "memory" if rest.is_empty() => Ok(Arc::new(MemoryStore::new())),
        "memory" => Err(StoreError::Setup(
            "memory: takes nothing after it".to_owned(),
        )),
        "redis" | "rediss" => redis(url).await,
        "sqlite" | "postgres" | "postgresql" | "mysql" | "mariadb" => {
            Ok(Arc::new(SqlStore::connect(url).await?))
        }
        _ => Err(unknown_scheme(url)),
    }
}

#[cfg(feature = "redis")]
async fn redis(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(
        crate::RedisStore::connect_when_started(url).await?,
    ))
}

#[cfg(not(feature = "redis"))]
async fn redis(_url: &str) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::not_built_in("Redis", "redis"))
}

fn unknown_scheme(url: &str) -> StoreError {
    // Text without a scheme may be anything, even a password, so it is not repeated.
    let scheme = url
        .split_once(':')
        .map_or("it has no scheme", |(scheme, _)| scheme);
    StoreError::Setup(format!(
        "the URL of the store is not known ({scheme}); there are {SCHEMES}"
    ))
}

/// Returns `url` without user, password and query, for messages.
pub(crate) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // A URL without a server has no login, but its query may hold a secret.
        let end = url.find(['?', '#']).unwrap_or(url.len());
        return url[..end].to_owned();
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // The password holds an unescaped `/`, `?` or `#`, so its end cannot be found.
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

    #[tokio::test]
    async fn every_scheme_is_known_and_others_are_told_which_there_are() {
        assert_eq!(connect("memory:").await.unwrap().place(), "memory:");
        for url in [
            "s3cret",
            "mongodb://user:s3cret@host/",
            "memory:x",
            "file:a/b",
            "redis://u:s3cret@h:x",
        ] {
            let error = connect(url).await.unwrap_err();
            assert!(matches!(error, StoreError::Setup(_)), "{url}: {error:?}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        assert!(
            connect("mongodb://host")
                .await
                .unwrap_err()
                .to_string()
                .contains("rediss://, postgres://")
        );
    }

    #[test]
    fn no_credentials_are_shown() {
        let table = [
            ("redis://127.0.0.1:6379/", "redis://127.0.0.1:6379/"),
            ("redis://:secret@host/1", "redis://host/1"),
            (
                "rediss://user:secret@host:6380/1?x=secret#secret",
                "rediss://host:6380/1",
            ),
            (
                "postgres://user:se@cret@db.local/agents",
                "postgres://db.local/agents",
            ),
            ("mysql://user:se/cret@db.local/agents", "mysql://…"),
            ("mysql://user:se?cret@db.local/agents", "mysql://…"),
            (
                "postgres://db.local/agents?password=secret",
                "postgres://db.local/agents",
            ),
            ("postgres://db.local?password=se@cret", "postgres://…"),
            ("sqlite:folder/file.db?key=secret", "sqlite:folder/file.db"),
            ("memory:", "memory:"),
        ];
        for (url, shown) in table {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
