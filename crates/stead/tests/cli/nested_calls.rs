//! The place for tests of how nested calls are shown. No built-in tool makes any, so the journal is
//! one of the golden files.

use crate::support::Folder;

const GOLDEN: &str = include_str!("../../../stead-store/tests/golden/v1-nested.log.jsonl");

/// A workspace with a session whose last run waits for an answer about a nested call.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        "model: scripted:script.yaml\napprovals: {write_file: true}\n",
    );
    folder.put("script.yaml", &"- text: done\n".repeat(4));
    let sessions = folder.path().join("agents/main/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    std::fs::write(sessions.join("golden.log.jsonl"), GOLDEN).unwrap();
    folder
}

#[test]
fn replay_and_show_put_nested_calls_below_the_call_that_made_them() {
    let folder = folder();
    let replayed = folder.run(&["sessions", "replay", "golden"]).exits(0).out;
    let below = "✓ all done\n  ✓ read_file a.txt\n  ✗ delete_file fixed.txt (denied)\n  \
                 ✗ write_file a.txt (interrupted)\n  ✓ script\n    ✓ fetch\n";
    assert!(replayed.contains(below), "{replayed}");
    let waiting = "  ✓ write_file a.txt\n  … write_file b.txt (no result yet)\n\
                   the last run waits for a decision";
    assert!(replayed.contains(waiting), "{replayed}");

    let shown = folder
        .run(&["sessions", "show", "golden", "--full"])
        .exits(0)
        .out;
    for part in [
        "Z script begins (c1)",
        "Z   read_file begins (c1/1) {\"file_path\":\"a.txt\"}",
        "Z   c1/2 delete_file {\"file_path\":\"fixed.txt\"} denied after 3 ms\n  denied: no",
        "Z   c1/3 write_file {\"content\":\"x\",\"file_path\":\"a.txt\"} asks: approvals",
        "Z     c1/4/1 fetch {\"url\":\"http://x\"} ok after 3 ms\n    a page",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in\n{shown}");
    }
}

#[test]
fn a_question_about_a_nested_call_is_listed_shown_and_answered_by_its_id() {
    let folder = folder();
    let listed = folder.run(&["approvals", "list"]).exits(0).out;
    assert!(listed.starts_with("c2/2  write_file b.txt"), "{listed}");
    assert!(listed.contains("a nested call of script"), "{listed}");
    let json = folder.run(&["approvals", "list", "--json"]).exits(0).json();
    assert_eq!(json[0]["id"], "c2/2");
    assert_eq!(json[0]["called_by"], "script");
    let shown = folder.run(&["approvals", "show", "c2/2"]).exits(0).out;
    assert!(shown.contains("a nested call of script"), "{shown}");
    let rejected = folder.run(&[
        "approvals",
        "reject",
        "c2/2",
        "--reason",
        "no",
        "--no-resume",
    ]);
    rejected.exits(0);
    let replayed = folder.run(&["sessions", "replay", "golden"]).exits(0).out;
    assert!(
        replayed.contains("the last run was interrupted; resume with --resume"),
        "{replayed}"
    );
    // The calling tool is not there any more: it gets an error, and its open calls are skipped.
    let resumed = folder.run(&["run", "-s", "golden", "--resume"]).exits(0);
    assert!(resumed.out.contains("done"), "{}", resumed.err);
    let shown = folder
        .run(&["sessions", "show", "golden", "--full"])
        .exits(0)
        .out;
    assert!(shown.contains("c2/2 skipped after 0 ms"), "{shown}");
}
