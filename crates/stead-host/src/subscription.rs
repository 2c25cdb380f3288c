//! A subscription: the journal from a point on, with live events in between.
//!
//! Effects: the clock, the store (writes), the journal (reads).

use crate::approver::AttachedPerson;
use crate::error;
use crate::feed::{FeedItem, FeedReceiver};
use crate::handle::SessionHandle;
use crate::link::{LinkListener, LinkMessage, Received, SessionLink, receive};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    ClientError, ClientFuture, Cursor, Event, EventId, EventKind, JournalLine, Presence,
    SessionEvent, SessionEventBody, Subscription,
};
use stead_store::StoreError;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often the journal is looked at if nobody tells of new entries.
const POLL: Duration = Duration::from_millis(200);
/// How often other processes are told that somebody listens.
const HELLO: Duration = Duration::from_secs(5);

/// The number of journal bytes read at once.
const PAGE_BYTES: usize = 1024 * 1024;

/// A running subscription to one session.
///
/// Entries come from the journal, or from this process's own feed if that continues where the
/// subscription is. A live event is passed on only if all entries before it were.
#[derive(Debug)]
pub struct SessionSubscription {
    /// Keeps the actor, whose events these are.
    _handle: SessionHandle,
    /// The subscriber, if they can be asked.
    person: Option<AttachedPerson>,
    link: Arc<SessionLink>,
    local: FeedReceiver,
    /// The messages of other processes; none if the bus does not work.
    remote: Option<LinkListener>,
    /// The newest event that was returned or is ready.
    newest: EventId,
    /// What was received and is not ready yet.
    taken: Option<FeedItem>,
    ready: VecDeque<SessionEvent>,
    poll: Interval,
    hello: Interval,
}

impl SessionSubscription {
    /// Subscribes to the session of `handle`.
    pub(crate) async fn open(
        handle: SessionHandle,
        cursor: Cursor,
        presence: Presence,
    ) -> Result<Self, ClientError> {
        let shared = &handle.shared;
        let link = shared.link.clone();
        let local = shared.feed.subscribe();
        let person = match presence {
            Presence::Watches => None,
            Presence::Answers => Some(shared.approver.attach()),
        };
        // Before the journal is read, so that nothing is missed in between.
        let remote = match link.listen().await {
            Ok(listener) => Some(listener),
            Err(error) => {
                tracing::debug!(session = %link.session, %error, "no bus; the journal is polled");
                None
            }
        };
        let newest = match cursor {
            Cursor::Start => EventId::default(),
            Cursor::After(id) => id,
            Cursor::Now => EventId::of_entry(journal_end(&link).await?),
        };
        let every = |period| {
            let mut interval = interval(period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        Ok(Self {
            _handle: handle,
            person,
            link,
            local,
            remote,
            newest,
            taken: None,
            ready: VecDeque::new(),
            poll: every(POLL),
            hello: every(HELLO),
        })
    }

    /// Waits for the next event. Dropping the future loses nothing: what was taken and is not ready
    /// yet is kept in `taken`.
    pub async fn next(&mut self) -> Result<SessionEvent, ClientError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.taken.clone() {
                Some(FeedItem::Entry(line)) => self.offer_entry(line).await?,
                Some(FeedItem::Live(id, event)) => self.offer_live(id, event).await?,
                Some(FeedItem::Changed { last }) => self.catch_up_to(last).await?,
                None => {}
            }
            self.taken = None;
            if !self.ready.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                item = self.local.recv() => self.taken = Some(item),
                received = receive(&mut self.remote) => match received {
                    // An id that cannot be read is of another version.
                    Received::Message(LinkMessage::Live { id, event }) => {
                        let id = id.parse().ok();
                        self.taken = id.map(|id| FeedItem::Live(id, Arc::from(event)));
                    }
                    Received::Message(LinkMessage::Entries { seq }) if seq <= self.newest.seq => {}
                    Received::Message(LinkMessage::Entries { seq: last }) => {
                        self.taken = Some(FeedItem::Changed { last });
                    }
                    Received::Lost => self.taken = Some(FeedItem::Changed { last: u64::MAX }),
                    Received::Message(LinkMessage::WhoListens) => self.say_hello(),
                    Received::Message(LinkMessage::Hello { .. } | LinkMessage::Inbox) => {}
                },
                _ = self.hello.tick() => self.say_hello(),
                _ = self.poll.tick() => {
                    let last = journal_end(&self.link).await?;
                    if last > self.newest.seq {
                        self.taken = Some(FeedItem::Changed { last });
                    }
                }
            }
        }
    }

    /// Tells other processes that somebody listens here.
    fn say_hello(&self) {
        let answers = self.person.is_some();
        self.link.publish(&LinkMessage::Hello { answers });
    }

    async fn offer_entry(&mut self, line: Arc<JournalLine>) -> Result<(), ClientError> {
        match line.seq.checked_sub(self.newest.seq) {
            // It was read from the journal before.
            None | Some(0) => {}
            Some(1) => self.push(EventId::of_entry(line.seq), SessionEventBody::Entry(line)),
            Some(_) => self.catch_up_to(line.seq).await?,
        }
        Ok(())
    }

    async fn offer_live(&mut self, id: EventId, event: Arc<Event>) -> Result<(), ClientError> {
        if id.seq > self.newest.seq {
            self.catch_up_to(id.seq).await?;
        }
        // Events before the newest entry are part of it.
        let is_new = id.seq == self.newest.seq
            && (id.epoch > self.newest.epoch
                || (id.epoch == self.newest.epoch && id.n > self.newest.n));
        if is_new {
            self.push(id, SessionEventBody::Live(event));
        } else if is_run_end(&event) {
            // No entry says that a run has parked, or that this process lost the session.
            let id = EventId {
                n: self.newest.n + 1,
                ..self.newest
            };
            self.push(id, SessionEventBody::Live(event));
        }
        Ok(())
    }

    /// Reads the entries that are new in the journal, up to the entry `last`. Live events that
    /// belong between it and later entries are still to come.
    async fn catch_up_to(&mut self, last: u64) -> Result<(), ClientError> {
        let from = self.newest.seq + 1;
        let session = &self.link.session;
        let read = self.link.journals.read_from(session, from, PAGE_BYTES);
        let lines = match read.await {
            Ok(lines) => lines,
            // The session does not exist yet.
            Err(StoreError::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error::from_store(error)),
        };
        for line in lines.into_iter().filter(|line| line.seq <= last) {
            let id = EventId::of_entry(line.seq);
            self.push(id, SessionEventBody::Entry(Arc::new(line)));
        }
        Ok(())
    }

    fn push(&mut self, id: EventId, body: SessionEventBody) {
        self.newest = id;
        self.ready.push_back(SessionEvent { id, body });
    }
}

impl Subscription for SessionSubscription {
    fn next(&mut self) -> ClientFuture<'_, SessionEvent> {
        Box::pin(SessionSubscription::next(self))
    }
}

/// Whether a run of the session itself, not of a subagent, has ended.
fn is_run_end(event: &Event) -> bool {
    event.source.is_empty() && matches!(event.kind, EventKind::RunEnded { .. })
}

/// Returns the number of the last entry of a journal; 0 if there is none.
async fn journal_end(link: &SessionLink) -> Result<u64, ClientError> {
    let tail = link.journals.tail(&link.session).await;
    let tail = tail.map_err(error::from_store)?;
    Ok(tail.map_or(0, |tail| tail.seq))
}
