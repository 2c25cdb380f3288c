//! The place for tests of `stead approvals` and parked runs: answering, resuming, grants, and
//! answers from other machines.

use crate::support::{Done, Folder};
use serde_json::{Value, json};

const TWO: &str = "- calls:\n  - {tool: write_file, args: {file_path: notes/a.txt, content: \"y\\n\"}}\n  \
                   - {tool: write_file, args: {file_path: notes/b.txt, content: \"z\\n\"}}\n- text: all done\n";
const ONE: &str = "- calls: [{tool: write_file, args: {file_path: notes/a.txt, content: \"y\\n\"}}]\n- text: all done\n";

/// A workspace that plays `script` and has these settings.
fn folder(settings: &str, script: &str) -> Folder {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You keep notes.\n");
    folder.put("script.yaml", script);
    folder.put(
        "agent.yaml",
        &format!("model: scripted:script.yaml\n{settings}"),
    );
    folder
}

fn asking(script: &str) -> Folder {
    folder(
        "approvals: {write_file: {decisions: [approve, edit, reject, respond]}}\n",
        script,
    )
}

fn park(folder: &Folder) -> Done {
    folder.run(&["run", "-s", "plan", "go"]).exits(3)
}

fn waiting(folder: &Folder) -> Vec<Value> {
    folder
        .run(&["approvals", "list", "--json"])
        .exits(0)
        .json()
        .as_array()
        .unwrap()
        .clone()
}

fn id(question: &Value) -> String {
    question["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_that_parks_says_what_waits_and_the_commands_it_prints_answer_it() {
    let folder = asking(TWO);
    let parked = park(&folder);
    let asked = waiting(&folder);
    assert_eq!(asked.len(), 2);
    let commands: Vec<&str> = parked
        .err
        .lines()
        .filter(|line| line.starts_with("  stead approvals "))
        .collect();
    assert_eq!(commands.len(), 8, "{}", parked.err);
    assert_eq!(
        commands[0],
        format!("  stead approvals approve {} -s plan", id(&asked[0]))
    );
    assert!(parked.err.contains("+++ b/notes/a.txt"), "{}", parked.err);
    let shown = folder
        .run(&["approvals", "show", &id(&asked[0])])
        .exits(0)
        .out;
    for part in [
        "write_file notes/a.txt",
        "+y",
        "\"content\": \"y\\n\"",
        "--always would allow write_file in notes/",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let listed = folder.run(&["approvals", "list", "-s", "pl"]).exits(0).out;
    assert!(
        listed.contains("approve, edit, reject, respond") && listed.contains("session plan"),
        "{listed}"
    );

    // The first answer leaves the run parked, the second lets it go on there and then.
    let args: Vec<&str> = commands[0].split_whitespace().skip(1).collect();
    let first = folder.run(&args).exits(0);
    assert_eq!(first.out, "");
    assert!(
        first.err.contains("1 more question of session plan waits"),
        "{}",
        first.err
    );
    assert!(!folder.has("notes/a.txt"));
    assert_eq!(folder.run(&["run", "-s", "plan", "--resume"]).code, 3);
    let args: Vec<&str> = commands[4].split_whitespace().skip(1).collect();
    let last = folder.run(&args).exits(0);
    assert_eq!(last.out, "all done\n");
    assert_eq!(
        (folder.read("notes/a.txt"), folder.read("notes/b.txt")),
        ("y\n".to_owned(), "z\n".to_owned())
    );
    assert_eq!(waiting(&folder), Vec::<Value>::new());
    assert_eq!(
        folder.run(&["approvals", "list"]).exits(0).out,
        "no open questions\n"
    );
}

#[test]
fn every_answer_has_a_command_and_a_json_form() {
    let edited = json!({"file_path": "notes/a.txt", "content": "e\n"}).to_string();
    let rows: [(&[&str], &str, Option<&str>); 4] = [
        (&["approve"], "approve", Some("y\n")),
        (&["edit", &edited], "edit", Some("e\n")),
        (&["reject", "--reason", "not now"], "reject", None),
        (&["respond", "it was written"], "respond", None),
    ];
    for (words, decision, content) in rows {
        let folder = asking(ONE);
        park(&folder);
        let call = id(&waiting(&folder)[0]);
        // All but the last letters of an id are enough where no other begins so.
        let short = &call[..call.len() - 1];
        let mut args = vec!["approvals", words[0], short];
        args.extend(&words[1..]);
        args.extend(["--by", "ann", "--json"]);
        let done = folder.run(&args).exits(0).json();
        assert_eq!(done["answered"][0]["decision"], json!(decision));
        assert_eq!(done["answered"][0]["by"], json!("ann"));
        assert_eq!(
            (&done["waiting"], &done["run"]["outcome"]),
            (&json!([]), &json!("completed")),
            "{done}"
        );
        assert_eq!(
            folder
                .has("notes/a.txt")
                .then(|| folder.read("notes/a.txt"))
                .as_deref(),
            content,
            "{decision}"
        );
        let shown = folder
            .run(&["sessions", "show", "plan", "--full"])
            .exits(0)
            .out;
        assert!(shown.contains("by ann"), "{shown}");
    }
}

#[test]
fn with_no_resume_the_run_stays_parked_and_run_resume_picks_it_up() {
    let folder = asking(TWO);
    park(&folder);
    let done = folder
        .run(&["approvals", "approve", "--all", "-s", "plan", "--no-resume"])
        .exits(0);
    assert!(
        done.err.contains("Resume with: stead run -s plan --resume"),
        "{}",
        done.err
    );
    assert!(!folder.has("notes/a.txt"));
    assert_eq!(
        folder.run(&["run", "-s", "plan", "--resume"]).exits(0).out,
        "all done\n"
    );
    assert!(folder.has("notes/a.txt") && folder.has("notes/b.txt"));
    let replayed = folder.run(&["sessions", "replay", "plan"]).exits(0);
    assert!(replayed.out.contains("replayed"), "{}", replayed.out);
}

#[test]
fn a_rewind_to_a_turn_that_does_not_exist_leaves_the_run_parked() {
    let folder = asking(ONE);
    park(&folder);
    let asked = waiting(&folder);
    let journal = folder.read("agents/main/sessions/plan.log.jsonl");
    for turn in ["0", "99"] {
        folder
            .run(&["sessions", "rewind", "plan", "--before", turn])
            .exits(2);
    }
    assert_eq!(folder.read("agents/main/sessions/plan.log.jsonl"), journal);
    assert_eq!(waiting(&folder), asked);
    folder
        .run(&["approvals", "approve", &id(&asked[0])])
        .exits(0);
    assert!(folder.has("notes/a.txt"));
}

#[test]
fn flags_of_a_resumed_run_are_refused_where_nothing_is_resumed() {
    let folder = asking(ONE);
    park(&folder);
    let asked = waiting(&folder);
    let approve = ["approvals", "approve", &id(&asked[0]), "--no-resume"];
    for flags in [
        ["--mode", "explore"],
        ["--approve", "all"],
        ["--output", "json"],
    ] {
        let refused = folder.run(&[&approve[..], &flags].concat()).exits(2);
        assert!(
            refused.err.contains("cannot be used with"),
            "{}",
            refused.err
        );
    }
    assert_eq!(waiting(&folder), asked);
}

#[test]
fn answers_that_do_not_fit_are_refused_with_exit_code_2() {
    let folder = folder("approvals: {write_file: {by: [ann]}}\n", TWO);
    park(&folder);
    let asked = waiting(&folder);
    let first = id(&asked[0]);
    let common = "call";
    let rows: [(&[&str], &str); 7] = [
        (&["approve", &first, "--by", "bob"], "may not answer"),
        (
            &["approve", &first, "--by", "ann", "--hash", "00"],
            "other arguments",
        ),
        (
            &["edit", &first, "{}", "--by", "ann"],
            "cannot be answered with `edit`; it takes: approve, reject",
        ),
        (&["edit", &first, "{", "--by", "ann"], "not JSON"),
        (
            &["approve", "nothing", "--by", "ann"],
            "no open question has the id",
        ),
        (
            &["approve", common, "--by", "ann"],
            "give more of the id, or -s",
        ),
        (&["revoke", "abc"], "there is no grant"),
    ];
    for (words, said) in rows {
        let args: Vec<&str> = ["approvals"]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        let done = folder.run(&args).exits(2);
        assert!(done.err.contains(said), "{words:?}: {}", done.err);
    }
    assert_eq!(waiting(&folder), asked);
}

#[test]
fn of_two_processes_that_answer_at_once_one_counts() {
    for _ in 0..4 {
        let folder = asking(ONE);
        park(&folder);
        let call = id(&waiting(&folder)[0]);
        let start = |word: &str| folder.process(&["approvals", word, &call]).spawn().unwrap();
        let yes = start("approve");
        let no = start("reject");
        let yes = yes.wait_with_output().unwrap();
        let no = no.wait_with_output().unwrap();
        let won = [&yes, &no]
            .iter()
            .filter(|done| done.status.success())
            .count();
        assert_eq!(won, 1, "{yes:?} {no:?}");
        assert_eq!(folder.has("notes/a.txt"), yes.status.success());
        let log = folder.read("agents/main/sessions/plan.log.jsonl");
        assert_eq!(log.matches("\"kind\":\"decision\"").count(), 1, "{log}");
    }
}

#[test]
fn always_makes_a_rule_that_is_listed_holds_for_tool_and_run_and_is_revoked() {
    let folder = asking(ONE);
    park(&folder);
    let call = id(&waiting(&folder)[0]);
    folder
        .run(&["approvals", "approve", &call, "--always", "--by", "ann"])
        .exits(0);
    let rules = folder
        .run(&["approvals", "rules", "--json"])
        .exits(0)
        .json();
    let rule = &rules[0];
    assert_eq!(
        (&rule["tool"], &rule["allows"], &rule["only"]),
        (&json!("write_file"), &json!("folder"), &json!("notes"))
    );
    let listed = folder.run(&["approvals", "rules"]).exits(0).out;
    assert!(
        listed.contains("write_file in notes/") && listed.contains("allowed by ann"),
        "{listed}"
    );
    let verdict = |path: &str| {
        let args = json!({"file_path": path, "content": "x"}).to_string();
        let done = folder
            .run(&["tool", "write_file", &args, "--explain", "--json"])
            .exits(0);
        done.json()["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (verdict("notes/n.txt"), verdict("n.txt")),
        ("allow".to_owned(), "ask".to_owned())
    );
    let write = json!({"file_path": "notes/t.txt", "content": "x"}).to_string();
    folder.run(&["tool", "write_file", &write]).exits(0);
    folder.put("script.yaml", &ONE.replace("notes/a.txt", "notes/c.txt"));
    folder.run(&["run", "-s", "other", "go"]).exits(0);
    let revoked = folder
        .run(&[
            "approvals",
            "revoke",
            &rule["id"].as_str().unwrap()[..5],
            "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(revoked["id"], rule["id"]);
    assert_eq!(verdict("notes/n.txt"), "ask");
    assert_eq!(
        folder
            .run(&["approvals", "rules", "--json"])
            .exits(0)
            .json(),
        json!([])
    );
}

#[test]
fn a_rule_that_comes_with_a_folder_of_another_person_does_not_count() {
    let folder = asking(ONE);
    park(&folder);
    let call = id(&waiting(&folder)[0]);
    folder
        .run(&["approvals", "approve", &call, "--always", "--by", "ann"])
        .exits(0);
    let elsewhere = Folder::from_elsewhere();
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([folder.path().join("."), elsewhere.path()])
        .status();
    assert!(copied.unwrap().success());
    let args = json!({"file_path": "notes/n.txt", "content": "x"}).to_string();
    let explain = ["tool", "write_file", &args, "--explain", "--json"];
    for (folder, verdict, rules) in [(&folder, "allow", 1), (&elsewhere, "ask", 0)] {
        let listed = folder
            .run(&["approvals", "rules", "--json"])
            .exits(0)
            .json();
        assert_eq!(listed.as_array().unwrap().len(), rules);
        assert_eq!(folder.run(&explain).exits(0).json()["verdict"], verdict);
    }
    let key = folder.config().join("stead/grants/key");
    let mode = std::fs::metadata(&key).unwrap().permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
    // Without the key, nothing proves who allowed it.
    std::fs::remove_file(key).unwrap();
    assert_eq!(folder.run(&explain).exits(0).json()["verdict"], "ask");
}

#[test]
fn what_parks_in_a_store_is_answered_and_goes_on_on_another_machine() {
    let shared = Folder::new();
    let url = format!("sqlite:{}", shared.path().join("store.db").display());
    let settings = format!(
        "name: keeper\napprovals: {{write_file: true}}\nfilesystem: {{mode: store, url: \"{url}\"}}\n"
    );
    let here = folder(&settings, ONE);
    let there = folder(&settings, ONE);
    let beyond = folder(&settings, ONE);
    park(&here);
    let call = id(&waiting(&there)[0]);
    there
        .run(&[
            "approvals",
            "approve",
            &call,
            "--always",
            "--no-resume",
            "--by",
            "ann",
        ])
        .exits(0);
    assert_eq!(
        beyond.run(&["run", "-s", "plan", "--resume"]).exits(0).out,
        "all done\n"
    );
    let read = json!({"file_path": "notes/a.txt"}).to_string();
    assert!(
        here.run(&["tool", "read_file", &read])
            .exits(0)
            .out
            .contains('y')
    );
    assert_eq!(
        here.run(&["approvals", "rules", "--json"])
            .exits(0)
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

// External execution
#[test]
fn a_tool_of_the_client_is_answered_from_standard_input() {
    let settings = "client_tools:\n- name: pick_colour\n  description: Lets the person pick.\n  \
                    parameters: {type: object, properties: {title: {type: string}}, required: [title]}\n";
    let script = "- calls: [{tool: pick_colour, args: {title: Wall}}]\n- expect: {last_contains: deep blue}\n  \
                  text: It is blue.\n";
    let folder = folder(settings, script);
    let parked = folder
        .run(&["run", "-s", "plan", "go", "--approve", "all"])
        .exits(3);
    assert!(
        parked.err.contains("cannot be answered with `approve`"),
        "{}",
        parked.err
    );
    let question = waiting(&folder).remove(0);
    assert_eq!(question["decisions"], json!(["respond", "reject"]));
    folder
        .run(&["approvals", "approve", &id(&question)])
        .exits(2);
    let mut command = folder.command(&["approvals", "respond", &id(&question), "-"]);
    let done = crate::support::done(command.write_stdin("deep blue"));
    assert_eq!(done.exits(0).out, "It is blue.\n");
    folder.run(&["check"]).exits(0);
}

#[test]
fn a_secret_of_the_files_is_in_no_preview() {
    let script = "- calls: [{tool: edit_file, args: {file_path: conf.txt, old_string: one, new_string: two}}]\n\
                  - text: done\n";
    let folder = folder(
        "approvals: {edit_file: true}\nsystem_prompt: '${HIDDEN}'\n",
        script,
    );
    folder.put(".env", "HIDDEN=swordfish-1234\n");
    folder.put("conf.txt", "one\nkey: swordfish-1234\n");
    let parked = done_with(&folder, &["run", "-s", "plan", "go", "--output", "events"]);
    let shown = done_with(&folder, &["approvals", "list", "--json"]).out;
    assert_eq!(parked.code, 3, "{parked:?}");
    for text in [
        &parked.out,
        &parked.err,
        &shown,
        &folder.read("agents/main/sessions/plan.log.jsonl"),
    ] {
        assert!(!text.contains("swordfish"), "{text}");
    }
    assert!(shown.contains("key: [redacted]"), "{shown}");
}

fn done_with(folder: &Folder, args: &[&str]) -> Done {
    crate::support::done(folder.command(args).env("HIDDEN", "swordfish-1234"))
}
