//! The place for tests of journals that are damaged, and of limits of the machine.

use super::support::Folder;
use std::process::Command;
use stead::core::{ChainSum, Entry, SessionStart, decode_line, encode_line};

/// A folder with two sessions that mention apples.
fn two_sessions() -> Folder {
    let folder = Folder::new();
    let model = folder.script("- text: Apples are fine.\n");
    for id in ["good", "bad"] {
        folder
            .run(&["run", "-m", &model, "-s", id, "About apples"])
            .exits(0);
    }
    folder
}

const BAD: &str = "agents/main/sessions/bad.log.jsonl";

/// Damages a line in the middle, without a change of the length.
fn damage(folder: &Folder) {
    let text = folder.read(BAD);
    folder.put(BAD, &text.replacen("apples", "aqqles", 1));
}

#[test]
fn check_reports_journals_that_cannot_be_opened() {
    let folder = two_sessions();
    assert!(
        folder
            .run(&["check"])
            .exits(0)
            .out
            .contains("every line checked")
    );
    damage(&folder);
    let checked = folder.run(&["check"]).exits(2);
    assert!(checked.out.contains("bad.log.jsonl:2"), "{checked:?}");

    // Each line is sound, and they do not fit together: a newer version wrote the journal.
    let folder = two_sessions();
    let text = folder.read(BAD);
    let first = decode_line(text.lines().next().unwrap(), ChainSum::START).unwrap();
    let Entry::Session(start) = first.entry else {
        panic!("{first:?}");
    };
    let newer = SessionStart {
        version: 999,
        ..start
    };
    let (text, _) = encode_line(1, first.at, &Entry::Session(newer), ChainSum::START);
    folder.put(BAD, &text);
    let checked = folder.run(&["check"]).exits(2);
    assert!(checked.out.contains("newer version"), "{checked:?}");
}

#[test]
fn one_damaged_journal_does_not_stop_searches_and_memory() {
    let folder = two_sessions();
    let found = folder.run(&["sessions", "search", "apples"]).exits(0);
    assert!(
        found.out.contains("good:") && found.out.contains("bad:"),
        "{found:?}"
    );
    damage(&folder);
    let found = folder.run(&["sessions", "search", "apples"]).exits(0);
    assert!(found.out.contains("good:"), "{found:?}");
    let flushed = folder.run(&["memory", "flush", "-m", "openai:x"]);
    assert!(!flushed.err.contains("panicked"), "{flushed:?}");
}

#[test]
fn a_limit_for_the_size_of_files_is_an_error_with_a_message() {
    let folder = Folder::new();
    let content = "x".repeat(600_000);
    let script = format!(
        "- calls: [{{tool: write_file, args: {{file_path: big.txt, content: {content}}}}}]\n- text: Done.\n"
    );
    let model = folder.script(&script);
    let line = format!(
        "ulimit -f 200; exec {} run -m {model} -s s go",
        super::support::STEAD
    );
    let ran = Command::new("bash")
        .args(["-c", &line])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", folder.path())
        .env("STEAD_BACKGROUND", "0")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code().is_some(), "it was killed: {ran:?}");
    assert!(err.contains("too large"), "{err}");
    assert!(!folder.has("big.txt"));
}

/// Journals, snapshots, usage and offloaded results may hold what a private file held.
#[test]
fn nothing_that_a_run_keeps_can_be_read_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.put("agent.yaml", "offload: {tool_result_tokens: 1000}\n");
    folder.put("long.txt", &"word ".repeat(4000));
    let model = folder.script(
        "- calls: [{tool: read_file, args: {file_path: long.txt}}]\n\
         - calls: [{tool: edit_file, args: {file_path: long.txt, old_string: word word, new_string: x, replace_all: true}}]\n\
         - text: Done.\n",
    );
    folder.run(&["run", "-m", &model, "-s", "s", "go"]).exits(0);
    let agents = folder.path().join("agents");
    let mode = std::fs::metadata(&agents).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "nobody else may enter the folder");
    for path in folder.files() {
        let name = path.to_string_lossy().into_owned();
        let ours = [".jsonl", "agent_state.json"];
        if name.contains("/agents/") && ours.iter().any(|end| name.ends_with(end)) {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
        }
    }
}
