//! The place for tests of sessions in a store: one writer, fencing, takeover and moving between
//! files and stores.

use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{
    AgentId, Entry, NewSession, Redactor, RunEnd, RunId, RunOutcome, SessionId, UserInput,
};
use stead_store::{
    AcquireOutcome, Claim, FileSessions, ImportOutcome, LockWait, MemoryStore, OsDisk, RedisStore,
    Sessions, Space, SqlStore, Store, StoreError, StoreSessions,
};
use stead_testkit::servers::{ServerKind, shared};

async fn stores() -> Vec<Arc<dyn Store>> {
    vec![
        Arc::new(SqlStore::connect("sqlite::memory:").await.unwrap()),
        Arc::new(MemoryStore::new()),
        Arc::new(
            RedisStore::connect(&shared(ServerKind::Redis))
                .await
                .unwrap(),
        ),
        Arc::new(
            SqlStore::connect(&shared(ServerKind::Postgres))
                .await
                .unwrap(),
        ),
        Arc::new(SqlStore::connect(&shared(ServerKind::Mysql)).await.unwrap()),
    ]
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn fresh_space() -> Space {
    Space::new(["sessions", RunId::fresh().as_str()])
}

fn sessions(store: &Arc<dyn Store>, space: &Space) -> StoreSessions {
    let redactor = Redactor::new(["sk-very-secret".into()]);
    StoreSessions::new(store.clone(), space.clone(), AgentId::main(), redactor)
}

fn input(text: &str) -> Vec<Entry> {
    let run = RunId::fresh();
    let end = RunEnd {
        run: run.clone(),
        outcome: RunOutcome::Completed,
        reason: None,
    };
    vec![Entry::User(UserInput::text(run, text)), Entry::End(end)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_elsewhere_and_is_listed_and_removed() {
    for store in stores().await {
        let space = fresh_space();
        let here = sessions(&store, &space);
        let mut opened = here.create(&id("s"), NewSession::default()).await.unwrap();
        let lines = opened
            .writer
            .append(input("the key is sk-very-secret, ä"))
            .await
            .unwrap();
        let at = opened.writer.position();
        opened.writer.close().await;
        assert!(
            matches!(
                here.create(&id("s"), NewSession::default()).await,
                Err(StoreError::Exists(_))
            ),
            "{}",
            store.place()
        );

        let there = sessions(&store, &space);
        let known = there.open(&id("s"), Some(at), LockWait::No).await.unwrap();
        assert!(known.state.is_none(), "what is known is not read again");
        known.writer.close().await;
        let mut opened = there.open(&id("s"), None, LockWait::No).await.unwrap();
        assert_eq!(opened.state.as_ref().unwrap().runs, 1);
        assert_eq!(opened.writer.position(), at);
        opened.writer.append(input("more")).await.unwrap();
        opened.writer.close().await;

        let read = here.read(&id("s")).await.unwrap();
        assert_eq!(read[1..3], lines[..]);
        assert_eq!(
            read.iter().map(|line| line.seq).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5]
        );
        assert!(!format!("{read:?}").contains("very-secret"));
        let list = here.list_all().await.unwrap();
        assert_eq!(
            list.iter()
                .map(|s| (s.id.as_str(), s.entries, s.runs))
                .collect::<Vec<_>>(),
            [("s", 5, 2)]
        );
        there.remove(&id("s")).await.unwrap();
        assert!(here.list_all().await.unwrap().is_empty());
        assert!(matches!(
            here.open(&id("s"), None, LockWait::No).await,
            Err(StoreError::NotFound(_))
        ));
        assert!(matches!(
            here.read(&id("s")).await,
            Err(StoreError::NotFound(_))
        ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_living_writer_keeps_others_out_and_an_overtaken_one_is_fenced_off() {
    for store in stores().await {
        let space = fresh_space();
        let here = sessions(&store, &space);
        let there = sessions(&store, &space);
        let mut first = here.create(&id("s"), NewSession::default()).await.unwrap();
        let begun = Instant::now();
        let refused = there.open(&id("s"), None, LockWait::No).await;
        assert!(
            matches!(&refused, Err(StoreError::Locked { .. })),
            "{refused:?}"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(9),
            "a holder that renews is known to live before that"
        );

        // Another process takes over because it believes the holder gone; the holder notices at its
        // next append.
        let fence = first.writer.fence().unwrap().clone();
        let taken = store.acquire(
            &space,
            &fence.name,
            "elsewhere",
            Duration::from_secs(1),
            Claim::Takeover(fence.token),
        );
        assert!(matches!(taken.await.unwrap(), AcquireOutcome::Granted(_)));
        let late = first.writer.append(input("late")).await;
        assert!(matches!(late, Err(StoreError::Fenced { .. })), "{late:?}");
        assert!(first.writer.lease_lost().is_cancelled());
        assert!(matches!(
            first.writer.append(input("later")).await,
            Err(StoreError::Fenced { .. })
        ));
        assert_eq!(
            here.read(&id("s")).await.unwrap().len(),
            1,
            "{}",
            store.place()
        );
        // The other holder was silent for as long as its lease lasts, so the session is free again.
        let mut second = there.open(&id("s"), None, LockWait::No).await.unwrap();
        second.writer.append(input("on we go")).await.unwrap();
        second.writer.close().await;
        assert_eq!(here.read(&id("s")).await.unwrap().len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_is_gone_from_this_machine_is_overtaken_at_once() {
    let store = &stores().await[0];
    let space = fresh_space();
    let here = sessions(store, &space);
    here.create(&id("s"), NewSession::default())
        .await
        .unwrap()
        .writer
        .close()
        .await;
    // Simulates a killed process: the session is held by a process that no longer exists.
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let pid = gone.id();
    gone.wait().unwrap();
    let machine = format!(
        "{} {}",
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .unwrap()
            .trim(),
        std::fs::read_link("/proc/self/ns/pid").unwrap().display()
    );
    let holder = serde_json::json!({"nonce": "x", "host": "h", "pid": pid, "program": "stead", "machine": machine, "began": 1});
    let holder = holder.to_string();
    let lease = store.acquire(
        &space,
        "session/s",
        &holder,
        Duration::from_secs(60),
        Claim::Free,
    );
    assert!(matches!(lease.await.unwrap(), AcquireOutcome::Granted(_)));
    let begun = Instant::now();
    here.open(&id("s"), None, LockWait::No).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_moves_between_files_and_stores_and_back() {
    for store in stores().await {
        let dir = tempfile::tempdir().unwrap();
        let files = FileSessions::new(
            dir.path(),
            AgentId::main(),
            Arc::new(OsDisk),
            Redactor::default(),
        );
        let mut opened = files.create(&id("s"), NewSession::default()).await.unwrap();
        opened.writer.append(input("hello")).await.unwrap();
        drop(opened);
        let remote = sessions(&store, &fresh_space());
        let lines = files.export(&id("s")).await.unwrap();
        assert_eq!(
            remote.import(&id("s"), lines.clone()).await.unwrap(),
            ImportOutcome::New
        );
        assert_eq!(
            remote.import(&id("s"), lines.clone()).await.unwrap(),
            ImportOutcome::Same
        );
        let mut opened = remote.open(&id("s"), None, LockWait::No).await.unwrap();
        opened.writer.append(input("and on")).await.unwrap();
        opened.writer.close().await;
        let longer = remote.export(&id("s")).await.unwrap();
        assert_eq!(
            files.import(&id("s"), longer.clone()).await.unwrap(),
            ImportOutcome::Extended
        );
        assert_eq!(files.export(&id("s")).await.unwrap(), longer);
        assert_eq!(
            files
                .open(&id("s"), None, LockWait::No)
                .await
                .unwrap()
                .state
                .unwrap()
                .runs,
            2
        );

        // Lines that differ are not merged.
        let mut other = files.open(&id("s"), None, LockWait::No).await.unwrap();
        other.writer.append(input("here")).await.unwrap();
        drop(other);
        let mut other = remote.open(&id("s"), None, LockWait::No).await.unwrap();
        other.writer.append(input("there")).await.unwrap();
        other.writer.close().await;
        let refused = remote
            .import(&id("s"), files.export(&id("s")).await.unwrap())
            .await;
        assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
        let foreign = files.import(&id("other"), longer).await;
        assert!(
            matches!(foreign, Err(StoreError::Damaged { .. })),
            "{foreign:?}"
        );
    }
}

/// As after `FLUSHALL`: nobody took the session over, it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_store_lost_is_not_told_as_taken_over() {
    let stores: [Arc<dyn Store>; 2] = [
        Arc::new(SqlStore::connect("sqlite::memory:").await.unwrap()),
        Arc::new(MemoryStore::new()),
    ];
    for store in stores {
        let space = fresh_space();
        let here = sessions(&store, &space);
        let mut opened = here.create(&id("s"), NewSession::default()).await.unwrap();
        let fence = opened.writer.fence().unwrap().clone();
        store.erase(&space, "s", &fence).await.unwrap();
        let claim = Claim::Takeover(fence.token);
        let ttl = Duration::from_secs(1);
        let taken = store
            .acquire(&space, &fence.name, "nobody", ttl, claim)
            .await;
        assert!(matches!(taken.unwrap(), AcquireOutcome::Granted(_)));
        for _ in 0..2 {
            let told = opened.writer.append(input("late")).await.unwrap_err();
            let told = told.to_string();
            assert!(told.contains("the store lost lines 1 to 1"), "{told}");
        }
    }
}
