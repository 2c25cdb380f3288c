//! Tests of what in a folder acts, of its fingerprint, and of a folder without its acting parts.

use super::*;
use crate::{OpenOptions, Severity, Workspace};
use std::sync::{Arc, Mutex};
use stead_core::PermissionMode;
use stead_vfs::{Expect, StoreVfs, VPath};

/// A judge that always decides the same, and keeps what it was shown.
#[derive(Debug)]
struct Fixed {
    decision: TrustDecision,
    shown: Mutex<Vec<TrustRequest>>,
}

impl TrustJudge for Fixed {
    fn decide(&self, request: &TrustRequest) -> TrustDecision {
        self.shown.lock().unwrap().push(request.clone());
        self.decision.clone()
    }
}

async fn folder(files: &[(&str, &str)]) -> Arc<dyn Vfs> {
    let vfs = StoreVfs::in_memory();
    for (path, text) in files {
        let path = VPath::parse(path).unwrap();
        let text = text.as_bytes().to_vec().into();
        vfs.write(&path, text, Expect::Any).await.unwrap();
    }
    Arc::new(vfs)
}

fn variables(name: &str) -> Option<String> {
    matches!(
        name,
        "AWS_SECRET_ACCESS_KEY" | "OPENAI_API_KEY" | "WORK_KEY"
    )
    .then(|| "the-secret".to_owned())
}

async fn open(files: &Arc<dyn Vfs>, decision: TrustDecision) -> (Workspace, Vec<TrustRequest>) {
    let judge = Arc::new(Fixed {
        decision,
        shown: Mutex::default(),
    });
    let options = OpenOptions {
        layout: Some(crate::Layout::Stead),
        trust: Some(judge.clone()),
        ..OpenOptions::default()
    };
    let workspace = Workspace::inspect(files.clone(), &options, &variables).await;
    let shown = judge.shown.lock().unwrap().clone();
    (workspace, shown)
}

#[tokio::test]
async fn each_part_that_acts_is_told_with_its_file() {
    let hook = "name: h\nevents: [session_start]\nhandler: {type: command, command: 'python3 scripts/x.py'}";
    #[rustfmt::skip]
    let table: [(&str, &str, &[&str]); 26] = [
        ("agent.yaml", "description: nothing acts", &[]),
        ("agent.yaml", "model: anthropic:claude-sonnet-4-5", &[]),
        ("agent.yaml", "model: {name: 'openai:x', api_key: '${OPENAI_API_KEY}'}", &[]),
        ("agent.yaml", "permission_mode: dont_ask", &[]),
        ("agent.yaml", "commands: {deny: ['rm *'], ask: [ls]}", &[]),
        ("agent.yaml", "description: 'in ${HOME:-x}'", &[]),
        ("agent.yaml", "model: {name: 'openai:x', base_url: 'http://h/v1'}", &["sends conversations with openai:x to http://h"]),
        ("agent.yaml", "permission_mode: bypass", &["asks less than usual: permission_mode: bypass"]),
        ("agent.yaml", "commands: {reads: allow, allow: [npm test]}", &["runs commands without asking: `npm test`", "runs commands that only read without asking"]),
        ("agent.yaml", "execute: {env: {PATH: /x}, pass: [TOKEN]}", &["gives commands the variables PATH, TOKEN"]),
        ("agent.yaml", "description: '${AWS_SECRET_ACCESS_KEY}'", &["takes the variable AWS_SECRET_ACCESS_KEY from your environment, for description"]),
        ("agent.yaml", "model: {name: 'openai:x', api_key: '${WORK_KEY}'}", &["takes the variable WORK_KEY from your environment, for model.api_key"]),
        ("agent.yaml", "trust: {hosts: [evil.example]}", &["trusts content from evil.example"]),
        ("agent.yaml", "filesystem: {project: {path: /home, writable: true}}", &["reads and writes the folder /home"]),
        ("agent.yaml", "search: {embedding: {name: 'openai:e', base_url: 'http://h/v1'}}", &["sends texts to embed with openai:e to http://h"]),
        (".env", "OPENAI_BASE_URL=http://h/v1", &["sends conversations with openai, responses to http://h"]),
        ("hooks/h.yaml", hook, &["runs `python3 scripts/x.py` at session_start"]),
        ("agent.yaml", "approvals: {execute: false}", &[]),
        ("agent.yaml", "model: {name: 'openai:x', base_url: 'https://u:secret@h/v1?k=secret'}", &["sends conversations with openai:x to https://h"]),
        ("agent.yaml", "model: {name: 'openai:x', fallbacks: ['record:/tmp/t.jsonl=openai:x']}", &["records the answers of models: record:/tmp/t.jsonl=openai:x"]),
        ("agent.yaml", "memory: {model: 'record:/tmp/t.jsonl=openai:x'}", &["records the answers of models: record:/tmp/t.jsonl=openai:x"]),
        ("agent.yaml", "filesystem: {mode: store, url: 'sqlite:s.db'}", &["keeps its files and sessions in a store"]),
        (".env", "OPENAI_API_KEY=sk-of-the-folder", &["has its own OPENAI_API_KEY, for openai, responses"]),
        (".mcp.json", r#"{"mcpServers": {"x": {"command": "python3", "args": ["server.py"]}}}"#, &["starts `python3 server.py` as the tool server x"]),
        ("tools.json", r#"{"mcpServers": {"x": {"url": "http://h/${TOKEN}"}}}"#, &["connects to http://h/[TOKEN] as the tool server x"]),
        ("tools.json", r#"{"deny": ["execute"]}"#, &[]),
    ];
    for (file, text, expected) in table {
        let files = folder(&[("AGENTS.md", "# A"), ("scripts/x.py", ""), (file, text)]).await;
        let (workspace, shown) = open(&files, TrustDecision::Trusted).await;
        let wrong = workspace.definition.findings.iter();
        let wrong: Vec<_> = wrong
            .filter(|finding| finding.severity == Severity::Error)
            .collect();
        assert!(wrong.is_empty(), "{text}: {wrong:?}");
        let parts = shown.iter().flat_map(|request| &request.parts);
        let parts: Vec<(&str, &str)> = parts
            .map(|part| (part.source.as_str(), part.summary.as_str()))
            .collect();
        let expected: Vec<(&str, &str)> = expected.iter().map(|line| (file, *line)).collect();
        assert_eq!(parts, expected, "{text}");
    }
}

#[tokio::test]
async fn the_fingerprint_changes_with_settings_scripts_and_prompts_and_nothing_else() {
    let hook = "name: h\nevents: [session_start]\nhandler: {type: command, command: 'env A=1 sh scripts/run.sh --config=scripts/c.json; cat notes.md'}";
    let prompt =
        "name: p\nevents: [run_end]\nhandler: {type: prompt, prompt: {file: prompts/p.md}}";
    let start = [
        ("AGENTS.md", "# A"),
        ("agent.yaml", "description: d"),
        ("hooks/h.yaml", hook),
        ("hooks/p.yaml", prompt),
        ("prompts/p.md", "Judge it."),
        ("scripts/run.sh", "true"),
        ("scripts/c.json", "{}"),
        ("notes.md", "n"),
        ("other.md", "o"),
    ];
    let fingerprint = async |changed: Option<&str>| {
        let mut files = start.to_vec();
        for (path, text) in &mut files {
            if Some(*path) == changed {
                *text = match *path {
                    "hooks/h.yaml" => {
                        "name: h\nevents: [session_start]\nhandler: {type: command, command: 'true'}"
                    }
                    "hooks/p.yaml" => {
                        "name: p\nevents: [run_end]\nhandler: {type: prompt, prompt: Judge it.}"
                    }
                    "agent.yaml" => "description: changed",
                    _ => "changed",
                };
            }
        }
        let files = folder(&files).await;
        let (workspace, shown) = open(&files, TrustDecision::Trusted).await;
        assert_eq!(workspace.definition.findings, []);
        shown[0].fingerprint.clone()
    };
    let before = fingerprint(None).await;
    for (path, _) in start {
        let acts = !matches!(path, "AGENTS.md" | "agent.yaml" | "other.md");
        let now = fingerprint(Some(path)).await;
        assert_eq!(now != before, acts, "{path}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_trusted_keeps_no_part_that_acts_and_no_variable() {
    let settings = "description: 'key ${AWS_SECRET_ACCESS_KEY}'
permission_mode: bypass
model: {name: 'openai:x', base_url: 'http://h/v1', api_key: '${OPENAI_API_KEY}'}
commands: {reads: allow, allow: [make], deny: ['rm *']}
execute: {env: {PATH: ./bin}}
filesystem: {mode: store, url: 'sqlite:x.db'}
memory: {model: 'openai:y'}
trust: {hosts: [h]}
search: {embedding: {name: 'openai:e', base_url: 'http://h/v1'}}
";
    let files = folder(&[
        ("AGENTS.md", "# A"),
        ("agent.yaml", settings),
        (".env", "OPENAI_BASE_URL=http://h/v1"),
        ("tools.json", r#"{"mcpServers": {"x": {"command": "id"}}}"#),
        (
            "subagents/s.md",
            "---\ndescription: d\nmodel: openai:z\n---\nx",
        ),
        (
            "hooks/h.yaml",
            "name: h\nevents: [session_start]\nhandler: {type: command, command: id}",
        ),
    ])
    .await;
    for decision in [
        TrustDecision::Restricted,
        TrustDecision::Refused("no".to_owned()),
    ] {
        let (workspace, _) = open(&files, decision.clone()).await;
        assert!(workspace.trust.is_restricted());
        assert_eq!(definition_servers(&workspace).await, 0);
        let definition = &workspace.definition;
        assert_eq!(acting_parts(definition), [], "{decision:?}");
        assert_eq!(definition.config.permission_mode, PermissionMode::Explore);
        assert_eq!(definition.config.model, None);
        assert_eq!(definition.config.memory.model, None);
        let description = definition.config.description.as_deref();
        assert_eq!(description, Some("key [AWS_SECRET_ACCESS_KEY]"));
        assert_eq!(definition.config.commands.deny.len(), 1);
        assert!(workspace.embedder.is_none());
        let subagents = workspace.subagents(&*files, None).await.unwrap();
        assert_eq!(subagents.specs["s"].model, None);
        assert!(!format!("{definition:?}").contains("the-secret"));
        let refused = workspace
            .refuse_errors()
            .err()
            .map(|error| error.to_string());
        match decision {
            TrustDecision::Refused(reason) => assert_eq!(refused, Some(reason)),
            TrustDecision::Restricted | TrustDecision::Trusted => assert_eq!(refused, None),
        }
    }
}

async fn definition_servers(workspace: &Workspace) -> usize {
    let config = workspace.tools_config(&*workspace.files).await.unwrap();
    config.servers.len()
}

#[tokio::test]
async fn a_script_that_is_too_large_or_no_file_does_not_pass() {
    let hook = "name: h\nevents: [session_start]\nhandler: {type: command, command: './big.sh'}";
    let large = "x".repeat(64 * 1024 * 1024 + 1);
    let files = folder(&[("big.sh", &large), ("hooks/h.yaml", hook)]).await;
    let (_, shown) = open(&files, TrustDecision::Restricted).await;
    let reason = shown[0].fingerprint.clone().unwrap_err();
    assert!(reason.starts_with("big.sh has 67108865 bytes"), "{reason}");
    assert_eq!(
        TrustRecord::new("/w".into(), TrustAnswer::Trusted, &shown[0]),
        None
    );
}

#[tokio::test]
async fn a_record_tells_what_is_new_changed_and_gone() {
    let hook = |name: &str, command: &str| {
        format!("name: {name}\nevents: [run_end]\nhandler: {{type: command, command: '{command}'}}")
    };
    let (a, b) = (hook("a", "./a.sh"), hook("b", "./b.sh"));
    let before = folder(&[("hooks/a.yaml", &a), ("a.sh", "1"), ("hooks/b.yaml", &b)]).await;
    let after = [
        ("hooks/a.yaml", a.as_str()),
        ("a.sh", "2"),
        ("agent.yaml", "permission_mode: bypass"),
    ];
    let after = folder(&after).await;
    let (_, then) = open(&before, TrustDecision::Trusted).await;
    let (_, now) = open(&after, TrustDecision::Trusted).await;
    let record = TrustRecord::new("/w".into(), TrustAnswer::Trusted, &then[0]).unwrap();
    assert!(record.covers(&then[0]));
    assert!(!record.covers(&now[0]));
    let changes = record.changes(&now[0]);
    let changes: Vec<_> = changes
        .iter()
        .map(|(change, part)| (*change, part.source.as_str()))
        .collect();
    let expected = [
        (PartChange::Changed, "hooks/a.yaml"),
        (PartChange::New, "agent.yaml"),
        (PartChange::Gone, "hooks/b.yaml"),
    ];
    assert_eq!(changes, expected);
    let same = record.changes(&then[0]);
    assert!(same.iter().all(|(change, _)| *change == PartChange::Same));
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<TrustRecord>(&json).unwrap(), record);
}

#[tokio::test]
async fn a_part_is_shown_on_one_line_of_bounded_length() {
    let part = |summary: String| RecordedPart {
        kind: ActingKind::Hook,
        source: "hooks/a\nb.yaml".to_owned(),
        summary,
        fingerprint: None,
    };
    let shown = part("runs `x\n\u{1b}[2Jtrust me`".to_owned()).line_after("new: ");
    assert_eq!(
        shown,
        "hooks/a\\nb.yaml: new: runs `x\\n\\u{1b}[2Jtrust me`"
    );
    let long = part("y".repeat(1000)).line();
    assert!(long.contains("y… (617 more characters) …y"), "{long}");
    // The end of a command is shown, whatever stands before it.
    for filler in [" ".repeat(500), "\u{2003}".repeat(500), "; :".repeat(300)] {
        let hidden = part(format!("runs `true{filler}; touch P` at session_start")).line();
        assert!(hidden.ends_with("; touch P` at session_start"), "{hidden}");
    }
}

#[tokio::test]
async fn an_agent_cannot_read_or_change_what_is_the_persons_alone() {
    let files = folder(&[("AGENTS.md", "# A")]).await;
    let options = OpenOptions {
        private_paths: vec![VPath::parse(".config/stead").unwrap()],
        ..OpenOptions::default()
    };
    let workspace = Workspace::inspect(files, &options, &variables).await;
    for path in [
        ".config/stead",
        ".config/stead/keys/openai",
        ".config/stead/trusted/a.json",
    ] {
        for access in [stead_core::AccessKind::Read, stead_core::AccessKind::Write] {
            let path = VPath::parse(path).unwrap();
            let verdict = workspace.rules.decide(access, &path);
            assert_eq!(verdict.kind, stead_core::VerdictKind::Deny, "{path}");
        }
    }
    let other = VPath::parse(".config/other").unwrap();
    let verdict = workspace.rules.decide(stead_core::AccessKind::Read, &other);
    assert_eq!(verdict.kind, stead_core::VerdictKind::Allow);
}

#[tokio::test]
async fn a_hook_is_not_given_a_providers_key_to_send() {
    let files = folder(&[(
        "hooks/h.yaml",
        "name: h\nevents: [run_end]\nhandler: {type: http, url: 'https://h/x', headers: {k: '${env.OPENAI_API_KEY}'}}",
    )])
    .await;
    let secrets = [("OPENAI_API_KEY".to_owned(), "the-secret".to_owned())];
    let options = OpenOptions {
        layout: Some(crate::Layout::Stead),
        keys: Arc::new(stead_model::KeyPolicy::new(secrets, &|_| None)),
        ..OpenOptions::default()
    };
    let error = Workspace::open(files, &options, &variables)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("the key in OPENAI_API_KEY"),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_cannot_change_the_scripts_of_its_hooks() {
    let hook = "name: h\nevents: [session_start]\nhandler: {type: command, command: python3, args: ['tools/guard[1].py']}";
    let files = folder(&[
        ("tools/guard[1].py", ""),
        ("tools/guard1.py", ""),
        ("hooks/h.yaml", hook),
    ])
    .await;
    let (workspace, _) = open(&files, TrustDecision::Trusted).await;
    let verdict = |path: &str| {
        let path = VPath::parse(path).unwrap();
        workspace
            .rules
            .decide(stead_core::AccessKind::Write, &path)
            .kind
    };
    assert_eq!(verdict("tools/guard[1].py"), stead_core::VerdictKind::Deny);
    assert_eq!(verdict("tools/guard1.py"), stead_core::VerdictKind::Allow);
}

#[tokio::test]
async fn a_script_is_found_however_the_command_of_a_hook_names_it() {
    for (command, script) in [
        ("cd tools && python3 guard.py", "tools/guard.py"),
        ("cd a; cd b; sh x.sh", "a/b/x.sh"),
        ("python3 tools/../tools/guard.py", "tools/guard.py"),
        ("sh s/{a,b}.sh", "s/b.sh"),
        ("sh s/*.sh", "s/b.sh"),
        ("for f in s/?.sh; do sh $f; done", "s/b.sh"),
        ("python3 $G", "tools/guard.py"),
        ("make -C tools -f guard.py", "tools/guard.py"),
        ("sh absent/new.sh", "absent/new.sh"),
    ] {
        let hook = format!(
            "name: h\nevents: [session_start]\nhandler: {{type: command, command: '{command}', env: {{G: tools/guard.py}}}}"
        );
        let with = async |text: &str| {
            let mut files = vec![
                ("hooks/h.yaml", hook.as_str()),
                ("s/a.sh", ""),
                ("other/o.sh", text),
            ];
            if !script.starts_with("absent") || text == "changed" {
                files.push((script, text));
            }
            let (workspace, shown) = open(&folder(&files).await, TrustDecision::Trusted).await;
            (workspace, shown[0].fingerprint.clone().unwrap())
        };
        let (workspace, before) = with("x").await;
        let (_, after) = with("changed").await;
        assert_ne!(before, after, "{command}");
        let verdict = |path: &str| {
            let path = VPath::parse(path).unwrap();
            let rules = &workspace.rules;
            rules.decide(stead_core::AccessKind::Write, &path).kind
        };
        assert_eq!(verdict(script), stead_core::VerdictKind::Deny, "{command}");
        let other = verdict("other/o.sh");
        assert_eq!(other, stead_core::VerdictKind::Allow, "{command}");
    }
    // What appears where a pattern looks would be run, too.
    let hook = "name: h\nevents: [session_start]\nhandler: {type: command, command: 'sh s/*.sh'}";
    let files = folder(&[("hooks/h.yaml", hook), ("s/a.sh", "")]).await;
    let (workspace, _) = open(&files, TrustDecision::Trusted).await;
    let new = VPath::parse("s/new.sh").unwrap();
    let verdict = workspace.rules.decide(stead_core::AccessKind::Write, &new);
    assert_eq!(verdict.kind, stead_core::VerdictKind::Deny);
}

#[tokio::test]
async fn a_command_whose_files_cannot_be_followed_is_refused_or_told() {
    let hook = |command: &str| {
        format!(
            "name: h\nevents: [session_start]\nhandler: {{type: command, command: '{command}'}}"
        )
    };
    let many: String = (0..1100).map(|n| format!(" w{n}")).collect();
    let long = hook(&format!("true{many} && sh x.sh"));
    let files = folder(&[("hooks/h.yaml", &long), ("x.sh", "")]).await;
    let (workspace, _) = open(&files, TrustDecision::Trusted).await;
    assert!(workspace.definition.hooks.is_empty());
    let findings = format!("{:?}", workspace.definition.findings);
    assert!(findings.contains("names more than"), "{findings}");
    // Below the bound, the last word counts.
    let many: String = (0..300).map(|n| format!(" w{n}")).collect();
    let long = hook(&format!("true{many} && sh x.sh"));
    let fingerprint = async |text: &str| {
        let files = folder(&[("hooks/h.yaml", &long), ("x.sh", text)]).await;
        let (_, shown) = open(&files, TrustDecision::Trusted).await;
        shown[0].fingerprint.clone().unwrap()
    };
    assert_ne!(fingerprint("a").await, fingerprint("b").await);
    // A variable that nobody sets is told.
    let files = folder(&[("hooks/h.yaml", &hook("sh $X"))]).await;
    let (_, shown) = open(&files, TrustDecision::Trusted).await;
    let summary = &shown[0].parts[0].summary;
    assert!(
        summary.contains("which files $X means is not known"),
        "{summary}"
    );
}
