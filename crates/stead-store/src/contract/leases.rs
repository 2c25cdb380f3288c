//! Who may do something, for a while.

use super::Space;
use crate::StoreError;
use futures_util::future::BoxFuture;
use std::fmt;
use std::time::Duration;

/// The right to do something, given to one holder at a time and only for a while.
///
/// A token goes with each grant and grows with every one of them, for the lifetime of the store:
/// whoever shows an older token was overtaken, however long it slept. Time is the store's own.
pub trait Leases: fmt::Debug + Send + Sync {
    /// Takes the lease for `ttl` if `claim` allows it. A holder that asks again gets its own lease
    /// again: every grant is asked for under a name of its own.
    fn acquire<'a>(
        &'a self,
        space: &'a Space,
        name: &'a str,
        holder: &'a str,
        ttl: Duration,
        claim: Claim,
    ) -> BoxFuture<'a, Result<AcquireOutcome, StoreError>>;

    /// Makes the lease last for `ttl` from now. False if it was taken over; an expired lease that
    /// nobody took is still one's own.
    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Gives the lease back, if it still is one's own. Its token is remembered.
    fn release<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// When a lease may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// When nobody holds it, or the holder let it expire.
    Free,
    /// Also when it is held under this token, by someone known to be gone.
    Takeover(u64),
}

/// What came of asking for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// It is ours; show this with every write.
    Granted(FencingToken),
    /// Someone else holds it.
    Held(Lease),
}

/// A lease that someone holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who, in the words they gave.
    pub holder: String,
    /// Their token.
    pub token: u64,
    /// How long it lasts unless they renew it.
    pub remaining: Duration,
}

/// The proof of a lease. It holds as long as no greater token was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencingToken {
    /// The lease.
    pub name: String,
    /// The token.
    pub token: u64,
}
