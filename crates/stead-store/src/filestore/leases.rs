//! Leases as small files that are never removed.

use super::folder::{Folder, Part};
use super::{FileStore, names, now_ms};
use crate::local::Grant;
use crate::{Acquired, Claim, Fence, Leases, Space, StoreError};
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
    ) -> BoxFuture<'a, Result<Acquired, StoreError>> {
        let name = name.to_owned();
        let holder = holder.to_owned();
        Box::pin(self.write(space, move |folder| {
            let mut grant = read(folder, &name)?.unwrap_or_else(|| Grant::new(&name));
            let acquired = grant.acquire(now_ms(), &holder, ttl, claim);
            match acquired {
                Acquired::Ours(_) => write(folder, &grant)?,
                Acquired::Held(_) => {}
            }
            Ok(acquired)
        }))
    }

    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a Fence,
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
        fence: &'a Fence,
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

/// Refuses whoever was overtaken.
pub(super) fn check_fence(folder: &Folder, fence: &Fence) -> Result<(), StoreError> {
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
    format!("{}.json", names::of_key(name))
}

fn read(folder: &Folder, name: &str) -> Result<Option<Grant>, StoreError> {
    let file = file_name(name);
    let Some(text) = folder.read(Part::Leases, &file)? else {
        return Ok(None);
    };
    let corrupt = |cause: String| folder.corrupt(&folder.file(Part::Leases, &file), cause);
    let grant: Grant = serde_json::from_slice(&text).map_err(|cause| corrupt(cause.to_string()))?;
    if grant.name == name {
        Ok(Some(grant))
    } else {
        Err(corrupt(format!("it is the lease {}", grant.name)))
    }
}

fn write(folder: &Folder, grant: &Grant) -> Result<(), StoreError> {
    let file = file_name(&grant.name);
    let text = serde_json::to_vec(grant)
        .map_err(|cause| folder.corrupt(&folder.file(Part::Leases, &file), cause.to_string()))?;
    folder.replace(Part::Leases, &file, &[&text])
}
