//! Acceptance 2: a key never reaches a file or a terminal.

use crate::support::{Folder, done, pointed};
use serde_json::json;
use stead_testkit::{FakeModel, fail, reply};

const FROM_VARIABLE: &str = "sk-from-the-variable-0123456789";
const FROM_SETTINGS: &str = "sk-\"from\\the/settings-0123456789";

// Acceptance 2
#[test]
fn a_key_in_a_file_that_the_agent_reads_is_written_nowhere() {
    for output in ["text", "json", "events"] {
        let folder = Folder::new();
        folder.put("agent.yaml", "model: {name: 'openai:x', api_key: '${MY_KEY}'}\n");
        folder.put("notes.txt", &format!("one {FROM_VARIABLE}\ntwo {FROM_SETTINGS}\n"));
        let server = FakeModel::start_with(|request| match request.result_count() {
            0 => reply().text(format!("I know {FROM_VARIABLE}")).call("read_file", json!({"file_path": "notes.txt"})),
            1 => reply().call("write_file", json!({"file_path": "copy.txt", "content": FROM_SETTINGS})),
            2 => reply().text(format!("They are {FROM_VARIABLE} and {FROM_SETTINGS}")),
            _ => fail(401).message(format!("Incorrect API key provided: {FROM_SETTINGS}")),
        });
        for input in [format!("Read notes.txt, my key is {FROM_VARIABLE}"), "Again".to_owned()] {
            let args = ["run", "-s", "s", "--output", output, &input];
            let mut command = folder.command(&args);
            command.env("OPENAI_API_KEY", FROM_VARIABLE).env("MY_KEY", FROM_SETTINGS).env("RUST_LOG", "trace");
            let ran = done(pointed(&mut command, &server));
            assert_clean(&format!("{output} stdout"), &ran.out);
            assert_clean(&format!("{output} stderr"), &ran.err);
        }
        assert_eq!(server.rejections(), Vec::new());
        let authorization = server.requests()[0].header("authorization").map(str::to_owned);
        assert_eq!(authorization, Some(format!("Bearer {FROM_SETTINGS}")), "the settings' key goes first");
        let kept: Vec<_> =
            folder.files().into_iter().filter(|path| path.starts_with(folder.path().join("agents"))).collect();
        assert!(kept.len() >= 3, "{kept:?}");
        for path in kept {
            assert_clean(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[track_caller]
fn assert_clean(place: &str, text: &str) {
    for part in ["from-the-variable", "the/settings-0123"] {
        assert!(!text.contains(part), "{place} has a key: {text}");
    }
}
