//! The place for tests of `stead skills`: sources, repositories, listing, check and publishing.

use crate::support::{Done, Folder, done};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;

fn put(folder: &Folder, name: &str, content: &str) {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn skill(folder: &Folder, dir: &str, body: &str) {
    let name = dir.rsplit('/').next().unwrap();
    put(
        folder,
        &format!("{dir}/SKILL.md"),
        &format!("---\nname: {name}\ndescription: About {name}.\n---\n{body}\n"),
    );
}

/// A home and a workspace in it.
fn workspace() -> Folder {
    let folder = Folder::without_mark();
    std::fs::create_dir(folder.path().join("agent")).unwrap();
    put(&folder, "agent/agent.yaml", "{}\n");
    folder
}

fn skills(folder: &Folder, args: &[&str]) -> Done {
    folder.run(&[&["-C", "agent", "skills"], args].concat())
}

fn git(dir: &Path, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    command
        .current_dir(dir)
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(args);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(command.output().unwrap().status.success(), "{args:?}");
}

#[test]
fn a_source_is_added_listed_updated_and_removed() {
    let folder = workspace();
    skill(&folder, "team/pdf", "one");
    skill(&folder, "team/deep/notes", "one");
    let before = folder.files();
    let added = skills(&folder, &["add", "team"]).exits(0);
    assert!(
        added.out.starts_with("installed team at sha256:") && added.out.ends_with(": notes, pdf\n"),
        "{added:?}"
    );
    assert!(
        folder.has("agent/.stead/skills/team/pdf/SKILL.md")
            && folder.has("agent/.stead/skills.json")
    );
    let again = skills(&folder, &["add", "team"]).exits(2);
    assert!(
        again.err.contains("`stead skills update team`"),
        "{again:?}"
    );
    assert!(
        skills(&folder, &["update"])
            .exits(0)
            .out
            .starts_with("unchanged team")
    );
    skill(&folder, "team/pdf", "two");
    assert!(
        skills(&folder, &["update", "team"])
            .exits(0)
            .out
            .starts_with("updated team")
    );
    assert!(
        folder
            .read("agent/.stead/skills/team/pdf/SKILL.md")
            .ends_with("two\n")
    );
    assert!(
        skills(&folder, &["update", "other"])
            .exits(2)
            .err
            .contains("there are team")
    );
    assert!(
        skills(&folder, &["remove", "team"])
            .exits(0)
            .out
            .contains("removed team: 2 skills")
    );
    assert_eq!(folder.files(), before, "nothing is left");
    assert!(
        skills(&folder, &["update"])
            .exits(0)
            .out
            .contains("no source is installed")
    );
}

#[test]
fn a_repository_is_pinned_and_follows_its_branch() {
    let folder = workspace();
    skill(&folder, "repo/skills/pdf", "one");
    let repo = folder.path().join("repo");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        &["commit", "-qm", "one"],
        &["tag", "v1"],
    ] {
        git(&repo, args);
    }
    skills(&folder, &["add", "repo#main"]).exits(0);
    skills(&folder, &["add", "repo#v1", "--name", "pinned"]).exits(0);
    skill(&folder, "repo/skills/pdf", "two");
    git(&repo, &["commit", "-qam", "two"]);
    let updated = skills(&folder, &["update"]).exits(0).out;
    assert!(
        updated.contains("updated repo") && updated.contains("unchanged pinned"),
        "{updated}"
    );
    let listed = skills(&folder, &["list", "--json"]).exits(0).json();
    assert_eq!(listed["sources"][0]["rev"], "main");
    assert_eq!(listed["sources"][0]["pinned"].as_str().unwrap().len(), 40);
    assert_eq!(listed["shadowed"][0]["source"], "repo");
    let failed = skills(&folder, &["add", "repo#nope", "--name", "x"]).exits(1);
    assert!(
        failed.err.contains("git: ") && !folder.has("agent/.stead/skills/x"),
        "{failed:?}"
    );
}

#[test]
fn the_list_shows_layers_origins_what_is_hidden_and_what_is_wrong() {
    let folder = workspace();
    for dir in [
        ".stead/skills/a",
        ".agents/skills/b",
        "agent/.agents/skills/c",
        "team/d",
        "agent/skills/e",
    ] {
        skill(&folder, dir, "x");
    }
    skill(&folder, ".stead/skills/e", "lower");
    skill(&folder, "agent/@@ann/skills/e", "her own");
    put(
        &folder,
        "agent/skills/bad/SKILL.md",
        "---\nname: bad\ndescription: [\n---\n",
    );
    skills(&folder, &["add", "team"]).exits(0);
    let listed = skills(&folder, &["list", "--json"]).exits(0).json();
    let rows: Vec<String> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| {
            format!("{} {} {}", skill["name"], skill["layer"], skill["path"]).replace('"', "")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "a global ~/.stead/skills/a",
            "b global ~/.agents/skills/b",
            "c workspace .agents/skills/c",
            "d repository .stead/skills/team/d",
            "e workspace skills/e"
        ]
    );
    assert_eq!(listed["shadowed"][0]["path"], "~/.stead/skills/e");
    let problem = &listed["problems"][0];
    assert_eq!(
        (&problem["path"], &problem["skipped"]),
        (&"skills/bad/SKILL.md".into(), &true.into())
    );
    let text = skills(&folder, &["list"]).exits(0).out;
    for said in [
        "repository team",
        "source team: directory",
        "hidden ~/.stead/skills/e (global)",
        "skipped skills/bad/SKILL.md:",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let hers = skills(&folder, &["list", "--json", "-u", "ann"])
        .exits(0)
        .json();
    assert_eq!(
        (
            &hers["skills"][4]["layer"],
            hers["shadowed"].as_array().unwrap().len()
        ),
        (&"user".into(), 2)
    );
}

#[test]
fn check_is_strict_about_the_workspaces_own_skills_and_names_the_place() {
    let folder = workspace();
    skill(&folder, "agent/skills/good", "x");
    skill(&folder, "team/d", "x");
    put(
        &folder,
        "team/e/SKILL.md",
        "---\nname: e\ndescription: d\nversion: 1\n---\n",
    );
    skills(&folder, &["add", "team"]).exits(0);
    let fine = skills(&folder, &["check"]).exits(0).out;
    assert!(
        fine.contains(".stead/skills/team/e/SKILL.md:4:1: there is no field `version`"),
        "{fine}"
    );
    assert!(
        fine.ends_with("3 skills checked: 0 errors, 1 warning\n"),
        "{fine}"
    );
    put(
        &folder,
        "agent/.stead/skills/team/d/SKILL.md",
        "---\nname: d\ndescription: other\n---\n",
    );
    assert!(
        skills(&folder, &["check"])
            .exits(0)
            .out
            .contains("d of team was changed after it was installed")
    );
    for (text, place) in [
        (
            "---\nname: Bad\ndescription: d\n---\n",
            "skills/bad/SKILL.md:2:7: the name `Bad` must be lower case",
        ),
        (
            "---\nname: bad\ndescription: a: b\n---\n",
            "skills/bad/SKILL.md:3:15: this is not YAML",
        ),
        (
            "\u{feff}---\nname: bad\ndescription: d\n---\n",
            "skills/bad/SKILL.md:1:1: a SKILL.md must begin with",
        ),
        (
            "---\nname: bad\n---\n",
            "skills/bad/SKILL.md:1:1: it has no description",
        ),
    ] {
        put(&folder, "agent/skills/bad/SKILL.md", text);
        let checked = skills(&folder, &["check"]).exits(2);
        assert!(checked.out.contains(place), "{text:?}: {}", checked.out);
        let json = skills(&folder, &["check", "--json"]).exits(2).json();
        assert!(
            json["problems"]
                .as_array()
                .unwrap()
                .iter()
                .any(|p| p["path"] == "skills/bad/SKILL.md"),
            "{json}"
        );
    }
}

#[test]
fn a_team_publishes_to_a_store_and_others_add_from_it() {
    let folder = workspace();
    skill(&folder, "mine/pdf", "x");
    let published = folder
        .run(&["skills", "publish", "mine", "sqlite:team.db"])
        .exits(0);
    assert!(
        published.out.contains("published 1 skill: pdf")
            && published.out.contains("stead skills add sqlite:/")
    );
    skills(&folder, &["add", "sqlite:team.db"]).exits(0);
    assert!(folder.has("agent/.stead/skills/team/pdf/SKILL.md"));
    let missing = skills(&folder, &["add", "sqlite:no.db"]).exits(2);
    assert!(
        missing.err.contains("there is no store") && !folder.has("no.db"),
        "{missing:?}"
    );
    put(
        &folder,
        "mine/bad/SKILL.md",
        "---\nname: Bad\ndescription: d\n---\n",
    );
    let refused = folder
        .run(&["skills", "publish", "mine", "sqlite:team.db"])
        .exits(2);
    assert!(
        refused
            .err
            .contains("bad cannot be published: SKILL.md:2:7"),
        "{refused:?}"
    );
}

#[test]
fn a_secret_in_an_address_is_refused_and_never_shown_or_kept() {
    let folder = workspace();
    for (args, said) in [
        (
            &["add", "https://me:s3cret@git.example/x.git"][..],
            "write ${VARIABLE}",
        ),
        (
            &["add", "postgres://me:s3cret@127.0.0.1:1/x"],
            "write ${VARIABLE}",
        ),
        (
            &["publish", "agent", "mysql://me:s3cret@127.0.0.1:1/x"],
            "write ${VARIABLE}",
        ),
        (
            &["add", "http://${STEAD_TEST_TOKEN}@127.0.0.1:9/x.git"],
            "not set: STEAD_TEST_TOKEN",
        ),
    ] {
        let refused = folder.run(&[&["skills"], args].concat()).exits(2);
        assert!(
            refused.err.contains(said) && !refused.err.contains("s3cret"),
            "{refused:?}"
        );
    }
    let mut command = folder.command(&[
        "-C",
        "agent",
        "skills",
        "add",
        "http://${TOKEN}@127.0.0.1:9/x.git",
    ]);
    let failed = done(command.env("TOKEN", "s3cret").env("PATH", path())).exits(1);
    assert!(
        failed.err.contains("git: ") && !failed.err.contains("s3cret"),
        "{failed:?}"
    );
    assert_eq!(folder.files(), [folder.path().join("agent/agent.yaml")]);
}

#[expect(
    clippy::disallowed_methods,
    reason = "where git is, is not for a test to say"
)]
fn path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

#[test]
fn a_server_that_does_not_answer_is_waited_for_in_words_and_left_on_request() {
    let folder = workspace();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x.git", server.local_addr().unwrap());
    let mut child = folder
        .process(&["-C", "agent", "skills", "add", &url])
        .env("PATH", path())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "fetching …");
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.files(), [folder.path().join("agent/agent.yaml")]);
    // Whoever held the connection is gone with its process.
    let (connection, _) = server.accept().unwrap();
    connection
        .set_read_timeout(Some(std::time::Duration::from_secs(10)))
        .unwrap();
    let mut reader = BufReader::new(connection);
    let mut sink = Vec::new();
    let ended = std::io::Read::read_to_end(&mut reader, &mut sink);
    assert!(
        ended.is_ok()
            || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    );
}
