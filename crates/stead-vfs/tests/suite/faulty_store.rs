//! Test support: a store whose responses are slow, lost or failing.

use futures_util::future::BoxFuture;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use stead_store::{
    Document, DocumentChange, Documents, FencingToken, ListedDocument, MemoryStore, Space,
    StoreError,
};
use tokio::sync::oneshot;

/// Yields a varying number of times before and after every operation.
#[derive(Debug)]
pub(crate) struct Shaky {
    pub(crate) store: MemoryStore,
    turns: AtomicU64,
    /// The number of commits before the one that fails.
    fail_in: Mutex<Option<(usize, Loss)>>,
    /// A hold on the next commit.
    held: Mutex<Option<Hold>>,
    pub(crate) gets: AtomicUsize,
    pub(crate) lists: AtomicUsize,
    pub(crate) commits: AtomicUsize,
}

/// A held commit: it signals that it is about to be made, and is made when it is released.
#[derive(Debug)]
struct Hold {
    reached: oneshot::Sender<()>,
    released: oneshot::Receiver<()>,
}

/// What is lost when a commit fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The request.
    Request,
    /// Only the response.
    Answer,
}

impl Shaky {
    pub(crate) fn new(store: MemoryStore) -> Self {
        let count = AtomicUsize::default;
        let fail_in = Mutex::default();
        let held = Mutex::default();
        let turns = AtomicU64::new(1);
        Self {
            store,
            turns,
            fail_in,
            held,
            gets: count(),
            lists: count(),
            commits: count(),
        }
    }

    /// Makes the commit after `commits` others fail.
    pub(crate) fn fail_after(&self, commits: usize, loss: Loss) {
        *self.fail_in.lock().unwrap() = Some((commits, loss));
    }

    /// Holds the next commit back.
    pub(crate) fn hold(&self) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let (reached, is_reached) = oneshot::channel();
        let (release, released) = oneshot::channel();
        *self.held.lock().unwrap() = Some(Hold { reached, released });
        (is_reached, release)
    }

    async fn pause(&self) {
        let turn = self
            .turns
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        for _ in 0..(turn >> 40) % 4 {
            tokio::task::yield_now().await;
        }
    }

    fn fate(&self) -> Option<Loss> {
        let mut fail_in = self.fail_in.lock().unwrap();
        match fail_in.take() {
            Some((0, loss)) => Some(loss),
            Some((left, loss)) => {
                *fail_in = Some((left - 1, loss));
                None
            }
            None => None,
        }
    }
}

impl Documents for Shaky {
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            self.pause().await;
            let found = self.store.get(space, key).await;
            self.pause().await;
            found
        })
    }

    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            self.pause().await;
            let found = self.store.list(space, prefix, after, limit).await;
            self.pause().await;
            found
        })
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            self.pause().await;
            let held = self.held.lock().unwrap().take();
            if let Some(Hold { reached, released }) = held {
                reached.send(()).unwrap();
                released.await.unwrap();
            }
            let lost = || StoreError::Unavailable {
                place: "shaky:".into(),
                cause: "gone".into(),
            };
            match self.fate() {
                Some(Loss::Request) => return Err(lost()),
                Some(Loss::Answer) => {
                    self.store.commit(space, changes, fence).await?;
                    return Err(lost());
                }
                None => {}
            }
            let made = self.store.commit(space, changes, fence).await;
            self.pause().await;
            made
        })
    }
}
