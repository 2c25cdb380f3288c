//! The state of one lease as pure data: token, holder and deadline.
//!
//! Effects: none.

use super::add_ms;
use crate::{AcquireOutcome, Claim, FencingToken, Lease};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The last grant of a lease. It is kept after the lease is released, so that the next token is
/// greater.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseRecord {
    pub(crate) name: String,
    pub(crate) token: u64,
    /// The holder, or `None` if the lease was released.
    pub(crate) holder: Option<String>,
    pub(crate) until_ms: i64,
}

impl LeaseRecord {
    /// Returns a lease that was never granted.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn acquire(
        &mut self,
        now_ms: i64,
        holder: &str,
        ttl: Duration,
        claim: Claim,
    ) -> AcquireOutcome {
        match &self.holder {
            Some(theirs) if theirs == holder => {}
            Some(theirs) if now_ms < self.until_ms && claim != Claim::Takeover(self.token) => {
                let left = Duration::from_millis((self.until_ms - now_ms).unsigned_abs());
                return AcquireOutcome::Held(Lease {
                    holder: theirs.clone(),
                    token: self.token,
                    remaining: left,
                });
            }
            Some(_) | None => {
                self.token += 1;
                self.holder = Some(holder.to_owned());
            }
        }
        self.until_ms = add_ms(now_ms, ttl);
        AcquireOutcome::Granted(FencingToken {
            name: self.name.clone(),
            token: self.token,
        })
    }

    /// Extends the lease. Returns false if it was taken over or released.
    pub(crate) fn renew(&mut self, now_ms: i64, token: u64, ttl: Duration) -> bool {
        let ours = self.token == token && self.holder.is_some();
        if ours {
            self.until_ms = add_ms(now_ms, ttl);
        }
        ours
    }

    pub(crate) fn release(&mut self, token: u64) {
        if self.token == token {
            self.holder = None;
        }
    }
}
