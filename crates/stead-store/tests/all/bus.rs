//! The place for tests of the bus between processes, and of what happens when one is killed or a
//! connection is lost.

use bytes::Bytes;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stead_core::SessionId;
use stead_store::{
    BusMessage, BusSubscription, DocVersion, FileStore, OsDisk, RedisStore, Space, SqlStore,
    StateStore, StoreError, Topic,
};
use stead_testkit::servers::{ServerKind, TestServer, shared};
use stead_testkit::store_suite::bus_between;
use stead_testkit::{Child, Death, child_role};

const ARRIVAL: Duration = Duration::from_secs(30);

fn topic() -> Topic {
    Topic::new(&Space::new(["bus"]), &SessionId::new("s").unwrap())
}

fn files(root: &Path, runtime: &Path) -> Arc<FileStore> {
    let store = FileStore::new(root, Arc::new(OsDisk));
    Arc::new(store.with_runtime_dir(runtime))
}

async fn next(subscription: &mut BusSubscription) -> BusMessage {
    let received = tokio::time::timeout(ARRIVAL, subscription.recv()).await;
    received.expect("a message arrives in time")
}

/// Returns the sockets below a runtime folder.
fn sockets(runtime: &Path) -> Vec<PathBuf> {
    let list = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let users = list(runtime);
    let topics = users.iter().flat_map(|user| list(user));
    topics.flat_map(|topic| list(&topic)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_from_one_handle_of_a_store_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = dir.path().join("run");
    std::fs::create_dir(&runtime).unwrap();
    let root = dir.path().join("store");
    bus_between(files(&root, &runtime), files(&root, &runtime)).await;
    let sqlite = format!("sqlite:{}", dir.path().join("store.db").display());
    for url in [
        sqlite,
        shared(ServerKind::Postgres),
        shared(ServerKind::Mysql),
    ] {
        let here = SqlStore::connect(&url).await.unwrap();
        let there = SqlStore::connect(&url).await.unwrap();
        let here = here.with_runtime_dir(&runtime).unwrap();
        let there = there.with_runtime_dir(&runtime).unwrap();
        bus_between(Arc::new(here), Arc::new(there)).await;
    }
    let url = shared(ServerKind::Redis);
    let here = RedisStore::connect(&url).await.unwrap();
    let there = RedisStore::connect(&url).await.unwrap();
    bus_between(Arc::new(here), Arc::new(there)).await;
    assert_eq!(sockets(&runtime), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn stores_in_different_folders_have_different_buses() {
    let dir = tempfile::tempdir().unwrap();
    let here = files(&dir.path().join("a"), dir.path());
    let there = files(&dir.path().join("b"), dir.path());
    let mut subscription = there.bus().subscribe(&topic()).await.unwrap();
    here.bus().publish(&topic(), Bytes::from_static(b"a"));
    there.bus().publish(&topic(), Bytes::from_static(b"b"));
    let wanted = BusMessage::Message(Bytes::from_static(b"b"));
    assert_eq!(next(&mut subscription).await, wanted);
}

#[test]
fn two_processes_talk_and_a_killed_one_leaves_nothing_behind() {
    const NAME: &str = "bus::two_processes_talk_and_a_killed_one_leaves_nothing_behind";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(role) = child_role() {
        let root = Path::new(role.get("root"));
        let store = files(&root.join("store"), root);
        return runtime.block_on(async {
            let mut subscription = store.bus().subscribe(&topic()).await.unwrap();
            loop {
                store.bus().publish(&topic(), Bytes::from_static(b"ping"));
                let received = subscription.recv();
                let received = tokio::time::timeout(Duration::from_millis(20), received).await;
                if received == Ok(BusMessage::Message(Bytes::from_static(b"end"))) {
                    return;
                }
            }
        });
    }
    let dir = tempfile::tempdir().unwrap();
    let store = files(&dir.path().join("store"), dir.path());
    let spawn = || Child::spawn(NAME, [("root", dir.path().display().to_string())]);
    let ping = BusMessage::Message(Bytes::from_static(b"ping"));
    runtime.block_on(async {
        let mut subscription = store.bus().subscribe(&topic()).await.unwrap();
        let mut killed = spawn();
        while next(&mut subscription).await != ping {}
        assert_eq!(sockets(dir.path()).len(), 2);
        killed.kill();
        assert_eq!(killed.wait(ARRIVAL).death, Death::Signal(9));
        assert_eq!(sockets(dir.path()).len(), 2, "a leftover");
        let ended = spawn();
        // Until the second child is there, and has told so after the first was gone.
        tokio::time::sleep(Duration::from_millis(100)).await;
        while next(&mut subscription).await != ping {}
        tokio::time::sleep(Duration::from_millis(50)).await;
        store.bus().publish(&topic(), Bytes::from_static(b"end"));
        let child = tokio::task::spawn_blocking(move || ended.wait(ARRIVAL));
        let mut resend = tokio::time::interval(Duration::from_millis(100));
        tokio::pin!(child);
        let ended = loop {
            tokio::select! {
                ended = &mut child => break ended.unwrap(),
                _ = resend.tick() => store.bus().publish(&topic(), Bytes::from_static(b"end")),
            }
        };
        assert_eq!(ended.death, Death::Exit(0), "{ended}");
        // Only the own socket is left: the leftover was removed, and the child removed its own.
        assert_eq!(sockets(dir.path()).len(), 1);
        drop(subscription);
        assert_eq!(sockets(dir.path()).len(), 0);
    });
}

#[tokio::test]
async fn sockets_of_dead_processes_are_swept_by_the_first_subscriber() {
    let dir = tempfile::tempdir().unwrap();
    let uid = std::fs::metadata(dir.path()).unwrap().uid();
    let user = dir.path().join(format!("stead-{uid}"));
    let old = user.join("an-old-topic");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::set_permissions(&user, std::fs::Permissions::from_mode(0o700)).unwrap();
    drop(std::os::unix::net::UnixDatagram::bind(old.join("1-1-1.sock")).unwrap());
    let living = std::os::unix::net::UnixDatagram::bind(old.join("1-1-2.sock")).unwrap();
    let store = files(&dir.path().join("store"), dir.path());
    let subscription = store.bus().subscribe(&topic()).await.unwrap();
    let left = sockets(dir.path());
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&old.join("1-1-2.sock")));
    drop((living, subscription));
}

#[tokio::test]
async fn a_folder_that_others_can_write_to_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let uid = std::fs::metadata(dir.path()).unwrap().uid();
    let user = dir.path().join(format!("stead-{uid}"));
    let store = files(&dir.path().join("store"), dir.path());
    std::fs::create_dir(&user).unwrap();
    std::fs::set_permissions(&user, std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = store.bus().subscribe(&topic()).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Setup(why) if why.contains("this user alone")),
        "{refused}"
    );
    store.bus().publish(&topic(), Bytes::from_static(b"a"));
    std::fs::remove_dir(&user).unwrap();
    std::os::unix::fs::symlink(dir.path(), &user).unwrap();
    assert!(store.bus().subscribe(&topic()).await.is_err());
    std::fs::remove_file(&user).unwrap();
    let _subscription = store.bus().subscribe(&topic()).await.unwrap();
    assert_eq!(user.metadata().unwrap().mode() & 0o777, 0o700);
    // A folder whose sockets would have too long a path.
    let deep = dir.path().join("d".repeat(60));
    std::fs::create_dir(&deep).unwrap();
    let store = files(&dir.path().join("store"), &deep);
    let refused = store.bus().subscribe(&topic()).await.unwrap_err();
    assert!(refused.to_string().contains("shorter"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_outlives_the_server_and_is_told_that_it_missed_some() {
    for kind in [ServerKind::Redis, ServerKind::Postgres] {
        let mut server = TestServer::start(kind);
        let here = stead_store::connect(server.url()).await.unwrap();
        let there = stead_store::connect(server.url()).await.unwrap();
        let space = Space::new(["bus", &DocVersion::fresh().to_string()]);
        let topic = Topic::new(&space, &SessionId::new("s").unwrap());
        let mut subscription = here.bus().subscribe(&topic).await.unwrap();
        server.kill();
        there.bus().publish(&topic, Bytes::from_static(b"lost"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.start_again();
        assert_eq!(
            next(&mut subscription).await,
            BusMessage::Lagged,
            "{kind:?}"
        );
        let wanted = BusMessage::Message(Bytes::from_static(b"again"));
        loop {
            // The first messages may be lost with the old connection of the sender.
            there.bus().publish(&topic, Bytes::from_static(b"again"));
            let received = subscription.recv();
            match tokio::time::timeout(Duration::from_millis(200), received).await {
                Ok(message) if message == wanted => break,
                Ok(BusMessage::Lagged) | Err(_) => {}
                Ok(other) => panic!("{kind:?}: {other:?}"),
            }
        }
        // A store that is dropped ends its subscriptions.
        drop(here);
        let closed = async { while next(&mut subscription).await != BusMessage::Closed {} };
        tokio::time::timeout(ARRIVAL, closed).await.unwrap();
    }
}
