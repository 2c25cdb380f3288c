//! The place for tests of the file store: conformance, files on disk, disk faults and kills.

use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead_store::{
    AcquireOutcome, Claim, ClaimedJob, Document, DocumentChange, Documents, Expected, FileStore,
    Job, Leases, OsDisk, Queue, Space, StateStore, StoreError,
};
use stead_testkit::{Child, Death, FaultDisk, KillPoint, child_role};
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(60);

async fn open() -> (Arc<dyn StateStore>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (
        Arc::new(FileStore::new(&dir.path().join("store"), Arc::new(OsDisk))),
        dir,
    )
}

stead_testkit::state_suite!(open());

fn space() -> Space {
    Space::new(["agents", "main"])
}

fn sound(root: &Path) -> FileStore {
    FileStore::new(root, Arc::new(OsDisk))
}

fn put(key: &str, body: &str, expect: Expected) -> DocumentChange {
    DocumentChange::Put {
        key: key.into(),
        document: Document::new("meta", body.to_owned()),
        expect,
    }
}

async fn contents(store: &FileStore) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for listed in store.list(&space(), "", None, 100).await.unwrap() {
        let body = store
            .get(&space(), &listed.key)
            .await
            .unwrap()
            .unwrap()
            .body;
        all.push((listed.key, String::from_utf8(body.to_vec()).unwrap()));
    }
    all
}

/// Commits one change of each kind, so that every step of every operation is covered.
async fn script(store: &FileStore) -> Result<(), StoreError> {
    let space = space();
    let moved = store.get(&space, "from").await?.map(|found| found.version);
    let Some(version) = moved else { return Ok(()) };
    let changes = vec![
        put("changed", "new", Expected::Any),
        put(&"long".repeat(200), "new", Expected::Absent),
        DocumentChange::Move {
            from: "from".into(),
            to: "to".into(),
            version,
        },
        DocumentChange::Delete {
            key: "gone".into(),
            expect: Expected::Any,
        },
    ];
    store.commit(&space, changes, None).await
}

async fn prepare(root: &Path) {
    let store = sound(root);
    let changes = ["changed", "from", "gone"].map(|key| put(key, "old", Expected::Absent));
    store.commit(&space(), changes.into(), None).await.unwrap();
}

fn before() -> Vec<(String, String)> {
    ["changed", "from", "gone"]
        .map(|key| (key.to_owned(), "old".to_owned()))
        .into()
}

fn after() -> Vec<(String, String)> {
    let new = |key: &str| (key.to_owned(), "new".to_owned());
    vec![
        new("changed"),
        new(&"long".repeat(200)),
        ("to".to_owned(), "old".to_owned()),
    ]
}

#[tokio::test]
async fn a_commit_on_a_failing_disk_is_made_whole_or_not_at_all() {
    let mut faults = 0;
    for plan in [
        FaultDisk::fail_from as fn(usize, std::io::ErrorKind) -> FaultDisk,
        FaultDisk::fail_at,
        |n, _| FaultDisk::tear_at(n),
    ] {
        let mut seen_both = [false; 2];
        for n in 1.. {
            let dir = tempfile::tempdir().unwrap();
            prepare(dir.path()).await;
            let disk = Arc::new(plan(n, std::io::ErrorKind::StorageFull));
            let outcome = script(&FileStore::new(dir.path(), disk.clone())).await;
            let found = contents(&sound(dir.path())).await;
            assert!(
                found == before() || found == after(),
                "operation {n}: {found:?}"
            );
            assert!(
                outcome.is_err() || found == after(),
                "operation {n}: acknowledged and lost"
            );
            seen_both[usize::from(found == after())] = true;
            // The store stays usable.
            sound(dir.path())
                .commit(&space(), vec![put("next", "1", Expected::Absent)], None)
                .await
                .unwrap();
            if !disk.fired() {
                break;
            }
            faults += 1;
        }
        assert_eq!(seen_both, [true, true]);
    }
    assert!(faults > 50, "only {faults} faults were tried");
}

#[tokio::test]
async fn a_job_on_a_failing_disk_is_never_half_there() {
    let job = || Job {
        payload: Bytes::from("do"),
        dedup: Some("key".into()),
        delay: Duration::ZERO,
        max_attempts: 9,
    };
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(FaultDisk::fail_from(n, std::io::ErrorKind::StorageFull));
        let broken = FileStore::new(dir.path(), disk.clone());
        let done = async {
            broken.enqueue(&space(), "q", job()).await?;
            let Some(claimed) = broken.claim(&space(), "q", LONG).await? else {
                panic!("it is there")
            };
            broken
                .nack(&space(), "q", &claimed, Duration::ZERO, "no")
                .await
        };
        let _ = done.await;
        let store = sound(dir.path());
        store.enqueue(&space(), "q", job()).await.unwrap();
        if let Some(claimed) = store.claim(&space(), "q", LONG).await.unwrap() {
            assert_eq!(claimed.payload, "do");
        } else {
            // The failed claim took effect: the job is hidden, and still there.
            let hidden = ClaimedJob {
                id: "0000000000000001".into(),
                payload: Bytes::new(),
                attempt: 1,
            };
            assert!(
                store.ack(&space(), "q", &hidden).await.unwrap(),
                "operation {n}"
            );
        }
        if !disk.fired() {
            return;
        }
    }
}

#[tokio::test]
async fn a_process_killed_in_a_commit_leaves_all_of_it_or_nothing() {
    if let Some(role) = child_role() {
        let point = KillPoint::ALL[role.get("point").parse::<usize>().unwrap()];
        let disk = FaultDisk::kill_at(role.get("n").parse().unwrap(), point);
        script(&FileStore::new(Path::new(role.get("root")), Arc::new(disk)))
            .await
            .unwrap();
        return;
    }
    let count = {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).await;
        let disk = Arc::new(FaultDisk::counting());
        script(&FileStore::new(dir.path(), disk.clone()))
            .await
            .unwrap();
        disk.count()
    };
    for n in 1..=count {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).await;
        // Each operation once, at one of the three points in turn.
        let told = [
            ("n", n.to_string()),
            ("point", (n % KillPoint::ALL.len()).to_string()),
            ("root", dir.path().to_str().unwrap().to_owned()),
        ];
        let ended = Child::spawn(
            "filestore::a_process_killed_in_a_commit_leaves_all_of_it_or_nothing",
            told,
        )
        .wait(Duration::from_secs(20));
        assert_eq!(ended.death, Death::Signal(9), "{ended}");
        let found = contents(&sound(dir.path())).await;
        assert!(
            found == before() || found == after(),
            "killed at {n} of {count}: {found:?}"
        );
    }
}

#[tokio::test]
async fn names_too_long_for_a_file_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = sound(dir.path());
    let names = ["ü".repeat(400), "ü".repeat(401)];
    for name in &names {
        let lease = store
            .acquire(&space(), name, name, LONG, Claim::Free)
            .await
            .unwrap();
        assert!(matches!(lease, AcquireOutcome::Granted(_)), "{lease:?}");
        store
            .commit(&space(), vec![put(name, name, Expected::Absent)], None)
            .await
            .unwrap();
        let job = Job {
            payload: Bytes::from("x"),
            dedup: None,
            delay: Duration::ZERO,
            max_attempts: 1,
        };
        store.enqueue(&space(), name, job).await.unwrap();
        assert!(store.claim(&space(), name, LONG).await.unwrap().is_some());
    }
    let documents = names.map(|name| (name.clone(), name));
    assert_eq!(contents(&store).await, documents);
}

#[tokio::test]
async fn damage_is_told_of_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = sound(dir.path());
    store
        .commit(
            &space(),
            vec![
                put("a", "1", Expected::Absent),
                put("b", "1", Expected::Absent),
            ],
            None,
        )
        .await
        .unwrap();
    let documents = dir.path().join("agents+main/documents");
    std::fs::write(documents.join("a"), "nonsense").unwrap();
    std::fs::copy(documents.join("b"), documents.join("c")).unwrap();
    for key in ["a", "c"] {
        let outcome = store.get(&space(), key).await;
        assert!(
            matches!(outcome, Err(StoreError::Corrupt { .. })),
            "{key}: {outcome:?}"
        );
    }
    assert_eq!(
        std::fs::read_to_string(documents.join("a")).unwrap(),
        "nonsense"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_on_one_folder_are_one_store() {
    let dir = tempfile::tempdir().unwrap();
    sound(dir.path())
        .commit(&space(), vec![put("counter", "0", Expected::Absent)], None)
        .await
        .unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = sound(dir.path());
        writers.spawn(async move {
            let mut made = 0;
            while made < 10 {
                let found = store.get(&space(), "counter").await.unwrap().unwrap();
                let count: u32 = std::str::from_utf8(&found.body).unwrap().parse().unwrap();
                let next = put(
                    "counter",
                    &(count + 1).to_string(),
                    Expected::Version(found.version),
                );
                match store.commit(&space(), vec![next], None).await {
                    Ok(()) => made += 1,
                    Err(StoreError::Conflict(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        });
    }
    writers.join_all().await;
    assert_eq!(
        contents(&sound(dir.path())).await,
        [("counter".to_owned(), "40".to_owned())]
    );
}

#[tokio::test]
async fn looking_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = sound(&dir.path().join("store"));
    assert_eq!(store.get(&space(), "a").await.unwrap(), None);
    assert_eq!(store.list(&space(), "", None, 9).await.unwrap(), []);
    assert_eq!(store.claim(&space(), "q", LONG).await.unwrap(), None);
    assert!(!dir.path().join("store").exists());
    assert!(!store.is_shared() && store.place().starts_with("file:"));
}
