//! Property tests of the run state machine and the fold. They cover states that only a crash, a
//! rewind or a hostile model leads to, and entries in orders that no driver writes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use proptest::prelude::*;
use serde_json::json;
use std::collections::HashSet;
use stead_core::*;

fn run_id(n: u64) -> RunId {
    RunId::new(format!("r{n}")).unwrap()
}

/// The next action of a simulated world.
#[derive(Debug, Clone)]
enum Act {
    /// The model answers with this many calls, whose ids are chosen to collide.
    Answer { calls: usize, id: u8, text: bool },
    /// The process dies: only repair follows.
    Crash,
    /// A person cancels the run.
    Cancel,
    /// A person sends an input.
    Say,
    /// A person approves or rejects.
    Decide { yes: bool },
    /// The gate asks about the next call instead of running it.
    AskNext,
    /// Rewinds to the point before the nth input.
    Rewind { nth: usize },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0usize..4, 0u8..3, any::<bool>()).prop_map(|(calls, id, text)| Act::Answer { calls, id, text }),
        1 => Just(Act::Crash),
        1 => Just(Act::Cancel),
        2 => Just(Act::Say),
        1 => any::<bool>().prop_map(|yes| Act::Decide { yes }),
        1 => Just(Act::AskNext),
        1 => (0usize..4).prop_map(|nth| Act::Rewind { nth }),
    ]
}

/// Executes `acts` as a driver would, checking the history after every entry.
struct World {
    state: SessionState,
    journal: Vec<Entry>,
    runs: u64,
}

impl World {
    fn record(&mut self, entry: Entry) {
        let seq = self.state.seq + 1;
        self.state
            .apply(seq, &entry)
            .unwrap_or_else(|error| panic!("{error}: {entry:?}"));
        self.journal.push(entry);
        if let Some(complaint) = complaint(&self.state) {
            panic!("{complaint} after {:?}", self.journal);
        }
    }

    fn say(&mut self, text: &str) {
        for entry in self.state.close(RunOutcome::Cancelled, "superseded") {
            self.record(entry);
        }
        self.runs += 1;
        self.record(Entry::User(UserInput::text(run_id(self.runs), text)));
    }

    fn step(&mut self, act: &Act) {
        let Some(run) = self.state.run.clone() else {
            return match act {
                Act::Rewind { nth } => {
                    let inputs: Vec<u64> = self
                        .state
                        .turns
                        .iter()
                        .filter(|t| t.starts_run.is_some())
                        .map(|t| t.seq)
                        .collect();
                    if let Some(seq) = inputs.get(*nth) {
                        self.record(Entry::Rewind(Rewind { to: seq - 1 }));
                    }
                }
                _ => self.say("hello"),
            };
        };
        let id = run.id;
        match (act, self.state.next(&RunLimits::default())) {
            (Act::Say, _) => self.say("more"),
            (Act::Crash, _) => self
                .state
                .repair()
                .into_iter()
                .for_each(|entry| self.record(entry)),
            (Act::Cancel, _) => {
                self.state
                    .close(RunOutcome::Cancelled, "stop")
                    .into_iter()
                    .for_each(|entry| self.record(entry));
            }
            (Act::Decide { yes }, NextAction::AwaitDecision(asked)) => {
                let args_hash = args_hash(&asked[0].call.args);
                let call = asked[0].call.id.clone();
                self.record(Entry::Decision(Decision {
                    run: id,
                    id: call,
                    args_hash,
                    approved: *yes,
                    by: "p".into(),
                    args: None,
                    words: None,
                    responds: false,
                    seal: None,
                }));
            }
            (Act::AskNext, NextAction::RunTools(open)) if open[0].state == CallState::New => {
                let call = open[0].call.id.clone();
                let args_hash = args_hash(&open[0].call.args);
                self.record(Entry::Ask(Ask {
                    run: id,
                    id: call,
                    args_hash,
                    rule: "r".into(),
                    rules: Vec::new(),
                    terms: AskTerms::default(),
                    nested: None,
                }));
            }
            (_, NextAction::RunTools(open)) => {
                let call = open[0].call.id.clone();
                if matches!(open[0].state, CallState::New | CallState::Approved { .. }) {
                    self.record(Entry::Call(CallIntent {
                        run: id.clone(),
                        id: call.clone(),
                        tool: "t".into(),
                        args_hash: String::new(),
                        changes: true,
                        repeatable: false,
                        nested: None,
                    }));
                }
                if !matches!(act, Act::Decide { .. }) {
                    let content = vec![Block::text("ok")];
                    let status = ResultStatus::Ok;
                    let result = CallResult {
                        run: id,
                        id: call,
                        status,
                        exit_code: None,
                        content,
                        seen: Default::default(),
                        activates: None,
                        untrusted: false,
                        taint: Vec::new(),
                        change: None,
                        tasks: Vec::new(),
                        ms: 0,
                        nested: None,
                    };
                    self.record(Entry::Result(result));
                }
            }
            (
                Act::Answer {
                    calls,
                    id: call_id,
                    text,
                },
                NextAction::CallModel,
            ) => {
                let mut content: Vec<Block> = (0..*calls)
                    .map(|n| {
                        Block::ToolCall(ToolCall {
                            id: if *call_id == 0 {
                                String::new()
                            } else {
                                format!("c{call_id}")
                            },
                            name: "t".into(),
                            args: json!({"n": n}),
                            invalid: None,
                            signature: None,
                        })
                    })
                    .collect();
                if *text {
                    content.insert(0, Block::text("words"));
                }
                let content = self.state.with_unique_ids(content);
                let usage = Usage {
                    input_tokens: 1,
                    ..Usage::default()
                };
                let reply = ModelReply {
                    run: id,
                    model: "m".into(),
                    content,
                    usage,
                    cost: None,
                    stop: StopReason::EndTurn,
                };
                self.record(Entry::Model(reply));
            }
            (_, NextAction::Nudge(text)) => {
                self.record(Entry::Notice(Notice::new(id, NoticeKind::Repetition, text)))
            }
            (_, NextAction::Done(outcome, reason)) => self.record(Entry::End(RunEnd {
                run: id,
                outcome,
                reason,
            })),
            (_, NextAction::CallModel | NextAction::AwaitDecision(_) | NextAction::Idle) => {}
        }
    }
}

/// Returns what a strict provider would object to in the conversation so far.
fn complaint(state: &SessionState) -> Option<String> {
    let mut owed: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    for turn in &state.turns {
        match &*turn.message {
            Message::Tool { results } => {
                let given: Vec<String> = results.iter().map(|r| r.id.clone()).collect();
                if given != owed {
                    return Some(format!("results {given:?} for calls {owed:?}"));
                }
                owed.clear();
            }
            message if !owed.is_empty() => {
                return Some(format!("calls {owed:?} unanswered before {message:?}"));
            }
            Message::Assistant { content } if content.is_empty() => {
                return Some("an empty answer".into());
            }
            message => owed = message.calls().map(|call| call.id.clone()).collect(),
        }
        for call in turn.message.calls() {
            if call.id.is_empty() || !ids.insert(call.id.clone()) {
                return Some(format!("call id {:?} twice or empty", call.id));
            }
        }
    }
    let open = state
        .run
        .as_ref()
        .is_some_and(|run| !run.pending.is_empty());
    (!owed.is_empty() && !open).then(|| format!("calls {owed:?} are owed but no run has them"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 25 / 16))]

    /// Whatever a model, a person or a crash does, every provider accepts the history, and
    /// replaying the journal gives the same state.
    #[test]
    fn any_life_leaves_a_valid_history_that_replays_to_the_same_state(acts in prop::collection::vec(act(), 0..60)) {
        let mut world = World { state: SessionState::default(), journal: Vec::new(), runs: 0 };
        acts.iter().for_each(|act| world.step(act));
        let mut replayed = SessionState::default();
        let mut sum = ChainSum::START;
        for (i, entry) in world.journal.iter().enumerate() {
            let (text, next) = encode_line(i as u64 + 1, jiff::Timestamp::UNIX_EPOCH, entry, sum);
            let line = decode_line(text.trim_end(), sum).unwrap();
            prop_assert_eq!(&line.entry, entry);
            replayed.apply(line.seq, &line.entry).unwrap();
            sum = next;
        }
        prop_assert_eq!(replayed, world.state);
    }

    /// A run is data: serialised and deserialised, it decides the same next action.
    #[test]
    fn a_run_survives_being_written_down(acts in prop::collection::vec(act(), 0..40)) {
        let mut world = World { state: SessionState::default(), journal: Vec::new(), runs: 0 };
        for act in &acts {
            world.step(act);
            if let Some(run) = &world.state.run {
                let copy: Run = serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap();
                prop_assert_eq!(&copy, run);
                let mut copied = world.state.clone();
                copied.run = Some(copy);
                let limits = RunLimits::default();
                prop_assert_eq!(copied.next(&limits), world.state.next(&limits));
            }
        }
    }
}

#[test]
fn an_entry_that_does_not_fit_changes_nothing() {
    let mut state = SessionState::default();
    state
        .apply(1, &Entry::User(UserInput::text(run_id(1), "hi")))
        .unwrap();
    let before = state.clone();
    let result = CallResult {
        run: run_id(1),
        id: "nope".into(),
        status: ResultStatus::Ok,
        exit_code: None,
        content: vec![],
        seen: Default::default(),
        activates: None,
        untrusted: false,
        taint: Vec::new(),
        change: None,
        tasks: Vec::new(),
        ms: 0,
        nested: None,
    };
    for entry in [
        Entry::User(UserInput::text(run_id(2), "again")),
        Entry::Result(result),
        Entry::Rewind(Rewind { to: 0 }),
        Entry::End(RunEnd {
            run: run_id(9),
            outcome: RunOutcome::Completed,
            reason: None,
        }),
    ] {
        assert!(state.apply(2, &entry).is_err(), "{entry:?}");
        assert_eq!(state, before);
    }
}

#[test]
fn a_circle_is_named_at_three_rounds_and_ended_at_six() {
    let mut world = World {
        state: SessionState::default(),
        journal: Vec::new(),
        runs: 0,
    };
    world.say("go");
    let mut nudges = Vec::new();
    for step in 1..20 {
        match world.state.next(&RunLimits::default()) {
            NextAction::Nudge(text) => {
                nudges.push(step);
                let run = run_id(1);
                world.record(Entry::Notice(Notice::new(
                    run,
                    NoticeKind::Repetition,
                    text,
                )));
            }
            NextAction::Done(outcome, reason) => {
                assert_eq!(outcome, RunOutcome::Failed);
                assert!(reason.unwrap().contains("6 times"));
                assert_eq!(nudges.len(), 1);
                assert_eq!(world.state.run.unwrap().steps, 6);
                return;
            }
            NextAction::CallModel => {
                let call = ToolCall {
                    id: String::new(),
                    name: "t".into(),
                    args: json!({}),
                    invalid: None,
                    signature: None,
                };
                let content = world.state.with_unique_ids(vec![Block::ToolCall(call)]);
                let usage = Usage::default();
                let stop = StopReason::ToolUse;
                world.record(Entry::Model(ModelReply {
                    run: run_id(1),
                    model: "m".into(),
                    content,
                    usage,
                    cost: None,
                    stop,
                }));
            }
            NextAction::RunTools(_) => world.step(&Act::Answer {
                calls: 0,
                id: 0,
                text: false,
            }),
            other => panic!("{other:?}"),
        }
    }
    panic!("the circle was never ended");
}

/// Two odd ids must not become one on a wire that encodes them.
#[test]
fn every_call_gets_an_id_that_every_provider_takes() {
    let call = |id: &str| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: "t".into(),
            args: json!({}),
            invalid: None,
            signature: None,
        })
    };
    let long = "x".repeat(65);
    let content = SessionState::default().with_unique_ids(vec![
        call("a.b"),
        call("a_2eb"),
        call(&long),
        call("ok-1"),
    ]);
    let ids: Vec<String> = Message::Assistant { content }
        .calls()
        .map(|call| call.id.clone())
        .collect();
    assert_eq!(ids, ["call_1", "a_2eb", "call_3", "ok-1"]);
}

#[test]
fn a_skill_is_active_until_a_rewind_before_its_body() {
    let mut state = SessionState::default();
    let mut seq = 0;
    let mut record = |state: &mut SessionState, entry: Entry| {
        seq += 1;
        state.apply(seq, &entry).unwrap();
    };
    for (n, version) in [(1, "v1"), (2, "v2")] {
        let id = format!("c{n}");
        record(&mut state, Entry::User(UserInput::text(run_id(n), "go")));
        let args = serde_json::json!({"name": "pdf"});
        let call = ToolCall {
            id: id.clone(),
            name: "load_skill".into(),
            args,
            invalid: None,
            signature: None,
        };
        let reply = ModelReply {
            run: run_id(n),
            model: "m".into(),
            content: vec![Block::ToolCall(call)],
            usage: Usage::default(),
            cost: None,
            stop: StopReason::ToolUse,
        };
        record(&mut state, Entry::Model(reply));
        let activates = Some(SkillActivation {
            skill: format!("skill-{n}"),
            version: version.into(),
        });
        let content = vec![Block::text("body")];
        let seen = Default::default();
        let result = CallResult {
            run: run_id(n),
            id,
            status: ResultStatus::Ok,
            exit_code: None,
            content,
            seen,
            activates,
            untrusted: false,
            taint: Vec::new(),
            change: None,
            tasks: Vec::new(),
            ms: 0,
            nested: None,
        };
        record(&mut state, Entry::Result(result));
        record(
            &mut state,
            Entry::End(RunEnd {
                run: run_id(n),
                outcome: RunOutcome::Completed,
                reason: None,
            }),
        );
    }
    let active = |state: &SessionState| -> Vec<(String, String, u64)> {
        state
            .skills
            .iter()
            .map(|(name, skill)| (name.clone(), skill.version.clone(), skill.seq))
            .collect()
    };
    let first = ("skill-1".to_owned(), "v1".to_owned(), 3);
    assert_eq!(
        active(&state),
        [first.clone(), ("skill-2".to_owned(), "v2".to_owned(), 7)]
    );
    record(&mut state, Entry::Rewind(Rewind { to: 4 }));
    assert_eq!(active(&state), [first]);
    record(&mut state, Entry::Rewind(Rewind { to: 0 }));
    assert_eq!(active(&state), []);
}

#[test]
fn what_a_summary_cost_before_the_first_answer_counts_and_a_run_taken_up_again_goes_on_with_its_budget()
 {
    let first = run_id(1);
    let second = run_id(2);
    let usage = Usage {
        input_tokens: 100,
        output_tokens: 10,
        ..Usage::default()
    };
    let cost = |nanos| Some(Usd::from_nanos(nanos));
    let summary = Compaction {
        run: Some(first.clone()),
        cause: CompactionCause::Limit,
        view: ContextView::default(),
        dropped: DroppedCounts::default(),
        before_tokens: 0,
        after_tokens: 0,
        window: None,
        focus: None,
        fallback: None,
        model: Some("m".into()),
        usage,
        cost: cost(5),
    };
    let content = vec![Block::text("cut")];
    let stop = StopReason::MaxTokens;
    let reply = ModelReply {
        run: first.clone(),
        model: "m".into(),
        content,
        usage,
        cost: cost(2),
        stop,
    };
    let raise = SpendAmount {
        usd: Usd::from_nanos(9),
        tokens: 0,
    };
    let entries = [
        Entry::User(UserInput::text(first.clone(), "go")),
        Entry::Compaction(summary),
        Entry::Model(reply),
        Entry::End(RunEnd {
            run: first,
            outcome: RunOutcome::Budget,
            reason: None,
        }),
        Entry::User(UserInput::resume(second, raise)),
    ];
    let mut state = SessionState::default();
    for (seq, entry) in (1..).zip(&entries) {
        state.apply(seq, entry).unwrap();
    }
    let run = state.run.unwrap();
    assert_eq!(
        run.carried,
        SpendAmount {
            usd: Usd::from_nanos(7),
            tokens: 220
        }
    );
    assert_eq!((run.raised, state.raised), (raise, raise));
}

#[test]
fn a_hook_changes_the_arguments_of_a_call_that_has_not_begun_and_nothing_else() {
    let run = run_id(1);
    let call = ToolCall {
        id: "c".into(),
        name: "t".into(),
        args: json!({"n": 1}),
        invalid: None,
        signature: None,
    };
    let reply = ModelReply {
        run: run.clone(),
        model: "m".into(),
        content: vec![Block::ToolCall(call.clone())],
        usage: Usage::default(),
        cost: None,
        stop: StopReason::ToolUse,
    };
    let hook = |args: Option<serde_json::Value>| {
        Entry::Hook(HookRun {
            run: Some(run.clone()),
            event: "before_tool_call".into(),
            hook: "h".into(),
            outcome: HookOutcome::Rewrote,
            call: Some("c".into()),
            detail: None,
            args,
            nested: None,
            ms: 1,
        })
    };
    let mut state = SessionState::default();
    state
        .apply(1, &Entry::User(UserInput::text(run.clone(), "go")))
        .unwrap();
    state.apply(2, &Entry::Model(reply)).unwrap();
    let before = state.clone();
    state.apply(3, &hook(None)).unwrap();
    let mut same = before.clone();
    same.seq = 3;
    assert_eq!(state, same);
    state.apply(4, &hook(Some(json!({"n": 2})))).unwrap();
    let changed = ToolCall {
        args: json!({"n": 2}),
        ..call
    };
    let pending = PendingCall::new(changed.clone());
    assert_eq!(
        state.next(&RunLimits::default()),
        NextAction::RunTools(vec![pending])
    );
    // The model's message stays unchanged.
    assert_eq!(state.turns, before.turns);
    let args_hash = args_hash(&changed.args);
    let terms = AskTerms::default();
    let ask = Ask {
        run: run.clone(),
        id: "c".into(),
        args_hash,
        rule: "r".into(),
        rules: Vec::new(),
        terms,
        nested: None,
    };
    state.apply(5, &Entry::Ask(ask)).unwrap();
    let error = state.apply(6, &hook(Some(json!({"n": 3})))).unwrap_err();
    assert_eq!(
        error.reason,
        "the arguments of this call can no longer change"
    );
}
