//! The place for tests of one verdict per call at every entry point to the gate (run, subagent,
//! hook agent, `stead tool`, resumed call), under random rules and calls.

mod generate;
mod oracle;

use crate::subagents::{Says, answers};
use crate::support::{agent_with_host, block_on, blocks, session};
use futures_util::future::BoxFuture;
use generate::{Call, Case, Plan, TOOLS, case, plain};
use oracle::{Seen, expected};
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use stead_agent::{
    AfterAnswer, Agent, ApprovalAnswer, ApprovalPolicy, ApprovalQuestion, ApprovalReply, Approver,
    RunOptions, SessionPermissions,
};
use stead_core::PermissionCeiling;
use stead_core::{
    Block, Entry, JournalLine, PermissionMode, PlanStage, ResultStatus, SessionChange, SessionId,
    SetEntry,
};
use stead_model::Model;
use stead_store::LockWait;
use stead_tools::SessionView;
use stead_vfs::Vfs;
use tokio_util::sync::CancellationToken;

const CASES: u32 = 14;
const PLAN: &str = "plans/PLAN.md";

/// How often each tool met each verdict.
type Met = Mutex<BTreeMap<(&'static str, &'static str), usize>>;

/// A session of the case: the calls are in its first step.
struct Door<'a> {
    name: &'static str,
    session: SessionId,
    terms: SessionPermissions,
    standing: SessionView,
    calls: &'a [Call],
}

fn lay_out(dir: &Path, case: &Case) {
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("agent.yaml", &case.settings.to_string());
    put("tools.json", &case.lists.to_string());
    put(
        "subagents/helper.md",
        "---\ndescription: Helps.\nworkspace: {mode: shared}\n---\nHelp.\n",
    );
    put(
        "skills/hello/SKILL.md",
        "---\nname: hello\ndescription: Says hello.\n---\nSay hello.\n",
    );
    put(
        "hooks/h.yaml",
        &format!(
            "name: h\nevents: [run_start]\non_failure: open\nhandler: {{type: agent, agent: helper, task: {}}}\n",
            "by a hook"
        ),
    );
    for name in ["a.txt", "notes/b.txt", "key.pem", ".env", "MEMORY.md", PLAN] {
        put(name, "x\n");
    }
    std::os::unix::fs::symlink("key.pem", dir.join("link")).unwrap();
}

/// Makes the calls wherever it is told to; elsewhere it has nothing to do.
fn caller(calls: &[Call]) -> Arc<dyn Model> {
    let calls: Vec<(&'static str, serde_json::Value)> = calls
        .iter()
        .map(|call| (call.name, call.args.clone()))
        .collect();
    answers(
        move |task, said, _| match (task.lines().next().unwrap_or_default(), said) {
            ("by itself" | "by a child" | "by a hook", 0) => Says::Calls(calls.clone()),
            ("hand over", 0) => Says::Calls(vec![(
                "task",
                json!({"agent": "general-purpose", "prompt": "by a child"}),
            )]),
            (_, _) => Says::Text("{}".into()),
        },
    )
}

/// Allows what it is asked for good.
struct ForGood;

impl Approver for ForGood {
    fn name(&self) -> String {
        "ann".to_owned()
    }

    fn answer<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Always })
    }
}

impl Case {
    fn configured(&self) -> PermissionMode {
        serde_json::from_value(self.settings["permission_mode"].clone()).unwrap()
    }

    /// What a person sets for the session.
    fn set(&self) -> Vec<SetEntry> {
        let mode = self.mode.map(SessionChange::mode);
        let plan = (self.plan == Plan::Making).then(|| SessionChange::Plan {
            plan: Some(making()),
        });
        mode.into_iter()
            .chain(plan)
            .map(|change| SetEntry {
                change,
                by: "ann".to_owned(),
            })
            .collect()
    }

    fn planning(&self) -> Option<String> {
        (self.plan == Plan::Making).then(|| PLAN.to_owned())
    }
}

fn making() -> PlanStage {
    PlanStage::Making {
        file: PLAN.to_owned(),
    }
}

/// What became of a call by the journal of its session.
fn seen(lines: &[JournalLine], index: usize) -> Seen {
    let id = format!("c0_{index}");
    let mut result = None;
    for line in lines {
        match &line.entry {
            Entry::Call(call) if call.id == id => return Seen::Allowed,
            Entry::Ask(ask) if ask.id == id => return Seen::Asks(ask.rule.clone()),
            Entry::Result(found) if found.id == id => {
                result = Some((found.status, blocks(&found.content)))
            }
            _ => {}
        }
    }
    // What may run and comes after a question waits for its answer.
    let asked = |line: &JournalLine| matches!(&line.entry, Entry::Ask(ask) if (0..index).any(|n| ask.id == format!("c0_{n}")));
    if result.is_none() && lines.iter().any(asked) {
        return Seen::Allowed;
    }
    let (status, text) = result.unwrap_or_else(|| panic!("nothing became of {id}: {lines:#?}"));
    refused(status, text)
}

fn refused(status: ResultStatus, text: String) -> Seen {
    match status {
        ResultStatus::Denied => {
            Seen::Denied(text.strip_prefix("denied: ").unwrap_or(&text).to_owned())
        }
        _ => Seen::NoCall(text),
    }
}

async fn lines(agent: &Arc<Agent>, id: &SessionId) -> Vec<JournalLine> {
    agent.sessions().read(id).await.unwrap()
}

/// Those that a session of another has handed work to.
async fn children(agent: &Arc<Agent>, of: &SessionId) -> Vec<SessionId> {
    let all = agent.sessions().list_all().await.unwrap();
    all.into_iter()
        .filter(|summary| summary.parent.as_ref() == Some(of))
        .map(|summary| summary.id)
        .collect()
}

fn files(agent: &Arc<Agent>) -> Arc<dyn Vfs> {
    agent
        .place()
        .files(agent.owner(), &SessionId::sessionless(), None)
}

/// Panics unless each call was judged as the gate judges it.
async fn check(agent: &Arc<Agent>, case: &Case, door: &Door<'_>, met: &Met) {
    let tools = agent.sessionless().turn().await.unwrap().tools;
    let journal = lines(agent, &door.session).await;
    let is_child = door.name != "a run";
    for (index, call) in door.calls.iter().enumerate() {
        let seen = seen(&journal, index).short();
        if is_child && call.tool.starts_with("memory_") {
            assert!(
                matches!(&seen, Seen::NoCall(_)),
                "{}: {} {}: {seen:?}",
                door.name,
                call.name,
                call.args
            );
            continue;
        }
        let want = expected(
            agent,
            (&tools, &files(agent)),
            (&door.terms, &door.standing),
            call,
        )
        .await
        .short();
        assert_eq!(
            seen, want,
            "{}: {} {}{case:?}",
            door.name, call.name, call.args
        );
        *met.lock()
            .unwrap()
            .entry((call.tool, seen.kind()))
            .or_default() += 1;
    }
}

/// The answers of whoever carries out what is theirs, and yes to all else.
async fn say_yes(agent: &Arc<Agent>, id: &SessionId) -> Vec<String> {
    let mut parked = agent.session(id.clone());
    parked.load().await.unwrap();
    let open = parked.open_questions();
    let replies: Vec<ApprovalReply> = open
        .iter()
        .map(|question| {
            let answer = match question.tool.as_str() {
                "phone" => ApprovalAnswer::Respond("they said hello".to_owned()),
                _ => ApprovalAnswer::Yes,
            };
            ApprovalReply {
                id: question.id.clone(),
                args_hash: question.args_hash.clone(),
                answer,
            }
        })
        .collect();
    if !replies.is_empty() {
        parked
            .answer(&replies, "ann", AfterAnswer::Leave, LockWait::No)
            .await
            .unwrap();
        parked.resume(RunOptions::default()).await.unwrap();
    }
    open.into_iter().map(|question| question.id).collect()
}

/// Panics unless what was asked about ran after the yes, or is denied by a rule that holds now.
async fn check_resumed(agent: &Arc<Agent>, case: &Case, door: &Door<'_>) {
    let asked = say_yes(agent, &door.session).await;
    let tools = agent.sessionless().turn().await.unwrap().tools;
    let journal = lines(agent, &door.session).await;
    for (index, call) in door.calls.iter().enumerate() {
        let id = format!("c0_{index}");
        if !asked.contains(&id) {
            continue;
        }
        let want = expected(
            agent,
            (&tools, &files(agent)),
            (&door.terms, &door.standing),
            call,
        )
        .await;
        let began = journal
            .iter()
            .any(|line| matches!(&line.entry, Entry::Call(begun) if begun.id == id));
        let result = journal.iter().find_map(|line| match &line.entry {
            Entry::Result(result) if result.id == id => {
                Some((result.status, blocks(&result.content)))
            }
            _ => None,
        });
        let (status, text) =
            result.unwrap_or_else(|| panic!("{}: nothing became of {id}{case:?}", door.name));
        let at = format!(
            "{}, resumed: {} {}: {text}{case:?}",
            door.name, call.name, call.args
        );
        match want {
            // Whoever carried it out has done so.
            Seen::Asks(_) if call.tool == "phone" => {
                assert_eq!((began, status), (false, ResultStatus::Ok), "{at}")
            }
            Seen::Denied(_) if call.tool == "phone" => assert!(!began, "{at}"),
            Seen::Denied(rule) => assert_eq!(
                (began, refused(status, text)),
                (false, Seen::Denied(rule)),
                "{at}"
            ),
            Seen::Allowed | Seen::Asks(_) => assert!(began, "{at}"),
            Seen::NoCall(why) => assert_eq!(
                (began, refused(status, text)),
                (false, Seen::NoCall(why)),
                "{at}"
            ),
        }
    }
}

/// Whoever calls one tool, and who only wants to know.
async fn check_outside(agent: &Arc<Agent>, case: &Case) {
    let tools = agent.sessionless().turn().await.unwrap().tools;
    let terms = SessionPermissions {
        mode: case.configured(),
        grants: agent.grants(agent.owner()).list().await.unwrap(),
        ..SessionPermissions::default()
    };
    for call in &case.calls {
        let at = format!("{} {}{case:?}", call.name, call.args);
        let want = expected(
            agent,
            (&tools, &files(agent)),
            (&terms, &SessionView::default()),
            call,
        )
        .await;
        let explained = agent
            .sessionless()
            .explain(call.name, call.args.clone())
            .await;
        if let Ok(verdict) = &explained {
            let prepared = oracle::prepare(&tools, call).unwrap();
            assert_eq!(
                *verdict,
                oracle::verdict(agent, (&tools, &files(agent)), (&terms, None), &prepared).await,
                "explained: {at}"
            );
        }
        let called = agent
            .sessionless()
            .call_tool(
                call.name,
                call.args.clone(),
                &ApprovalPolicy::Park,
                CancellationToken::new(),
            )
            .await;
        let text = blocks(&called.content);
        let asks = |rule: &String| format!("denied: nobody approved it ({rule})");
        match (&want, called.status) {
            (Seen::Asks(rule), ResultStatus::Denied) => {
                assert_eq!(text, asks(rule), "called: {at}")
            }
            (Seen::Denied(_), ResultStatus::Denied) => {
                assert_eq!(refused(called.status, text), want, "called: {at}")
            }
            (Seen::Allowed, ResultStatus::Ok | ResultStatus::Error) => {
                assert!(explained.is_ok(), "called: {at}")
            }
            (Seen::NoCall(_), ResultStatus::Error) => {
                assert_eq!(refused(called.status, text), want, "called: {at}")
            }
            (want, status) => panic!("called: {at}: {status:?} {text}, not {want:?}"),
        }
    }
}

async fn through_every_door(case: &Case, met: &Met) {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), case);
    let agent = agent_with_host(dir.path(), caller(&case.calls)).await;
    if let Some(call) = case.always.and_then(|index| case.calls.get(index)) {
        let ann = ApprovalPolicy::Ask(Arc::new(ForGood));
        agent
            .sessionless()
            .call_tool(call.name, call.args.clone(), &ann, CancellationToken::new())
            .await;
    }
    let granted = agent.grants(agent.owner()).list().await.unwrap();
    let mode = case.mode.unwrap_or(case.configured());
    let own = SessionPermissions {
        mode,
        ceiling: PermissionCeiling {
            planning: case.planning(),
            ..PermissionCeiling::default()
        },
        grants: granted.clone(),
        denied_tools: Vec::new(),
    };
    let ceiling = PermissionCeiling {
        modes: vec![mode],
        planning: case.planning(),
        ..PermissionCeiling::default()
    };
    let below = SessionPermissions {
        mode: case.configured(),
        ceiling,
        grants: granted,
        denied_tools: Vec::new(),
    };
    let run = |input: &'static str| {
        let agent = agent.clone();
        let options = RunOptions {
            settings: case.set(),
            ..RunOptions::default()
        };
        async move {
            let id = session(&input.replace(' ', "-"));
            agent
                .session(id.clone())
                .run(vec![Block::text(input)], options)
                .await
                .unwrap();
            id
        }
    };
    let standing = match case.plan {
        Plan::None => SessionView::default(),
        Plan::Making => SessionView {
            plan: Some(making()),
            ..SessionView::default()
        },
    };
    let door = |name, session, terms: &SessionPermissions, standing: &SessionView| {
        let terms = terms.clone();
        let standing = standing.clone();
        Door {
            name,
            session,
            terms,
            standing,
            calls: &case.calls,
        }
    };
    let nowhere = SessionView::default();
    let mut doors = vec![door("a run", run("by itself").await, &own, &standing)];
    let parent = run("hand over").await;
    let handed = children(&agent, &parent).await;
    // The hook is asked at each run; what it does at the first is enough.
    let hooked = children(&agent, &doors[0].session).await;
    let of = |id: &SessionId| id.as_str().starts_with("sub-");
    doors.extend(
        handed
            .iter()
            .filter(|id| of(id))
            .map(|id| door("a child", id.clone(), &below, &nowhere)),
    );
    let asked = hooked.iter().filter(|id| !of(id));
    doors.extend(asked.map(|id| door("a hook", id.clone(), &below, &nowhere)));
    assert!(
        doors.iter().any(|door| door.name == "a hook"),
        "the hook was not asked{case:?}"
    );
    for door in &doors {
        check(&agent, case, door, met).await;
    }
    Box::pin(check_outside(&agent, case)).await;
    // Another process, with rules that came since; and one with the same.
    let fresh = agent_with_host(dir.path(), caller(&[])).await;
    check_resumed(&fresh, case, &doors[0]).await;
    let mut later = case.clone();
    let rule =
        json!({"operations": ["read", "write"], "paths": ["a.txt", "notes"], "mode": "deny"});
    later.settings["permissions"]
        .as_array_mut()
        .unwrap()
        .insert(0, rule);
    later.settings["commands"]["deny"] = json!(["ls *"]);
    std::fs::write(dir.path().join("agent.yaml"), later.settings.to_string()).unwrap();
    let fresh = agent_with_host(dir.path(), caller(&[])).await;
    for door in doors.iter().skip(1) {
        check_resumed(&fresh, case, door).await;
    }
}

#[test]
fn a_call_gets_the_same_verdict_through_every_door() {
    let met = Met::default();
    let config = Config {
        cases: CASES,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    // Only the smallest case that fails is told of.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = runner.run(&case(), |case| {
        block_on(through_every_door(&case, &met));
        Ok(())
    });
    std::panic::set_hook(hook);
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn every_tool_is_let_through_every_door_where_nothing_speaks_against_it() {
    let met = Met::default();
    block_on(through_every_door(&plain(), &met));
    let met = met.into_inner().unwrap();
    let never: Vec<&str> = TOOLS
        .into_iter()
        .filter(|tool| !met.contains_key(&(tool, "allowed")))
        .collect();
    // A person is always asked about these, and the rest are no calls.
    assert_eq!(
        never,
        [
            "plan_exit",
            "phone",
            "execute",
            "no_such_tool",
            "wrong_args"
        ],
        "{met:?}"
    );
}

#[test]
fn every_tool_of_a_session_is_among_those_that_are_drawn() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let case = plain();
        lay_out(dir.path(), &case);
        let agent = agent_with_host(dir.path(), caller(&[])).await;
        let tools = agent.sessionless().turn().await.unwrap().tools.all_specs();
        let missing: Vec<&str> = tools
            .iter()
            .map(|spec| spec.name.as_str())
            .filter(|name| !TOOLS.contains(name))
            .collect();
        // `use_tool` is drawn as a way to call the others.
        assert_eq!(missing, ["plan_enter", "use_tool"]);
    });
}
