//! `stead chat`: the terminal interface.

use super::args::{ChatArgs, Common};
use super::env::Env;
use super::error::CliError;
use std::process::ExitCode;

pub(crate) async fn chat(_: &Common, _: &Env, _: ChatArgs) -> Result<ExitCode, CliError> {
    Err(CliError::usage("not built yet"))
}
