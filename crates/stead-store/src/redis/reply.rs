//! Reading the replies of the scripts that run on the Redis server.
//!
//! Effects: none.

use crate::StoreError;
use bytes::Bytes;
use std::str::FromStr;
use std::vec::IntoIter;

/// The parts of a reply, read in order.
#[derive(Debug)]
pub(super) struct ScriptReply {
    place: String,
    parts: IntoIter<Option<Bytes>>,
}

impl ScriptReply {
    /// Interprets a reply by its first word.
    pub(super) fn new(place: &str, answer: Vec<Option<Bytes>>) -> Result<Self, StoreError> {
        let mut reply = Self {
            place: place.to_owned(),
            parts: answer.into_iter(),
        };
        match reply.text()?.as_str() {
            "ok" => Ok(reply),
            "conflict" => Err(StoreError::Conflict(reply.text()?)),
            // The caller adds the name of the lease.
            "fenced" => Err(StoreError::Fenced {
                lease: String::new(),
            }),
            "corrupt" => {
                let cause = reply.text()?;
                Err(reply.corrupt(cause))
            }
            other => Err(reply.corrupt(format!("it answers '{other}'"))),
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.parts.len() == 0
    }

    /// Returns all remaining parts.
    pub(super) fn rest(mut self) -> Result<Vec<Bytes>, StoreError> {
        let mut rest = Vec::with_capacity(self.parts.len());
        while !self.is_exhausted() {
            rest.push(self.bytes()?);
        }
        Ok(rest)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        self.parts
            .next()
            .flatten()
            .ok_or_else(|| self.corrupt("a part of its answer is missing".to_owned()))
    }

    pub(super) fn text(&mut self) -> Result<String, StoreError> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.into()).map_err(|_| self.corrupt("a text is not UTF-8".to_owned()))
    }

    pub(super) fn number<N: FromStr>(&mut self) -> Result<N, StoreError> {
        let text = self.text()?;
        text.parse()
            .map_err(|_| self.corrupt(format!("'{text}' is not a number")))
    }

    pub(super) fn boolean(&mut self) -> Result<bool, StoreError> {
        Ok(self.number::<u8>()? == 1)
    }

    pub(super) fn corrupt(&self, cause: String) -> StoreError {
        StoreError::Corrupt {
            place: self.place.clone(),
            cause,
        }
    }
}
