//! The place for tests of crashes and concurrency of the memory worker: no fact is lost or doubled.

use super::{Obedient, agent, agent_of, hasty, read, say, texts};
use crate::support::{block_on, in_parallel};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stead_core::Owner;
use stead_testkit::{Child, Death, DiskOpKind, FaultDisk, KillPoint, child_role};

/// What is said, in two sessions.
const SAID: [(&str, &str); 3] = [
    ("s", "fact: likes tea\nfact: likes coffee"),
    ("s", "fact: lives in Paris"),
    ("t", "fact: has a cat"),
];
const FACTS: [&str; 4] = ["has a cat", "likes coffee", "likes tea", "lives in Paris"];

fn lay_out(dir: &Path) {
    std::fs::write(dir.join("MEMORY.md"), "# Mine\n- by hand\n").unwrap();
    block_on(async {
        let agent = agent(dir, Obedient::quiet()).await;
        for (session, words) in SAID {
            say(&agent, session, words).await;
        }
    });
}

/// Works until nothing is left to do, however long others are waited for.
async fn work_to_the_end(dir: &Path, place: &str) {
    let agent = agent(dir, Obedient::quiet()).await;
    for _ in 0..200 {
        agent
            .memory()
            .work(&Owner::default(), &hasty())
            .await
            .unwrap();
        let status = agent.memory().status(&Owner::default()).await.unwrap();
        assert_eq!(status.dead, Vec::new(), "{place}");
        if status.unmerged == 0 && texts(&read(dir, "MEMORY.md")).len() == FACTS.len() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    panic!(
        "{place}: never done: {:?}",
        agent.memory().status(&Owner::default()).await
    );
}

fn assert_all_once(dir: &Path, place: &str) {
    let mut days = Vec::new();
    // What a killed write leaves under another name is no one's content.
    let is_day = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.ends_with(".md"));
    for entry in std::fs::read_dir(dir.join("memory"))
        .unwrap()
        .flatten()
        .filter(|entry| is_day(&entry.file_name()))
    {
        days.extend(texts(&std::fs::read_to_string(entry.path()).unwrap()));
    }
    days.sort();
    assert_eq!(days, FACTS, "{place}");
    let memory = read(dir, "MEMORY.md");
    let mut curated = texts(&memory);
    curated.sort();
    assert_eq!(curated, FACTS, "{place}");
    assert!(
        memory.starts_with("# Mine\n- by hand\n"),
        "{place}: {memory}"
    );
}

const KILLED: &str = "memory::crashes::a_kill_anywhere_loses_no_fact_and_doubles_none";

#[test]
fn a_kill_anywhere_loses_no_fact_and_doubles_none() {
    if let Some(role) = child_role() {
        let point = KillPoint::ALL[role.get("point").parse::<usize>().unwrap()];
        let disk = Arc::new(FaultDisk::kill_at(role.get("n").parse().unwrap(), point));
        return block_on(async {
            let agent = agent_of(
                Path::new(role.get("dir")),
                Obedient::quiet(),
                disk,
                Vec::new(),
                |_| {},
            )
            .await;
            agent
                .memory()
                .work(&Owner::default(), &hasty())
                .await
                .unwrap();
        });
    }
    let counting = Arc::new(FaultDisk::counting());
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let agent = agent_of(
            dir.path(),
            Obedient::quiet(),
            counting.clone(),
            Vec::new(),
            |_| {},
        )
        .await;
        agent
            .memory()
            .work(&Owner::default(), &hasty())
            .await
            .unwrap();
    });
    assert_all_once(dir.path(), "undisturbed");
    let mut points = Vec::new();
    for (i, op) in counting.ops().iter().enumerate() {
        for (at, point) in KillPoint::ALL.into_iter().enumerate() {
            // After one operation is before the next, but for the last.
            let told_apart = match point {
                KillPoint::Before => true,
                KillPoint::Torn => op.kind == DiskOpKind::Write,
                KillPoint::After => i + 1 == counting.count(),
            };
            if told_apart {
                points.push((
                    i + 1,
                    at,
                    format!(
                        "{point:?} operation {} ({:?} {})",
                        i + 1,
                        op.kind,
                        op.name.display()
                    ),
                ));
            }
        }
    }
    assert!(points.len() > 60, "only {} points", points.len());
    let killed = AtomicUsize::new(0);
    in_parallel(&points, |(n, at, place)| {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path());
        let told = [("n", n.to_string()), ("point", at.to_string())];
        let told = told
            .into_iter()
            .chain([("dir", dir.path().to_str().unwrap().to_owned())]);
        let ended = Child::spawn(KILLED, told).wait(Duration::from_secs(30));
        match ended.death {
            Death::Signal(9) => drop(killed.fetch_add(1, Ordering::Relaxed)),
            // A slow counting run renews its claim more often: the last points may not be reached.
            Death::Exit(0) => {}
            other => panic!("{place}: {other:?}: {ended}"),
        }
        block_on(work_to_the_end(dir.path(), place));
        assert_all_once(dir.path(), place);
    });
    let killed = killed.into_inner();
    assert!(
        killed * 10 >= points.len() * 9,
        "{killed} of {}",
        points.len()
    );
}

const TOGETHER: &str = "memory::crashes::several_processes_at_once_do_everything_once";

#[test]
fn several_processes_at_once_do_everything_once() {
    if let Some(role) = child_role() {
        return block_on(async {
            let agent = agent(Path::new(role.get("dir")), Obedient::quiet()).await;
            for _ in 0..5 {
                agent
                    .memory()
                    .work(&Owner::default(), &hasty())
                    .await
                    .unwrap();
                // At the same time as the others, whatever the queue says.
                agent
                    .memory()
                    .flush(&Owner::default(), &crate::support::session("s"), u64::MAX)
                    .await
                    .unwrap();
                agent.memory().consolidate(&Owner::default()).await.unwrap();
            }
        });
    }
    for round in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path());
        let told = || [("dir", dir.path().to_str().unwrap().to_owned())];
        let children: Vec<Child> = (0..3).map(|_| Child::spawn(TOGETHER, told())).collect();
        for child in children {
            let ended = child.wait(Duration::from_secs(60));
            assert_eq!(ended.death, Death::Exit(0), "{ended}");
        }
        block_on(work_to_the_end(dir.path(), "together"));
        assert_all_once(dir.path(), &format!("round {round}"));
    }
}
