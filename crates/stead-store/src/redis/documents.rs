//! The documents of the Redis store: hashes, with their keys in one sorted set.
//!
//! Effects: the clock, the network.

use super::{RedisStore, lex_range_start, limit, number, text, with_lease_name};
use crate::contract::check_changes;
use crate::{
    DocVersion, Document, DocumentChange, Documents, Expected, FencingToken, ListedDocument, Space,
    StoreError,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;

impl Documents for RedisStore {
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        Box::pin(async move {
            let mut reply = self.call(&self.scripts.get, space, &[text(key)]).await?;
            if reply.is_exhausted() {
                return Ok(None);
            }
            Ok(Some(Document {
                version: version(&mut reply)?,
                meta: reply.bytes()?,
                body: reply.bytes()?,
            }))
        })
    }

    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        Box::pin(async move {
            let lowest = match after {
                Some(after) if after >= prefix => lex_range_start(Some(after)),
                _ => text(&format!("[{prefix}")),
            };
            // 0xff is greater than any byte of UTF-8.
            let highest = [b"(", prefix.as_bytes(), b"\xff"].concat().into();
            let mut reply = self
                .call(&self.scripts.list, space, &[lowest, highest, limit(most)])
                .await?;
            let mut listed = Vec::new();
            while !reply.is_exhausted() {
                let key = reply.text()?;
                listed.push(ListedDocument {
                    key,
                    version: version(&mut reply)?,
                    meta: reply.bytes()?,
                });
            }
            Ok(listed)
        })
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            check_changes(self.link.place(), &changes)?;
            let mut args = match fence {
                Some(fence) => vec![text(&fence.name), number(fence.token)],
                None => vec![Bytes::new(), Bytes::new()],
            };
            changes
                .into_iter()
                .for_each(|change| encode_change(change, &mut args));
            let made = self.call(&self.scripts.commit, space, &args).await;
            match fence {
                Some(fence) => with_lease_name(made, fence)?,
                None => made?,
            };
            Ok(())
        })
    }
}

/// Encodes a change as the script's arguments.
fn encode_change(change: DocumentChange, args: &mut Vec<Bytes>) {
    let word = Bytes::from_static;
    match change {
        DocumentChange::Put {
            key,
            document:
                Document {
                    version,
                    meta,
                    body,
                },
            expect,
        } => {
            args.extend([
                word(b"put"),
                key.into(),
                encode_expected(expect),
                number(version),
                meta,
                body,
            ]);
        }
        DocumentChange::Delete { key, expect } => {
            args.extend([word(b"delete"), key.into(), encode_expected(expect)])
        }
        DocumentChange::Check { key, expect } => {
            args.extend([word(b"check"), key.into(), encode_expected(expect)])
        }
        DocumentChange::Move { from, to, version } => {
            args.extend([word(b"move"), from.into(), to.into(), number(version)])
        }
    }
}

fn encode_expected(expect: Expected) -> Bytes {
    match expect {
        Expected::Any => Bytes::from_static(b"*"),
        Expected::Absent => Bytes::from_static(b"-"),
        Expected::Version(version) => number(version),
    }
}

fn version(reply: &mut super::ScriptReply) -> Result<DocVersion, StoreError> {
    let text = reply.text()?;
    u128::from_str_radix(&text, 16)
        .map(DocVersion)
        .map_err(|_| reply.corrupt(format!("'{text}' is no version")))
}
