//! The `stead` command.
//!
//! Effects: all.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
