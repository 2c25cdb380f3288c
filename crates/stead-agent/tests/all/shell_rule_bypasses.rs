//! The place for tests of known ways around command rules (stead-shell/tests/data/rule_bypasses.txt)
//! through the gate of a run.

use crate::subagents::{Says, answers};
use crate::support::{agent_with_host, block_on, session, text};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use stead_agent::{ApprovalAnswer, ApprovalPolicy, ApprovalQuestion, Approver, RunOptions};
use stead_core::{Entry, PlanStage, ResultStatus, SessionChange, SetEntry};
use tokio_util::sync::CancellationToken;

const CATALOGUE: &str = include_str!("../../../stead-shell/tests/data/rule_bypasses.txt");
const PREFIXES: &str = "[git status *, ls *, cat *, echo *, npm test]";

/// What each line of the list of known ways around has in the catalogue.
const KINDS: [&str; 30] = [
    "CI=1 git",
    "sh -c",
    "env -S",
    "xargs",
    "-exec",
    "su -c",
    "protocol.ext.allow",
    "alias.",
    "git grep -O",
    "core.hooksPath",
    "GIT_SSH_COMMAND",
    "pager",
    "EDITOR",
    "LD_PRELOAD",
    "BASH_ENV",
    "NODE_OPTIONS",
    "PATH=",
    "--outp=",
    "python -c",
    "<<",
    "\n",
    "$(",
    "`",
    "${ ",
    "$'",
    " & ",
    "<(",
    ">(",
    "-delete",
    "env X=Y",
];

fn tricks() -> Vec<String> {
    let lines = CATALOGUE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    let unescaped = |line: &str| {
        let mut pieces = line.split("{U+");
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (code, rest) = piece.split_once('}').unwrap();
            text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            text.push_str(rest);
        }
        text
    };
    lines.map(unescaped).collect()
}

#[test]
fn every_known_way_around_is_in_the_catalogue() {
    let tricks = tricks();
    let missing: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| !tricks.iter().any(|trick| trick.contains(kind)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// The most calls of one step; more than a thousand would be refused for their number.
const CALLS_PER_STEP: usize = 500;

/// Runs all of them, a step per agent; how many ran in each step, and how many asked and were denied.
fn run_all(settings: &str, set: Vec<SetEntry>) -> (usize, usize, usize) {
    let steps = tricks();
    let steps = steps
        .chunks(CALLS_PER_STEP)
        .map(|step| run_step(settings, set.clone(), step));
    let add = |(ran, asked, denied): (usize, usize, usize), step: (usize, usize, usize)| {
        (ran.max(step.0), asked + step.1, denied + step.2)
    };
    steps.fold((0, 0, 0), add)
}

/// Runs some of them in one step; how many ran, asked and were denied.
fn run_step(settings: &str, set: Vec<SetEntry>, all: &[String]) -> (usize, usize, usize) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.yaml"), settings).unwrap();
    // Beside them two that may run, so that not everything is refused for another reason.
    // Before them, for what comes after a question waits for its answer.
    let commands: Vec<String> = ["ls".to_owned(), "echo hello".to_owned()]
        .into_iter()
        .chain(all.iter().cloned())
        .collect();
    let model = answers(move |_, said, _| match said {
        0 => Says::Calls(
            commands
                .iter()
                .map(|command| ("execute", json!({"command": command})))
                .collect(),
        ),
        _ => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host(dir.path(), model).await;
        let options = RunOptions {
            settings: set,
            ..RunOptions::default()
        };
        agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        let mut ran = Vec::new();
        let mut asked = 0;
        let mut denied = 0;
        for line in agent.sessions().read(&session("s")).await.unwrap() {
            match line.entry {
                Entry::Call(call) => ran.push(call.id),
                Entry::Ask(_) => asked += 1,
                Entry::Result(result) if result.status == ResultStatus::Denied => denied += 1,
                _ => {}
            }
        }
        let index = |id: &String| id.trim_start_matches("c0_").parse::<usize>().unwrap();
        let tricked: Vec<&String> = ran
            .iter()
            .map(index)
            .filter(|at| *at >= 2)
            .map(|at| &all[at - 2])
            .collect();
        assert!(tricked.is_empty(), "{settings}: {tricked:#?}");
        (ran.len(), asked, denied)
    })
}

#[test]
fn no_trick_passes_the_gate_by_a_rule_for_reading_or_a_prefix() {
    let all = tricks().len();
    let with = |mode: &str| {
        format!("permission_mode: {mode}\ncommands: {{reads: allow, allow: {PREFIXES}}}\n")
    };
    let (ran, asked, denied) = run_all(&with("default"), Vec::new());
    assert_eq!((ran, asked + denied), (2, all));
    // Only what may read for certain may run while a plan is made.
    let stage = PlanStage::Making {
        file: "plans/PLAN.md".to_owned(),
    };
    let set = SetEntry {
        change: SessionChange::Plan { plan: Some(stage) },
        by: "ann".to_owned(),
    };
    let (ran, asked, denied) = run_all(&with("default"), vec![set]);
    assert_eq!((ran, asked + denied), (2, all));
    let (ran, asked, denied) = run_all(&with("dont_ask"), Vec::new());
    assert_eq!((ran, asked, denied), (2, 0, all));
}

/// Says yes for good to what is plain, and to nothing else.
struct Generous;

impl Approver for Generous {
    fn name(&self) -> String {
        "ann".to_owned()
    }

    fn answer<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Always })
    }
}

#[test]
fn no_trick_passes_the_gate_by_what_was_allowed_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let all = tricks();
    // Those that are one step away from what was allowed.
    let like: Vec<&String> = all
        .iter()
        .filter(|trick| trick.contains("ls") || trick.contains("git status"))
        .collect();
    assert!(like.len() > 100, "only {}", like.len());
    block_on(async {
        let agent = agent_with_host(dir.path(), answers(|_, _, _| Says::Never)).await;
        for command in ["ls -l", "git status"] {
            let ann = ApprovalPolicy::Ask(Arc::new(Generous));
            agent
                .sessionless()
                .call_tool(
                    "execute",
                    json!({"command": command}),
                    &ann,
                    CancellationToken::new(),
                )
                .await;
            let again = agent
                .sessionless()
                .explain("execute", json!({"command": command}))
                .await
                .unwrap();
            assert!(again.reason.starts_with("granted: "), "{again:?}");
        }
        for trick in like {
            let verdict = agent
                .sessionless()
                .explain("execute", json!({"command": trick}))
                .await
                .unwrap();
            assert_ne!(
                verdict.kind,
                stead_core::VerdictKind::Allow,
                "{trick:?}: {}",
                verdict.reason
            );
        }
    });
}
