//! The place for tests of malformed workspaces: errors with file and line, exit code 2, nothing
//! written.

use crate::support::Folder;
use std::os::unix::fs::symlink;
use std::path::Path;

fn put(folder: &Folder, name: &str, content: &[u8]) {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn utf16(text: &str) -> Vec<u8> {
    [0xff, 0xfe]
        .into_iter()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect()
}

/// A file of 100 MB that takes no space.
fn huge(folder: &Folder, name: &str) {
    put(folder, name, b"# ");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join(name))
        .unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
}

/// Both commands refuse with a message that begins with `place`; the folder is as it was.
#[track_caller]
fn refused(folder: &Folder, place: &str) {
    let model = folder.script("- text: hello");
    let before = folder.files();
    let ran = folder.run(&["run", "-m", &model, "hello"]);
    assert!(ran.code == 2 && ran.err.contains(place), "{place}: {ran:?}");
    let checked = folder.run(&["check"]).exits(2);
    assert!(checked.out.contains(place), "{place}: {}", checked.out);
    let lines = folder.run(&["check", "--json"]).exits(2).json();
    let error = lines
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["grade"] == "error")
        .unwrap();
    assert!(
        error["about"].is_string() && error["message"].is_string(),
        "{error}"
    );
    assert_eq!(folder.files(), before, "nothing is written");
}

#[test]
fn malformed_files_are_refused_with_their_place() {
    let deep = format!("a: {}{}", "[".repeat(3000), "]".repeat(3000));
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
        d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    let agent = |front: &str| format!("---\n{front}\n---\nYou are strict.\n").into_bytes();
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("agent.yaml", b"policy: [".to_vec(), "agent.yaml:1:"),
        (
            "agent.yaml",
            b"name: a\r\npolicy:\r\n  max_stepps: 3\r\n".to_vec(),
            "agent.yaml:3:3",
        ),
        (
            "agent.yaml",
            b"\xef\xbb\xbfname: a\nmodell: x\n".to_vec(),
            "agent.yaml:2:1",
        ),
        (
            "agent.yaml",
            b"name: a\nname: b\n".to_vec(),
            "agent.yaml:2:",
        ),
        ("agent.yaml", b"a: 1\n---\nb: 2\n".to_vec(), "agent.yaml:"),
        ("agent.yaml", b"name: \xff\xfe\n".to_vec(), "agent.yaml:1:7"),
        ("agent.yaml", utf16("name: a"), "agent.yaml:1:1: is UTF-16"),
        ("agent.yaml", deep.into_bytes(), "agent.yaml:"),
        ("agent.yaml", bomb.as_bytes().to_vec(), "agent.yaml:"),
        (
            "agent.yaml",
            b"model: ${NO_SUCH_VARIABLE}\n".to_vec(),
            "agent.yaml:1:1: the variable NO_SUCH_VARIABLE",
        ),
        (
            "agent.yaml",
            b"disable: [shel]\n".to_vec(),
            "agent.yaml:1:11",
        ),
        (
            "agent.yaml",
            b"context_files: [../x]\n".to_vec(),
            "agent.yaml:1:17",
        ),
        (
            "agent.yaml",
            b"permissions: [{operations: [read], paths: ['[a'], mode: deny}]".to_vec(),
            "agent.yaml:1:",
        ),
        (
            "subagents/a.md",
            b"---\ndescription: x\n".to_vec(),
            "subagents/a.md:1:1",
        ),
        (
            "subagents/a.md",
            agent("descriptoin: x"),
            "subagents/a.md:2:1",
        ),
        ("subagents/a.md", agent("mode: subagent"), "subagents/a.md:"),
        (
            "subagents/a.md",
            agent("description: x\nsteps: 0"),
            "subagents/a.md:3:1",
        ),
        (
            "subagents/a.md",
            agent("description: x\nswitch: [nobody]"),
            "subagents/a.md:",
        ),
        (
            "subagents/a.md",
            b"---\ndescription: x\n---\n".to_vec(),
            "subagents/a.md:4:1: the prompt is missing",
        ),
        (
            "subagents/a.md",
            utf16("---"),
            "subagents/a.md:1:1: is UTF-16",
        ),
        (
            "tools.json",
            b"{\n  \"allow\": [,]\n}".to_vec(),
            "tools.json:2:",
        ),
        (
            "tools.json",
            b"{\n  \"alow\": []\n}".to_vec(),
            "tools.json:2:3",
        ),
        ("tools.json", b"[1, 2]".to_vec(), "tools.json:1:"),
        (
            "tools.json",
            b"{\"mcpServers\": {\n\"a\": {\"transport\": \"stdio\"}}}".to_vec(),
            "tools.json:2:",
        ),
        ("tools.json", utf16("{}"), "tools.json:1:1: is UTF-16"),
        (
            "AGENTS.md",
            b"hello \xff".to_vec(),
            "AGENTS.md:1:7: is not UTF-8",
        ),
        ("AGENTS.md", utf16("# Me"), "AGENTS.md:1:1: is UTF-16"),
        ("MEMORY.md", utf16("# Me"), "MEMORY.md:1:1: is UTF-16"),
        (
            "knowledge/KNOWLEDGE.md",
            b"\xff".to_vec(),
            "knowledge/KNOWLEDGE.md:1:1",
        ),
    ];
    for (file, content, place) in table {
        let folder = Folder::new();
        put(&folder, file, &content);
        refused(&folder, place);
    }
}

#[test]
fn an_agent_that_the_agent_wrote_wrong_shuts_nobody_out() {
    let folder = Folder::new();
    put(
        &folder,
        "subagents/a.md",
        b"---\nnonsense: 1\n---\nYou help.\n",
    );
    refused(&folder, "subagents/a.md:2:1");
    for command in [&["sessions", "list"], &["approvals", "list"]] {
        folder.run(command).exits(0);
    }
}

#[test]
fn files_that_are_too_large_or_no_files_are_refused() {
    for file in ["agent.yaml", "AGENTS.md", "tools.json", "subagents/a.md"] {
        let folder = Folder::new();
        huge(&folder, file);
        refused(&folder, file);
        let folder = match file {
            "agent.yaml" => Folder::without_mark(),
            _ => Folder::new(),
        };
        put(&folder, &format!("{file}/inner"), b"x");
        if !file.contains('/') {
            refused(&folder, file);
        }
    }
}

#[test]
fn links_that_go_round_in_circles_do_no_harm() {
    let folder = Folder::new();
    let link = |to: &str, at: &str| symlink(to, folder.path().join(at)).unwrap();
    for dir in ["skills/real", "knowledge"] {
        std::fs::create_dir_all(folder.path().join(dir)).unwrap();
    }
    put(
        &folder,
        "skills/real/SKILL.md",
        b"---\nname: real\ndescription: Is real.\n---\nBody.\n",
    );
    link("..", "skills/up");
    link("../skills", "skills/real/again");
    link("..", "knowledge/up");
    let prompt = folder.run(&["prompt"]).exits(0).out;
    assert!(prompt.contains("<name>real</name>"), "{prompt}");
    assert!(Path::new(&folder.path()).join("skills/up").exists());
    link("AGENTS.md", "AGENTS.md");
    refused(&folder, "AGENTS.md");
}

#[test]
fn line_ends_and_marks_of_other_systems_are_read_as_meant() {
    let folder = Folder::new();
    put(&folder, "AGENTS.md", b"\xef\xbb\xbf# Me\r\nBe kind.\r\n");
    put(
        &folder,
        "agent.yaml",
        b"\xef\xbb\xbfname: me\r\npolicy:\r\n  max_steps: 7\r\n",
    );
    put(
        &folder,
        "tools.json",
        b"\xef\xbb\xbf{\r\n// why\r\n\"deny\": [\"ls\"],\r\n}\r\n",
    );
    put(
        &folder,
        "subagents/a.md",
        b"\xef\xbb\xbf---\r\ndescription: Helps.\r\n---\r\nYou help.\r\n",
    );
    put(
        &folder,
        "skills/s/SKILL.md",
        b"\xef\xbb\xbf---\r\nname: s\r\ndescription: Does.\r\n---\r\nDo.\r\n",
    );
    let prompt = folder.run(&["prompt"]).exits(0).out;
    for shown in ["Be kind.", "<name>a</name>", "<name>s</name>", "Agent: me"] {
        assert!(prompt.contains(shown), "{shown}: {prompt}");
    }
    assert!(
        !prompt.contains('\u{feff}') && !prompt.contains(" ls,"),
        "{prompt}"
    );
    let explained = folder
        .run(&["explain", "policy.max_steps", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        explained,
        serde_json::json!({
            "key": "policy.max_steps", "value": 7, "origin": {"source": "agent.yaml", "line": 3, "column": 3},
        })
    );
}

#[test]
fn a_list_that_would_let_through_what_it_seems_to_keep_is_refused() {
    let lists = [
        r#"{"deny": ["delete_file"], "deny": []}"#,
        "/* only reading\n{\"deny\": [\"delete_file\"]}",
        r#"{"deny": ["${DENIED}"]}"#,
        r#"{"deny": ["DELETE_FILE"]}"#,
        r#"{"deny": ["delete_*"]}"#,
    ];
    for list in lists {
        let folder = Folder::new();
        put(&folder, "tools.json", list.as_bytes());
        refused(&folder, "tools.json");
    }
    let folder = Folder::new();
    put(&folder, "agent.yaml", b"approvals: {deleet_file: true}");
    refused(&folder, "approvals");
    // To overwrite is to write.
    let folder = Folder::new();
    put(&folder, "tools.json", br#"{"deny": ["Write"]}"#);
    let tools = folder.run(&["tool"]).exits(0).out;
    assert!(
        !tools.contains("overwrite_file") && !tools.contains("write_file"),
        "{tools}"
    );
}
