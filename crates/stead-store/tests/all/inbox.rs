//! The place for tests of the inbox on a disk that fails, and of processes that are killed.

use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead_core::SessionId;
use stead_store::{
    Disk, FileStore, InboxError, InputOutcome, InputStatus, Inserted, OsDisk, SessionInbox, Space,
};
use stead_testkit::{Child, Death, FaultDisk, KillPoint, child_role};

const BODIES: [&str; 3] = ["one", "two", "three"];

fn inbox(root: &Path, disk: Arc<dyn Disk>) -> SessionInbox {
    let session = SessionId::new("s").unwrap();
    SessionInbox::new(
        Arc::new(FileStore::new(root, disk)),
        &Space::new(["inbox", "s"]),
        &session,
    )
}

/// Inserts the bodies under keys and settles the first. Calls `done` after each acknowledged step.
async fn script(inbox: &SessionInbox, mut done: impl FnMut(usize)) -> Result<(), InboxError> {
    let mut first = None;
    for (step, body) in BODIES.into_iter().enumerate() {
        match inbox.insert(Some(body), Bytes::from(body)).await? {
            Inserted::New(id) | Inserted::Existing { id, .. } => first.get_or_insert(id),
        };
        done(step + 1);
    }
    let settled = first.map(|id| (id, InputOutcome::Recorded { seq: 2 }));
    inbox.settle(settled.as_slice(), None).await?;
    done(BODIES.len() + 1);
    Ok(())
}

/// Checks that the steps up to `acknowledged` are there, and that a whole number of steps is.
async fn check(root: &Path, acknowledged: usize, context: &str) {
    let inbox = inbox(root, Arc::new(OsDisk));
    let rows = inbox.waiting(10).await.unwrap();
    let waiting: Vec<&[u8]> = rows.iter().map(|row| &row.body[..]).collect();
    let settled = BODIES[1..].iter().map(|body| body.as_bytes());
    let steps = if acknowledged == 4 || waiting == settled.collect::<Vec<_>>() {
        4
    } else {
        waiting.len()
    };
    assert!(steps >= acknowledged, "{context}: {steps} < {acknowledged}");
    let wanted = &BODIES[usize::from(steps == 4)..steps.min(3)];
    let wanted: Vec<&[u8]> = wanted.iter().map(|body| body.as_bytes()).collect();
    assert_eq!(waiting, wanted, "{context}");
    // Keys are remembered exactly for what was inserted, and the inbox goes on.
    for (step, body) in BODIES.into_iter().enumerate() {
        let again = inbox.insert(Some(body), Bytes::from(body)).await.unwrap();
        match again {
            Inserted::New(_) => assert!(step >= steps, "{context}: {body} was forgotten"),
            Inserted::Existing { status, .. } => {
                assert!(step < steps, "{context}: {body} has only a key");
                let settled = InputStatus::Recorded { seq: 2 };
                let expected = match (step, steps) {
                    (0, 4) => settled,
                    _ => InputStatus::Waiting,
                };
                assert_eq!(status, expected, "{context}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn on_a_failing_disk_a_row_is_inserted_whole_or_not_at_all() {
    let mut faults = 0;
    for plan in [
        FaultDisk::fail_from as fn(usize, std::io::ErrorKind) -> FaultDisk,
        FaultDisk::fail_at,
        |n, _| FaultDisk::tear_at(n),
    ] {
        for n in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let disk = Arc::new(plan(n, std::io::ErrorKind::StorageFull));
            let mut acknowledged = 0;
            let made = script(&inbox(dir.path(), disk.clone()), |step| acknowledged = step).await;
            assert_eq!(made.is_ok(), acknowledged == 4);
            check(dir.path(), acknowledged, &format!("operation {n}")).await;
            if !disk.fired() {
                break;
            }
            faults += 1;
        }
    }
    assert!(faults > 100, "only {faults} faults were tried");
}

#[test]
fn a_killed_process_loses_no_acknowledged_row() {
    const NAME: &str = "inbox::a_killed_process_loses_no_acknowledged_row";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(role) = child_role() {
        let point = KillPoint::ALL[role.get("point").parse::<usize>().unwrap()];
        let disk = FaultDisk::kill_at(role.get("n").parse().unwrap(), point);
        let inbox = inbox(Path::new(role.get("root")), Arc::new(disk));
        let acknowledged = Path::new(role.get("acknowledged"));
        let note = |step: usize| std::fs::write(acknowledged, step.to_string()).unwrap();
        return runtime.block_on(script(&inbox, note)).unwrap();
    }
    let mut kills = 0;
    for point in 0..KillPoint::ALL.len() {
        for n in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("store");
            let acknowledged = dir.path().join("acknowledged");
            let variables = [
                ("point", point.to_string()),
                ("n", n.to_string()),
                ("root", root.display().to_string()),
                ("acknowledged", acknowledged.display().to_string()),
            ];
            let ended = Child::spawn(NAME, variables).wait(Duration::from_secs(30));
            let steps = std::fs::read_to_string(&acknowledged).unwrap_or_default();
            let context = format!("killed at {n} ({point})");
            runtime.block_on(check(&root, steps.parse().unwrap_or(0), &context));
            match ended.death {
                Death::Signal(9) => kills += 1,
                Death::Exit(0) => break,
                Death::Exit(_) | Death::Signal(_) | Death::TimedOut => panic!("{ended}"),
            }
        }
    }
    assert!(kills > 100, "only {kills} kills");
}
