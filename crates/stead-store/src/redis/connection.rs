//! The connection to the Redis server: it is reopened when it breaks, and requests are retried for
//! a while.
//!
//! Effects: the clock, the network.

use super::reply::ScriptReply;
use crate::{Space, StoreError};
use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, Pipeline, RedisError, Script, ServerErrorKind,
};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time within which a restarted server is expected back.
const RETRY_BUDGET: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A connection that all requests of a store share.
pub(super) struct RedisLink {
    client: Client,
    place: String,
    current: Mutex<CurrentConnection>,
}

/// The current connection with its number: of several requests that fail with it, only the first
/// opens a new one.
struct CurrentConnection {
    generation: u64,
    connection: Option<MultiplexedConnection>,
}

/// The meaning of a failure for the request.
enum RedisFailure {
    /// The request may or may not have been executed.
    Lost,
    /// The request was not executed and may succeed later.
    Retryable,
    /// The request will never succeed.
    Refused,
}

impl RedisLink {
    pub(super) fn new(client: Client, place: String) -> Self {
        Self {
            client,
            place,
            current: Mutex::new(CurrentConnection {
                generation: 0,
                connection: None,
            }),
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Connects once without retries, so that a wrong address is reported at once.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        let pinged = async {
            let (_, mut connection) = self.connection().await?;
            redis::cmd("PING").query_async::<()>(&mut connection).await
        };
        pinged.await.map_err(|error| match classify_error(&error) {
            RedisFailure::Lost | RedisFailure::Retryable => self.unavailable(&error),
            RedisFailure::Refused => self.refused(&error),
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the number of the database.
    pub(super) fn database(&self) -> i64 {
        self.client.get_connection_info().redis_settings().db()
    }

    /// Sends commands once, without retries.
    pub(super) async fn run_once(&self, commands: &Pipeline) -> Result<(), RedisError> {
        let (generation, mut connection) = self.connection().await?;
        let answer = commands.exec_async(&mut connection).await;
        if answer.as_ref().is_err_and(breaks_connection) {
            self.drop_connection(generation).await;
        }
        answer
    }

    /// Runs a script on `space`.
    pub(super) async fn call(
        &self,
        script: &Script,
        space: &Space,
        args: &[Bytes],
    ) -> Result<ScriptReply, StoreError> {
        let give_up = Instant::now() + RETRY_BUDGET;
        let mut pause = FIRST_PAUSE;
        let mut again = "0";
        loop {
            let error = match self.call_once(script, space, again, args).await {
                Ok(answer) => return ScriptReply::new(&self.place, answer),
                Err(error) => error,
            };
            match classify_error(&error) {
                RedisFailure::Lost => again = "1",
                RedisFailure::Retryable => {}
                RedisFailure::Refused => return Err(self.refused(&error)),
            }
            if Instant::now() + pause >= give_up {
                return Err(self.unavailable(&error));
            }
            tracing::debug!(place = self.place, %error, "the store is asked again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn call_once(
        &self,
        script: &Script,
        space: &Space,
        again: &str,
        args: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, RedisError> {
        let (generation, mut connection) = self.connection().await?;
        let mut invocation = script.prepare_invoke();
        invocation.key(format!("{{stead:{space}}}:")).arg(again);
        for arg in args {
            invocation.arg(&arg[..]);
        }
        let answer = invocation.invoke_async(&mut connection).await;
        if answer.as_ref().is_err_and(breaks_connection) {
            self.drop_connection(generation).await;
        }
        answer
    }

    /// Returns the current connection, or opens a new one while other requests wait for it.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &current.connection {
            return Ok((current.generation, connection.clone()));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        current.generation += 1;
        current.connection = Some(connection.clone());
        Ok((current.generation, connection))
    }

    async fn drop_connection(&self, generation: u64) {
        let mut current = self.current.lock().await;
        if current.generation == generation {
            current.connection = None;
        }
    }

    fn unavailable(&self, error: &RedisError) -> StoreError {
        StoreError::Unavailable {
            place: self.place.clone(),
            cause: error.to_string(),
        }
    }

    fn refused(&self, error: &RedisError) -> StoreError {
        StoreError::Store {
            place: self.place.clone(),
            cause: error.to_string(),
        }
    }
}

fn classify_error(error: &RedisError) -> RedisFailure {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse => RedisFailure::Lost,
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::ReadOnly,
        ) => RedisFailure::Retryable,
        // A script of another client runs for too long.
        _ if error.code() == Some("BUSY") => RedisFailure::Retryable,
        _ => RedisFailure::Refused,
    }
}

/// Returns whether the next request needs a new connection: after a connection error, and after a
/// failover, when the address may belong to another server.
fn breaks_connection(error: &RedisError) -> bool {
    let kinds = [
        ErrorKind::Io,
        ErrorKind::Parse,
        ErrorKind::Server(ServerErrorKind::ReadOnly),
    ];
    kinds.contains(&error.kind()) || error.is_unrecoverable_error()
}

impl std::fmt::Debug for RedisLink {
    // The client's debug output would show the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
