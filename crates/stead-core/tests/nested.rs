//! The place for tests of nested calls in the fold and the run state machine: what a caller and the
//! calls it made look like after any sequence of entries, crashes included.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use stead_core::*;

fn run() -> RunId {
    RunId::new("r1").unwrap()
}

/// A session with its entries.
struct World {
    state: SessionState,
    journal: Vec<Entry>,
}

impl World {
    /// A run whose model made the calls `c1` … `cN`.
    fn with_calls(count: usize) -> Self {
        let mut world = Self {
            state: SessionState::default(),
            journal: Vec::new(),
        };
        world.record(Entry::User(UserInput::text(run(), "go")));
        let calls = (1..=count).map(|n| {
            Block::ToolCall(ToolCall {
                id: format!("c{n}"),
                name: "script".into(),
                args: json!({}),
                invalid: None,
                signature: None,
            })
        });
        let reply = ModelReply {
            run: run(),
            model: "m".into(),
            content: calls.collect(),
            usage: Usage::default(),
            cost: None,
            stop: StopReason::ToolUse,
        };
        world.record(Entry::Model(reply));
        world
    }

    fn record(&mut self, entry: Entry) {
        self.try_record(entry)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.journal.last()));
    }

    fn try_record(&mut self, entry: Entry) -> Result<(), FoldError> {
        let before = self.state.clone();
        self.journal.push(entry.clone());
        let applied = self.state.apply(self.state.seq + 1, &entry);
        if applied.is_err() {
            assert_eq!(self.state, before, "a refused entry changed something");
            self.journal.pop();
        }
        applied
    }

    fn next(&self) -> NextAction {
        self.state.next(&RunLimits::default())
    }

    fn pending(&self, id: &str) -> Option<&PendingCall> {
        self.state.run.as_ref().unwrap().pending.find(id)
    }

    /// Reads the journal as its lines and folds it again.
    fn replayed(&self) -> SessionState {
        let mut state = SessionState::default();
        let mut sum = ChainSum::START;
        for (i, entry) in self.journal.iter().enumerate() {
            let (text, next) = encode_line(i as u64 + 1, jiff::Timestamp::UNIX_EPOCH, entry, sum);
            let line = decode_line(text.trim_end(), sum).unwrap();
            assert_eq!(&line.entry, entry);
            state.apply(line.seq, &line.entry).unwrap();
            sum = next;
        }
        state
    }
}

fn made_by(parent: &str, name: &str, args: Value) -> Option<NestedCall> {
    Some(NestedCall {
        parent: parent.to_owned(),
        name: name.to_owned(),
        args,
    })
}

/// The intent of a call; one that `changes` is not repeatable.
fn begin(id: &str, changes: bool, nested: Option<NestedCall>) -> Entry {
    Entry::Call(CallIntent {
        run: run(),
        id: id.into(),
        tool: "t".into(),
        args_hash: String::new(),
        changes,
        repeatable: !changes,
        nested,
    })
}

fn ask(id: &str, nested: Option<NestedCall>) -> Entry {
    Entry::Ask(Ask {
        run: run(),
        id: id.into(),
        args_hash: "h".into(),
        rule: "r".into(),
        rules: Vec::new(),
        terms: AskTerms::default(),
        nested,
    })
}

fn result(id: &str, nested: Option<NestedCall>) -> Entry {
    let content = vec![Block::text(id)];
    let result = CallResult::new(run(), id, ResultStatus::Ok, content);
    Entry::Result(CallResult { nested, ..result })
}

fn ids(calls: &[PendingCall]) -> Vec<&str> {
    calls.iter().map(|call| call.call.id.as_str()).collect()
}

#[test]
fn a_caller_waits_while_one_of_its_calls_is_asked_about_and_runs_again_once_it_is_decided() {
    let mut world = World::with_calls(2);
    world.record(begin("c1", false, None));
    world.record(result("c1/1", made_by("c1", "read", json!({"n": 1}))));
    world.record(ask("c1/2", made_by("c1", "write", json!({"n": 2}))));
    // The other call of the model has not begun, so it waits for the answer too.
    let NextAction::AwaitDecision(asked) = world.next() else {
        panic!("{:?}", world.next());
    };
    assert_eq!(ids(&asked), ["c1/2"]);
    assert_eq!(asked[0].call.name, "write");
    assert_eq!(asked[0].call.args, json!({"n": 2}));
    let caller = world.state.run.as_ref().unwrap().caller_of("c1/2");
    assert_eq!(caller.unwrap().call.name, "script");

    let approval = Decision::approve(run(), "c1/2", "h", "ann");
    world.record(Entry::Decision(Decision {
        args: Some(json!({"n": 3})),
        ..approval
    }));
    let NextAction::RunTools(open) = world.next() else {
        panic!("{:?}", world.next());
    };
    assert_eq!(ids(&open), ["c1", "c2"]);
    let edited = world.pending("c1/2").unwrap();
    assert_eq!(edited.call.args, json!({"n": 3}));
    // The caller makes the call again with the arguments it gave.
    assert_eq!(edited.nesting.given_hash, Some(args_hash(&json!({"n": 2}))));

    world.record(begin("c1/2", true, None));
    world.record(result("c1/2", None));
    let notes = world.state.run.as_ref().unwrap().edit_notes("c1");
    assert_eq!(
        notes,
        ["[ann changed the arguments of the nested call c1/2 (write); it is about: {\"n\":3}]"]
    );
    world.record(result("c1", None));
    assert!(world.pending("c1").unwrap().nesting.calls.is_empty());
    assert_eq!(world.pending("c1/2"), None);
    world.record(result("c2", None));
    assert_eq!(world.next(), NextAction::CallModel);
    let Message::Tool { results } = &*world.state.turns.last().unwrap().message else {
        panic!("no results");
    };
    let told: Vec<&str> = results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(told, ["c1", "c2"]);
    assert_eq!(world.replayed(), world.state);
}

#[test]
fn entries_about_nested_calls_that_do_not_fit_are_refused_and_change_nothing() {
    let mut world = World::with_calls(2);
    world.record(begin("c1", false, None));
    world.record(begin("c2", true, None));
    world.record(begin("c1/1", true, made_by("c1", "t", json!({}))));
    let table = [
        (begin("c1/2", false, None), "no such call in this step"),
        (
            begin("c1/1", true, made_by("c1", "t", json!({}))),
            "the nested call is known",
        ),
        (
            begin("c1/2", false, made_by("c2", "t", json!({}))),
            "the id does not name the call that made it",
        ),
        (
            begin("c1/02", false, made_by("c1", "t", json!({}))),
            "the id is not that of a nested call",
        ),
        (
            begin("c1/1/1/1/1", false, made_by("c1/1/1/1", "t", json!({}))),
            "the id is not that of a nested call",
        ),
        (
            result("c9/1", made_by("c9", "t", json!({}))),
            "the call that made it is not in this step",
        ),
        // It changes something, so it cannot be run again to take up results.
        (
            ask("c2/1", made_by("c2", "t", json!({}))),
            "the call that made it is not running, or could not be resumed",
        ),
        (
            ask("c1/1/1", made_by("c1/1", "t", json!({}))),
            "the call that made it is not running, or could not be resumed",
        ),
        (result("c1", None), "calls that the call made are open"),
    ];
    for (entry, reason) in table {
        let error = world.try_record(entry.clone()).unwrap_err();
        assert_eq!(error.reason, reason, "{entry:?}");
    }
}

#[test]
fn a_crash_leaves_interrupted_results_for_nested_calls_that_cannot_run_again() {
    let mut world = World::with_calls(1);
    world.record(begin("c1", false, None));
    world.record(begin("c1/1", false, made_by("c1", "script", json!({}))));
    world.record(begin("c1/1/1", true, made_by("c1/1", "write", json!({}))));
    world.record(begin("c1/2", true, made_by("c1", "write", json!({}))));
    let repairs = world.state.repair();
    let repaired: Vec<(String, ResultStatus)> = repairs
        .iter()
        .map(|entry| match entry {
            Entry::Result(result) => (result.id.clone(), result.status),
            other => panic!("{other:?}"),
        })
        .collect();
    let interrupted = |id: &str| (id.to_owned(), ResultStatus::Interrupted);
    assert_eq!(repaired, [interrupted("c1/1/1"), interrupted("c1/2")]);
    repairs.into_iter().for_each(|entry| world.record(entry));
    assert_eq!(world.state.repair(), []);
    let NextAction::RunTools(open) = world.next() else {
        panic!("{:?}", world.next());
    };
    assert_eq!(ids(&open), ["c1"]);
}

#[test]
fn closing_a_run_ends_nested_calls_before_the_calls_that_made_them() {
    let mut world = World::with_calls(2);
    world.record(begin("c1", false, None));
    world.record(begin("c1/1", false, made_by("c1", "script", json!({}))));
    world.record(ask("c1/1/1", made_by("c1/1", "write", json!({}))));
    world.record(result("c1/2", made_by("c1", "read", json!({}))));
    let entries = world.state.close(RunOutcome::Cancelled, "stop");
    let ended: Vec<(String, ResultStatus)> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Result(result) => Some((result.id.clone(), result.status)),
            _ => None,
        })
        .collect();
    assert_eq!(
        ended,
        [
            ("c1/1/1".to_owned(), ResultStatus::Skipped),
            ("c1/1".to_owned(), ResultStatus::Interrupted),
            ("c1".to_owned(), ResultStatus::Interrupted),
            ("c2".to_owned(), ResultStatus::Skipped),
        ]
    );
    entries.into_iter().for_each(|entry| world.record(entry));
    assert_eq!(world.state.run, None);
    assert_eq!(world.replayed(), world.state);
}

#[test]
fn an_untrusted_nested_result_taints_every_call_above_it_and_the_session() {
    let mut world = World::with_calls(1);
    world.record(begin("c1", false, None));
    world.record(begin("c1/1", false, made_by("c1", "script", json!({}))));
    let Entry::Result(mut read) = result("c1/1/1", made_by("c1/1", "fetch", json!({}))) else {
        panic!("not a result");
    };
    read.untrusted = true;
    world.record(Entry::Result(read));
    for id in ["c1", "c1/1", "c1/1/1"] {
        assert!(world.pending(id).unwrap().nesting.untrusted, "{id}");
    }
    assert_eq!(world.state.tainted, Some(world.state.seq));
}

#[test]
fn a_hook_can_be_the_first_to_say_what_a_nested_call_is() {
    let mut world = World::with_calls(1);
    world.record(begin("c1", false, None));
    let hook = |args: Option<Value>, nested| {
        Entry::Hook(HookRun {
            run: Some(run()),
            event: "before_tool_call".into(),
            hook: "h".into(),
            outcome: HookOutcome::Rewrote,
            call: Some("c1/1".into()),
            detail: None,
            args,
            nested,
            ms: 1,
        })
    };
    world.record(hook(None, None));
    assert_eq!(world.pending("c1/1"), None);
    world.record(hook(
        Some(json!({"n": 2})),
        made_by("c1", "write", json!({"n": 1})),
    ));
    let known = world.pending("c1/1").unwrap();
    assert_eq!(known.call.args, json!({"n": 2}));
    assert_eq!(known.nesting.given_hash, Some(args_hash(&json!({"n": 1}))));
    assert_eq!(world.replayed(), world.state);
}

#[test]
fn a_step_with_very_many_calls_is_folded_in_linear_time() {
    const CALLS: usize = 100_000;
    let begun = std::time::Instant::now();
    let mut state = SessionState::default();
    let mut seq = 0;
    let mut record = |state: &mut SessionState, entry: Entry| {
        seq += 1;
        state.apply(seq, &entry).unwrap();
    };
    for entry in World::with_calls(CALLS).journal {
        record(&mut state, entry);
    }
    for n in 1..=CALLS {
        record(&mut state, begin(&format!("c{n}"), true, None));
        record(&mut state, result(&format!("c{n}"), None));
    }
    assert_eq!(state.next(&RunLimits::default()), NextAction::CallModel);
    // It was minutes when each entry searched all calls.
    assert!(begun.elapsed() < std::time::Duration::from_secs(30));
}

/// One act of a simulated driver.
#[derive(Debug, Clone)]
enum Act {
    /// A call that runs makes a nested call that is begun, asked about or refused.
    Call { caller: usize, how: u8 },
    /// An open call that waits for nothing gets its result, if it may.
    Finish { which: usize },
    /// A person decides the first open question.
    Decide { how: u8 },
    /// The process dies.
    Crash,
    /// The run is cancelled.
    Cancel,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (0usize..8, 0u8..4).prop_map(|(caller, how)| Act::Call { caller, how }),
        4 => (0usize..8).prop_map(|which| Act::Finish { which }),
        3 => (0u8..4).prop_map(|how| Act::Decide { how }),
        1 => Just(Act::Crash),
        1 => Just(Act::Cancel),
    ]
}

/// Does what a driver could do, and nothing that it could not.
fn step(world: &mut World, act: &Act) {
    let Some(run_state) = world.state.run.clone() else {
        return;
    };
    let all: Vec<PendingCall> = run_state.pending.all().into_iter().cloned().collect();
    match act {
        Act::Call { caller, how } => {
            let callers: Vec<&PendingCall> = all
                .iter()
                .filter(|call| match call.state {
                    CallState::New => NestedId::parse(&call.call.id).is_none(),
                    CallState::Begun { repeatable } => repeatable,
                    _ => false,
                })
                .filter(|call| NestedId::depth_of(&call.call.id) < MAX_NESTED_DEPTH)
                .collect();
            let Some(caller) = callers.get(caller % callers.len().max(1)) else {
                return;
            };
            let parent = caller.call.id.clone();
            if caller.state == CallState::New {
                if !run_state.pending.asked().is_empty() {
                    return;
                }
                world.record(begin(&parent, false, None));
            }
            let id = format!("{parent}/{}", caller.nesting.calls.len() + 1);
            let what = made_by(&parent, "t", json!({"how": how}));
            world.record(match how {
                0 => begin(&id, false, what),
                1 => begin(&id, true, what),
                2 => ask(&id, what),
                _ => result(&id, what),
            });
        }
        Act::Finish { which } => {
            let ready: Vec<&PendingCall> = all
                .iter()
                .filter(|call| matches!(call.state, CallState::Begun { .. }))
                .filter(|call| call.nesting.calls.values().all(PendingCall::is_done))
                .collect();
            if let Some(call) = ready.get(which % ready.len().max(1)) {
                world.record(result(&call.call.id, None));
            }
        }
        Act::Decide { how } => {
            let Some(asked) = all.iter().find(|call| call.is_asked()) else {
                return;
            };
            let id = asked.call.id.clone();
            let yes = Decision::approve(run(), &id, "h", "ann");
            world.record(Entry::Decision(match how {
                0 => yes,
                1 => Decision {
                    args: Some(json!({"edited": true})),
                    ..yes
                },
                2 => Decision {
                    approved: false,
                    ..yes
                },
                _ => Decision {
                    approved: false,
                    responds: true,
                    words: Some("w".into()),
                    ..yes
                },
            }));
            world.record(match how {
                0 | 1 => begin(&id, true, None),
                _ => result(&id, None),
            });
        }
        Act::Crash => {
            let repairs = world.state.repair();
            repairs.into_iter().for_each(|entry| world.record(entry));
        }
        Act::Cancel => {
            let end = world.state.close(RunOutcome::Cancelled, "stop");
            end.into_iter().for_each(|entry| world.record(entry));
        }
    }
}

proptest! {
    /// Whatever happens to nested calls, the journal folds to the same state, a run is data, nothing
    /// that must not run twice is begun twice, and the run can be closed at any time.
    #[test]
    fn any_life_of_nested_calls_replays_and_closes(acts in prop::collection::vec(act(), 0..60)) {
        let mut world = World::with_calls(3);
        for act in &acts {
            step(&mut world, act);
            if let Some(run) = &world.state.run {
                let copy: Run = serde_json::from_str(&serde_json::to_string(run).unwrap()).unwrap();
                prop_assert_eq!(&copy, run);
                let mut copied = world.state.clone();
                copied.run = Some(copy);
                let next = world.state.next(&RunLimits::default());
                prop_assert_eq!(copied.next(&RunLimits::default()), next.clone());
                // A question anywhere stops all calls that wait for it.
                if !run.pending.asked().is_empty()
                    && let NextAction::RunTools(open) = next
                {
                    let waits = |call: &PendingCall| run.pending.find(&call.call.id).unwrap().nesting.calls.is_empty();
                    prop_assert!(open.iter().all(waits));
                }
            }
            prop_assert_eq!(&world.replayed(), &world.state);
            let mut closed = World { state: world.state.clone(), journal: world.journal.clone() };
            for entry in world.state.close(RunOutcome::Cancelled, "stop") {
                closed.record(entry);
            }
            prop_assert_eq!(&closed.state.run, &None);
        }
        let intents: Vec<&CallIntent> = world.journal.iter().filter_map(|entry| match entry {
            Entry::Call(intent) if !intent.repeatable => Some(intent),
            _ => None,
        }).collect();
        for intent in &intents {
            prop_assert_eq!(intents.iter().filter(|other| other.id == intent.id).count(), 1);
        }
    }
}
