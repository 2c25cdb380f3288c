//! The place for tests of how commands end: output order, orphan processes, cancellation and start
//! failures.

use crate::{Said, alive, eventually, run, trace, traced};
use std::path::Path;
use std::time::{Duration, Instant};
use stead_sandbox::{ExecLimits, ExecOutcome, Host, Sandbox, SandboxError, capture};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Prints the group of the command, whose leader is its guard.
const GROUP: &str = "cut -d' ' -f5 /proc/self/stat";
/// Waits until the started process is ready.
const UP: &str = "until [ -e up ]; do sleep 0.01; done";

fn assert_reaped(group: &str, case: &str) {
    assert!(
        group.parse::<u32>().is_ok(),
        "{case}: {group:?} is no group"
    );
    assert!(
        !Path::new("/proc").join(group).exists(),
        "{case}: the guard was not waited for"
    );
}

#[tokio::test]
async fn a_command_is_heard_to_its_end_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; cat; exit 7";
    let (ended, said) = run(traced(script, dir.path(), &trace())).await;
    assert_eq!(ended.unwrap(), ExecOutcome::Exited(7));
    let lines: String = (1..=5).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(said.text(), lines);
}

#[tokio::test]
async fn nothing_is_left_of_a_command_whatever_it_starts() {
    let stray = |how: &str| format!("{how} & {UP}");
    let forgotten = "sh -c 'trap \"\" TERM; touch up; while :; do sleep 0.05; done'";
    let cases = [
        ("endless output", "yes".to_owned(), ExecOutcome::OutputFull),
        ("silence", "sleep 1000".to_owned(), ExecOutcome::TimedOut),
        (
            "it does not want to end",
            "trap '' TERM; while :; do sleep 0.05; done".to_owned(),
            ExecOutcome::TimedOut,
        ),
        (
            "children of its own",
            "sleep 1000 & sleep 1000 & wait".to_owned(),
            ExecOutcome::TimedOut,
        ),
        (
            "it becomes another session",
            format!("exec setsid {forgotten}"),
            ExecOutcome::TimedOut,
        ),
        (
            "a child that holds the output",
            stray(forgotten),
            ExecOutcome::Exited(0),
        ),
        (
            "a job of its own",
            format!("set -m; {}", stray(forgotten)),
            ExecOutcome::Exited(0),
        ),
        (
            "another session",
            stray(&format!("setsid {forgotten}")),
            ExecOutcome::Exited(0),
        ),
        (
            "a daemon",
            stray(&format!("(setsid {forgotten} >/dev/null 2>&1 &)")),
            ExecOutcome::Exited(0),
        ),
        (
            "a daemon twice over",
            stray(&format!(
                "setsid sh -c \"setsid {} &\"",
                forgotten.replace('"', "\\\"")
            )),
            ExecOutcome::Exited(0),
        ),
        (
            "a daemon with a large environment",
            stray(&format!(
                "BIG=$(printf '%0100000d' 7); for i in 1 2 3 4 5; do export B$i=$BIG; done; \
                 setsid env B1=$BIG B2=$BIG B3=$BIG B4=$BIG B5=$BIG {forgotten}"
            )),
            ExecOutcome::Exited(0),
        ),
        (
            "it is deaf to hang-ups",
            stray(&format!("nohup {forgotten}")),
            ExecOutcome::Exited(0),
        ),
    ];
    for (case, script, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let trace = trace();
        let exec = traced(&format!("{GROUP}; {script}"), dir.path(), &trace);
        let limit = if expected == ExecOutcome::TimedOut {
            Duration::from_millis(700)
        } else {
            Duration::from_secs(10)
        };
        let started = Instant::now();
        let (ended, said) = run(exec.with_timeout(limit)).await;
        assert_eq!(
            ended.unwrap(),
            expected,
            "{case}: {:?}",
            String::from_utf8_lossy(&said.0[..said.0.len().min(500)])
        );
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{case}: {:?}",
            started.elapsed()
        );
        assert_eq!(alive(&trace), Vec::<String>::new(), "{case}");
        assert_reaped(
            String::from_utf8_lossy(&said.0).lines().next().unwrap(),
            case,
        );
    }
}

#[tokio::test]
async fn a_cancelled_command_is_asked_to_end_and_a_forgotten_one_is_killed() {
    let script = "trap 'echo > goodbye; exit' TERM; setsid sh -c 'touch up; sleep 1000' & while :; do sleep 0.02; done";
    let dir = tempfile::tempdir().unwrap();
    let trace = trace();
    let cancel = CancellationToken::new();
    let work = run(traced(script, dir.path(), &trace).with_cancel(cancel.clone()));
    let ((ended, _), ()) = tokio::join!(work, async {
        while !dir.path().join("up").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    assert_eq!(ended.unwrap(), ExecOutcome::Cancelled);
    assert!(dir.path().join("goodbye").exists());
    assert_eq!(alive(&trace), Vec::<String>::new());

    std::fs::remove_file(dir.path().join("up")).unwrap();
    std::fs::remove_file(dir.path().join("goodbye")).unwrap();
    let mut work = Box::pin(run(traced(script, dir.path(), &trace)));
    while !dir.path().join("up").exists() {
        assert!(
            tokio::time::timeout(Duration::from_millis(5), &mut work)
                .await
                .is_err()
        );
    }
    drop(work);
    eventually("a forgotten command lives on", || alive(&trace).is_empty());
    assert!(!dir.path().join("goodbye").exists());
}

#[tokio::test]
async fn what_cannot_begin_says_so_and_leaves_nothing() {
    let (ended, _) = run(traced("true", Path::new("/no/such/folder"), &trace())).await;
    assert!(matches!(ended, Err(SandboxError::Start(_))), "{ended:?}");
    let bounds = ExecLimits {
        timeout: Duration::MAX,
        cancel: CancellationToken::new(),
    };
    let mut said = Said::default();
    let error = capture(Command::new("/no/such/program"), &mut said, &bounds)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, SandboxError::Start(why) if why.kind() == std::io::ErrorKind::NotFound),
        "{error}"
    );
}

#[tokio::test]
async fn eight_commands_at_once_do_not_touch_each_other() {
    let dir = tempfile::tempdir().unwrap();
    // Each waits for all others, so they must run in parallel.
    let script = |n: usize| {
        format!(
            "touch here-{n}; until [ $(ls | grep -c here-) = 8 ]; do sleep 0.02; done; touch seen-{n}; \
             until [ $(ls | grep -c seen-) = 8 ]; do sleep 0.02; done; echo number {n}; exit {n}"
        )
    };
    let host = Host::new([]);
    let work = (0..8).map(|n| {
        let exec = traced(&script(n), dir.path(), &trace());
        let host = &host;
        async move {
            let mut said = Said::default();
            (
                host.exec(exec, &mut said).await.unwrap(),
                said.text().to_owned(),
            )
        }
    });
    let done = futures_util::future::join_all(work).await;
    let expected: Vec<_> = (0..8)
        .map(|n| (ExecOutcome::Exited(n), format!("number {n}\n")))
        .collect();
    assert_eq!(done, expected);
}
