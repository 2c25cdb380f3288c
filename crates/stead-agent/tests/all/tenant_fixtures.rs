//! Test support: tenants with confusable names and a model that detects content of another tenant.

use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use stead_core::{Block, Message, Owner, SessionId, StopReason, TenantId, ToolCall, Usage, UserId};
use stead_model::{Delta, Model, ModelError, ModelFacts, Reply, Request};
use stead_place::IsolationScope;

/// Names that a path, a key, a pattern, a collation or a reader may confuse with another, or with a
/// part of the layout.
pub(crate) fn names() -> Vec<String> {
    let long = |end: &str| format!("{}{end}", "x".repeat(256 - end.len()));
    let plain = [
        "a/b",
        "a",
        "b",
        "..",
        ".",
        "agents",
        "skills",
        "users",
        "sessions",
        "template",
        "shared",
        "global",
        "undo",
        "_default",
        "%2F",
        "a%2Fb",
        "%",
        "A",
        "а",
        "ａ",
        "é",
        "e\u{301}",
        "ﬁ",
        "fi",
        "a ",
        " a",
        "a\u{200b}",
        "@a",
        "a@b",
        "#",
        "*",
        "{a,b}",
        "a\\b",
        "../a",
    ];
    plain
        .into_iter()
        .map(str::to_owned)
        .chain([long("1"), long("2"), "Ü".repeat(128)])
        .collect()
}

/// Ids that a session may have, and a part of the layout has too.
const SESSION_IDS: [&str; 8] = [
    "agents", "skills", "users", "index", "undo", "outside", "shared", "а",
];

/// One session of one owner, by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Visit {
    pub(crate) tenant: usize,
    pub(crate) user: usize,
    pub(crate) session: usize,
}

impl Visit {
    /// What is found in all that this session writes, and in nothing else.
    pub(crate) fn mark(self) -> String {
        format!("⟦{}.{}.{}⟧", self.tenant, self.user, self.session)
    }

    pub(crate) fn id(self) -> SessionId {
        let id = SESSION_IDS
            .get(self.session)
            .map_or_else(|| format!("s{}", self.session), |id| (*id).to_owned());
        SessionId::new(id).unwrap()
    }

    /// The owner, where the two parties are called `tenants`.
    pub(crate) fn owner(self, tenants: [&str; 2]) -> Owner {
        owner(tenants[self.tenant], &names()[self.user])
    }
}

pub(crate) fn owner(tenant: &str, user: &str) -> Owner {
    Owner {
        tenant: TenantId::new(tenant).unwrap(),
        user: UserId::new(user).unwrap(),
    }
}

/// All marks in a text.
pub(crate) fn marks(text: &str) -> Vec<Visit> {
    let visit = |mark: &str| {
        let numbers: Vec<usize> = mark
            .split_once('⟧')?
            .0
            .split('.')
            .filter_map(|n| n.parse().ok())
            .collect();
        let [tenant, user, session] = numbers[..] else {
            return None;
        };
        Some(Visit {
            tenant,
            user,
            session,
        })
    };
    // What follows is a number, or it is somebody who looks for marks.
    let begun = text
        .split('⟦')
        .skip(1)
        .filter(|mark| mark.starts_with(|c: char| c.is_ascii_digit()));
    // A search cuts long lines, perhaps within a mark; whole ones tell enough.
    begun.filter_map(visit).collect()
}

/// Whether `one` may see what `other` wrote to a file.
pub(crate) fn shares(scope: IsolationScope, one: Visit, other: Visit) -> bool {
    match scope {
        IsolationScope::Session => one == other,
        IsolationScope::User => (one.tenant, one.user) == (other.tenant, other.user),
        IsolationScope::Agent | IsolationScope::Global => one.tenant == other.tenant,
    }
}

/// Whether `one` may see the sessions of `other`.
pub(crate) fn shares_sessions(scope: IsolationScope, one: Visit, other: Visit) -> bool {
    match scope {
        IsolationScope::Session => shares(IsolationScope::User, one, other),
        IsolationScope::User | IsolationScope::Agent | IsolationScope::Global => {
            shares(scope, one, other)
        }
    }
}

/// Small, and the same everywhere.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Works for everybody, on the same paths, and looks at all it is shown.
#[derive(Debug)]
pub(crate) struct Witness {
    scope: IsolationScope,
    seed: u64,
    pub(crate) requests: AtomicUsize,
    /// Marks of others that were shown as they should be.
    pub(crate) shared: AtomicUsize,
    /// Whose marks were shown to whom.
    pub(crate) leaks: Mutex<Vec<(Visit, Visit)>>,
}

impl Witness {
    pub(crate) fn new(scope: IsolationScope, seed: u64) -> Self {
        let count = AtomicUsize::default;
        Self {
            scope,
            seed,
            requests: count(),
            shared: count(),
            leaks: Mutex::default(),
        }
    }

    /// Looks at the prompt, and at what is new to it: all at the beginning of a run, then what came
    /// since.
    fn look(&self, visit: Visit, request: &Request, step: usize) {
        let known = if step == 0 {
            0
        } else {
            request.messages.len().saturating_sub(2)
        };
        let said = request.messages[known..]
            .iter()
            .map(|message| serde_json::to_string(message).unwrap());
        let shown: Vec<String> = request
            .system
            .iter()
            .map(|part| part.text.clone())
            .chain(said)
            .collect();
        for mark in shown
            .iter()
            .flat_map(|text| marks(text))
            .filter(|mark| *mark != visit)
        {
            if shares(self.scope, visit, mark) {
                self.shared.fetch_add(1, Ordering::Relaxed);
            } else {
                self.leaks.lock().unwrap().push((visit, mark));
            }
        }
    }

    /// The next call of a run, none when it is done.
    fn call(&self, visit: Visit, input: &str, step: usize) -> Option<(&'static str, Value)> {
        const STEPS: usize = 3;
        let mark = visit.mark();
        let note = format!("notes/{}.txt", visit.id());
        if input.starts_with("again") {
            return (step == 0).then(|| ("read_file", json!({"file_path": note})));
        }
        let mut rng = Rng(self.seed
            ^ ((visit.tenant << 40) | (visit.user << 20) | (visit.session << 4) | step) as u64);
        let line = format!("{mark} {step}\n");
        Some(match step {
            // Sessions of different owners have the same ids; where users share, they share this
            // file.
            0 => (
                "write_file",
                json!({"file_path": note, "content": line, "mode": "append"}),
            ),
            1..STEPS => match rng.below(8) {
                0 | 1 => (
                    "write_file",
                    json!({"file_path": "log.txt", "content": line, "mode": "append"}),
                ),
                2 => (
                    "overwrite_file",
                    json!({"file_path": "common/state.md", "content": line}),
                ),
                3 => (
                    "overwrite_file",
                    json!({"file_path": "AGENTS.md", "content": format!("You serve {line}")}),
                ),
                4 => ("read_file", json!({"file_path": "log.txt"})),
                5 => ("ls", json!({"path": "notes"})),
                6 => ("grep_files", json!({"pattern": "⟦", "literal": true})),
                _ => ("glob_files", json!({"pattern": "**"})),
            },
            STEPS => ("read_file", json!({"file_path": note})),
            _ => return None,
        })
    }
}

impl Model for Witness {
    fn facts(&self) -> &ModelFacts {
        static FACTS: ModelFacts = ModelFacts::unknown(Cow::Borrowed("test:witness"));
        &FACTS
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        // What the harness says in a person's place has no mark.
        let input_of = |message: &Message| match message {
            Message::User { .. } => marks(&message.text())
                .first()
                .map(|visit| (*visit, message.text())),
            Message::Assistant { .. } | Message::Tool { .. } => None,
        };
        let inputs = request.messages.iter().enumerate().rev();
        let (last, (visit, input)) = inputs
            .filter_map(|(at, m)| Some((at, input_of(m)?)))
            .next()
            .unwrap();
        let step = request.messages[last..]
            .iter()
            .filter(|m| matches!(&***m, Message::Assistant { .. }))
            .count();
        self.look(visit, request, step);
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let (content, stop) = match self.call(visit, &input, step) {
            Some((name, args)) => {
                let id = format!("c{}", request.messages.len());
                let call = ToolCall {
                    id,
                    name: name.to_owned(),
                    args,
                    invalid: None,
                    signature: None,
                };
                (Block::ToolCall(call), StopReason::ToolUse)
            }
            None => (
                Block::text(format!("done {}", visit.mark())),
                StopReason::EndTurn,
            ),
        };
        let reply = Reply {
            content: vec![content],
            usage: Usage::default(),
            stop,
            model: self.name().to_owned(),
        };
        let mut pauses = Rng(self.seed ^ number as u64).below(4);
        Box::pin(futures_util::stream::once(async move {
            while pauses > 0 {
                pauses -= 1;
                tokio::task::yield_now().await;
            }
            Ok(Delta::Done(Box::new(reply)))
        }))
    }
}
