//! The place for tests of ordinary projects: everything of the agent lies in `.stead/`, and the rest
//! of the folder is the project's.

use crate::support::{Done, Folder, done};
use std::path::Path;

const TEXT: &str = "- text: done\n- loop: true\n";

/// A folder with these files in a home of its own, and the name of a model that says `done`.
struct Project {
    folder: Folder,
    model: String,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Folder::without_mark();
        std::fs::create_dir_all(folder.path().join("home/p")).unwrap();
        folder.put("home/script.yaml", TEXT);
        let model = format!(
            "scripted:{}",
            folder.path().join("home/script.yaml").display()
        );
        let project = Self { folder, model };
        for (path, text) in files {
            project.put(path, text);
        }
        project
    }

    fn dir(&self) -> std::path::PathBuf {
        self.folder.path().join("home/p")
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn has(&self, path: &str) -> bool {
        self.dir().join(path).exists()
    }

    /// Runs a command in a folder of the project.
    fn at(&self, below: &str, args: &[&str]) -> Done {
        let mut command = self.folder.command(args);
        command.current_dir(self.dir().join(below));
        done(command.env("HOME", self.folder.path().join("home")))
    }

    fn run(&self, args: &[&str]) -> Done {
        let model = ["-m", self.model.as_str()];
        self.at("", &[&["run"], args, &model, &["hello"]].concat())
            .exits(0)
    }

    fn tool(&self, name: &str, args: &str) -> Done {
        self.at("", &["tool", name, args])
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_leaves_nothing_but_an_ignored_folder() {
    for files in [
        &[("README.md", "# A project\n")][..],
        &[("AGENTS.md", "Use tabs.\n")],
    ] {
        let project = Project::new(files);
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            let run = command
                .args(args)
                .current_dir(project.dir())
                .output()
                .unwrap();
            assert!(run.status.success(), "{run:?}");
            String::from_utf8(run.stdout).unwrap()
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        let before = git(&["status", "--porcelain"]);
        project.at("", &["check"]);
        project.at("", &["sessions", "list"]).exits(0);
        assert!(!project.has(".stead"), "nothing was written yet");
        project.run(&["-s", "one"]);
        project.run(&["-s", "two", "-u", "alice"]);
        assert_eq!(names(&project.dir()), [".git", ".stead", files[0].0]);
        assert_eq!(git(&["status", "--porcelain"]), before);
        assert!(project.has(".stead/agents/main/sessions/one.log.jsonl"));
        assert!(project.has(".stead/@@alice/.stead/agents/main/sessions/two.log.jsonl"));
        let list = project.at("", &["sessions", "list"]).exits(0);
        assert!(
            list.out.contains("one") && !list.out.contains("two"),
            "{list:?}"
        );
    }
}

#[test]
fn what_has_a_name_of_ours_is_the_projects_own() {
    let project = Project::new(&[
        ("AGENTS.md", "Use tabs.\n"),
        ("hooks/lefthook.yaml", "pre-commit: {}\n"),
        ("profiles/dev.yaml", "name: [wrong]\n"),
        ("subagents/README.md", "# Agents\n"),
        ("crons/a.yaml", "x: y\n"),
        ("tools.json", "[1]"),
        ("MEMORY.md", "The project's memory.\n"),
        ("skills/a/SKILL.md", "no front matter"),
        ("agents/planner.md", "plan"),
        ("knowledge/KNOWLEDGE.md", "The project's knowledge.\n"),
    ]);
    project.at("", &["check"]).exits(0);
    let prompt = project.at("", &["prompt"]).exits(0).out;
    assert!(prompt.contains("Use tabs."), "{prompt}");
    assert!(!prompt.contains("The project's"), "{prompt}");
    for path in [
        "hooks/lefthook.yaml",
        "profiles/dev.yaml",
        "subagents/README.md",
        "crons/a.yaml",
        "tools.json",
        "MEMORY.md",
        "skills/a/SKILL.md",
        "agents/planner.md",
        "knowledge/KNOWLEDGE.md",
        "AGENTS.md",
    ] {
        let args = format!(r#"{{"file_path": "{path}", "content": "new"}}"#);
        project.tool("overwrite_file", &args).exits(0);
        assert_eq!(
            std::fs::read_to_string(project.dir().join(path)).unwrap(),
            "new"
        );
    }
    for path in [
        ".stead/agent.yaml",
        ".stead/tools.json",
        ".stead/hooks/h.yaml",
        ".stead/agents/main/x",
        "agent.yaml",
    ] {
        let args = format!(r#"{{"file_path": "{path}", "content": "new"}}"#);
        let denied = project.tool("write_file", &args);
        assert!(denied.code != 0 && !project.has(path), "{path}: {denied:?}");
    }
    for user in [&[][..], &["-u", "alice"]] {
        let args = [&["tool", "ls", r#"{"path": "."}"#], user].concat();
        let listed = project.at("", &args).exits(0);
        assert!(listed.out.contains("agents/"), "{listed:?}");
        let args = [
            &["tool", "glob_files", r#"{"pattern": "**/planner.md"}"#],
            user,
        ]
        .concat();
        let found = project.at("", &args).exits(0);
        assert!(found.out.contains("agents/planner.md"), "{found:?}");
    }
}

#[test]
fn everything_of_the_agent_is_read_from_its_folder() {
    let project = Project::new(&[
        (".stead/agent.yaml", "description: Keeps the books.\n"),
        (".stead/MEMORY.md", "Ann likes tea.\n"),
        (".stead/knowledge/KNOWLEDGE.md", "Ledgers balance.\n"),
        (
            ".stead/skills/sums/SKILL.md",
            "---\nname: sums\ndescription: Adds.\n---\nAdd.\n",
        ),
        (
            ".stead/subagents/helper.md",
            "---\ndescription: Helps.\n---\nHelp.\n",
        ),
        (".stead/tools.json", r#"{"deny": ["delete_file"]}"#),
        ("CLAUDE.md", "Use spaces.\n"),
        (
            ".claude/skills/tidy/SKILL.md",
            "---\nname: tidy\ndescription: Tidies.\n---\nTidy.\n",
        ),
    ]);
    let prompt = project.at("", &["prompt"]).exits(0).out;
    for text in [
        "Keeps the books.",
        "Ann likes tea.",
        "Ledgers balance.",
        "sums",
        "helper",
        "Use spaces.",
        "tidy",
    ] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    let denied = project.tool("delete_file", r#"{"file_path": "CLAUDE.md"}"#);
    assert!(denied.code != 0 && project.has("CLAUDE.md"), "{denied:?}");
    let checked = project.at("", &["check"]).exits(0);
    assert!(checked.out.contains("project"), "{checked:?}");
}

#[test]
fn a_subfolder_belongs_to_the_project_around_it() {
    for mark in [".git/HEAD", ".stead/agent.yaml", "AGENTS.md"] {
        let project = Project::new(&[(mark, ""), ("src/deep/a.rs", "")]);
        let args = ["run", "-m", &project.model, "-s", "one", "hello"];
        project.at("src/deep", &args).exits(0);
        assert!(
            project.has(".stead/agents/main/sessions/one.log.jsonl"),
            "{mark}"
        );
        assert!(
            !project.has("src/.stead") && !project.has("src/deep/.stead"),
            "{mark}"
        );
    }
    let rules = Project::new(&[
        (".git/HEAD", ""),
        ("src/AGENTS.md", "Deep rules."),
        ("AGENTS.md", "Top rules."),
    ]);
    let prompt = rules.at("src", &["prompt"]).exits(0).out;
    assert!(
        prompt.contains("Deep rules.") && prompt.contains("Top rules."),
        "{prompt}"
    );
}

#[test]
fn a_run_in_the_home_folder_says_where_it_works() {
    let project = Project::new(&[]);
    let home = project.folder.path().join("home");
    let run = |dir: &Path| {
        let mut command = project
            .folder
            .command(&["run", "-m", &project.model, "hello"]);
        done(command.current_dir(dir).env("HOME", &home))
            .exits(0)
            .err
    };
    let told = run(&home);
    assert!(told.contains("keeps its state in .stead/"), "{told}");
    let told = run(&project.dir());
    assert!(!told.contains("keeps its state"), "{told}");
}

#[test]
fn sessions_of_earlier_versions_are_moved_once_and_init_takes_them_back() {
    let project = Project::new(&[
        ("agent.yaml", "{}\n"),
        ("AGENTS.md", "Use tabs.\n"),
        ("skills/a/SKILL.md", "x"),
    ]);
    project.run(&["-s", "one"]);
    std::fs::remove_file(project.dir().join("agent.yaml")).unwrap();
    project.put("agents/planner.md", "the project's own");
    let listed = project.at("", &["sessions", "list"]).exits(0);
    assert!(listed.out.contains("one"), "{listed:?}");
    assert!(
        listed
            .err
            .contains("1 session of an earlier version moved from agents/ to .stead/agents/"),
        "{listed:?}"
    );
    assert!(
        listed.err.contains("skills in it are not the agent's"),
        "{listed:?}"
    );
    assert_eq!(names(&project.dir().join("agents")), ["planner.md"]);
    assert!(project.has(".stead/.gitignore"));
    let again = project.at("", &["sessions", "list"]).exits(0);
    assert_eq!(again.err, "");
    project.run(&["-s", "one"]);
    let init = project.at("", &["init"]).exits(0);
    assert!(
        init.out
            .contains("moved 1 session from .stead/agents/ to agents/"),
        "{init:?}"
    );
    let shown = project.at("", &["sessions", "show", "one"]).exits(0).out;
    assert_eq!(shown.matches("hello").count(), 2, "{shown}");
}

#[test]
fn agents_of_the_project_itself_are_left_alone() {
    let project = Project::new(&[
        ("agents/main/sessions/a.log.jsonl", "{\"level\":\"info\"}\n"),
        ("agents/main/prompt.md", "plan"),
    ]);
    let run = project.run(&["-s", "one"]);
    assert!(!run.err.contains("earlier version"), "{run:?}");
    assert_eq!(
        names(&project.dir().join("agents/main")),
        ["prompt.md", "sessions"]
    );
}
