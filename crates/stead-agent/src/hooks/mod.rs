//! Asking hooks: programs, addresses, models and agents that the workspace names, when something
//! happens.
//!
//! A hook can say no, add words, and change what goes on where it declared the capability. It can
//! never widen what is allowed: what it changed goes through validation and the gate like what a
//! model wrote.
//!
//! Each is told one JSON object. Every one has `event, session, run, agent, user, cwd`; beside
//! them:
//!
//! | event | matcher looks at | told | a no means |
//! |---|---|---|---|
//! | `session_start` | `new`, `resume` | `trigger` | – |
//! | `session_end` | the reason | `trigger` | – |
//! | `prompt_submit` | the prompt | `prompt` | the input is not taken; nothing is recorded |
//! | `run_start` | `input`, `resume`, `wake` | `trigger` | the run ends as failed |
//! | `run_end` | the outcome | `outcome, reason, text` | – |
//! | `before_context_build`, `after_context_build`, `before_model_call` | the model | `model {name, step, messages, tools, tokens, max_output_tokens, temperature, last}` | the run ends as failed |
//! | `after_model_call` | the model | `model {name, step, text, calls, stop}` | the answer is dropped, the run ends as failed |
//! | `before_tool_call` | every name of the tool | `tool {name, called_as, call_id, args}` | the call is denied |
//! | `after_tool_call` | every name of the tool | `tool {…, status, result, cut}` | the result is withheld |
//! | `permission_request` | every name of the tool | `tool {…}, rule` | the call is denied |
//! | `before_compaction` | `limit`, `overflow`, `manual` | `compaction {cause, before_tokens}` | nothing is left out |
//! | `after_compaction` | the same | `compaction {cause, before_tokens, after_tokens, dropped}` | – |
//! | `notification` | `permission`, `warning` | `notification {kind, text}` | – |

mod answer;
mod ask;
mod effect;
mod engine;
mod input;
mod points;
mod runtime;

pub use engine::Hooks;
pub(crate) use runtime::HookRuntime;
pub use runtime::{Delegate, HookTask};

pub(crate) use engine::HookResults;
pub(crate) use points::{HookedReply, PendingHookOutput, SessionlessHooks};
