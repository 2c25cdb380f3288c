//! The helper as a program of its own, for programs that cannot be their own helper.
//!
//! Effects: the environment, the terminal, the local disk (writes), the network, processes.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args_os();
    stead_sandbox::run_helper(args).unwrap_or_else(|| {
        let about = "This program is started by Stead inside a sandbox; it does nothing by itself.";
        // Fails if nobody listens.
        let _ = writeln!(std::io::stderr(), "{about}");
        ExitCode::from(2)
    })
}
