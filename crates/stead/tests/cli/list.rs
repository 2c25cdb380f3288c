//! The place for tests of `stead list`.

use crate::support::Folder;
use serde_json::json;

fn put(folder: &Folder, path: &str, text: &str) {
    std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
    folder.put(path, text);
}

#[test]
fn workspaces_of_every_layout_are_listed_in_order() {
    let folder = Folder::new();
    put(&folder, "all/zed/AGENTS.md", "# Zed");
    put(
        &folder,
        "all/zed/agent.yaml",
        "model: openai:m\ndescription: The last\n",
    );
    for name in ["AGENT", "USER", "SOUL", "HEARTBEAT"] {
        put(&folder, &format!("all/gilfoyle/agent/{name}.md"), "# Text");
    }
    put(
        &folder,
        "all/gilfoyle/config/agent.yaml",
        "name: Gilfoyle\nmodel: {provider: anthropic, model: x}\n",
    );
    put(&folder, "all/Bad Name/agent/AGENT.md", "# Text");
    put(&folder, "all/deep/.deepagents/AGENTS.md", "# Memory");
    put(&folder, "all/py/.mcp", "[5]");
    put(
        &folder,
        "all/scope/.agentscope/workspace/AGENTS.md",
        "# Scope",
    );
    put(&folder, "all/no-workspace/README.md", "nothing");
    put(&folder, "all/.hidden/AGENTS.md", "# Hidden");
    put(
        &folder,
        "all/AGENTS.md",
        "# The folder itself is not below itself",
    );
    let listed = folder.run(&["list", "all", "--json"]).exits(0).json();
    let rows: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            json!([
                one["name"],
                one["layout"],
                one["agent"],
                one["description"],
                one["model"],
                one["valid"]
            ])
        })
        .collect();
    let none = json!(null);
    assert_eq!(
        json!(rows),
        json!([
            ["Bad Name", "openpaw", "bad-name", none, none, false],
            ["deep", "deepagents", "main", none, none, true],
            ["gilfoyle", "openpaw", "gilfoyle", none, "anthropic:x", true],
            ["py", "agentscope-py", "main", none, none, false],
            ["scope", "agentscope", "main", none, none, true],
            ["zed", "stead", "main", "The last", "openai:m", true],
        ])
    );
    let text = folder.run(&["list", "all"]).exits(0).out;
    assert!(text.contains("error  py        agentscope-py"), "{text}");
    assert!(
        text.contains(".mcp:1:2: `key: value` pairs are needed here"),
        "{text}"
    );
    assert!(
        text.contains("ok     zed       stead          openai:m     The last\n"),
        "{text}"
    );
    assert!(text.ends_with("\n6 workspaces in all\n"), "{text}");
}

#[test]
fn nothing_found_is_said_and_a_folder_that_is_not_there_is_an_error() {
    let folder = Folder::without_mark();
    let said = folder.run(&["list"]).exits(0).out;
    assert_eq!(said, "no workspaces in .; `stead init NAME` makes one\n");
    assert_eq!(folder.run(&["list", "--json"]).exits(0).json(), json!([]));
    let missing = folder.run(&["list", "gone"]).exits(2);
    assert!(
        missing.err.contains("gone cannot be listed: "),
        "{missing:?}"
    );
    folder.run(&["-C", ".", "list"]).exits(2);
}

#[test]
fn a_workspace_without_others_in_it_lists_itself() {
    let folder = Folder::new();
    let name = folder
        .path()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let listed = folder.run(&["list", ".", "--json"]).exits(0).out;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [name.as_str()]);
}
