//! The place for tests of crashes and concurrency of the memory worker: no fact is lost or doubled.

use super::{Obedient, agent, agent_of, hasty, read, say, texts};
use crate::kill_points::{KillPoints, doomed_child};
use crate::support::block_on;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, TenantId};
use stead_testkit::{Child, Death, FaultDisk, child_role};

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
            .work(&TenantId::default(), &hasty())
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
    if let Some((role, disk)) = doomed_child() {
        let disk = Arc::new(disk);
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
                .work(&TenantId::default(), &hasty())
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
            .work(&TenantId::default(), &hasty())
            .await
            .unwrap();
    });
    assert_all_once(dir.path(), "undisturbed");
    let points = KillPoints::new(KILLED, &counting).only_between_operations();
    points.for_each(60, |kill| {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path());
        points.run_child(kill, dir.path(), &[]);
        block_on(work_to_the_end(dir.path(), &kill.place));
        assert_all_once(dir.path(), &kill.place);
    });
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
                    .work(&TenantId::default(), &hasty())
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
