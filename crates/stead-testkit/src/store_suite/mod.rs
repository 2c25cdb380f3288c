//! Conformance tests of stores: the contracts of `stead-store`, sentence by sentence.
//!
//! Each case works in a space of its own, so that the suite can run on a server that others use. It
//! does not remove what it wrote.
//!
//! ```
//! mod memory {
//!     // A store, and whatever must live as long as it does: a temporary folder, a server.
//!     async fn open() -> (std::sync::Arc<dyn stead_store::Store>, ()) {
//!         (std::sync::Arc::new(stead_store::MemoryStore::new()), ())
//!     }
//!     stead_testkit::store_suite!(open());
//! }
//! ```
//!
//! Effects: test support.

mod bus;
mod document_races;
mod documents;
mod exactness;
mod inbox;
mod journals;
mod leases;
mod listings;
mod model;
mod queue;
mod queue_races;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_store::{
    AcquireOutcome, Claim, ClaimedJob, DocVersion, Document, DocumentChange, EnqueueOutcome,
    Expected, FencingToken, Job, ListedDocument, Space, StateStore, Store, StoreError,
};
use tokio::task::JoinSet;

/// Defines tests of all four contracts from a future that returns a [`Store`] and a guard that is
/// dropped after it.
#[macro_export]
macro_rules! store_suite {
    ($open:expr) => {
        $crate::state_suite!($open);

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn journals() {
            let (store, _guard) = $open.await;
            $crate::store_suite::journals(store).await;
        }
    };
}

/// Defines tests of documents, leases and queues from a future that returns a [`StateStore`] or a
/// [`Store`] and a guard that is dropped after it.
#[macro_export]
macro_rules! state_suite {
    ($open:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn documents() {
            let (store, _guard) = $open.await;
            $crate::store_suite::documents(store).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn leases() {
            let (store, _guard) = $open.await;
            $crate::store_suite::leases(store).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn queue() {
            let (store, _guard) = $open.await;
            $crate::store_suite::queue(store).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn bus() {
            let (store, _guard) = $open.await;
            $crate::store_suite::bus(store).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn inbox() {
            let (store, _guard) = $open.await;
            $crate::store_suite::inbox(store).await;
        }
    };
}

/// Tests the contract of [`stead_store::Documents`].
pub async fn documents(store: Arc<dyn StateStore>) {
    run("documents", &store, documents::CASES).await;
    run("listings", &store, listings::CASES).await;
    run("document_races", &store, document_races::CASES).await;
    run("exactness", &store, exactness::CASES).await;
    run("model", &store, model::CASES).await;
}

/// Tests the contract of [`stead_store::Journals`].
pub async fn journals(store: Arc<dyn Store>) {
    run("journals", &store, journals::CASES).await;
}

/// Tests the contract of [`stead_store::Leases`].
pub async fn leases(store: Arc<dyn StateStore>) {
    run("leases", &store, leases::CASES).await;
}

/// Tests the contract of [`stead_store::Queue`].
pub async fn queue(store: Arc<dyn StateStore>) {
    run("queue", &store, queue::CASES).await;
    run("queue_races", &store, queue_races::CASES).await;
}

/// Tests [`stead_store::SessionInbox`] on a store.
pub async fn inbox(store: Arc<dyn StateStore>) {
    run("inbox", &store, inbox::CASES).await;
}

/// Tests the contract of [`stead_store::Bus`] within one process.
pub async fn bus(store: Arc<dyn StateStore>) {
    run("bus", &store, bus::CASES).await;
}

/// Tests the contract of [`stead_store::Bus`] between two processes, for which two handles of one
/// store stand.
pub async fn bus_between(here: Arc<dyn StateStore>, there: Arc<dyn StateStore>) {
    bus::between(&*here.bus(), &*there.bus()).await;
}

/// The time after which a case counts as hanging. No case of any backend takes nearly this long.
const CASE_DEADLINE: Duration = Duration::from_secs(120);
/// The duration of leases and claims that must not end during a case.
const LONG: Duration = Duration::from_secs(180);
/// The duration of leases and claims that must end during a case.
const SHORT: Duration = Duration::from_millis(120);
/// The tolerance for early expiry: the store's clock has milliseconds and may differ from the local
/// one.
const CLOCK_SLACK: Duration = Duration::from_millis(10);
/// Names that some collations treat as equal.
const LOOK_ALIKE_NAMES: [&str; 7] = ["a", "A", "a ", "ä", "a\u{308}", "a%", "a_"];
const POLL: Duration = Duration::from_millis(5);

type StoreCase<S = dyn StateStore> = (
    &'static str,
    fn(CaseContext<S>) -> LocalBoxFuture<'static, ()>,
);

/// Returns a table of cases, named like their functions.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), |cx| Box::pin($name(cx)))),*]
    };
}
use cases;

/// Runs all cases, so that one run reports everything that is wrong with a store.
async fn run<S: StateStore + ?Sized>(group: &str, store: &Arc<S>, cases: &[StoreCase<S>]) {
    let mut failed = Vec::new();
    for (name, case) in cases {
        let space = Space::new(["suite", group, name, &DocVersion::fresh().to_string()]);
        let cx = CaseContext {
            store: store.clone(),
            space,
        };
        let ended = AssertUnwindSafe(tokio::time::timeout(CASE_DEADLINE, case(cx)))
            .catch_unwind()
            .await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(_)) => failed.push(format!("{group}::{name} (no end after {CASE_DEADLINE:?})")),
            Err(_) => failed.push(format!("{group}::{name}")),
        }
    }
    let place = store.place();
    assert!(
        failed.is_empty(),
        "{place}: {} of {} cases failed: {}",
        failed.len(),
        cases.len(),
        failed.join(", ")
    );
}

/// The context of a case: the store under test, and a space in it that no other case uses.
#[derive(Debug)]
struct CaseContext<S: ?Sized = dyn StateStore> {
    store: Arc<S>,
    space: Space,
}

impl<S: ?Sized> Clone for CaseContext<S> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            space: self.space.clone(),
        }
    }
}

impl<S: StateStore + ?Sized> CaseContext<S> {
    /// Returns the same store with a space within this one.
    fn within(&self, id: &str) -> Self {
        Self {
            store: self.store.clone(),
            space: self.space.within(id),
        }
    }

    async fn commit(&self, changes: Vec<DocumentChange>) -> Result<(), StoreError> {
        self.store.commit(&self.space, changes, None).await
    }

    async fn get(&self, key: &str) -> Option<Document> {
        self.store.get(&self.space, key).await.unwrap()
    }

    /// Returns the body at `key`, as text.
    async fn body(&self, key: &str) -> Option<String> {
        self.get(key)
            .await
            .map(|found| String::from_utf8(found.body.to_vec()).unwrap())
    }

    /// Writes a document at a key that must be absent.
    async fn create(&self, key: &str, body: &str) -> DocVersion {
        let (version, change) = put(key, body, Expected::Absent);
        self.commit(vec![change]).await.unwrap();
        version
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<ListedDocument> {
        self.store
            .list(&self.space, prefix, after, limit)
            .await
            .unwrap()
    }

    /// Returns all keys that start with `prefix`.
    async fn keys(&self, prefix: &str) -> Vec<String> {
        self.list(prefix, None, 10_000)
            .await
            .into_iter()
            .map(|listed| listed.key)
            .collect()
    }

    async fn acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        claim: Claim,
    ) -> AcquireOutcome {
        self.store
            .acquire(&self.space, name, holder, ttl, claim)
            .await
            .unwrap()
    }

    /// Acquires a lease that is free.
    async fn fence(&self, name: &str, holder: &str, ttl: Duration) -> FencingToken {
        match self.acquire(name, holder, ttl, Claim::Free).await {
            AcquireOutcome::Granted(fence) => fence,
            AcquireOutcome::Held(lease) => panic!("{name} is held: {lease:?}"),
        }
    }

    /// Takes a lease over from its holder.
    async fn take_over(&self, fence: &FencingToken, holder: &str) -> FencingToken {
        match self
            .acquire(&fence.name, holder, LONG, Claim::Takeover(fence.token))
            .await
        {
            AcquireOutcome::Granted(fence) => fence,
            AcquireOutcome::Held(lease) => panic!("not taken over: {lease:?}"),
        }
    }

    async fn enqueue(&self, queue: &str, job: Job) -> EnqueueOutcome {
        self.store.enqueue(&self.space, queue, job).await.unwrap()
    }

    async fn claim(&self, queue: &str, hide: Duration) -> Option<ClaimedJob> {
        self.store.claim(&self.space, queue, hide).await.unwrap()
    }

    /// Claims repeatedly until there is a job.
    async fn claim_soon(&self, queue: &str, hide: Duration) -> ClaimedJob {
        eventually(async || self.claim(queue, hide).await).await
    }
}

impl CaseContext<dyn Store> {
    async fn append(
        &self,
        journal: &str,
        after: u64,
        lines: &[&str],
        fence: &FencingToken,
    ) -> Result<(), StoreError> {
        let lines: Vec<Bytes> = lines
            .iter()
            .map(|line| Bytes::copy_from_slice(line.as_bytes()))
            .collect();
        self.store
            .append(&self.space, journal, after, &lines, fence)
            .await
    }

    /// Returns all lines of a journal, read page by page.
    async fn lines(&self, journal: &str) -> Vec<Bytes> {
        let mut all: Vec<Bytes> = Vec::new();
        loop {
            let page = self
                .store
                .lines(&self.space, journal, all.len() as u64 + 1, 256 * 1024)
                .await
                .unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }
}

/// Returns a put of a new version, and that version.
fn put(key: &str, body: &str, expect: Expected) -> (DocVersion, DocumentChange) {
    let document = Document::new(Bytes::new(), Bytes::copy_from_slice(body.as_bytes()));
    (
        document.version,
        DocumentChange::Put {
            key: key.to_owned(),
            document,
            expect,
        },
    )
}

fn delete(key: &str, expect: Expected) -> DocumentChange {
    DocumentChange::Delete {
        key: key.to_owned(),
        expect,
    }
}

fn relocate(from: &str, to: &str, version: DocVersion) -> DocumentChange {
    DocumentChange::Move {
        from: from.to_owned(),
        to: to.to_owned(),
        version,
    }
}

fn check(key: &str, expect: Expected) -> DocumentChange {
    DocumentChange::Check {
        key: key.to_owned(),
        expect,
    }
}

#[track_caller]
fn assert_conflict(outcome: &Result<(), StoreError>) {
    assert!(
        matches!(outcome, Err(StoreError::Conflict(_))),
        "expected a conflict, got {outcome:?}"
    );
}

#[track_caller]
fn assert_fenced(outcome: &Result<(), StoreError>) {
    assert!(
        matches!(outcome, Err(StoreError::Fenced { .. })),
        "expected to be fenced off, got {outcome:?}"
    );
}

/// Calls `ask` until it returns a value.
async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + CASE_DEADLINE / 2;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "no value before the deadline");
        tokio::time::sleep(POLL).await;
    }
}

/// Runs `act` for 0..`n` in parallel on several threads.
async fn race<T, F>(n: usize, act: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut racers = JoinSet::new();
    for i in 0..n {
        racers.spawn(act(i));
    }
    racers.join_all().await
}
