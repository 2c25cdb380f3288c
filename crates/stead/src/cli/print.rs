//! Printing that outlives its reader: `println!` panics when a pipe is closed or a disk is full.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints to standard output. A reader that has seen enough (`| head`) ends the command quietly;
/// any other failure ends it with a message.
pub(crate) fn out(text: Arguments<'_>) {
    if let Err(error) = try_out(text) {
        if error.kind() != ErrorKind::BrokenPipe {
            err(format_args!(
                "stead: cannot write to standard output: {error}\n"
            ));
            std::process::exit(1);
        }
        std::process::exit(0);
    }
}

/// Prints to standard output and says whether that was possible.
pub(crate) fn try_out(text: Arguments<'_>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush())
}

/// Prints to standard error; if nobody listens there, there is nobody to tell.
pub(crate) fn err(text: Arguments<'_>) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_fmt(text).and_then(|()| err.flush());
}

/// `println!` that does not panic.
macro_rules! outln {
    () => { $crate::cli::print::out(format_args!("\n")) };
    ($($arg:tt)*) => { $crate::cli::print::out(format_args!("{}\n", format_args!($($arg)*))) };
}

/// `eprintln!` that does not panic.
macro_rules! errln {
    ($($arg:tt)*) => { $crate::cli::print::err(format_args!("{}\n", format_args!($($arg)*))) };
}

pub(crate) use {errln, outln};
