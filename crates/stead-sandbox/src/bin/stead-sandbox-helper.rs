//! The helper as a program of its own, for programs that cannot be their own helper.
//!
//! Effects: the environment, the terminal, the local disk (writes), the network, processes.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args_os();
    stead_sandbox::run_helper(args).unwrap_or_else(|| {
        eprintln!("This program is started by Stead inside a sandbox; it does nothing by itself.");
        ExitCode::from(2)
    })
}
