//! The bus over PostgreSQL's `NOTIFY`.
//!
//! A notification is text of at most 7,999 bytes. A longer message is not carried; subscribers are
//! told that they missed something.
//!
//! Effects: the clock, randomness, the network.

use super::super::driver::{DbFault, Driver, Statement};
use crate::bus::{BusFault, BusListener, BusTransport, Channel, Envelope, ServerBus};
use crate::{Bus, StoreError};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Executor};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest text of a notification, in bytes.
const MAX_TEXT_BYTES: usize = 7900;
const CHANNEL_PREFIX: &str = "stead_";
/// The first character of a notification: a message as text, one in hexadecimal, or none.
const KIND_TEXT: char = 't';
const KIND_HEX: char = 'x';
const KIND_LAGGED: char = 'l';

/// Returns the bus of the database at `url`, which connects when it is used.
pub(in super::super) fn connect(
    url: &str,
    driver: Arc<dyn Driver>,
    place: String,
) -> Result<Arc<dyn Bus>, StoreError> {
    let options: PgConnectOptions = url.parse().map_err(|cause: sqlx::Error| {
        StoreError::Setup(format!("the URL of the store: {cause}"))
    })?;
    let transport = PostgresBus {
        options: options.disable_statement_logging(),
        driver,
        place,
    };
    Ok(Arc::new(ServerBus::new(Arc::new(transport))))
}

/// Notifications of one database.
struct PostgresBus {
    options: PgConnectOptions,
    driver: Arc<dyn Driver>,
    place: String,
}

impl BusTransport for PostgresBus {
    fn publish<'a>(
        &'a self,
        batch: &'a [(Channel, Envelope)],
    ) -> BoxFuture<'a, Result<(), BusFault>> {
        async move {
            let texts: Vec<(String, String)> = batch
                .iter()
                .map(|(channel, envelope)| (channel_name(channel), encode(envelope)))
                .collect();
            let rows = vec!["(?::bytea, ?::bytea)"; texts.len()].join(", ");
            // The condition holds for no row: a notification returns no value, which is not null.
            let sql = format!(
                "SELECT 1::bigint FROM (VALUES {rows}) AS message (channel, payload) \
                 WHERE pg_notify(convert_from(channel, 'UTF8'), convert_from(payload, 'UTF8')) IS NULL"
            );
            let statement = Statement::new(sql).once();
            let statement = texts
                .iter()
                .fold(statement, |statement, (channel, payload)| {
                    statement.bytes(channel).bytes(payload)
                });
            self.driver.write(statement).await.map_err(db_fault)?;
            Ok(())
        }
        .boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn BusListener>, BusFault>> {
        async move {
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .max_lifetime(None)
                .idle_timeout(None)
                .acquire_timeout(CONNECT_TIMEOUT)
                .connect_lazy_with(self.options.clone());
            let mut listener = PgListener::connect_with(&pool).await.map_err(fault)?;
            // A lost connection is reported at once, and the bus opens a new one.
            listener.eager_reconnect(false);
            Ok(Box::new(listener) as Box<dyn BusListener>)
        }
        .boxed()
    }

    fn place(&self) -> &str {
        &self.place
    }
}

impl BusListener for PgListener {
    fn listen<'a>(&'a mut self, channel: &'a str) -> BoxFuture<'a, Result<(), BusFault>> {
        async move {
            let name = channel_name(channel);
            PgListener::listen(self, &name).await.map_err(fault)
        }
        .boxed()
    }

    fn unlisten<'a>(&'a mut self, channel: &'a str) -> BoxFuture<'a, Result<(), BusFault>> {
        async move {
            let name = channel_name(channel);
            PgListener::unlisten(self, &name).await.map_err(fault)
        }
        .boxed()
    }

    fn ping(&mut self) -> BoxFuture<'_, Result<(), BusFault>> {
        async move { self.execute("SELECT 1").await.map(|_| ()).map_err(fault) }.boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Result<(String, Option<Envelope>), BusFault>> {
        async move {
            let received = self.try_recv().await.map_err(fault)?;
            let received =
                received.ok_or_else(|| BusFault("the connection was closed".to_owned()))?;
            let channel = received.channel().strip_prefix(CHANNEL_PREFIX);
            Ok((
                channel.unwrap_or_default().to_owned(),
                decode(received.payload()),
            ))
        }
        .boxed()
    }
}

impl fmt::Debug for PostgresBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options are left out because they hold the password.
        f.debug_struct("PostgresBus")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

fn channel_name(channel: &str) -> String {
    format!("{CHANNEL_PREFIX}{channel}")
}

/// Encodes an envelope as text: the kind, origin and number in hexadecimal, the message.
fn encode(envelope: &Envelope) -> String {
    let head = |kind: char| format!("{kind}{:032x}{:016x}", envelope.origin, envelope.seq);
    let Some(message) = &envelope.message else {
        return head(KIND_LAGGED);
    };
    let text = match std::str::from_utf8(message) {
        Ok(text) if !text.contains('\0') => head(KIND_TEXT) + text,
        Ok(_) | Err(_) => message
            .iter()
            .fold(head(KIND_HEX), |text, byte| format!("{text}{byte:02x}")),
    };
    if text.len() <= MAX_TEXT_BYTES {
        text
    } else {
        head(KIND_LAGGED)
    }
}

fn decode(text: &str) -> Option<Envelope> {
    let origin = u128::from_str_radix(text.get(1..33)?, 16).ok()?;
    let seq = u64::from_str_radix(text.get(33..49)?, 16).ok()?;
    let rest = text.get(49..)?;
    let message = match text.chars().next()? {
        KIND_TEXT => Some(Bytes::copy_from_slice(rest.as_bytes())),
        KIND_HEX => Some(unhex(rest)?),
        KIND_LAGGED => None,
        _ => return None,
    };
    Some(Envelope {
        origin,
        seq,
        message,
    })
}

fn unhex(text: &str) -> Option<Bytes> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

fn fault(error: sqlx::Error) -> BusFault {
    BusFault(error.to_string())
}

fn db_fault(fault: DbFault) -> BusFault {
    match fault {
        DbFault::Lost(cause)
        | DbFault::Contended(cause)
        | DbFault::Duplicate(cause)
        | DbFault::Refused(cause)
        | DbFault::Corrupt(cause) => BusFault(cause),
        DbFault::Final(error) => BusFault(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_text_that_fits_and_comes_back() {
        for message in [&b""[..], b"{\"a\":1}", b"\0\x7f\xff", "ä".as_bytes()] {
            let envelope = Envelope {
                origin: 5 << 90,
                seq: 9,
                message: Some(Bytes::copy_from_slice(message)),
            };
            assert_eq!(decode(&encode(&envelope)), Some(envelope));
        }
        for length in [MAX_TEXT_BYTES - 49, MAX_TEXT_BYTES] {
            let envelope = Envelope {
                origin: 1,
                seq: 1,
                message: Some(Bytes::from(vec![b'x'; length])),
            };
            let text = encode(&envelope);
            assert!(text.len() <= MAX_TEXT_BYTES);
            let carried = decode(&text).unwrap().message.is_some();
            assert_eq!(carried, length < MAX_TEXT_BYTES, "{length}");
        }
    }
}
