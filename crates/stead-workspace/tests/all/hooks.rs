//! The place for tests of hook definitions of both layouts: events, matchers, handlers and errors.

use crate::support::{path, put};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stead_core::RunOutcome;
use stead_model::ModelSettings;
use stead_vfs::{StoreVfs, Vfs};
use stead_workspace::{
    Capability, Finding, Handler, HookEvent, HookSpec, HookTrigger, HttpMethod, Matcher, OnFailure,
    OpenOptions, Program, RunEndFilter, Severity, Workspace, WorkspaceError,
};

async fn opened(files: &[(&str, &str)]) -> Result<(Vec<HookSpec>, Vec<Finding>), Vec<Finding>> {
    let vfs: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
    for (name, text) in files {
        put(&*vfs, name, (*text).to_owned()).await;
    }
    let variables = |name: &str| (name == "TOKEN").then(|| "t0ken".to_owned());
    let is_stead = !files
        .iter()
        .any(|(name, _)| name.starts_with(".openharness"));
    let options = OpenOptions {
        layout: is_stead.then_some(stead_workspace::Layout::Stead),
        ..OpenOptions::default()
    };
    match Workspace::open(vfs, &options, &variables).await {
        Ok(Workspace { definition, .. }) => Ok((definition.hooks, definition.findings)),
        Err(WorkspaceError::Invalid(findings)) => Err(findings),
        Err(other) => panic!("{other}"),
    }
}

const GUARD: &str = "\
name: guard
events: [before_tool_call, after_tool_call]
matcher: ^(Bash|Write)$
handler:
  type: command
  command: hooks/guard.sh --strict
  cwd: .
  env: {LEVEL: \"${env.TOKEN} ${LEVEL}\"}
capabilities: [rewrite_tool_request]
timeout_seconds: 5
on_failure: open
";

fn guard() -> HookSpec {
    let on = |event| HookTrigger {
        event,
        run_end: RunEndFilter::Any,
    };
    HookSpec {
        name: "guard".to_owned(),
        files: vec![path("hooks/guard.sh")],
        source: "hooks/a.yaml".to_owned(),
        events: vec![on(HookEvent::BeforeToolCall), on(HookEvent::AfterToolCall)],
        matcher: Matcher::new("^(Bash|Write)$"),
        handler: Handler::Command {
            program: Program::Shell("hooks/guard.sh --strict".to_owned()),
            cwd: path("."),
            env: BTreeMap::from([("LEVEL".to_owned(), "t0ken ${LEVEL}".to_owned())]),
        },
        capabilities: BTreeSet::from([Capability::RewriteToolRequest]),
        timeout: Duration::from_secs(5),
        on_failure: Some(OnFailure::Open),
    }
}

#[tokio::test]
async fn hooks_of_both_layouts_come_to_the_same() {
    let ours = opened(&[
        ("AGENTS.md", "Hi."),
        ("hooks/a.yaml", GUARD),
        ("hooks/guard.sh", ""),
    ])
    .await
    .unwrap();
    assert_eq!(ours, (vec![guard()], vec![]));
    let theirs = GUARD
        .replace(
            "before_tool_call, after_tool_call",
            "before_tool_dispatch, after_tool_dispatch",
        )
        .replace("  env:", "  timeout_seconds: 5\n  environment:")
        .replace("\ntimeout_seconds: 5", "");
    let agent = "---\nmodel: workspace/m\n---\nHi.\n";
    let model = "m: {provider: openai, name: gpt-5, key: k}\n";
    let files = [
        (".openharness/agents/assistant.md", agent),
        (".openharness/models/m.yaml", model),
        (".openharness/hooks/a.yaml", &theirs),
    ];
    let (hooks, _) = opened(&files).await.unwrap();
    assert_eq!(
        hooks,
        [HookSpec {
            source: ".openharness/hooks/a.yaml".to_owned(),
            // The script is not there yet: what appears in its place would be run.
            ..guard()
        }]
    );
}

#[tokio::test]
async fn every_kind_of_handler_arrives() {
    let head = "name: x\nevents: [run_end]\nhandler:";
    let agents = "---\ndescription: Reviews.\n---\nReview.\n";
    let named = |name: &str| {
        Box::new(ModelSettings {
            name: name.to_owned(),
            ..ModelSettings::default()
        })
    };
    let text = |text: &str| text.to_owned();
    let table = [
        (
            "{type: command, command: /bin/x, args: [a b, c], cwd: src}",
            Handler::Command {
                program: Program::Direct {
                    program: text("/bin/x"),
                    args: vec![text("a b"), text("c")],
                },
                cwd: path("src"),
                env: BTreeMap::new(),
            },
        ),
        (
            "{type: http, url: 'http://127.0.0.1:1/x', headers: {A: b}}",
            Handler::Http {
                url: text("http://127.0.0.1:1/x"),
                method: HttpMethod::Post,
                headers: BTreeMap::from([(text("A"), text("b"))]),
            },
        ),
        (
            "{type: prompt, prompt: Is it fine?}",
            Handler::Prompt {
                prompt: text("Is it fine?"),
                model: None,
            },
        ),
        (
            "{type: prompt, prompt: {file: p.md}, model: 'openai:gpt-5'}",
            Handler::Prompt {
                prompt: text("Look."),
                model: Some(named("openai:gpt-5")),
            },
        ),
        (
            "{type: agent, agent: reviewer, task: {inline: Review it.}}",
            Handler::Agent {
                agent: text("reviewer"),
                task: text("Review it."),
            },
        ),
    ];
    for (handler, want) in table {
        let hook = format!("{head} {handler}\n");
        let files = [
            ("AGENTS.md", "Hi."),
            ("hooks/x.yaml", &*hook),
            ("p.md", "Look.\n"),
            ("subagents/reviewer.md", agents),
        ];
        let (hooks, _) = opened(&files)
            .await
            .map_err(|all| all[0].to_string())
            .unwrap();
        let [hook] = hooks.as_slice() else {
            panic!("{hooks:?}")
        };
        assert_eq!(hook.handler, want, "{handler}");
        assert_eq!(
            (hook.timeout, hook.on_failure),
            (Duration::from_secs(30), None)
        );
    }
}

#[tokio::test]
async fn events_have_one_meaning_under_all_their_names() {
    use HookEvent::*;
    let table: [(&str, HookEvent, RunEndFilter); 23] = [
        ("PreToolUse", BeforeToolCall, RunEndFilter::Any),
        ("PostToolUse", AfterToolCall, RunEndFilter::Any),
        ("before_tool_dispatch", BeforeToolCall, RunEndFilter::Any),
        ("after_tool_dispatch", AfterToolCall, RunEndFilter::Any),
        ("UserPromptSubmit", PromptSubmit, RunEndFilter::Any),
        ("SessionStart", SessionStart, RunEndFilter::Any),
        ("SessionEnd", SessionEnd, RunEndFilter::Any),
        ("Stop", RunEnd, RunEndFilter::Completed),
        ("run_completed", RunEnd, RunEndFilter::Completed),
        ("run_failed", RunEnd, RunEndFilter::Failed),
        ("Notification", Notification, RunEndFilter::Any),
        ("PreCompact", BeforeCompaction, RunEndFilter::Any),
        (
            "before_context_compact",
            BeforeCompaction,
            RunEndFilter::Any,
        ),
        ("after_context_compact", AfterCompaction, RunEndFilter::Any),
        ("PermissionRequest", PermissionRequest, RunEndFilter::Any),
        ("run_start", RunStart, RunEndFilter::Any),
        ("run_end", RunEnd, RunEndFilter::Any),
        ("before_model_call", BeforeModelCall, RunEndFilter::Any),
        ("after_model_call", AfterModelCall, RunEndFilter::Any),
        (
            "before_context_build",
            BeforeContextBuild,
            RunEndFilter::Any,
        ),
        ("after_context_build", AfterContextBuild, RunEndFilter::Any),
        ("before_compaction", BeforeCompaction, RunEndFilter::Any),
        ("permission_request", PermissionRequest, RunEndFilter::Any),
    ];
    for (name, event, run_end) in table {
        let hook = format!("name: x\nevents: [{name}]\nhandler: {{type: command, command: x}}\n");
        let (hooks, _) = opened(&[("AGENTS.md", "Hi."), ("hooks/x.yaml", &hook)])
            .await
            .unwrap();
        assert_eq!(hooks[0].events, [HookTrigger { event, run_end }], "{name}");
        let guarded =
            name.starts_with("before") || name.starts_with("Pre") || event == PromptSubmit;
        let closed = guarded || event == PermissionRequest;
        assert_eq!(
            hooks[0].failure_policy(event),
            if closed {
                OnFailure::Closed
            } else {
                OnFailure::Open
            },
            "{name}"
        );
    }
    for event in HookEvent::ALL {
        let hook = format!(
            "name: x\nevents: [{}]\nhandler: {{type: command, command: x}}\n",
            event.as_str()
        );
        let (hooks, _) = opened(&[("AGENTS.md", "Hi."), ("hooks/x.yaml", &hook)])
            .await
            .unwrap();
        assert!(hooks[0].matches(event, &[], None), "{}", event.as_str());
    }
    let covered = |ended: RunEndFilter| {
        let all = [
            RunOutcome::Completed,
            RunOutcome::Failed,
            RunOutcome::Budget,
            RunOutcome::Cancelled,
            RunOutcome::TimedOut,
        ];
        all.map(|outcome| ended.covers(outcome))
    };
    assert_eq!(covered(RunEndFilter::Any), [true; 5]);
    assert_eq!(
        covered(RunEndFilter::Completed),
        [true, false, false, false, false]
    );
    assert_eq!(
        covered(RunEndFilter::Failed),
        [false, true, true, false, true]
    );
}

#[tokio::test]
async fn a_matcher_is_found_in_any_of_the_names() {
    let (hooks, _) = opened(&[("AGENTS.md", "Hi."), ("hooks/a.yaml", GUARD)])
        .await
        .unwrap();
    for (subjects, wanted) in [
        (&["write_file", "Write"][..], true),
        (&["Writer"], false),
        (&[], false),
        (&["execute", "Bash", "shell"], true),
    ] {
        assert_eq!(
            hooks[0].matches(HookEvent::BeforeToolCall, subjects, None),
            wanted,
            "{subjects:?}"
        );
    }
    assert!(!hooks[0].matches(HookEvent::BeforeModelCall, &["Write"], None));
}

#[tokio::test]
async fn mistakes_are_told_with_their_place_and_the_nearest_name() {
    let command = "handler: {type: command, command: x}";
    #[rustfmt::skip]
    let table = [
        (format!("name: x\nevents: [before_tool_cal]\n{command}"), "2:10", "did you mean `before_tool_call`?"),
        (format!("name: x\nevent: [run_end]\n{command}"), "2:1", "did you mean `events`?"),
        (format!("name: x\nevents: [run_end]\n{command}\non_failur: open"), "4:1", "did you mean `on_failure`?"),
        (format!("name: x\nevents: [run_end]\nmatcher: '['\n{command}"), "3:1", "matcher: is not a regular expression"),
        (format!("name: x\nevents: [PreToolUse, before_tool_call]\n{command}"), "2:22", "listed twice"),
        (format!("name: x\nevents: [run_end]\n{command}\ntimeout_seconds: 601"), "4:1", "must be at most 600"),
        (format!("name: x\nevents: [run_end]\n{command}\ntimeout_seconds: 0"), "4:1", "must be at least 1"),
        (format!("name: x\nevents: [run_end]\n{command}\non_failure: closed"), "4:1", "nothing can be blocked"),
        (format!("name: x\nevents: [run_end]\n{command}\ncapabilities: [rewrite_tool]"), "4:16", "unknown value `rewrite_tool`"),
        ("name: x\nevents: [run_end]\nhandler: {type: command, comand: x}".to_owned(), "3:26", "did you mean `command`?"),
        ("name: x\nevents: [run_end]\nhandler: {type: command, command: x, cwd: ../up}".to_owned(), "3:38", "handler.cwd"),
        ("name: x\nevents: [run_end]\nhandler: {type: command, command: x, env: {}, environment: {}}".to_owned(), "3:47", "under two names"),
        ("name: x\nevents: [run_end]\nhandler: {type: prompt, prompt: x, model: gpt}".to_owned(), "3:36", "handler.model"),
        ("name: x\nevents: [run_end]\nhandler: {type: prompt, prompt: ' '}".to_owned(), "3:25", "is empty"),
        ("name: x\nevents: [run_end]\nhandler: {type: agent, agent: a, task: x}".to_owned(), "3:24", "there is no agent `a`"),
        ("name: x\nevents: [run_end]\nhandler: {type: command, command: 'x ${env.GONE}'}".to_owned(), "3:26", "GONE is not set"),
    ];
    for (text, place, said) in table {
        let told = opened(&[("AGENTS.md", "Hi."), ("hooks/x.yaml", &text)])
            .await
            .unwrap_err();
        let [only] = told.as_slice() else {
            panic!("{text}: {told:#?}")
        };
        let only = only.to_string();
        assert!(
            only.starts_with(&format!("hooks/x.yaml:{place}: ")) && only.contains(said),
            "{text}: {only}"
        );
    }
    let twice = [
        ("AGENTS.md", "Hi."),
        ("hooks/a.yaml", GUARD),
        ("hooks/b.yaml", GUARD),
    ];
    let told = opened(&twice).await.unwrap_err();
    assert_eq!(
        told[0].to_string(),
        "hooks/b.yaml:1:1: name: there are two hooks `guard`; rename one"
    );
}

#[tokio::test]
async fn what_has_no_use_is_told() {
    let hook = "name: x\nevents: [before_tool_call]\nhandler: {type: command, command: ./tools/guard.sh -v}\n\
                capabilities: [answer_permission]\n";
    let files = [
        ("AGENTS.md", "Hi."),
        ("hooks/x.yaml", hook),
        ("tools/guard.sh", ""),
    ];
    let (_, findings) = opened(&files).await.unwrap();
    let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "hooks/x.yaml:4:16: warning: capabilities[0]: answer_permission is of use only at permission_request",
        ]
    );
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity == Severity::Warning)
    );
}
