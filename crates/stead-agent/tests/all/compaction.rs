//! The place for tests of compaction: long runs in a small window, failing summarisers, overflow
//! recovery, manual compaction and pinned inputs.

use crate::support::{
    agent_on, base_url, block_on, builder, in_parallel, journal, listening, model_name, results,
    session, text,
};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stead_agent::{Agent, ModelConnector, Pinned, RunOptions};
use stead_core::{Compaction, CompactionCause, Entry, EventKind, JournalLine, Risk, RunOutcome};
use stead_model::{Model, ModelSettings, Timeouts, connect};
use stead_store::OsDisk;
use stead_testkit::{
    FakeAnswer, FakeModel, FakeWire, RecordedRequest, RequestTurn, fail, hang, raw_sse, reply,
};
use stead_tools::{Output, Tool};
use stead_workspace::FeatureSwitch;

use crate::support::TestTool;

const WINDOW: u32 = 32_000;

fn windowed(server: &FakeModel, wire: FakeWire, window: Option<u32>) -> Arc<dyn Model> {
    let settings = ModelSettings {
        name: model_name(wire).to_owned(),
        base_url: Some(base_url(server, wire)),
        max_retries: Some(0),
        context_window: window,
        timeouts: Timeouts {
            idle_seconds: 20.0,
            ..Timeouts::default()
        },
        ..ModelSettings::default()
    };
    connect(&settings, &|_| None).unwrap()
}

/// A tool whose output is `size` bytes of words that differ from step to step.
fn look(size: usize) -> Arc<dyn Tool> {
    TestTool::make("look", Risk::READS, move |_, args| async move {
        let n = args["n"].as_u64().unwrap_or(0);
        Ok(Output::text(format!(
            "page {n}: {}",
            "some words that were found there ".repeat(size / 33)
        )))
    })
}

fn is_summary_request(request: &RecordedRequest) -> bool {
    let Ok(seen) = &request.seen else {
        return false;
    };
    matches!(seen.turns.last(), Some(RequestTurn::User(text)) if text.contains("exactly these sections"))
}

fn summary() -> FakeAnswer {
    reply().text("## Intent\nLook at pages.\n## State\nMany pages were looked at.\n## Next steps\nGo on looking.")
}

async fn agent_in(dir: &Path, settings: &str, model: Arc<dyn Model>, size: usize) -> Arc<Agent> {
    std::fs::write(dir.join("agent.yaml"), settings).unwrap();
    agent_on(dir, model, Arc::new(OsDisk), vec![look(size)]).await
}

fn compactions(lines: &[JournalLine]) -> Vec<&Compaction> {
    let one = |line: &'_ JournalLine| matches!(line.entry, Entry::Compaction(_));
    lines
        .iter()
        .filter(|line| one(line))
        .filter_map(|line| match &line.entry {
            Entry::Compaction(compaction) => Some(compaction),
            _ => None,
        })
        .collect()
}

#[test]
fn two_thousand_steps_fit_a_small_window_and_keep_what_is_pinned() {
    const STEPS: usize = 2_000;
    const RULE: &str = "RULE-77: never touch the file called keep.txt, whatever anybody says.";
    let dir = tempfile::tempdir().unwrap();
    let steps = AtomicUsize::new(0);
    let largest = Arc::new(Mutex::new((0, 0)));
    let seen_largest = largest.clone();
    let server = FakeModel::start_with(move |request| {
        let seen = request.seen.as_ref().unwrap();
        let whole = String::from_utf8_lossy(&request.body);
        assert!(
            whole.contains(RULE),
            "request {} has lost the rule",
            request.index
        );
        // Four bytes a token, as a tokenizer of today makes of such words at worst.
        assert!(
            request.body.len() / 4 < WINDOW as usize,
            "request {} has {} bytes",
            request.index,
            request.body.len()
        );
        let mut largest = seen_largest.lock().unwrap();
        *largest = (
            largest.0.max(request.body.len()),
            largest.1.max(seen.turns.len()),
        );
        if is_summary_request(request) {
            return summary();
        }
        match steps.fetch_add(1, Ordering::SeqCst) {
            300 => reply()
                .text("DECISION-300: we use PostgreSQL.")
                .call("look", json!({"n": 300})),
            900 => reply().call(
                "write_file",
                json!({"file_path": "deep/path-900.txt", "content": "nine hundred"}),
            ),
            step if step < STEPS => reply().call("look", json!({"n": step})),
            STEPS => reply()
                .call("recall", json!({"query": "rule about keep.txt"}))
                .call("recall", json!({"query": "PostgreSQL decision"}))
                .call("recall", json!({"query": "path-900.txt"})),
            _ => reply().text("done"),
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let model = windowed(&server, FakeWire::Messages, Some(WINDOW));
        let agent = agent_in(dir.path(), "policy: {max_steps: 3000}\n", model, 1_200).await;
        let mut chat = agent.session(session("long"));
        let options = RunOptions {
            pin: Pinned::Yes,
            ..RunOptions::default()
        };
        let report = chat.run(text(RULE), options).await.unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "done"),
            "{:?}",
            report.reason
        );
        assert_eq!(server.rejections(), vec![]);
        let (lines, state) = journal(&agent, &session("long")).await;
        let made = compactions(&lines);
        assert!(made.len() > 10, "{} compactions", made.len());
        assert!(made.iter().all(|compaction| compaction.fallback.is_none()));
        // The file that was written is in every summary since, whatever the summariser said.
        let last = made
            .iter()
            .rev()
            .find_map(|compaction| compaction.view.summary.as_ref())
            .unwrap();
        assert!(last.contains("deep/path-900.txt"), "{last}");
        // What is no longer shown is found.
        let recalled: Vec<String> = results(&lines)
            .into_iter()
            .rev()
            .take(3)
            .map(|(_, _, text)| text)
            .collect();
        for fact in ["RULE-77", "DECISION-300", "path-900.txt"] {
            assert!(
                recalled.iter().any(|text| text.contains(fact)),
                "{fact}: {recalled:#?}"
            );
        }
        // All of it is still there, in its order: the chain of sums is checked by reading.
        let words: Vec<String> = state.turns.iter().map(|turn| turn.message.text()).collect();
        assert!(words.iter().any(|text| text.contains("DECISION-300")));
        let pages = words
            .iter()
            .filter(|text| text.starts_with("page "))
            .count();
        assert_eq!(pages, STEPS - 1);
        // Neither the journal's growth per step nor the request's size depend on how much came
        // before.
        let bytes = |from: usize, to: usize| -> usize {
            lines[from..to]
                .iter()
                .map(|line| format!("{:?}", line.entry).len())
                .sum()
        };
        let early = bytes(500, 1_500);
        let late = bytes(lines.len() - 1_500, lines.len() - 500);
        assert!(late < early * 5 / 4, "{early} then {late}");
        let (bytes, turns) = *largest.lock().unwrap();
        assert!(
            bytes < WINDOW as usize * 4 && turns < 400,
            "{bytes} bytes, {turns} turns"
        );
    });
}

/// What a summariser may do wrong.
#[derive(Debug, Clone, Copy)]
enum Failing {
    Error,
    Hangs,
    Empty,
    Calls,
    Overflows,
}

#[test]
fn whatever_a_summariser_does_the_history_stands_and_the_run_goes_on() {
    in_parallel(
        &[
            Failing::Error,
            Failing::Hangs,
            Failing::Empty,
            Failing::Calls,
            Failing::Overflows,
        ],
        |&failing| {
            let dir = tempfile::tempdir().unwrap();
            let steps = AtomicUsize::new(0);
            let server = FakeModel::start_with(move |request| {
                let stands_alone = request.seen.as_ref().unwrap().tools.is_empty();
                if is_summary_request(request) || stands_alone {
                    return match failing {
                        Failing::Error => fail(500),
                        Failing::Hangs => hang(),
                        Failing::Empty => reply().text("  "),
                        Failing::Calls => reply().call("look", json!({"n": 1})),
                        Failing::Overflows => {
                            fail(400).message("prompt is too long: 9 tokens > 8 maximum")
                        }
                    };
                }
                match steps.fetch_add(1, Ordering::SeqCst) {
                    step if step < 120 => reply().call("look", json!({"n": step})),
                    _ => reply().text("done"),
                }
            });
            block_on(async {
                let settings = "compaction: {timeout_seconds: 1}\n";
                let model = windowed(&server, FakeWire::Messages, Some(16_000));
                let agent = agent_in(dir.path(), settings, model, 1_000).await;
                let report = agent
                    .session(session("s"))
                    .run(text("look at all"), RunOptions::default())
                    .await
                    .unwrap();
                assert_eq!(
                    report.outcome,
                    RunOutcome::Completed,
                    "{failing:?}: {:?}",
                    report.reason
                );
                let (lines, state) = journal(&agent, &session("s")).await;
                let made = compactions(&lines);
                assert!(
                    !made.is_empty() && made.iter().any(|made| made.fallback.is_some()),
                    "{failing:?}"
                );
                let kept = state
                    .turns
                    .iter()
                    .filter(|turn| turn.message.text().starts_with("page "))
                    .count();
                assert_eq!(kept, 120, "{failing:?}");
                let request = server.last_request();
                assert!(
                    String::from_utf8_lossy(&request.body).contains("look at all"),
                    "{failing:?}"
                );
            });
            assert_eq!(server.rejections(), vec![]);
        },
    );
}

#[test]
fn an_overflow_in_any_wording_leads_to_one_compaction_and_a_retry() {
    let wordings = [
        (
            FakeWire::Messages,
            400,
            "prompt is too long: 200015 tokens > 200000 maximum",
        ),
        (
            FakeWire::Messages,
            400,
            "input length and `max_tokens` exceed context limit: 197000 + 8192 > 200000",
        ),
        (FakeWire::Messages, 413, "Request exceeds the maximum size"),
        (
            FakeWire::Chat,
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        ),
        (
            FakeWire::Chat,
            400,
            "the request exceeds the available context size, try increasing the context size",
        ),
        (
            FakeWire::Chat,
            400,
            "Please reduce the length of the messages or completion.",
        ),
        (
            FakeWire::Chat,
            500,
            "input length exceeds the context length",
        ),
        (
            FakeWire::Chat,
            422,
            "The total number of tokens in the prompt exceeds the model's limit of 32768",
        ),
        (
            FakeWire::Responses,
            400,
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        (
            FakeWire::Gemini,
            400,
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        ),
    ];
    in_parallel(&wordings, |&(wire, status, words)| {
        let dir = tempfile::tempdir().unwrap();
        let steps = AtomicUsize::new(0);
        let refused = AtomicUsize::new(0);
        let server = FakeModel::start_with(move |request| {
            if request.seen.as_ref().unwrap().tools.is_empty() {
                return summary();
            }
            let whole = String::from_utf8_lossy(&request.body);
            if whole.contains("page 11:") && !whole.contains("made shorter") {
                refused.fetch_add(1, Ordering::SeqCst);
                return fail(status).message(words);
            }
            match steps.fetch_add(1, Ordering::SeqCst) {
                step if step < 12 => reply().call("look", json!({"n": step})),
                _ => reply().text("done"),
            }
        });
        block_on(async {
            // Nobody knows the window.
            let agent = agent_in(dir.path(), "", windowed(&server, wire, None), 600).await;
            let (options, heard) = listening();
            let report = agent
                .session(session("s"))
                .run(text("look"), options)
                .await
                .unwrap();
            assert_eq!(
                report.outcome,
                RunOutcome::Completed,
                "{words}: {:?}",
                report.reason
            );
            let (lines, _) = journal(&agent, &session("s")).await;
            let made = compactions(&lines);
            assert_eq!(
                made.iter().map(|made| made.cause).collect::<Vec<_>>(),
                [CompactionCause::Overflow],
                "{words}"
            );
            let heard = heard.lock().unwrap();
            assert!(
                heard
                    .iter()
                    .any(|event| matches!(event.kind, EventKind::Compacted { .. }))
            );
        });
        assert_eq!(server.rejections(), vec![]);
    });
}

#[test]
fn an_overflow_in_the_middle_of_a_stream_is_one_too() {
    let dir = tempfile::tempdir().unwrap();
    let steps = AtomicUsize::new(0);
    let server = FakeModel::start_with(move |request| {
        if request.seen.as_ref().unwrap().tools.is_empty() {
            return summary();
        }
        let whole = String::from_utf8_lossy(&request.body);
        if whole.contains("page 5:") && !whole.contains("made shorter") {
            return raw_sse(
                "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
                 event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
                 event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"half\"}}\n\n\
                 event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 21000 tokens > 20000 maximum\"}}\n\n",
            );
        }
        match steps.fetch_add(1, Ordering::SeqCst) {
            step if step < 8 => reply().call("look", json!({"n": step})),
            _ => reply().text("done"),
        }
    });
    block_on(async {
        let agent = agent_in(
            dir.path(),
            "",
            windowed(&server, FakeWire::Messages, None),
            600,
        )
        .await;
        let (options, heard) = listening();
        let report = agent
            .session(session("s"))
            .run(text("look"), options)
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "done"),
            "{:?}",
            report.reason
        );
        // Whoever listened is told that the half answer is void.
        assert!(
            heard
                .lock()
                .unwrap()
                .iter()
                .any(|event| matches!(event.kind, EventKind::ModelRetry { .. }))
        );
    });
}

#[test]
fn one_message_that_alone_is_too_much_is_cut_or_ends_the_run_clearly() {
    // A result: it is cut, and the run goes on.
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(move |request| match request.result_count() {
        0 => reply().call("look", json!({"n": 1})),
        _ if request.body.len() > 60_000 => fail(400).message("prompt is too long"),
        _ => reply().text("done"),
    });
    block_on(async {
        let settings = "disable: [offload]\n";
        let agent = agent_in(
            dir.path(),
            settings,
            windowed(&server, FakeWire::Messages, None),
            300_000,
        )
        .await;
        let report = agent
            .session(session("s"))
            .run(text("look"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "done"),
            "{:?}",
            report.reason
        );
    });
    // An input: nobody but the person can say less.
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(|_| fail(400).message("prompt is too long"));
    block_on(async {
        let agent = agent_in(
            dir.path(),
            "disable: [offload]\n",
            windowed(&server, FakeWire::Messages, None),
            10,
        )
        .await;
        let mut chat = agent.session(session("s"));
        let report = chat
            .run(text(&"word ".repeat(50_000)), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Failed);
        let reason = report.reason.unwrap();
        assert!(
            reason.contains("nothing left to leave out") && reason.contains("larger window"),
            "{reason}"
        );
        assert_eq!(server.requests().len(), 1);
    });
}

#[test]
fn a_person_compacts_between_runs_and_the_context_says_what_was_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(move |request| {
        if is_summary_request(request) {
            assert!(String::from_utf8_lossy(&request.body).contains("kept above all: the colours"));
            return summary();
        }
        reply().text(format!(
            "answer {} {}",
            request.index,
            "and more words ".repeat(50)
        ))
    });
    block_on(async {
        let agent = agent_in(
            dir.path(),
            "",
            windowed(&server, FakeWire::Messages, Some(WINDOW)),
            10,
        )
        .await;
        let mut chat = agent.session(session("s"));
        for turn in 0..6 {
            chat.run(text(&format!("question {turn}")), RunOptions::default())
                .await
                .unwrap();
        }
        let before = chat.state().context_tokens();
        let made = chat
            .compact(Some("the colours".into()), RunOptions::default())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (made.cause, made.run, made.focus.as_deref()),
            (CompactionCause::Manual, None, Some("the colours"))
        );
        assert!(made.model.is_some() && made.usage.output_tokens > 0);
        assert!(chat.state().context_tokens() < before, "{before}");
        // The request for the summary was the conversation with one more message.
        let requests = server.requests();
        let [.., last, asked] = requests.as_slice() else {
            panic!()
        };
        let told = |request: &RecordedRequest| request.seen.as_ref().unwrap().turns.clone();
        let last = told(last);
        let asked = told(asked);
        assert_eq!(asked[..last.len()], last[..]);
        let report = chat
            .run(text("question 6"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        let turns = told(&server.last_request());
        assert!(
            matches!(&turns[0], RequestTurn::User(text) if text.contains("<summary>") && text.contains("Look at pages"))
        );
        // A second time there is hardly anything to leave out; a rewind brings all of it back.
        chat.rewind(1, stead_store::LockWait::No).await.unwrap();
        assert_eq!(chat.state().messages().len(), 0);
        assert_eq!(server.rejections(), vec![]);
    });
}

#[test]
fn a_cheaper_model_summarises_in_pieces_that_fit_it() {
    let dir = tempfile::tempdir().unwrap();
    let largest = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = largest.clone();
    let count = asked.clone();
    let cheap = FakeModel::start_with(move |request| {
        count.fetch_add(1, Ordering::SeqCst);
        seen.fetch_max(request.body.len(), Ordering::SeqCst);
        summary()
    });
    let steps = AtomicUsize::new(0);
    let server = FakeModel::start_with(move |_| match steps.fetch_add(1, Ordering::SeqCst) {
        step if step < 150 => reply().call("look", json!({"n": step})),
        _ => reply().text("done"),
    });
    block_on(async {
        let summaries = windowed(&cheap, FakeWire::Chat, Some(8_000));
        let model = windowed(&server, FakeWire::Messages, Some(WINDOW));
        let agent = builder(dir.path(), model)
            .model_connector(ModelConnector::new(move |_| Ok(summaries.clone())))
            .configure(|config| config.compaction.model = Some("openai:x".to_owned()))
            .disable(FeatureSwitch::Shell)
            .tool(look(1_100))
            .build()
            .await
            .unwrap();
        let report = agent
            .session(session("s"))
            .run(text("look"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed, "{:?}", report.reason);
        assert!(
            asked.load(Ordering::SeqCst) > 1,
            "one piece would have been too much"
        );
        assert!(largest.load(Ordering::SeqCst) / 4 < 8_000);
        let (lines, _) = journal(&agent, &session("s")).await;
        let summarised = compactions(&lines)
            .iter()
            .find_map(|made| made.model.clone());
        assert_eq!(summarised.as_deref(), Some("openai:x"));
        tokio::time::sleep(Duration::ZERO).await;
    });
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A step of a model that calls whatever it likes: several tools at once, unknown ones, with long
/// arguments.
fn random_step(dice: &mut Dice) -> FakeAnswer {
    let mut answer = reply();
    if dice.roll(3) == 0 {
        answer = answer.text("some words before ".repeat(dice.roll(20) as usize + 1));
    }
    for _ in 0..=dice.roll(4) {
        let n = dice.roll(100_000);
        answer = match dice.roll(5) {
            0 => answer.call("no_such_tool", json!({"n": n})),
            1 => {
                let content = "line of a file\n".repeat(dice.roll(200) as usize);
                answer.call(
                    "write_file",
                    json!({"file_path": format!("f{n}.txt"), "content": content, "mode": "overwrite"}),
                )
            }
            2 => answer.call_raw("look", "{\"n\": "),
            _ => answer.call("look", json!({"n": n})),
        };
    }
    answer
}

#[test]
fn random_histories_are_never_refused_by_a_strict_provider() {
    let cases: Vec<(FakeWire, u64)> = FakeWire::ALL
        .into_iter()
        .flat_map(|wire| (1..=4).map(move |seed| (wire, seed)))
        .collect();
    in_parallel(&cases, |&(wire, seed)| {
        let dir = tempfile::tempdir().unwrap();
        let dice = Mutex::new((Dice(seed * 7_919), 0));
        let server = FakeModel::start_with(move |request| {
            if is_summary_request(request) {
                return summary();
            }
            let (dice, steps) = &mut *dice.lock().unwrap();
            *steps += 1;
            if *steps % 25 == 0 {
                reply().text("that was it")
            } else {
                random_step(dice)
            }
        });
        block_on(async {
            let settings = "policy: {repeat_nudge: 0, repeat_end: 0}\ncompaction: {keep: 0.1}\n";
            let model = windowed(&server, wire, Some(8_000 + 2_000 * seed as u32));
            let agent = agent_in(dir.path(), settings, model, 1_600).await;
            let mut chat = agent.session(session("s"));
            for turn in 0..4 {
                let report = chat
                    .run(text(&format!("turn {turn}")), RunOptions::default())
                    .await
                    .unwrap();
                assert_eq!(
                    report.outcome,
                    RunOutcome::Completed,
                    "{wire:?} {seed}: {:?}",
                    report.reason
                );
            }
            let (lines, state) = journal(&agent, &session("s")).await;
            assert!(compactions(&lines).len() > 2, "{wire:?} {seed}");
            assert_eq!(state.messages(), chat.state().messages());
        });
        assert_eq!(server.rejections(), vec![], "{wire:?} {seed}");
    });
}

/// Steps of 1,200 tokens in a window of 9,000: the prompt and the tools must leave most of it to the
/// conversation, and each compaction must leave room for several steps.
#[test]
fn forty_steps_in_a_small_window_need_few_compactions() {
    const STEPS: usize = 40;
    const MOST_COMPACTIONS: usize = 15;
    const STEP_BYTES: usize = 4_770;
    let dir = tempfile::tempdir().unwrap();
    let steps = AtomicUsize::new(0);
    let server = FakeModel::start_with(move |request| {
        if is_summary_request(request) {
            return summary();
        }
        match steps.fetch_add(1, Ordering::SeqCst) {
            step if step < STEPS => reply().call("look", json!({"n": step})),
            _ => reply().text("done"),
        }
    });
    block_on(async {
        let model = windowed(&server, FakeWire::Chat, Some(9_000));
        let agent = agent_in(dir.path(), "{}\n", model, STEP_BYTES).await;
        let mut chat = agent.session(session("small"));
        let report = chat
            .run(text("Look at all pages."), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, _) = journal(&agent, &session("small")).await;
        let (_, _, page) = &results(&lines)[0];
        let tokens = stead_core::text_tokens(page);
        assert!((1_150..1_250).contains(&tokens), "{tokens} tokens a step");
        let made = compactions(&lines).len();
        assert!(
            (1..=MOST_COMPACTIONS).contains(&made),
            "{made} compactions: {:#?}",
            compactions(&lines)
                .iter()
                .map(|compaction| (compaction.before_tokens, compaction.after_tokens))
                .collect::<Vec<_>>()
        );
    });
    assert_eq!(server.rejections(), Vec::new());
}
