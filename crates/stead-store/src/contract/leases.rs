//! The contract for leases: the right to write something until a deadline.
//!
//! Effects: none.

use super::Space;
use crate::StoreError;
use futures_util::future::BoxFuture;
use std::fmt;
use std::time::Duration;

/// Leases: a right that one holder has at a time, until a deadline.
///
/// Each grant comes with a fencing token that is greater than all earlier ones of the lease, for
/// the lifetime of the store. A holder with an older token has been replaced, however long it
/// slept. All times are measured by the store's clock.
pub trait Leases: fmt::Debug + Send + Sync {
    /// Acquires the lease for `ttl` if `claim` allows it. A holder that asks again under the same
    /// name gets its own lease again, so every acquisition needs a unique holder name.
    fn acquire<'a>(
        &'a self,
        space: &'a Space,
        name: &'a str,
        holder: &'a str,
        ttl: Duration,
        claim: Claim,
    ) -> BoxFuture<'a, Result<AcquireOutcome, StoreError>>;

    /// Extends the lease to `ttl` from now. Returns false if it was taken over. An expired lease
    /// that no other holder took can still be renewed.
    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Releases the lease if it is still held under this token. The token is remembered.
    fn release<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The condition under which a lease may be acquired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The lease is not held, or has expired.
    Free,
    /// Also if it is held under this token, by a holder that is known to be gone.
    Takeover(u64),
}

/// The result of acquiring a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// The lease was acquired. The token must accompany every write.
    Granted(FencingToken),
    /// Another holder has the lease.
    Held(Lease),
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The name that the holder gave itself.
    pub holder: String,
    /// The holder's token.
    pub token: u64,
    /// The time until it expires unless it is renewed.
    pub remaining: Duration,
}

/// The proof of holding a lease. It is valid until a greater token is issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingToken {
    /// The name of the lease.
    pub name: String,
    /// The token.
    pub token: u64,
}
