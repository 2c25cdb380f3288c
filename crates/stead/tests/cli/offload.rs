//! The place for tests of offloaded files with their session: show, export, replay, move and
//! removal.

use crate::support::Folder;
use serde_json::json;
use stead_testkit::{FakeModel, reply};

const SETTINGS: &str = "offload: {user_message_tokens: 1000, max_mb: 7}\n";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of an image";
/// The same as providers want it.
const PNG_BASE64: &str = "iVBORw0KGgpub3QgbXVjaCBvZiBhbiBpbWFnZQ==";

fn rows() -> String {
    (0..2000).map(|n| format!("row {n}\n")).collect()
}

/// A session `s` whose first message is long and has an image.
fn talked(folder: &Folder) -> FakeModel {
    let server = FakeModel::start_with(|_| reply().text("noted"));
    folder.put("agent.yaml", SETTINGS);
    std::fs::write(folder.path().join("dot.png"), PNG).unwrap();
    let input = format!("see @dot.png\n{}", rows());
    folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "s", &input])
        .exits(0);
    server
}

/// The names of files below a session's folder, sorted.
fn offloaded(folder: &Folder, session: &str) -> Vec<String> {
    let root = folder.path().join("agents/main/offload").join(session);
    let files = folder.files().into_iter();
    let below = files.filter_map(|path| {
        Some(
            path.strip_prefix(&root)
                .ok()?
                .to_string_lossy()
                .into_owned(),
        )
    });
    let mut names: Vec<String> = below.collect();
    names.sort();
    names
}

#[test]
fn an_offloaded_session_is_shown_exported_and_replayed() {
    let folder = Folder::new();
    let server = talked(&folder);
    let names = offloaded(&folder, "s");
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].starts_with("input-")
            && names[1].starts_with("media/")
            && names[1].ends_with(".png"),
        "{names:?}"
    );
    let shown = folder.run(&["sessions", "show", "s"]).exits(0).out;
    assert!(
        shown.contains(&format!(
            "All of it is in agents/main/offload/s/{}",
            names[0]
        )),
        "{shown}"
    );
    assert!(
        shown.contains(&format!(
            "[image/png dot.png in agents/main/offload/s/{}]",
            names[1]
        )),
        "{shown}"
    );
    folder.run(&["sessions", "replay", "s"]).exits(0);
    assert!(
        folder
            .run(&["sessions", "export", "s"])
            .exits(0)
            .out
            .contains("offload/s/input-")
    );
    assert_eq!(
        folder
            .run(&["explain", "offload.max_mb", "--json"])
            .exits(0)
            .json()["value"],
        7
    );

    // Another process sends the image again.
    folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "and?"])
        .exits(0);
    let sent = server.requests();
    assert!(
        sent.iter()
            .all(|request| request.json.to_string().contains(PNG_BASE64)),
        "{sent:?}"
    );

    std::fs::remove_file(folder.path().join("agents/main/offload/s").join(&names[1])).unwrap();
    folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "and now?"])
        .exits(0);
    let sent = server.requests().last().unwrap().json.to_string();
    assert!(
        !sent.contains(PNG_BASE64)
            && sent.contains("[image/png dot.png: its file agents/main/offload/s/media/"),
        "{sent}"
    );
}

#[test]
fn an_offloaded_session_moves_with_its_files() {
    let folder = Folder::new();
    let store = Folder::new();
    drop(talked(&folder));
    let names = offloaded(&folder, "s");
    let url = format!("sqlite:{}", store.path().join("s.db").display());
    assert_eq!(
        folder
            .run(&["workspace", "push", &url, "--dry-run", "--json"])
            .exits(0)
            .json()["offloaded"],
        0
    );
    assert_eq!(
        folder
            .run(&["workspace", "push", &url, "--json"])
            .exits(0)
            .json()["offloaded"],
        2
    );
    assert_eq!(
        folder
            .run(&["workspace", "push", &url, "--json"])
            .exits(0)
            .json()["offloaded"],
        0
    );

    let there = Folder::new();
    there.put("agent.yaml", SETTINGS);
    assert_eq!(
        there
            .run(&["workspace", "pull", &url, "--json"])
            .exits(0)
            .json()["offloaded"],
        2
    );
    assert_eq!(offloaded(&there, "s"), names);
    let copy = Folder::new();
    copy.put("agent.yaml", SETTINGS);
    let from = there.path().display().to_string();
    let to = copy.path().display().to_string();
    there.run(&["workspace", "copy", &from, &to]).exits(0);
    for name in &names {
        let read = |folder: &Folder| {
            std::fs::read(folder.path().join("agents/main/offload/s").join(name)).unwrap()
        };
        assert!(read(&copy) == read(&folder), "{name}");
    }

    // In the store itself it is used as it is.
    let server = FakeModel::start_with(|_| reply().text("noted"));
    let user = Folder::new();
    user.put(
        "agent.yaml",
        &format!("{SETTINGS}filesystem: {{mode: store, url: '{url}'}}\n"),
    );
    user.run_with(&server, &["run", "-m", "openai:x", "-s", "s", "and?"])
        .exits(0);
    assert!(server.requests()[0].json.to_string().contains(PNG_BASE64));
    let file = json!({"file_path": format!("agents/main/offload/s/{}", names[0]), "offset": 2000})
        .to_string();
    assert!(
        user.run(&["tool", "read_file", &file])
            .exits(0)
            .out
            .contains("row 1999")
    );
}

#[test]
fn offloaded_files_go_with_their_session() {
    let folder = Folder::new();
    drop(talked(&folder));
    folder.run(&["sessions", "fork", "s", "--to", "f"]).exits(0);
    folder.run(&["sessions", "rm", "s"]).exits(0);
    assert_eq!(offloaded(&folder, "s"), Vec::<String>::new());
    assert_eq!(offloaded(&folder, "f").len(), 2);
    std::fs::remove_file(folder.path().join("agents/main/sessions/f.log.jsonl")).unwrap();
    let dry = folder.run(&["gc", "--dry-run", "--json"]).exits(0).json();
    let bytes = format!("see @dot.png\n{}", rows()).len() + PNG.len();
    assert_eq!(
        (&dry["offloads"], &dry["offloaded_bytes"]),
        (&json!(1), &json!(bytes))
    );
    assert_eq!(offloaded(&folder, "f").len(), 2);
    assert!(
        folder
            .run(&["gc"])
            .exits(0)
            .out
            .contains("offloaded files of 1 session ")
    );
    assert!(!folder.has("agents/main/offload/f"));
}
