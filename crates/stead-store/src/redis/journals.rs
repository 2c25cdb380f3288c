//! The journals of the Redis store: lists of lines.
//!
//! Effects: the clock, the network.

use super::{RedisStore, ScriptReply, lex_range_start, limit, number, text, with_lease_name};
use crate::contract::check_lines;
use crate::{FencingToken, JournalTail, Journals, Space, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;

impl Journals for RedisStore {
    fn append<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        after: u64,
        lines: &'a [Bytes],
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            check_lines(self.link.place(), lines)?;
            let mut args = vec![
                text(journal),
                number(after),
                text(&fence.name),
                number(fence.token),
            ];
            args.extend_from_slice(lines);
            with_lease_name(self.call(&self.scripts.append, space, &args).await, fence)?;
            Ok(())
        })
    }

    fn lines<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>> {
        Box::pin(async move {
            let args = [
                text(journal),
                number(from.saturating_sub(1).min(u32::MAX.into())),
                number(max_bytes),
            ];
            self.call(&self.scripts.lines, space, &args).await?.rest()
        })
    }

    fn tail<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
    ) -> BoxFuture<'a, Result<Option<JournalTail>, StoreError>> {
        Box::pin(async move {
            let only = text(&format!("[{journal}"));
            let mut reply = self
                .call(&self.scripts.tails, space, &[only.clone(), only, limit(1)])
                .await?;
            if reply.is_exhausted() {
                Ok(None)
            } else {
                Ok(Some(named_tail(&mut reply)?.1))
            }
        })
    }

    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, JournalTail)>, StoreError>> {
        Box::pin(async move {
            let args = [
                lex_range_start(after),
                Bytes::from_static(b"+"),
                limit(most),
            ];
            let mut reply = self.call(&self.scripts.tails, space, &args).await?;
            let mut names = Vec::new();
            while !reply.is_exhausted() {
                names.push(named_tail(&mut reply)?);
            }
            Ok(names)
        })
    }

    fn erase<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let args = [text(journal), text(&fence.name), number(fence.token)];
            with_lease_name(self.call(&self.scripts.erase, space, &args).await, fence)?;
            Ok(())
        })
    }
}

fn named_tail(reply: &mut ScriptReply) -> Result<(String, JournalTail), StoreError> {
    let name = reply.text()?;
    let seq = reply.number()?;
    let bytes = reply.number()?;
    let updated_ms = reply.number()?;
    Ok((
        name,
        JournalTail {
            seq,
            bytes,
            updated_ms,
            last: reply.bytes()?,
        },
    ))
}
