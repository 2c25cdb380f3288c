//! Small JSON documents that many processes change: each change is read, modified and written with
//! compare-and-set, and tried again after a conflict.
//!
//! Effects: the clock, randomness, the store (writes).

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use stead_place::OwnerState;
use stead_store::{DocVersion, Document, DocumentChange, Expected, StoreError};

/// How many conflicts there may be before a change fails.
const MAX_TRIES: u32 = 200;
/// The longest pause between two attempts.
const MAX_PAUSE_MS: u64 = 25;

/// Reads the document at `key`, or returns the default if there is none.
pub(crate) async fn read<B: Default + DeserializeOwned>(
    state: &OwnerState,
    key: &str,
) -> Result<B, StoreError> {
    let found = state.store.get(&state.space, key).await?;
    found.map_or_else(|| Ok(B::default()), |document| parse(state, key, &document))
}

/// Changes the document at `key`. Nothing is written if `act` fails. `act` may be called more than
/// once.
pub(crate) async fn update<B, T, E>(
    state: &OwnerState,
    key: &str,
    mut act: impl FnMut(&mut B) -> Result<T, E>,
) -> Result<T, E>
where
    B: Default + Serialize + DeserializeOwned,
    E: From<StoreError>,
{
    for _ in 0..MAX_TRIES {
        let found = state.store.get(&state.space, key).await?;
        let (mut book, expect) = match &found {
            Some(document) => (
                parse(state, key, document)?,
                Expected::Version(document.version),
            ),
            None => (B::default(), Expected::Absent),
        };
        let made = act(&mut book)?;
        let body = serde_json::to_vec(&book).map_err(|error| unreadable(state, key, &error))?;
        let put = DocumentChange::Put {
            key: key.to_owned(),
            document: Document::new("", body),
            expect,
        };
        match state.store.commit(&state.space, vec![put], None).await {
            Ok(()) => return Ok(made),
            Err(StoreError::Conflict(_)) => tokio::time::sleep(random_pause()).await,
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::Conflict(key.to_owned()).into())
}

/// Returns a random pause, so that waiting processes do not collide again.
fn random_pause() -> Duration {
    let any = (DocVersion::fresh().0 & u128::from(u64::MAX)) as u64;
    Duration::from_millis(1 + any % MAX_PAUSE_MS)
}

fn parse<B: DeserializeOwned>(
    state: &OwnerState,
    key: &str,
    document: &Document,
) -> Result<B, StoreError> {
    serde_json::from_slice(&document.body).map_err(|error| unreadable(state, key, &error))
}

fn unreadable(state: &OwnerState, key: &str, error: &serde_json::Error) -> StoreError {
    StoreError::Store {
        place: state.store.place().to_owned(),
        cause: format!("{key}: {error}"),
    }
}
