//! Hooks: programs, HTTP endpoints, models and agents of the workspace that are asked at points of
//! a run.
//!
//! A hook can refuse, add text for the model, and change what it declared a capability for. Its
//! changes go through validation and the gate like those of a model. A hook that declares
//! `answer_permission` may answer `permission_request` with yes in place of a person; nowhere else
//! does an `allow` have an effect.
//!
//! [`run_hooks`] is called by the run and collects the facts, `engine` asks the hooks of an event one
//! after another, `ask` runs the program, request, model or agent of one hook, and `answer` and
//! `effect` read its answer. Only `ask` reaches programs, other machines and models.
//!
//! A hook reads one JSON object. It always has `event, session, run, agent, user, cwd`, and besides
//! them:
//!
//! | event | matcher is applied to | facts | effect of a refusal |
//! |---|---|---|---|
//! | `session_start` | `new`, `resume` | `trigger` | – |
//! | `session_end` | the reason | `trigger` | – |
//! | `prompt_submit` | the prompt | `prompt` | the input or message is not taken |
//! | `run_start` | `input`, `resume`, `wake`; `message` | `trigger` | the run ends as failed |
//! | `run_end` | the outcome; `message` | `outcome, reason, text` | – |
//! | `before_context_build`, `after_context_build`, `before_model_call` | the model | `model {name, step, messages, tools, tokens, max_output_tokens, temperature, last}` | the run ends as failed |
//! | `after_model_call` | the model | `model {name, step, text, calls, stop}` | the reply is dropped, the run ends as failed |
//! | `before_tool_call` | every name of the tool | `tool {name, called_as, call_id, parent?, args, input, raw_args, paths}` | the call is denied |
//! | `after_tool_call` | every name of the tool | `tool {…, status, result, cut}` | the result is withheld |
//! | `permission_request` | every name of the tool | `tool {…}, rule` | the call is denied |
//! | `before_compaction` | `limit`, `overflow`, `manual` | `compaction {cause, before_tokens}` | nothing is left out |
//! | `after_compaction` | `limit`, `overflow`, `manual` | `compaction {cause, before_tokens, after_tokens, dropped}` | – |
//! | `notification` | `permission`, `warning` | `notification {kind, text}` | – |
//!
//! The object also has the names that hooks of other harnesses look for (`hook_event_name`,
//! `tool_input`, …).
//!
//! Effects: none.

mod answer;
mod ask;
mod effect;
mod engine;
mod input;
mod run_hooks;
mod runtime;

pub use engine::Hooks;
pub(crate) use runtime::HookRuntime;
pub use runtime::{Delegate, HookTask};

pub(crate) use engine::HookResults;
pub(crate) use run_hooks::{BeforeToolOutcome, HookedReply, RunHooks, Submission, submit};
