//! The leases of the file store: small files that are never removed.
//!
//! Effects: the clock, randomness, the local disk (writes).

use super::locked_folder::{LockedFolder, SpaceSubfolder};
use super::{FileStore, names, now_ms};
use crate::local::LeaseRecord;
use crate::{AcquireOutcome, Claim, FencingToken, Leases, Space, StoreError};
use futures_util::future::BoxFuture;
use std::time::Duration;

impl Leases for FileStore {
    fn acquire<'a>(
        &'a self,
        space: &'a Space,
        name: &'a str,
        holder: &'a str,
        ttl: Duration,
        claim: Claim,
    ) -> BoxFuture<'a, Result<AcquireOutcome, StoreError>> {
        let name = name.to_owned();
        let holder = holder.to_owned();
        Box::pin(self.write(space, move |folder| {
            let mut grant = read(folder, &name)?.unwrap_or_else(|| LeaseRecord::new(&name));
            let acquired = grant.acquire(now_ms(), &holder, ttl, claim);
            match acquired {
                AcquireOutcome::Granted(_) => write(folder, &grant)?,
                AcquireOutcome::Held(_) => {}
            }
            Ok(acquired)
        }))
    }

    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let fence = fence.clone();
        Box::pin(self.write(space, move |folder| {
            let Some(mut grant) = read(folder, &fence.name)? else {
                return Ok(false);
            };
            let renewed = grant.renew(now_ms(), fence.token, ttl);
            if renewed {
                write(folder, &grant)?;
            }
            Ok(renewed)
        }))
    }

    fn release<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let fence = fence.clone();
        Box::pin(self.write(space, move |folder| {
            let Some(mut grant) = read(folder, &fence.name)? else {
                return Ok(());
            };
            grant.release(fence.token);
            write(folder, &grant)
        }))
    }
}

/// Fails if a greater token than `fence` was issued.
pub(super) fn check_fence(folder: &LockedFolder, fence: &FencingToken) -> Result<(), StoreError> {
    let latest = read(folder, &fence.name)?.map(|grant| grant.token);
    if latest == Some(fence.token) {
        Ok(())
    } else {
        Err(StoreError::Fenced {
            lease: fence.name.clone(),
        })
    }
}

fn file_name(name: &str) -> String {
    format!("{}.json", names::key_file_name(name))
}

fn read(folder: &LockedFolder, name: &str) -> Result<Option<LeaseRecord>, StoreError> {
    let file = file_name(name);
    let Some(text) = folder.read(SpaceSubfolder::Leases, &file)? else {
        return Ok(None);
    };
    let corrupt =
        |cause: String| folder.corrupt(&folder.file(SpaceSubfolder::Leases, &file), cause);
    let grant: LeaseRecord =
        serde_json::from_slice(&text).map_err(|cause| corrupt(cause.to_string()))?;
    if grant.name == name {
        Ok(Some(grant))
    } else {
        Err(corrupt(format!("it is the lease {}", grant.name)))
    }
}

fn write(folder: &LockedFolder, grant: &LeaseRecord) -> Result<(), StoreError> {
    let file = file_name(&grant.name);
    let text = serde_json::to_vec(grant).map_err(|cause| {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Leases, &file),
            cause.to_string(),
        )
    })?;
    folder.replace(SpaceSubfolder::Leases, &file, &[&text])
}
