//! Child processes: whatever they do, they end, and nothing of them is left.

use std::time::{Duration, Instant};
use stead_core::Block;
use stead_tools::{Capture, Captured, Spill, Spills, capture};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn bounds(timeout: Duration) -> Capture {
    Capture { timeout, cancel: CancellationToken::new() }
}

async fn said(spill: Spill) -> String {
    match spill.finish().await.content.as_slice() {
        [Block::Text { text }] => text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

/// Processes of a group that are not dead, as the kernel lists them.
fn members(group: &str) -> Vec<String> {
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let of_group = |stat: &String| {
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        fields.get(2) == Some(&group) && fields.first() != Some(&"Z")
    };
    stats.filter(of_group).collect()
}

/// Those that were killed may take a moment to be gone.
fn assert_gone(group: &str, case: &str) {
    let end = Instant::now() + Duration::from_secs(2);
    while !members(group).is_empty() {
        assert!(Instant::now() < end, "{case}: {:?}", members(group));
        std::thread::sleep(Duration::from_millis(5));
    }
    let own = format!("/proc/{group}");
    assert!(!std::path::Path::new(&own).exists(), "{case}: the child was not waited for");
}

// 5.8
#[tokio::test]
async fn a_process_that_ends_is_heard_to_its_end() {
    let mut spill = Spills::default().spill();
    let ended = capture(sh("echo out; echo err >&2; cat; exit 7"), &mut spill, &bounds(Duration::from_secs(10))).await;
    let Captured::Exited(status) = ended.unwrap() else { panic!("{spill:?}") };
    assert_eq!(status.code(), Some(7));
    let said = said(spill).await;
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    let mut spill = Spills::default().spill();
    let forever = bounds(Duration::MAX);
    let missing = capture(Command::new("/no/such/program"), &mut spill, &forever);
    assert_eq!(missing.await.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

// 5.8
#[tokio::test]
async fn whatever_a_process_does_nothing_of_it_is_left() {
    type Case = (&'static str, &'static str, fn(Captured) -> bool);
    let cases: [Case; 5] = [
        ("endless output", "yes", |ended| ended == Captured::Full),
        ("silence", "sleep 1000", |ended| ended == Captured::TimedOut),
        ("it does not want to end", "trap '' TERM; while :; do sleep 0.05; done", |ended| ended == Captured::TimedOut),
        ("children of its own", "sleep 1000 & sleep 1000 & wait", |ended| ended == Captured::TimedOut),
        (
            "a child that holds the pipe",
            "(trap '' TERM; sleep 1000) & exit 0",
            |ended| matches!(ended, Captured::Exited(status) if status.success()),
        ),
    ];
    for (case, script, is_as_wanted) in cases {
        let mut spill = Spills::default().spill();
        let started = Instant::now();
        let ended = capture(sh(&format!("echo $$; {script}")), &mut spill, &bounds(Duration::from_millis(700))).await;
        assert!(is_as_wanted(ended.unwrap()), "{case}: {spill:?}");
        assert!(started.elapsed() < Duration::from_secs(3), "{case}: {:?}", started.elapsed());
        let said = said(spill).await;
        let group = said.lines().find(|line| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())).unwrap();
        assert_gone(group, case);
    }
}

// 5.8
#[tokio::test]
async fn a_cancelled_process_is_asked_to_end_and_a_forgotten_one_is_killed() {
    let cancel = CancellationToken::new();
    let mut spill = Spills::default().spill();
    let bounds = Capture { timeout: Duration::from_secs(60), cancel: cancel.clone() };
    let work =
        capture(sh("trap 'echo goodbye; exit' TERM; echo $$; while :; do sleep 0.02; done"), &mut spill, &bounds);
    let (ended, ()) = tokio::join!(work, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    assert_eq!(ended.unwrap(), Captured::Cancelled);
    assert_gone(said(spill).await.lines().next().unwrap(), "cancelled");

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let mut spill = Spills::default().spill();
    let bounds = Capture { timeout: Duration::from_secs(60), cancel: CancellationToken::new() };
    let script = format!("trap '' TERM; echo $$ > {}; sleep 1000 & wait; sleep 1000", file.display());
    let work = capture(sh(&script), &mut spill, &bounds);
    assert!(tokio::time::timeout(Duration::from_millis(500), work).await.is_err());
    let group = std::fs::read_to_string(file).unwrap();
    // The runtime waits for a dropped child when another one ends.
    let end = Instant::now() + Duration::from_secs(5);
    while std::path::Path::new(&format!("/proc/{}", group.trim())).exists() {
        assert!(Instant::now() < end, "{:?}", members(group.trim()));
        capture(sh("true"), &mut Spills::default().spill(), &bounds).await.unwrap();
    }
    assert_gone(group.trim(), "forgotten");
}
