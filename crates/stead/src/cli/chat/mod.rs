//! `stead chat`: the terminal interface.
//!
//! Decisions are apart from I/O: [`state`] turns keys and events into commands, [`view`] turns
//! state into cells, and only [`app`] and [`terminal`] do I/O.
//!
//! Exit codes: 0 when left at an idle prompt (`/quit`, Ctrl-D, Ctrl-C), 130 when left during a run
//! or by a signal.
//!
//! Effects: all.

mod app;
mod complete;
mod custom_commands;
mod editor;
mod highlight;
mod input_history;
mod markdown;
mod notify;
mod pasted;
mod slash;
mod state;
mod terminal;
mod todos;
mod transcript;
mod view;
mod wrap;

use super::args::{ChatArgs, GlobalArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use std::process::ExitCode;

pub(crate) async fn chat(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: ChatArgs,
) -> Result<ExitCode, CliError> {
    if !env.stdin_is_terminal || !env.stdout_is_terminal {
        return Err(CliError::usage(
            "stead chat needs a terminal; without one use: stead run \"…\"",
        ));
    }
    Box::pin(app::App::open(common, env, args).await?.run()).await
}
