//! A store on a Redis server.
//!
//! All keys of a space begin with `{stead:SPACE}:`, which a cluster uses to place them:
//!
//! ```text
//! d:KEY        document: hash of version, meta, body      k            sorted set of all keys
//! j:JOURNAL    list of lines                              n            sorted set of all journals
//! h:JOURNAL    hash of last line's number, bytes, time    l:NAME       lease: hash of token, holder, until
//! q:QUEUE      sorted set of jobs by the time they are due
//! w:ID:QUEUE   job: hash                                  x:QUEUE      sorted set of dead jobs
//! c:QUEUE      last job's number                          u:…          dedup keys, for a day
//! r:REQUEST    result of a request, for a few minutes, in case its response is lost
//! ```
//!
//! Writes are durable only if Redis is configured with `appendonly yes` and `appendfsync always`.
//! With weaker settings a server that crashes may lose its last writes. The loss is detected: line
//! numbers are counted, and tokens and ids are never below the current time, so that none is issued
//! twice.
//!
//! Effects: the clock, randomness, the network.

mod bus;
mod connection;
mod documents;
mod journals;
mod leases;
mod queue;
mod reply;
mod scripts;

use crate::bus::ServerBus;
use crate::connect::without_credentials;
use crate::{Bus, FencingToken, Space, StateStore, StoreError};
use bus::RedisBus;
use bytes::Bytes;
use connection::RedisLink;
use redis::Script;
use reply::ScriptReply;
use scripts::Scripts;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum time that a server may take to start.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(8);
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A store on a Redis server.
#[derive(Debug)]
pub struct RedisStore {
    link: Arc<RedisLink>,
    scripts: Scripts,
    bus: Arc<ServerBus>,
}

impl RedisStore {
    /// Connects to `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let place = without_credentials(url);
        let client = redis::Client::open(url).map_err(|error| {
            StoreError::Setup(format!("{place} is no address of a Redis server: {error}"))
        })?;
        let link = Arc::new(RedisLink::new(client, place));
        link.check().await?;
        let bus = Arc::new(ServerBus::new(Arc::new(RedisBus::new(link.clone()))));
        Ok(Self {
            link,
            scripts: Scripts::new(),
            bus,
        })
    }

    /// Connects, retrying while the server starts, as the SQL drivers do.
    pub(crate) async fn connect_when_started(url: &str) -> Result<Self, StoreError> {
        let end = Instant::now() + STARTUP_TIMEOUT;
        loop {
            match Self::connect(url).await {
                Err(StoreError::Unavailable { .. }) if Instant::now() < end => {
                    tokio::time::sleep(RETRY_PAUSE).await
                }
                outcome => return outcome,
            }
        }
    }

    async fn call(
        &self,
        script: &Script,
        space: &Space,
        args: &[Bytes],
    ) -> Result<ScriptReply, StoreError> {
        self.link.call(script, space, args).await
    }
}

impl StateStore for RedisStore {
    fn place(&self) -> &str {
        self.link.place()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn bus(&self) -> Arc<dyn Bus> {
        self.bus.clone()
    }
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn number(number: impl ToString) -> Bytes {
    Bytes::from(number.to_string())
}

/// Converts a duration for the scripts. They count in doubles, so it is capped where these become
/// inexact.
fn millis(span: Duration) -> Bytes {
    const MOST_MS: u128 = 1 << 50;
    number(span.as_millis().min(MOST_MS))
}

/// Converts a limit for `LIMIT`, where a negative number would mean no limit.
fn limit(limit: usize) -> Bytes {
    number(limit.min(i32::MAX as usize))
}

/// Returns the start of a `ZRANGEBYLEX` range after `after`.
fn lex_range_start(after: Option<&str>) -> Bytes {
    after.map_or_else(
        || Bytes::from_static(b"-"),
        |after| text(&format!("({after}")),
    )
}

/// Adds the name of the lease to a [`StoreError::Fenced`].
fn with_lease_name<T>(
    outcome: Result<T, StoreError>,
    fence: &FencingToken,
) -> Result<T, StoreError> {
    outcome.map_err(|error| match error {
        StoreError::Fenced { .. } => StoreError::Fenced {
            lease: fence.name.clone(),
        },
        other => other,
    })
}
