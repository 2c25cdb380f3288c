//! The place for tests of money and token budgets of a run, a session and a day: reservation,
//! settlement, raising, shortened answers, dead processes.

use crate::support::{DEADLINE, agent_asking, block_on, journal, listening, session, text};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, AgentError, Budget, BudgetError, RunOptions, RunReport};
use stead_core::{
    BudgetScope, BudgetUnit, CallEstimate, EventKind, Owner, Price, RunOutcome, SpendAmount,
    StopReason, Usage, Usd,
};
use stead_model::{Model, ModelSettings, Params, ScriptedModel, connect};
use stead_testkit::{Child, Death, FakeModel, child_role, fail, reply};

const PRICE: Price = Price {
    input: 10.0,
    output: 50.0,
    cache_read: None,
    cache_write: None,
};

fn usd(dollars: f64) -> Usd {
    Usd::from_dollars(dollars).unwrap()
}

fn dollars(amount: f64) -> SpendAmount {
    SpendAmount {
        usd: usd(amount),
        tokens: 0,
    }
}

fn settings(dir: &Path, budget: &str) {
    let policy = "policy: {repeat_nudge: 0, repeat_end: 0, max_steps: 100000}";
    std::fs::write(
        dir.join("agent.yaml"),
        format!("budget: {{{budget}}}\n{policy}\n"),
    )
    .unwrap();
}

/// A model that never comes to an end.
fn endless() -> Arc<dyn Model> {
    let script = ScriptedModel::parse(
        "endless",
        "[{calls: [{tool: ls, args: {path: .}}]}, {loop: true}]",
    )
    .unwrap();
    Arc::new(script.with_price(Some(PRICE)))
}

/// A model behind `server` that is asked `1 + max_retries` times.
fn priced(server: &FakeModel, max_retries: u32) -> Arc<dyn Model> {
    let settings = ModelSettings {
        name: "openai:x".into(),
        base_url: Some(server.openai_url()),
        price: Some(PRICE),
        max_retries: Some(max_retries),
        ..ModelSettings::default()
    };
    connect(&settings, &|_| None).unwrap()
}

/// An agent whose answers have 2,000 tokens at most.
async fn agent(dir: &Path, model: Arc<dyn Model>) -> Arc<Agent> {
    agent_asking(
        dir,
        model,
        Params {
            max_output_tokens: Some(2_000),
            ..Params::default()
        },
    )
    .await
}

async fn run(agent: &Arc<Agent>, id: &str) -> RunReport {
    agent
        .session(session(id))
        .run(text("go"), RunOptions::default())
        .await
        .unwrap()
}

/// What all calls of a session came to, by its journal.
async fn spent(agent: &Arc<Agent>, id: &str) -> SpendAmount {
    let (_, state) = journal(agent, &session(id)).await;
    let Usage {
        input_tokens,
        output_tokens,
        ..
    } = state.usage;
    SpendAmount {
        usd: state.cost.unwrap_or_default(),
        tokens: input_tokens + output_tokens,
    }
}

#[test]
fn a_run_without_end_stays_within_every_kind_of_limit() {
    for (budget, most) in [
        ("run_usd: 1.0", dollars(1.0)),
        ("session_usd: 1.0", dollars(1.0)),
        ("day_usd: 1.0", dollars(1.0)),
        (
            "run_tokens: 90000",
            SpendAmount {
                tokens: 90_000,
                ..dollars(1000.0)
            },
        ),
        (
            "session_tokens: 90000",
            SpendAmount {
                tokens: 90_000,
                ..dollars(1000.0)
            },
        ),
        (
            "day_tokens: 90000",
            SpendAmount {
                tokens: 90_000,
                ..dollars(1000.0)
            },
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        settings(dir.path(), budget);
        let most = SpendAmount {
            tokens: if most.tokens == 0 {
                u64::MAX
            } else {
                most.tokens
            },
            ..most
        };
        block_on(async {
            let agent = agent(dir.path(), endless()).await;
            let report = run(&agent, "a").await;
            assert_eq!(report.outcome, RunOutcome::Budget, "{budget}: {report:?}");
            let key = budget.split(':').next().unwrap();
            let reason = report.reason.unwrap();
            assert!(
                reason.contains(&format!("(budget.{key})")) && reason.contains("is used up: "),
                "{reason}"
            );
            let first = spent(&agent, "a").await;
            assert!(
                first.usd <= most.usd && first.tokens <= most.tokens,
                "{budget}: {first:?}"
            );
            // It was not stopped long before it had to be, either.
            let mostly = first.tokens > most.tokens / 2 || first.usd.nanos() > most.usd.nanos() / 2;
            assert!(mostly, "{budget}: {first:?} after {} steps", report.steps);

            let second = run(&agent, "b").await;
            let shared = key.starts_with("day");
            // What was left over is less than a few calls come to.
            assert_eq!(
                (second.outcome, second.steps <= 2),
                (RunOutcome::Budget, shared),
                "{budget}: {second:?}"
            );
            let again = run(&agent, "a").await;
            let kept = !key.starts_with("run");
            assert_eq!(
                (again.outcome, again.steps <= 2),
                (RunOutcome::Budget, kept),
                "{budget}: {again:?}"
            );
        });
    }
}

#[test]
fn a_person_can_raise_every_limit_and_it_is_on_record() {
    for budget in ["run_usd: 1.0", "session_usd: 1.0", "day_usd: 1.0"] {
        let dir = tempfile::tempdir().unwrap();
        settings(dir.path(), budget);
        block_on(async {
            let agent = agent(dir.path(), endless()).await;
            assert_eq!(run(&agent, "a").await.outcome, RunOutcome::Budget);
            let before = spent(&agent, "a").await;
            let mut opened = agent.session(session("a"));
            let refused = opened.resume(RunOptions::default()).await.unwrap();
            assert_eq!(
                (refused.outcome, refused.steps),
                (RunOutcome::Budget, 0),
                "nothing is left"
            );
            let raised = opened
                .resume_with(dollars(0.5), RunOptions::default())
                .await
                .unwrap();
            assert!(
                raised.outcome == RunOutcome::Budget && raised.steps > 0,
                "{budget}: {raised:?}"
            );
            let after = spent(&agent, "a").await;
            assert!(
                after.usd > before.usd && after.usd <= usd(1.5),
                "{budget}: {before:?} {after:?}"
            );
            let (_, state) = journal(&agent, &session("a")).await;
            assert_eq!(state.raised, dollars(0.5));
            // A second time adds to the first.
            let again = opened
                .resume_with(dollars(0.5), RunOptions::default())
                .await
                .unwrap();
            assert!(
                again.steps > 0 && spent(&agent, "a").await.usd <= usd(2.0),
                "{budget}: {again:?}"
            );
        });
    }
}

#[test]
fn nothing_is_raised_where_nothing_is_limited_or_a_run_is_open() {
    let server = FakeModel::start(vec![
        reply().call("write_file", json!({"file_path": "a", "content": "b"})),
    ]);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        std::fs::write(
            dir.path().join("agent.yaml"),
            "approvals: {write_file: true}\n",
        )
        .unwrap();
        let parking = agent(dir.path(), priced(&server, 0)).await;
        assert_eq!(run(&parking, "a").await.outcome, RunOutcome::Parked);
        let raise = |agent: Arc<Agent>| async move {
            agent
                .session(session("a"))
                .resume_with(dollars(1.0), RunOptions::default())
                .await
        };
        assert!(matches!(raise(parking).await, Err(AgentError::NoBudget)));
        settings(dir.path(), "run_usd: 1");
        let limited = agent(dir.path(), priced(&server, 0)).await;
        assert!(matches!(
            raise(limited).await,
            Err(AgentError::RunStillOpen(_))
        ));
    });
}

#[test]
fn the_last_call_is_shortened_and_goes_on_once_more_is_there() {
    let cut = reply().text("one two").stop(StopReason::MaxTokens);
    let used = Usage {
        input_tokens: 5_000,
        output_tokens: 900,
        ..Usage::default()
    };
    let server = FakeModel::start(vec![cut.usage(used), reply().text(" three")]);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let free = agent(dir.path(), priced(&server, 0)).await;
        let whole = CallEstimate {
            input_tokens: estimated(&free).await,
            ..CallEstimate::FREE
        };
        settings(
            dir.path(),
            &format!("run_tokens: {}", whole.input_tokens + 1_000),
        );
        let agent = agent(dir.path(), priced(&server, 0)).await;
        let (options, heard) = listening();
        let report = agent
            .session(session("s"))
            .run(text("count"), options)
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Budget, "one two"),
            "{report:?}"
        );
        let asked = server.last_request().json;
        let limit = asked["max_completion_tokens"].as_u64().unwrap();
        assert!((256..2_000).contains(&limit), "{limit}");
        let warned = |kind: &EventKind| matches!(kind, EventKind::Notice { text, .. } if text.contains("budget.run_tokens"));
        assert!(
            heard
                .lock()
                .unwrap()
                .iter()
                .any(|event| warned(&event.kind))
        );
        let more = SpendAmount {
            usd: Usd::default(),
            tokens: 50_000,
        };
        let report = agent
            .session(session("s"))
            .resume_with(more, RunOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, " three"),
            "{report:?}"
        );
        let asked = server.last_request();
        assert_eq!(asked.json["max_completion_tokens"], json!(2_000));
        assert!(
            asked
                .seen
                .unwrap()
                .user_texts()
                .any(|said| said.contains("Go on exactly where it ended"))
        );
    });
    assert_eq!(server.rejections(), Vec::new());
}

/// Tokens of the first request of an agent, as we estimate them.
async fn estimated(agent: &Arc<Agent>) -> u64 {
    let turn = agent.sessionless().turn().await.unwrap();
    let system: u64 = turn
        .prompt
        .parts()
        .iter()
        .map(|part| stead_core::text_tokens(&part.text))
        .sum();
    system
        + turn
            .tools
            .specs()
            .iter()
            .map(stead_core::spec_tokens)
            .sum::<u64>()
        + 20
}

#[test]
fn a_call_that_broke_off_counts_in_full_and_one_that_never_began_not_at_all() {
    let broken = || {
        reply()
            .text("a long answer that is cut off in the middle of it all")
            .chunks_of(20)
            .cut_at(400)
    };
    for (answers, left) in [
        (vec![broken()], false),
        (vec![fail(503).message("later")], true),
    ] {
        let server = FakeModel::start(answers.into_iter().chain([reply().text("fine")]).collect());
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let free = agent(dir.path(), priced(&server, 0)).await;
            // Room for one call with an answer of 2,000 tokens, and not for a second one.
            settings(
                dir.path(),
                &format!("session_tokens: {}", estimated(&free).await + 3_000),
            );
            let limited = agent(dir.path(), priced(&server, 0)).await;
            assert_eq!(run(&limited, "s").await.outcome, RunOutcome::Failed);
            // Another process knows it, too.
            let fresh = agent(dir.path(), priced(&server, 0)).await;
            let report = fresh
                .session(session("s"))
                .resume(RunOptions::default())
                .await
                .unwrap();
            let want = if left {
                RunOutcome::Completed
            } else {
                RunOutcome::Budget
            };
            assert_eq!(report.outcome, want, "{report:?}");
        });
        assert_eq!(server.requests().len(), if left { 2 } else { 1 });
    }
}

#[test]
fn a_call_that_is_made_again_is_paid_twice_or_not_made() {
    let broken = || {
        reply()
            .text("a long answer that is cut off in the middle of it all")
            .chunks_of(20)
            .cut_at(400)
    };
    for (calls, outcome, requests) in [(1, RunOutcome::Budget, 1), (2, RunOutcome::Completed, 2)] {
        let server = FakeModel::start(vec![broken(), reply().text("fine")]);
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let free = agent(dir.path(), priced(&server, 1)).await;
            let call = estimated(&free).await + 2_000;
            settings(dir.path(), &format!("run_tokens: {}", calls * call + 500));
            let limited = agent(dir.path(), priced(&server, 1)).await;
            let report = run(&limited, "s").await;
            assert_eq!(report.outcome, outcome, "{report:?}");
        });
        assert_eq!(server.requests().len(), requests);
    }
}

#[test]
fn money_is_not_limited_where_nobody_knows_a_price() {
    let server = FakeModel::start(Vec::new());
    let dir = tempfile::tempdir().unwrap();
    settings(dir.path(), "day_usd: 1");
    block_on(async {
        let unpriced = ModelSettings {
            name: "openai:x".into(),
            base_url: Some(server.openai_url()),
            price: Some(PRICE),
            fallbacks: vec!["ollama:y".into()],
            ..ModelSettings::default()
        };
        let agent = agent(dir.path(), connect(&unpriced, &|_| None).unwrap()).await;
        let refused = agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap_err();
        let said = refused.to_string();
        assert!(
            said.starts_with("budget.day_usd is set, but the price of ollama:y is not known; set"),
            "{said}"
        );
        assert!(
            agent.sessions().list_all().await.unwrap().is_empty(),
            "nothing was written"
        );
    });
    assert_eq!(server.requests().len(), 0);
}

const CALL: CallEstimate = CallEstimate {
    input_tokens: 1_000,
    answer_tokens: 600,
    thinking_tokens: 0,
    price: Some(PRICE),
};

fn day_budget(agent: &Arc<Agent>) -> Budget {
    agent.budget(&Owner::default())
}

#[test]
fn a_process_that_dies_with_a_reservation_gives_it_back() {
    const TEST: &str = "budgets::a_process_that_dies_with_a_reservation_gives_it_back";
    if let Some(role) = child_role() {
        return block_on(async {
            let agent = agent(Path::new(role.get("dir")), endless()).await;
            let held = day_budget(&agent).reserve(CALL).await.unwrap();
            assert_eq!(held.answer_tokens(), Some(600));
            println!("reserved");
            std::process::abort();
        });
    }
    let dir = tempfile::tempdir().unwrap();
    settings(dir.path(), "day_tokens: 2000");
    let ended = Child::spawn(TEST, [("dir", dir.path().to_str().unwrap())]).wait(DEADLINE);
    assert!(
        matches!(ended.death, Death::Signal(_)) && ended.stdout.contains("reserved"),
        "{ended}"
    );
    block_on(async {
        let agent = agent(dir.path(), endless()).await;
        let budget = day_budget(&agent);
        let held = budget.reserve(CALL).await.unwrap();
        assert_eq!(held.answer_tokens(), Some(600), "all of it is there again");
        // While one of a living process is not.
        let refused = day_budget(&agent).reserve(CALL).await.unwrap_err();
        let BudgetError::Exhausted(exhausted) = refused else {
            panic!("{refused}")
        };
        assert_eq!(
            (exhausted.scope, exhausted.unit, exhausted.used.tokens),
            (BudgetScope::Day, BudgetUnit::Tokens, 1_600)
        );
        held.release().await.unwrap();
        let held = budget.reserve(CALL).await.unwrap();
        held.settle(
            &Usage {
                input_tokens: 100,
                output_tokens: 50,
                ..Usage::default()
            },
            None,
        )
        .await
        .unwrap();
        // A count so far below what was sent is not believed: half of it, 500, is gone.
        let last = budget.reserve(CALL).await.unwrap();
        assert_eq!(
            (last.answer_tokens(), last.shortened_by().as_deref()),
            (Some(500), Some("budget.day_tokens"))
        );
        last.charge_in_full().await.unwrap();
        assert!(budget.reserve(CALL).await.is_err());
    });
}

#[test]
fn processes_that_share_a_day_never_exceed_it_together() {
    const TEST: &str = "budgets::processes_that_share_a_day_never_exceed_it_together";
    if let Some(role) = child_role() {
        return block_on(async {
            let agent = agent(Path::new(role.get("dir")), endless()).await;
            let report = run(&agent, role.get("session")).await;
            assert_eq!(report.outcome, RunOutcome::Budget, "{report:?}");
        });
    }
    let dir = tempfile::tempdir().unwrap();
    settings(dir.path(), "day_tokens: 200000");
    let dir_text = dir.path().to_str().unwrap();
    let spawn = |id: &'static str| Child::spawn(TEST, [("dir", dir_text), ("session", id)]);
    let children: Vec<Child> = ["a", "b", "c"].map(spawn).into_iter().collect();
    for child in children {
        let ended = child.wait(DEADLINE);
        assert_eq!(ended.death, Death::Exit(0), "{ended}");
    }
    block_on(async {
        let agent = agent(dir.path(), endless()).await;
        let mut sum = 0;
        for id in ["a", "b", "c"] {
            sum += spent(&agent, id).await.tokens;
        }
        assert!(sum > 100_000 && sum <= 200_000, "{sum}");
    });
}
