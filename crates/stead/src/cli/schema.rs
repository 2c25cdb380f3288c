//! `stead schema`: JSON schemas for editors.
//!
//! Effects: the terminal.

use super::args::{SchemaArgs, SettingsFile};
use super::print::outln;
use std::process::ExitCode;
use stead::workspace::{agent_schema, profile_schema, tools_schema};

pub(crate) fn schema(args: &SchemaArgs) -> ExitCode {
    let schema = match args.file {
        SettingsFile::Agent => agent_schema(),
        SettingsFile::Tools => tools_schema(),
        SettingsFile::Profile => profile_schema(),
    };
    outln!("{schema:#}");
    ExitCode::SUCCESS
}
