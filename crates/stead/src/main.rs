//! The `stead` command.
//!
//! Effects: the environment, the terminal, the local disk (writes), tools, the model, processes.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
