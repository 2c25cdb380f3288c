//! The helper: what runs inside a sandbox before a command.
//!
//! A sandbox begins with the program that uses this library itself, called with [`HELPER_ARGUMENT`].
//! [`run_helper`] reads a [`Setup`] as JSON from a file, puts up the walls that only a process itself can put up,
//! limits of resources, Landlock and a filter of system calls, and becomes the command. If the
//! command may reach hosts, the helper stays beside it and passes its connections on.
//!
//! Effects: the terminal, the local disk (writes), the network, processes.

mod forward;
mod landlock;
mod syscalls;

pub(crate) use forward::PROXY_PORT;

use crate::ResourceLimits;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The first argument of a program that is to be the helper.
pub const HELPER_ARGUMENT: &str = "stead-sandbox-helper";
/// Where the helper finds its [`Setup`].
pub(crate) const SETUP_FILE: &str = "/run/stead/setup";
/// The file to which the helper writes a byte when all walls are up.
pub(crate) const BEGUN_FILE: &str = "/run/stead/begun";
/// The exit code if the walls cannot be put up: nothing has run then.
pub(crate) const HELPER_FAILED: u8 = 125;
/// How the line begins that says why the walls cannot be put up.
pub(crate) const HELPER_COMPLAINT: &str = "stead: the sandbox is not complete, so nothing ran: ";

/// The walls that the helper puts up, and the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The shell, the option `-c` and the command, or any other program with its arguments.
    pub(crate) command: Vec<String>,
    /// The limits of each process.
    pub(crate) limits: ResourceLimits,
    /// The rights on files; without them there is no such wall.
    pub(crate) files: Option<FileRights>,
    /// Whether system calls are filtered.
    pub(crate) syscalls: SyscallFilter,
    /// The socket of the proxy, if the command may reach hosts.
    pub(crate) proxy: Option<PathBuf>,
}

/// The files that a command can use, for Landlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRights {
    /// Files and folders that it can read and run.
    pub(crate) readable: Vec<PathBuf>,
    /// Files and folders that it can also change.
    pub(crate) writable: Vec<PathBuf>,
}

/// Whether system calls are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyscallFilter {
    /// They are.
    On,
    /// They are not, for tests of the other walls.
    Off,
}

/// Becomes the helper if the first argument of this process is [`HELPER_ARGUMENT`]. A program whose
/// sandboxes use it as their helper calls this first of all, before it starts a thread.
pub fn run_helper(mut args: impl Iterator<Item = std::ffi::OsString>) -> Option<ExitCode> {
    let _program = args.next();
    if args.next()?.to_str()? != HELPER_ARGUMENT {
        return None;
    }
    let ended = read_setup().and_then(|setup| become_command(&setup));
    Some(ended.unwrap_or_else(|failed| {
        // Fails if nobody listens.
        let _ = writeln!(io::stderr(), "{HELPER_COMPLAINT}{failed}");
        ExitCode::from(HELPER_FAILED)
    }))
}

fn read_setup() -> Result<Setup, String> {
    let read = std::fs::read(SETUP_FILE).map_err(|error| format!("{SETUP_FILE}: {error}"))?;
    serde_json::from_slice(&read).map_err(|error| format!("{SETUP_FILE}: {error}"))
}

/// Puts up the walls and runs the command. Returns only if the command has ended beside the helper,
/// or a wall could not be put up.
fn become_command(setup: &Setup) -> Result<ExitCode, String> {
    let [program, args @ ..] = setup.command.as_slice() else {
        return Err("there is no command".to_owned());
    };
    // Opened now, because later no wall lets it be opened.
    let begun = OpenOptions::new().write(true).open(BEGUN_FILE);
    let mut begun = begun.map_err(|error| format!("{BEGUN_FILE}: {error}"))?;
    limit_resources(&setup.limits).map_err(|error| format!("limits of resources: {error}"))?;
    let forwarder = setup.proxy.as_ref().map(|socket| {
        forward::Forwarder::listen(socket.clone())
            .map_err(|error| format!("the way to the proxy: {error}"))
    });
    let forwarder = forwarder.transpose()?;
    if let Some(files) = &setup.files {
        landlock::restrict(files)?;
    }
    match setup.syscalls {
        SyscallFilter::On => syscalls::filter()?,
        SyscallFilter::Off => {}
    }
    let told = begun.write_all(b"1");
    told.map_err(|error| format!("{BEGUN_FILE}: {error}"))?;
    drop(begun);
    let mut command = Command::new(program);
    command.args(args);
    let Some(forwarder) = forwarder else {
        return Err(format!("{program}: {}", command.exec()));
    };
    let ended = forwarder.beside(&mut command);
    let status = ended.map_err(|error| format!("{program}: {error}"))?;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(HELPER_FAILED)))
}

/// Sets the limits of each process. No process can raise them again.
fn limit_resources(limits: &ResourceLimits) -> io::Result<()> {
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Fsize, limits.file_size),
        (Resource::Nofile, limits.open_files),
        (Resource::Data, limits.memory),
        (Resource::Nproc, limits.processes),
    ] {
        let now = rustix::process::getrlimit(resource);
        let most = now.maximum.map_or(most, |now| now.min(most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}
