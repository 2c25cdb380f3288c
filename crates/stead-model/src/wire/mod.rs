//! Wires: functions between our types and a provider's bytes. They do no I/O; `encode` keeps what
//! it encoded before.
//!
//! Effects: none.

mod answer_schema;
pub(crate) mod anthropic;
pub(crate) mod args;
mod call;
pub(crate) mod gemini;
mod json;
mod media;
mod names;
pub(crate) mod openai;
mod placeholder;
pub(crate) mod responses;
#[cfg(test)]
mod testing;

use crate::model::{EncodedHead, EncodedPrefix, NewestHead};
use crate::{Abilities, Caching, Delta, ModelError, Reply, Request};
use media::visible_message;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::{Arc, PoisonError};
use stead_core::Message;

/// Whether an answer is streamed or whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireMode {
    Stream,
    Whole,
}

/// The position of a message in the request: cache marks go on the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessagePosition {
    Earlier,
    Last(Caching),
}

/// One provider protocol.
///
/// A request body is `head`, then every message (joined by commas), then `tail`. Messages come
/// last, so the bytes of one turn's request extend those of the turn before.
pub(crate) trait Wire: Debug + Send + Sync {
    /// Returns the name of the wire in [`Thinking::origin`](stead_core::Thinking::origin).
    fn origin(&self) -> &'static str;

    /// Returns the name of the message encoding: bytes of one dialect are never reused for another.
    fn dialect(&self) -> &'static str {
        self.origin()
    }

    /// Returns the model's name at the provider.
    fn model(&self) -> &str;

    /// Returns path and query below the base URL.
    fn endpoint(&self, mode: WireMode) -> String;

    /// Returns headers besides `content-type`.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Writes everything up to and including the opening bracket of the message array.
    fn head(&self, request: &Request, mode: WireMode, out: &mut Vec<u8>);

    /// Writes one message as one or more JSON values joined by commas, never as nothing.
    fn message(&self, message: &Message, place: MessagePosition, out: &mut Vec<u8>);

    /// Writes the closing bracket and the rest.
    fn tail(&self, out: &mut Vec<u8>);

    /// Returns a new decoder for one streamed answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Parses a whole answer.
    fn parse(&self, body: &[u8]) -> Result<Reply, ModelError>;
}

/// Converts server-sent events to deltas. Pure: the same events give the same deltas.
pub(crate) trait Decoder: Send {
    /// Takes one event's data. Emits [`Delta::Done`] only after the terminal event.
    fn push(&mut self, event: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError>;

    /// Ends the stream. Emits `Done` if the wire ends its answers this way.
    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError>;
}

/// How a model encodes its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding<'a> {
    mode: WireMode,
    /// What the model supports, as far as it is known.
    abilities: Option<Abilities>,
    newest_head: &'a NewestHead,
}

impl<'a> Encoding<'a> {
    pub(crate) fn new(
        mode: WireMode,
        abilities: Option<Abilities>,
        newest_head: &'a NewestHead,
    ) -> Self {
        Self {
            mode,
            abilities,
            newest_head,
        }
    }
}

/// Encodes the body of a request. Messages that earlier requests of the run have encoded are
/// reused, and what comes before them is shared with the sessions in which it is the same. Media that the model does not support, as far as its abilities are known, are replaced by
/// text.
pub(crate) fn encode(wire: &dyn Wire, request: &Request, encoding: Encoding<'_>) -> Vec<u8> {
    let Encoding {
        mode,
        abilities,
        newest_head,
    } = encoding;
    let seen = |message| {
        abilities.map_or(Cow::Borrowed(message), |abilities| {
            visible_message(message, abilities)
        })
    };
    // The last message is never reused, because its cache mark moves on with the next request.
    let (earlier, last) = match request.messages.split_last() {
        Some((last, earlier)) => (earlier, Some(last)),
        None => (&[][..], None),
    };
    let mut guard = request
        .encoded
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let cache = &mut *guard;
    if (cache.dialect, cache.abilities) != (wire.dialect(), abilities) {
        *cache = EncodedPrefix {
            dialect: wire.dialect(),
            abilities,
            ..EncodedPrefix::default()
        };
    }
    let same =
        |((known, _), now): &(&(Arc<Message>, usize), &Arc<Message>)| Arc::ptr_eq(known, now);
    let known = cache.messages.iter().zip(earlier).take_while(same).count();
    cache.messages.truncate(known);
    cache
        .bytes
        .truncate(cache.messages.last().map_or(0, |(_, end)| *end));
    for message in &earlier[known..] {
        wire.message(&seen(message), MessagePosition::Earlier, &mut cache.bytes);
        cache.bytes.push(b',');
        cache.messages.push((message.clone(), cache.bytes.len()));
    }

    let head = match &mut cache.head {
        Some(head) if head.matches(wire, request, mode) => head,
        other => other.insert(newest_head.of(wire, request, mode)),
    };
    let mut end = Vec::new();
    if let Some(last) = last {
        wire.message(
            &seen(last),
            MessagePosition::Last(request.params.caching),
            &mut end,
        );
    }
    wire.tail(&mut end);
    // Allocates exactly what is needed: a thousand requests may be in flight.
    [&*head.bytes, &cache.bytes, &end].concat()
}

impl NewestHead {
    /// Returns the head of `request`, encoded unless the newest one is the same.
    fn of(&self, wire: &dyn Wire, request: &Request, mode: WireMode) -> EncodedHead {
        let newest = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(newest) = newest.filter(|newest| newest.equals(wire, request, mode)) {
            return EncodedHead {
                system: request.system.clone(),
                tools: request.tools.clone(),
                ..newest
            };
        }
        let head = EncodedHead::new(wire, request, mode);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(head.clone());
        head
    }
}

impl EncodedHead {
    fn new(wire: &dyn Wire, request: &Request, mode: WireMode) -> Self {
        let mut bytes = Vec::new();
        wire.head(request, mode, &mut bytes);
        let Request {
            system,
            tools,
            params,
            messages,
            ..
        } = request;
        let model = wire.model().to_owned();
        let bare = messages.is_empty();
        Self {
            model,
            has_no_messages: bare,
            system: system.clone(),
            tools: tools.clone(),
            params: params.clone(),
            mode,
            bytes: bytes.into(),
        }
    }

    /// Whether this is the head of `request`, which is of the same session.
    fn matches(&self, wire: &dyn Wire, request: &Request, mode: WireMode) -> bool {
        Arc::ptr_eq(&self.tools, &request.tools) && self.equals_except_tools(wire, request, mode)
    }

    /// Whether this is the head of `request`, which may be of another session.
    fn equals(&self, wire: &dyn Wire, request: &Request, mode: WireMode) -> bool {
        self.equals_except_tools(wire, request, mode) && self.tools == request.tools
    }

    fn equals_except_tools(&self, wire: &dyn Wire, request: &Request, mode: WireMode) -> bool {
        let Request {
            system,
            params,
            messages,
            ..
        } = request;
        (self.model.as_str(), self.has_no_messages) == (wire.model(), messages.is_empty())
            && self.mode == mode
            && self.params == *params
            && (Arc::ptr_eq(&self.system, system) || self.system == *system)
    }
}

#[cfg(test)]
mod tests;
