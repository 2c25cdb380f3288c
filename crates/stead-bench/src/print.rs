//! Printing the results of measurements.
//!
//! Effects: the terminal.

use std::fmt::Display;
use std::io::Write;

/// Prints `value` on its own line. Failures are ignored.
pub(crate) fn print_line(value: &dyn Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}
