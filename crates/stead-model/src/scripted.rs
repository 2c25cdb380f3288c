//! A model that plays a script: deterministic, with no network and no key.
//!
//! Effects: the clock, the local disk (reads).

mod condition;
mod deltas;
mod script;
#[cfg(test)]
mod tests;

use crate::{Delta, Model, ModelError, ModelFacts, Reply, Request, files};
use condition::{Condition, SentPrompt};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use script::{ModelScript, ScriptAction, ScriptAnswer, ScriptDeltas, ScriptUsage};
use serde::Serialize;
use std::io;
use std::path::Path;
use stead_core::{Price, Usage};

/// The number of bytes per token if no usage is given.
const BYTES_PER_TOKEN: usize = 4;

/// A model that plays a script.
///
/// A script is a YAML list; each item answers one model call.
///
/// ```yaml
/// - text: I'll look at the folder first.
///   calls: [{tool: ls, args: {path: .}}]
///
/// - when: {tool_result_contains: notes.md}   # taken only if this was sent; otherwise `else`, or the next item
///   text: There are notes.
///   else: {text: The folder is empty.}
///
/// - error: {kind: rate_limited, retry_after_ms: 10, times: 2}   # any variant of `ModelError`
///
/// - expect: {last_contains: thanks}   # fails the call with an explanation if it was not sent
///   thinking: They are polite.
///   text: You are welcome.
///   chunk: 4        # characters per piece
///   delay_ms: 30    # before each piece
///   usage: {input_tokens: 1200, output_tokens: 40}   # otherwise a quarter of the bytes
///
/// - loop: true      # start again; without it, a call after the last item is an error
/// ```
///
/// A call takes the first item after the previously taken one whose `when` holds. Conditions are
/// `last_contains` (since the model's last answer), `tool_result_contains` (tool results since
/// then), `user_contains`, `any_contains` and `system_contains`; each is a text or a list of texts,
/// and all must hold. `calls[].args` may be a text, which then is what the model wrote, valid or
/// not. An item with `error` and `text` fails after the text has arrived.
///
/// The position in the script is not stored but found by playing the conversation through it again:
/// a session that is killed and resumed continues at the right item, and any number of sessions can
/// share a script. Errors leave no trace in a conversation, so only they are counted in memory:
/// each happens `times` times (default 1) in the life of the model. Answers that a compaction
/// removed from the conversation are taken again: a script for such a session distinguishes its
/// items by `when`.
#[derive(Debug)]
pub struct ScriptedModel {
    facts: ModelFacts,
    file: String,
    script: ModelScript,
}

/// The result of a call.
enum ScriptTurn<'a> {
    Answer(&'a ScriptAnswer),
    Failure(&'a ScriptDeltas, ModelError),
}

impl ScriptedModel {
    /// Parses a script from its text; `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelError> {
        let script = ModelScript::parse(file, text)?;
        Ok(Self {
            facts: ModelFacts::unknown(format!("scripted:{file}").into()),
            file: file.to_owned(),
            script,
        })
    }

    /// Reads a script from its file.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        Self::parse(&path.to_string_lossy(), &files::read(path)?)
    }

    /// Sets the price of its answers.
    pub fn with_price(self, price: Option<Price>) -> Self {
        let facts = self.facts.with_price(price);
        Self { facts, ..self }
    }

    /// Plays the conversation through the script up to the requested answer.
    fn next_turn(&self, request: &Request) -> Result<ScriptTurn<'_>, ModelError> {
        let mut next = 0;
        let mut call = 0;
        let mut views = SentPrompt::for_each_answer(request).peekable();
        while let Some(seen) = views.next() {
            call += 1;
            let now = views.peek().is_none();
            let holds = |condition: &Condition| condition.holds(&seen);
            let acts = self
                .candidate_steps(next)
                .filter_map(|at| Some((at, self.script.steps[at].action_when(&holds)?)));
            let mut taken = None;
            for (at, act) in acts {
                match act {
                    ScriptAction::Fail(failure) if now && failure.take_occurrence() => {
                        return Ok(ScriptTurn::Failure(&failure.pieces, failure.error.clone()));
                    }
                    ScriptAction::Fail(_) => {}
                    ScriptAction::Answer(answer) => {
                        taken = Some((at, answer));
                        break;
                    }
                }
            }
            let (at, answer) = taken.ok_or_else(|| self.no_answer(call, next))?;
            if now {
                return self.check_expectation(at, answer, &seen);
            }
            next = at + 1;
        }
        Err(self.no_answer(call, next))
    }

    /// Returns the steps that may be taken, in order, after those before `next`.
    fn candidate_steps(&self, next: usize) -> impl Iterator<Item = usize> {
        let again = if self.script.looped { 0..next } else { 0..0 };
        (next..self.script.steps.len()).chain(again)
    }

    fn check_expectation<'a>(
        &'a self,
        at: usize,
        answer: &'a ScriptAnswer,
        seen: &SentPrompt<'_>,
    ) -> Result<ScriptTurn<'a>, ModelError> {
        match answer.expect.first_missing(seen) {
            None => Ok(ScriptTurn::Answer(answer)),
            Some(missing) => {
                let file = &self.file;
                let line = self.script.steps[at].line;
                Err(ModelError::Config(format!(
                    "{file}:{line}: the script expects {missing}, which was not sent"
                )))
            }
        }
    }

    fn no_answer(&self, call: usize, next: usize) -> ModelError {
        let why = match self.candidate_steps(next).next() {
            None => "it ends before that",
            Some(_) => "no remaining item's `when` holds",
        };
        ModelError::Config(format!(
            "script {} has no answer for model call {call}: {why}",
            self.file
        ))
    }

    fn reply(&self, answer: &ScriptAnswer, request: &Request) -> Reply {
        let ScriptUsage {
            input_tokens,
            cache_read_tokens,
            cache_write_tokens,
            output_tokens,
            reasoning_tokens,
        } = answer.usage;
        let usage = Usage {
            input_tokens: input_tokens.unwrap_or_else(|| estimate_input_tokens(request)),
            cache_read_tokens,
            cache_write_tokens,
            output_tokens: output_tokens
                .unwrap_or_else(|| estimate_tokens(json_bytes(&answer.content))),
            reasoning_tokens,
        };
        Reply {
            content: answer.content.clone(),
            usage,
            stop: answer.stop.clone(),
            model: self.facts.name.to_string(),
        }
    }
}

impl Model for ScriptedModel {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let (pieces, end) = match self.next_turn(request) {
            Ok(ScriptTurn::Answer(answer)) => (
                &answer.pieces,
                Ok(Delta::Done(Box::new(self.reply(answer, request)))),
            ),
            Ok(ScriptTurn::Failure(pieces, error)) => (pieces, Err(error)),
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let all = stream::iter(pieces.deltas.iter().cloned().map(Ok).chain([end]));
        let delay = pieces.delay;
        if delay.is_zero() {
            return all.boxed();
        }
        all.then(move |piece| async move {
            tokio::time::sleep(delay).await;
            piece
        })
        .boxed()
    }
}

fn estimate_input_tokens(request: &Request) -> u64 {
    let system: usize = request.system.iter().map(|part| part.text.len()).sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.description.len() + json_bytes(&tool.parameters))
        .sum();
    let messages: usize = request.messages.iter().map(json_bytes).sum();
    estimate_tokens(system + tools + messages)
}

fn estimate_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

/// Returns the length of a value as JSON.
fn json_bytes(value: &impl Serialize) -> usize {
    let mut count = ByteCounter(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
