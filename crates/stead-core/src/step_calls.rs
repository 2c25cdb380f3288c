//! The calls of one step and their progress, with the calls that they make themselves.
//!
//! Effects: none.

use crate::{AskTerms, CallResult, NestedCall, NestedId, RuleId, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;

/// Steps with more calls than this have an index by id.
const MAX_UNINDEXED_CALLS: usize = 16;

/// A call of the current step, or a nested call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The call.
    pub call: ToolCall,
    /// Its progress.
    pub state: CallState,
    /// What it has to do with nested calls.
    #[serde(default, skip_serializing_if = "Nesting::is_empty")]
    pub nesting: Nesting,
}

/// What a call has to do with nested calls: those it made, and, if it is one itself, what it was
/// made with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Nesting {
    /// The hash of the arguments that the calling tool gave, if this is a nested call. Hooks and
    /// people may have changed the arguments since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_hash: Option<String>,
    /// Whether its result, or that of a call it made, is untrusted content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The calls that it made, by ordinal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<u32, PendingCall>,
}

impl Nesting {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CallState {
    /// Nothing was done yet.
    New,
    /// A person was asked.
    Asked {
        /// The hash of the arguments that the question is about.
        args_hash: String,
        /// A sentence that explains why it is asked.
        rule: String,
        /// The rules that ask.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<RuleId>,
        /// How it may be answered.
        #[serde(default)]
        terms: AskTerms,
    },
    /// A person approved exactly these arguments.
    Approved {
        /// The hash of the arguments.
        args_hash: String,
        /// The versions of the files that the approval is bound to, by path.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, String>,
        /// Proves that the person approved it on this account.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<String>,
    },
    /// A person rejected the call.
    Rejected {
        /// The person.
        by: String,
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        words: Option<String>,
    },
    /// A person gave the result instead.
    Responded {
        /// The person.
        by: String,
        /// The result.
        words: String,
    },
    /// The intent is recorded; the call may be running or have run.
    Begun {
        /// Whether it may be run again.
        repeatable: bool,
    },
    /// Its result is recorded.
    Done {
        /// The result.
        result: ToolResult,
    },
}

impl PendingCall {
    /// Returns a call of a model about which nothing was done yet.
    pub fn new(call: ToolCall) -> Self {
        Self {
            call,
            state: CallState::New,
            nesting: Nesting::default(),
        }
    }

    /// Returns the nested call `id` about which nothing was done yet.
    pub fn nested(id: impl Into<String>, nested: &NestedCall) -> Self {
        let call = ToolCall {
            id: id.into(),
            name: nested.name.clone(),
            args: nested.args.clone(),
            invalid: None,
            signature: None,
        };
        let given_hash = Some(crate::args_hash(&call.args));
        Self {
            nesting: Nesting {
                given_hash,
                ..Nesting::default()
            },
            ..Self::new(call)
        }
    }

    /// Returns whether its result is recorded.
    pub fn is_done(&self) -> bool {
        matches!(self.state, CallState::Done { .. })
    }

    /// Returns whether a person is asked about it.
    pub fn is_asked(&self) -> bool {
        matches!(self.state, CallState::Asked { .. })
    }

    /// Adds this call and all calls below it to `all`, callers before the calls they made.
    fn collect<'a>(&'a self, all: &mut Vec<&'a Self>) {
        all.push(self);
        for nested in self.nesting.calls.values() {
            nested.collect(all);
        }
    }

    /// Adds this call and all calls below it that have no result to `open`, callers after the calls
    /// they made.
    pub(crate) fn collect_open<'a>(&'a self, open: &mut Vec<&'a Self>) {
        for nested in self.nesting.calls.values() {
            nested.collect_open(open);
        }
        if !self.is_done() {
            open.push(self);
        }
    }

    /// Returns this call as it is run: without the calls it made.
    pub(crate) fn alone(&self) -> Self {
        let nesting = Nesting {
            given_hash: self.nesting.given_hash.clone(),
            untrusted: self.nesting.untrusted,
            calls: BTreeMap::new(),
        };
        Self {
            call: self.call.clone(),
            state: self.state.clone(),
            nesting,
        }
    }
}

/// The calls of one step, in the model's order. Each is found by its id without a search.
#[derive(Debug, Clone, Default)]
pub struct StepCalls {
    calls: Vec<PendingCall>,
    /// The positions by id; empty if there are few calls.
    by_id: HashMap<Box<str>, usize>,
    /// The number of calls without a result.
    open: usize,
}

impl StepCalls {
    /// Returns calls of a model about which nothing was done yet.
    pub fn new(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        calls.into_iter().map(PendingCall::new).collect()
    }

    /// Returns the call with this id, nested or not.
    pub fn find(&self, id: &str) -> Option<&PendingCall> {
        if let Some(position) = self.position(id) {
            return self.calls.get(position);
        }
        let NestedId { parent, ordinal } = NestedId::within_limit(id)?;
        self.find(parent)?.nesting.calls.get(&ordinal)
    }

    pub(crate) fn find_mut(&mut self, id: &str) -> Option<&mut PendingCall> {
        if let Some(position) = self.position(id) {
            return self.calls.get_mut(position);
        }
        let NestedId { parent, ordinal } = NestedId::within_limit(id)?;
        self.find_mut(parent)?.nesting.calls.get_mut(&ordinal)
    }

    /// Returns all calls, nested ones after the call that made them.
    pub fn all(&self) -> Vec<&PendingCall> {
        let mut all = Vec::with_capacity(self.calls.len());
        self.calls.iter().for_each(|call| call.collect(&mut all));
        all
    }

    /// Returns the calls that people are asked about, nested or not.
    pub fn asked(&self) -> Vec<&PendingCall> {
        let mut asked = Vec::new();
        for call in &self.calls {
            match call.nesting.calls.is_empty() {
                true => asked.extend(call.is_asked().then_some(call)),
                false => {
                    let mut all = Vec::new();
                    call.collect(&mut all);
                    asked.extend(all.into_iter().filter(|call| call.is_asked()));
                }
            }
        }
        asked
    }

    /// Returns the calls without a result, callers after the calls they made.
    pub(crate) fn open(&self) -> Vec<&PendingCall> {
        let mut open = Vec::new();
        self.calls
            .iter()
            .for_each(|call| call.collect_open(&mut open));
        open
    }

    /// Returns whether every call has its result.
    pub(crate) fn are_done(&self) -> bool {
        self.open == 0
    }

    /// Returns the calls in the model's order.
    pub(crate) fn into_calls(self) -> Vec<PendingCall> {
        self.calls
    }

    /// Adds a nested call. The call that made it must be running and repeatable: only then can it be
    /// run again to take up the result.
    pub(crate) fn introduce(&mut self, id: &str, nested: &NestedCall) -> Result<(), &'static str> {
        let Some(NestedId { parent, ordinal }) = NestedId::within_limit(id) else {
            return Err("the id is not that of a nested call");
        };
        if parent != nested.parent {
            return Err("the id does not name the call that made it");
        }
        let caller = self
            .find_mut(parent)
            .ok_or("the call that made it is not in this step")?;
        if caller.state != (CallState::Begun { repeatable: true }) {
            return Err("the call that made it is not running, or could not be resumed");
        }
        if caller.nesting.calls.contains_key(&ordinal) {
            return Err("the nested call is known");
        }
        let call = PendingCall::nested(id, nested);
        caller.nesting.calls.insert(ordinal, call);
        Ok(())
    }

    /// Gives a call without a result the one that entry `seq` has. The calls that it made are
    /// dropped.
    pub(crate) fn finish(&mut self, seq: u64, result: &CallResult) -> Result<(), &'static str> {
        let is_models = self.position(&result.id).is_some();
        let call = self
            .find_mut(&result.id)
            .ok_or("no such call in this step")?;
        if call.is_done() {
            return Err("the call has a result");
        }
        if call.nesting.calls.values().any(|nested| !nested.is_done()) {
            return Err("calls that the call made are open");
        }
        call.nesting.calls = BTreeMap::new();
        call.state = CallState::Done {
            result: ToolResult {
                id: result.id.clone(),
                name: call.call.name.clone(),
                status: result.status,
                exit_code: result.exit_code,
                content: result.content.clone(),
                seq,
            },
        };
        if is_models {
            self.open -= 1;
        }
        if result.untrusted {
            self.taint(&result.id);
        }
        Ok(())
    }

    /// Notes that a call took in untrusted content, and so did those above it.
    fn taint(&mut self, id: &str) {
        let mut above = Some(id);
        while let Some(id) = above {
            if let Some(call) = self.find_mut(id) {
                call.nesting.untrusted = true;
            }
            above = NestedId::within_limit(id).map(|id| id.parent);
        }
    }

    /// Returns the position of a call of the model.
    fn position(&self, id: &str) -> Option<usize> {
        match self.by_id.is_empty() {
            true => self.calls.iter().position(|known| known.call.id == id),
            false => self.by_id.get(id).copied(),
        }
    }
}

impl FromIterator<PendingCall> for StepCalls {
    fn from_iter<I: IntoIterator<Item = PendingCall>>(calls: I) -> Self {
        let calls: Vec<PendingCall> = calls.into_iter().collect();
        let mut by_id = HashMap::new();
        if calls.len() > MAX_UNINDEXED_CALLS {
            by_id.reserve(calls.len());
            for (position, known) in calls.iter().enumerate() {
                by_id
                    .entry(Box::from(known.call.id.as_str()))
                    .or_insert(position);
            }
        }
        let open = calls.iter().filter(|call| !call.is_done()).count();
        Self { calls, by_id, open }
    }
}

impl Deref for StepCalls {
    type Target = [PendingCall];

    fn deref(&self) -> &[PendingCall] {
        &self.calls
    }
}

impl PartialEq for StepCalls {
    /// The index and the count follow from the calls.
    fn eq(&self, other: &Self) -> bool {
        self.calls == other.calls
    }
}

impl Serialize for StepCalls {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.calls.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StepCalls {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<PendingCall>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}
