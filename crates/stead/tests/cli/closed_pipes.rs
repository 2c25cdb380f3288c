//! The place for tests of closed pipes and full disks on standard output.

use crate::support::Folder;
use std::fs::OpenOptions;
use std::process::Stdio;

#[test]
fn a_closed_pipe_or_a_full_disk_never_makes_a_command_panic() {
    let folder = Folder::new();
    let model =
        folder.script("- text: one two three four five six seven\n  chunk: 1\n- loop: true\n");
    folder
        .run(&["run", "-m", &model, "-s", "s", "hello"])
        .exits(0);
    let commands: [&[&str]; 6] = [
        &["models"],
        &["completions", "bash"],
        &["sessions", "show", "s"],
        &["tool", "ls"],
        &["run", "-m", &model, "hello"],
        &["run", "-m", &model, "--output", "events", "hello"],
    ];
    for command in commands {
        // The reading end is closed before anything is written.
        let mut closed = folder.process(command);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = closed.stdout(Stdio::from(writer)).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(
            !told.contains("panicked") && ended.status.code() != Some(101),
            "{command:?}: {told}"
        );

        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = folder.process(command).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(
            told.contains("cannot write") && !told.contains("panicked"),
            "{command:?}: {told}"
        );
        assert_ne!(ended.status.code(), Some(0), "{command:?}");
    }
}

#[test]
fn a_run_that_nobody_reads_is_closed_properly() {
    let folder = Folder::new();
    let model =
        folder.script("- text: one two three four five six seven\n  chunk: 1\n  delay_ms: 20\n");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut events = folder.process(&[
        "run", "-m", &model, "-s", "s", "--output", "events", "hello",
    ]);
    events.stdout(Stdio::from(writer)).status().unwrap();
    let list = folder.run(&["sessions", "list", "--json"]).exits(0).out;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["outcome"], "cancelled");
}

/// A key that is only in the settings is as secret as one that is used.
#[test]
fn a_key_in_the_settings_is_kept_secret_whichever_model_is_asked() {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        "model: {name: 'openai:x', api_key: sk-literal-1234}\n",
    );
    let model = folder.script("- text: it is sk-literal-1234\n");
    folder
        .run(&["run", "-m", &model, "-s", "s", "say sk-literal-1234"])
        .exits(0);
    let journal = folder.read("agents/main/sessions/s.log.jsonl");
    assert!(
        !journal.contains("sk-literal") && journal.contains("[redacted]"),
        "{journal}"
    );
}
