//! The bus of the Redis store, over `PUBLISH`.
//!
//! Effects: the network.

use super::connection::RedisLink;
use crate::bus::{BusFault, BusListener, BusTransport, Channel, Envelope};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use redis::RedisError;
use redis::aio::{PubSubSink, PubSubStream};
use std::sync::Arc;

/// Messages of one server. Channels of Redis belong to no database, so the number of the database
/// is a part of their names.
#[derive(Debug)]
pub(super) struct RedisBus {
    link: Arc<RedisLink>,
    prefix: String,
}

impl RedisBus {
    pub(super) fn new(link: Arc<RedisLink>) -> Self {
        let prefix = format!("stead:{}:", link.database());
        Self { link, prefix }
    }
}

impl BusTransport for RedisBus {
    fn publish<'a>(
        &'a self,
        batch: &'a [(Channel, Envelope)],
    ) -> BoxFuture<'a, Result<(), BusFault>> {
        async move {
            let mut commands = redis::pipe();
            for (channel, envelope) in batch {
                let name = format!("{}{channel}", self.prefix);
                commands
                    .cmd("PUBLISH")
                    .arg(name)
                    .arg(envelope.encode())
                    .ignore();
            }
            self.link.run_once(&commands).await.map_err(fault)
        }
        .boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn BusListener>, BusFault>> {
        async move {
            let opened = self.link.client().get_async_pubsub().await;
            let (commands, messages) = opened.map_err(fault)?.split();
            let listener = RedisListener {
                commands,
                messages,
                prefix: self.prefix.clone(),
            };
            Ok(Box::new(listener) as Box<dyn BusListener>)
        }
        .boxed()
    }

    fn place(&self) -> &str {
        self.link.place()
    }
}

struct RedisListener {
    commands: PubSubSink,
    messages: PubSubStream,
    prefix: String,
}

impl BusListener for RedisListener {
    fn listen<'a>(&'a mut self, channel: &'a str) -> BoxFuture<'a, Result<(), BusFault>> {
        async move {
            let name = format!("{}{channel}", self.prefix);
            self.commands.subscribe(name).await.map_err(fault)
        }
        .boxed()
    }

    fn unlisten<'a>(&'a mut self, channel: &'a str) -> BoxFuture<'a, Result<(), BusFault>> {
        async move {
            let name = format!("{}{channel}", self.prefix);
            self.commands.unsubscribe(name).await.map_err(fault)
        }
        .boxed()
    }

    fn ping(&mut self) -> BoxFuture<'_, Result<(), BusFault>> {
        async move {
            self.commands
                .ping::<redis::Value>()
                .await
                .map(drop)
                .map_err(fault)
        }
        .boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Result<(String, Option<Envelope>), BusFault>> {
        async move {
            let closed = || BusFault("the connection was closed".to_owned());
            let received = self.messages.next().await.ok_or_else(closed)?;
            let channel = received.get_channel_name().strip_prefix(&self.prefix);
            Ok((
                channel.unwrap_or_default().to_owned(),
                Envelope::decode(received.get_payload_bytes()),
            ))
        }
        .boxed()
    }
}

fn fault(error: RedisError) -> BusFault {
    BusFault(error.to_string())
}
