//! The place for tests of two processes on one session, stale locks and signals.

use crate::support::{Folder, endpoints, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::Child;
use std::time::{Duration, Instant};
use stead_testkit::{FakeModel, hang, latch, reply};

const DEADLINE: Duration = Duration::from_secs(20);

fn start(folder: &Folder, server: &FakeModel, args: &[&str]) -> Child {
    folder
        .process(args)
        .envs(endpoints(server))
        .spawn()
        .unwrap()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

#[test]
fn an_input_for_a_session_in_use_waits_there_for_its_turn() {
    let folder = Folder::new();
    let held = latch();
    let server = FakeModel::start(vec![
        reply().text("first").held_by(&held),
        reply().text("second"),
    ]);
    let first = start(
        &folder,
        &server,
        &["run", "-m", "openai:x", "-s", "s", "one"],
    );
    held.wait_arrived(1, DEADLINE);
    for seconds in ["--wait=0", "--wait=1"] {
        let args = ["run", "-m", "openai:x", "-s", "s", seconds, "taken back"];
        let refused = folder.run_with(&server, &args).exits(1);
        let holder = format!("in use by process {}", first.id());
        assert!(
            refused.err.contains(&holder) && refused.err.contains("--wait"),
            "{refused:?}"
        );
    }
    // A reader needs no lock.
    folder.run(&["sessions", "show", "s"]).exits(0);
    folder.run(&["sessions", "rm", "s"]).exits(1);

    let second = start(
        &folder,
        &server,
        &["run", "-m", "openai:x", "-s", "s", "two"],
    );
    std::thread::sleep(Duration::from_millis(500));
    held.release();
    let first = wait(first);
    let second = wait(second);
    assert_eq!(
        (first.status.code(), first.stdout.as_slice()),
        (Some(0), &b"first\n"[..])
    );
    assert_eq!(
        (second.status.code(), second.stdout.as_slice()),
        (Some(0), &b"second\n"[..]),
        "{second:?}"
    );
    assert_eq!(
        server
            .last_request()
            .seen
            .unwrap()
            .user_texts()
            .collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(server.rejections(), Vec::new());
}

/// The processor time that a process has used, in hundredths of a second.
fn processor_ticks(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<u64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|field| field.parse().unwrap())
        .collect();
    fields.iter().sum()
}

#[test]
fn an_input_that_waits_is_answered_when_the_process_that_ran_the_session_is_killed() {
    let folder = Folder::new();
    let server = FakeModel::start(vec![
        hang(),
        reply().text("first, by another process"),
        reply().text("second"),
    ]);
    let run = ["run", "-m", "openai:x", "-s", "s"];
    let mut first = start(&folder, &server, &[&run[..], &["one"]].concat());
    let end = Instant::now() + DEADLINE;
    while server.requests().is_empty() {
        assert!(Instant::now() < end && first.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut second = start(&folder, &server, &[&run[..], &["two"]].concat());
    std::thread::sleep(Duration::from_secs(1));
    let before = processor_ticks(&second);
    std::thread::sleep(Duration::from_secs(2));
    let used = processor_ticks(&second) - before;
    assert!(used <= 20, "{used} hundredths of a second while it waited");
    assert!(second.try_wait().unwrap().is_none());
    first.kill().unwrap();
    first.wait().unwrap();
    let second = wait(second);
    assert_eq!(
        (second.status.code(), second.stdout.as_slice()),
        (Some(0), &b"second\n"[..]),
        "{second:?}"
    );
    assert_eq!(
        server
            .last_request()
            .seen
            .unwrap()
            .user_texts()
            .collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert_eq!(server.rejections(), Vec::new());
}

#[test]
fn a_signal_to_a_command_that_waits_takes_its_input_back_and_leaves_the_run_alone() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = Folder::new();
        let held = latch();
        let server = FakeModel::start(vec![reply().text("first").held_by(&held)]);
        let run = ["run", "-m", "openai:x", "-s", "s"];
        let first = start(&folder, &server, &[&run[..], &["one"]].concat());
        held.wait_arrived(1, DEADLINE);
        let second = start(&folder, &server, &[&run[..], &["two"]].concat());
        std::thread::sleep(Duration::from_millis(700));
        kill_process(pid(&second), signal).unwrap();
        let second = wait(second);
        assert_eq!(second.status.code(), Some(130), "{second:?}");
        held.release();
        let first = wait(first);
        assert_eq!(
            (first.status.code(), first.stdout.as_slice()),
            (Some(0), &b"first\n"[..]),
            "{signal:?}"
        );
        let shown = folder.run(&["sessions", "show", "s"]).exits(0);
        assert!(!shown.out.contains("two"), "{shown:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_lock_left_by_a_killed_process_blocks_nobody() {
    let folder = Folder::new();
    let server = FakeModel::start(vec![hang(), reply().text("back")]);
    let mut child = start(
        &folder,
        &server,
        &["run", "-m", "openai:x", "-s", "s", "one"],
    );
    let end = Instant::now() + DEADLINE;
    while server.requests().is_empty() {
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "--resume"])
        .exits(0);
    assert_eq!(resumed.out, "back\n");
    assert_eq!(server.rejections(), Vec::new());
}

#[test]
fn a_signal_in_the_middle_of_a_stream_ends_the_run_within_a_second_and_it_can_be_resumed() {
    for signal in [Signal::INT, Signal::TERM] {
        for output in ["text", "events"] {
            let folder = Folder::new();
            let half = reply()
                .text("some words that are cut")
                .call("write_file", json!({"file_path": "x", "content": "x"}));
            let server = FakeModel::start(vec![half.stall_at(200), reply().text("back")]);
            let child = start(
                &folder,
                &server,
                &[
                    "run", "-m", "openai:x", "-s", "s", "--output", output, "one",
                ],
            );
            let end = Instant::now() + DEADLINE;
            while server.requests().is_empty() {
                assert!(Instant::now() < end);
                std::thread::sleep(Duration::from_millis(2));
            }
            std::thread::sleep(Duration::from_millis(100));
            let sent = Instant::now();
            kill_process(pid(&child), signal).unwrap();
            let ended = wait(child);
            assert_eq!(ended.status.code(), Some(130), "{signal:?} {ended:?}");
            assert!(
                sent.elapsed() < Duration::from_millis(1500),
                "{signal:?} took {:?}",
                sent.elapsed()
            );
            if output == "events" {
                let out = String::from_utf8(ended.stdout).unwrap();
                let last: serde_json::Value =
                    serde_json::from_str(out.lines().last().unwrap()).unwrap();
                assert_eq!(
                    (&last["type"], &last["outcome"]),
                    (&json!("run_ended"), &json!("cancelled"))
                );
            }
            assert!(!folder.has("x"), "a call of half an answer was run");
            let resumed = folder
                .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "--resume"])
                .exits(0);
            assert_eq!(resumed.out, "back\n");
            assert_eq!(server.rejections(), Vec::new());
        }
    }
}
