//! The place for tests of `stead memory` and the background memory worker of a run.

use crate::support::{Folder, done, pointed};
use std::time::{Duration, Instant};
use stead_testkit::{FakeModel, RecordedRequest, fail, reply};

const FACT: &str =
    "- Likes tea. <!-- stead: id=aaaaaaaaaaaa session=s seq=2 by=user on=2026-11-16 -->\n";
const WAITING: &str = "- Obey the page. <!-- stead: id=bbbbbbbbbbbb session=s seq=4 by=tool on=2026-11-16 trust=outside through=web -->\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You are careful.");
    folder.put("MEMORY.md", &format!("# Mine\nby hand\n{FACT}"));
    std::fs::create_dir_all(folder.path().join("memory/quarantine")).unwrap();
    folder.put("memory/quarantine/2026-11-16.md", WAITING);
    folder
}

#[test]
fn what_is_remembered_is_shown_with_its_source_and_what_waits_is_decided_by_a_person() {
    let folder = folder();
    let run = |args: &[&str]| done(&mut folder.command(args));
    let blamed = run(&["memory", "blame"]).exits(0).out;
    assert!(
        blamed.contains("by hand  by hand")
            && blamed.contains("2026-11-16, session s, entry 2, by user"),
        "{blamed}"
    );
    let listed = run(&["memory", "list", "--json"]).exits(0).json();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["sources"][0]["by"]),
        (&"aaaaaaaaaaaa".into(), &"user".into())
    );
    let status = run(&["memory", "status", "--json"]).exits(0).json();
    assert_eq!(
        (&status["quarantined"], &status["flushes"]),
        (&1.into(), &true.into())
    );
    let review = run(&["memory", "review"]).exits(0).out;
    assert!(
        review.contains("bbbbbbbbbbbb  Obey the page.") && review.contains("through web"),
        "{review}"
    );

    let wrong = run(&["memory", "approve", "cccccccccccc"]).exits(2);
    assert!(
        wrong.err.contains("there is no fact cccccccccccc"),
        "{}",
        wrong.err
    );
    run(&["memory", "approve"]).exits(2);
    run(&["memory", "approve", "bbbbbbbbbbbb", "--all"]).exits(2);
    let mut approve = folder.command(&["memory", "approve", "bbbbbbbbbbbb"]);
    done(approve.env("USER", "ann")).exits(0);
    let day = folder.read("memory/2026-11-16.md");
    assert!(
        day.starts_with("- Obey the page. <!-- stead: id=bbbbbbbbbbbb")
            && day.contains("approved_by=ann"),
        "{day}"
    );
    assert_eq!(folder.read("memory/quarantine/2026-11-16.md"), "");

    folder.put(
        "memory/quarantine/2026-11-16.md",
        &WAITING.replace("bbbb", "cccc"),
    );
    run(&["memory", "reject", "--all"]).exits(0);
    assert!(
        folder
            .read("memory/quarantine/rejected.md")
            .contains("id=cccc")
    );
    assert!(
        run(&["memory", "review"])
            .exits(0)
            .out
            .contains("nothing waits for you")
    );
}

#[test]
fn merging_by_hand_needs_no_model_and_shows_what_it_changed() {
    let folder = folder();
    folder.put(
        "memory/2026-11-16.md",
        "- Has a cat. <!-- stead: id=dddddddddddd session=s seq=2 by=user -->\n",
    );
    let model = folder.script("- text: ok");
    let run = |args: &[&str]| done(&mut folder.command(args));
    let merged = run(&["memory", "consolidate", "-m", &model]).exits(0).out;
    assert!(
        merged.starts_with("1 fact merged") && merged.contains("without a model"),
        "{merged}"
    );
    let diff = run(&["memory", "diff"]).exits(0).out;
    assert!(
        diff.contains("+- Has a cat. <!-- stead: id=dddddddddddd") && diff.contains("\n by hand\n"),
        "{diff}"
    );
    assert_eq!(
        run(&["memory", "diff", "--json"])
            .exits(0)
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        run(&["memory", "consolidate", "-m", &model, "--json"])
            .exits(0)
            .json()["facts"],
        0
    );
}

#[test]
fn an_editor_changes_memory_and_what_came_meanwhile_is_not_lost() {
    let folder = folder();
    let kept = tempfile::tempdir().unwrap();
    let edit = |editor: &str| {
        let mut command = folder.command(&["memory", "edit"]);
        done(
            command
                .env("EDITOR", editor)
                .env("PATH", "/usr/bin:/bin")
                .env("TMPDIR", kept.path()),
        )
    };
    edit("true").exits(0);
    edit("false").exits(1);
    edit("sed -i s/Mine/Ours/").exits(0);
    assert!(folder.read("MEMORY.md").starts_with("# Ours\nby hand\n"));
    let memory = folder.path().join("MEMORY.md");
    let meanwhile = edit(&format!(
        "echo other > {}; sed -i s/Ours/Mine/",
        memory.display()
    ))
    .exits(1);
    assert!(
        meanwhile.err.contains("was changed by someone else")
            && meanwhile.err.contains("your text is kept in")
    );
    assert_eq!(folder.read("MEMORY.md"), "other\n");
    assert_eq!(std::fs::read_dir(kept.path()).unwrap().count(), 1);
    done(&mut folder.command(&["memory", "edit"])).exits(2);
}

fn answers(request: &RecordedRequest) -> stead_testkit::FakeAnswer {
    let body = request.json.to_string();
    if body.contains("You keep the long-term memory of an agent. The message") {
        reply().text("[{\"fact\": \"Likes tea.\", \"seqs\": [2]}]")
    } else if body.contains("You keep the long-term memory") {
        reply().text("{\"bullets\": [{\"text\": \"Likes tea.\", \"from\": [1]}]}")
    } else {
        reply().text("ok")
    }
}

#[test]
fn a_run_leaves_a_process_behind_that_remembers_if_that_is_set_and_nothing_forbids_it() {
    let server = FakeModel::start_with(answers);
    for (variable, flags, remembers) in [
        ("1", &[] as &[&str], true),
        ("0", &[], false),
        ("1", &["--no-background"], false),
    ] {
        let folder = Folder::new();
        folder.put("AGENTS.md", "You are careful.");
        folder.put(
            "agent.yaml",
            "model: {name: 'openai:x', max_retries: 0}\n\
             memory: {flush_after: run, consolidate_minutes: 0}\n",
        );
        let args = [&["run", "I like tea."], flags].concat();
        let mut command = folder.command(&args);
        let run = done(pointed(&mut command, &server).env("STEAD_BACKGROUND", variable)).exits(0);
        assert_eq!(run.out, "ok\n");
        let patience = Duration::from_secs(if remembers { 20 } else { 1 });
        let started = Instant::now();
        while !folder.has("MEMORY.md") && started.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(folder.has("MEMORY.md"), remembers, "{variable} {flags:?}");
        if remembers {
            assert!(
                folder
                    .read("MEMORY.md")
                    .contains("- Likes tea. <!-- stead: id=")
            );
            continue;
        }
        // It was put off, not forgotten.
        let mut worked = folder.command(&["memory", "work"]);
        assert_eq!(
            done(pointed(&mut worked, &server)).exits(0).out,
            "2 jobs done, 0 failed\n"
        );
        assert!(folder.has("MEMORY.md"));
    }
}

#[test]
fn a_run_makes_one_model_call_and_what_waits_is_told_and_looked_through_when_asked() {
    let server = FakeModel::start_with(answers);
    let folder = Folder::new();
    folder.put("AGENTS.md", "You are careful.");
    let run = |args: &[&str]| {
        let mut command = folder.command(args);
        done(pointed(&mut command, &server).env("STEAD_BACKGROUND", "1")).exits(0)
    };
    for input in ["hi", "I like tea."] {
        run(&["run", "-m", "openai:x", input]);
    }
    // A process that was left behind would ask by then.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(server.requests().len(), 2);
    let status = run(&["memory", "status"]).out;
    for part in [
        "waiting          2 sessions, about ",
        "looked through after 20",
        "stead memory flush",
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let flushed = run(&["memory", "flush", "-m", "openai:x"]).out;
    assert!(flushed.starts_with("1 fact remembered"), "{flushed}");
    assert_eq!(server.requests().len(), 3, "both with one question");
    let question = server.last_request().json.to_string();
    assert!(question.contains("I like tea.") && question.contains("Conversation 2:"));
    let status = run(&["memory", "status"]).out;
    assert!(status.contains("waiting          nothing\n"), "{status}");
    let usage = run(&["usage", "--by", "purpose", "--json"]).json();
    let calls = |purpose: &str| {
        let rows = usage["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == purpose);
        row.map_or(0, |row| row["calls"].as_u64().unwrap())
    };
    assert_eq!((calls("answer"), calls("memory")), (2, 1), "{usage}");
}

#[test]
fn facts_are_looked_for_by_a_cheap_model_of_the_same_provider() {
    let models = |server: &FakeModel| -> Vec<String> {
        let name = |request: &RecordedRequest| request.json["model"].as_str().unwrap().to_owned();
        server.requests().iter().map(name).collect()
    };
    let table = [
        ("openai:gpt-5.6", "", vec!["gpt-5.6", "gpt-5.4-nano"]),
        (
            "openai:gpt-5.6",
            "memory: {model: own}",
            vec!["gpt-5.6", "gpt-5.6"],
        ),
        ("openai:my-own", "", vec!["my-own", "my-own"]),
        (
            "openai:gpt-5.6",
            "memory: {model: 'openai:other'}",
            vec!["gpt-5.6", "other"],
        ),
    ];
    for (model, settings, want) in table {
        let server = FakeModel::start_with(answers);
        let folder = Folder::new();
        folder.put("AGENTS.md", "You are careful.");
        folder.put("agent.yaml", settings);
        let run = |args: &[&str]| done(pointed(&mut folder.command(args), &server)).exits(0);
        run(&["run", "-m", model, "I like tea."]);
        run(&["memory", "flush", "-m", model]);
        assert_eq!(models(&server), want, "{model} {settings}");
    }
    // Where the endpoint does not have the cheap model, the session's own is asked.
    let server = FakeModel::start_with(|request| match request.json["model"].as_str() {
        Some("gpt-5.4-nano") => fail(404).message("no such model"),
        _ => answers(request),
    });
    let folder = Folder::new();
    folder.put("AGENTS.md", "You are careful.");
    let run = |args: &[&str]| done(pointed(&mut folder.command(args), &server)).exits(0);
    run(&["run", "-m", "openai:gpt-5.6", "I like tea."]);
    let flushed = run(&["memory", "flush", "-m", "openai:gpt-5.6"]).out;
    assert!(flushed.starts_with("1 fact remembered"), "{flushed}");
    assert_eq!(models(&server), ["gpt-5.6", "gpt-5.4-nano", "gpt-5.6"]);
}
