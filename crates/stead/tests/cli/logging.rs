//! The place for tests of `-v`, `RUST_LOG` and the log file of `stead chat`.

use super::support::{Folder, STEAD, done};
use std::process::Command;
use std::time::Duration;
use stead_testkit::Pty;

const DEADLINE: Duration = Duration::from_secs(30);

#[test]
fn messages_are_logged_to_standard_error_only_if_asked() {
    let folder = Folder::new();
    let quiet = folder.run(&["prompt"]).exits(0);
    assert!(!quiet.err.contains("workspace opened"), "{}", quiet.err);
    for args in [&["prompt", "-v"][..], &["-vv", "prompt"]] {
        let told = folder.run(args).exits(0);
        assert_eq!(told.out, quiet.out);
        assert!(told.err.contains("INFO"), "{}", told.err);
        assert!(told.err.contains("workspace opened"), "{}", told.err);
    }
    let with = |value: &str| done(folder.command(&["prompt"]).env("RUST_LOG", value));
    assert!(with("stead=info").exits(0).err.contains("workspace opened"));
    assert_eq!(with("stead=error").exits(0).err, quiet.err);
    let wrong = with("stead=loud").exits(2);
    assert!(wrong.err.contains("RUST_LOG=stead=loud"), "{}", wrong.err);
}

#[test]
fn chat_logs_to_a_file_and_says_where() {
    let folder = Folder::new();
    let model = folder.script("- text: Hello.\n");
    let mut command = Command::new(STEAD);
    command
        .env_clear()
        .env("HOME", folder.path())
        .env("STEAD_BACKGROUND", "0")
        .current_dir(folder.path())
        .args(["chat", "-v", "-m", &model]);
    let mut pty = Pty::spawn(&command, 24, 120);
    pty.wait_for("› ", DEADLINE);
    pty.send("\x04");
    pty.wait_exit(DEADLINE);
    let log = folder.path().join(".cache/stead/logs");
    let log = std::fs::read_dir(log).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert!(text.contains("workspace opened"), "{text}");
    let raw = pty.raw();
    let name = log.file_name().into_string().unwrap();
    assert!(raw.contains(&name), "{raw}");
    assert!(!raw.contains("workspace opened"), "{raw}");
}
