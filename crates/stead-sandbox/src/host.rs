//! Running commands directly on the machine.
//!
//! Effects: the clock, randomness, the local disk (reads), processes.

use crate::{Exec, ExecLimits, ExecOutcome, Isolation, OutputSink, Sandbox, SandboxError, capture};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use tokio::process::Command;

const SH: &str = "/bin/sh";
/// The default search path.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Default variables of every command, for programs without a terminal. The caller can override
/// them.
pub(crate) const DEFAULT_ENV: [(&str, &str); 8] = [
    ("TERM", "dumb"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // A command that only reads writes no index, and so starts no hook.
    ("GIT_OPTIONAL_LOCKS", "0"),
    // Prevents git from running programs that a folder or a repository's own settings name.
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    ("GIT_CONFIG_KEY_1", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_1", "false"),
];
/// Sets limits that the command cannot raise, then becomes the shell `$0`, which runs the command
/// `$1`.
const PRELUDE: &str = r#"ulimit -c 0; exec "$0" -c "$1""#;

/// Runs commands on this machine without isolation: they can do everything that the user who runs
/// this process can.
///
/// Commands run in `bash` if it exists, because models write bash, and in `/bin/sh` otherwise. A
/// command sees the variables it is given and none of this process. It leaves no core dump.
#[derive(Clone)]
pub struct Host {
    env: BTreeMap<String, String>,
    shell: PathBuf,
}

impl Host {
    /// Variables of this process that commands may inherit: those that programs need, and none that
    /// holds a key. The last one is the id of a command that this process itself belongs to.
    pub const INHERITED_VARIABLES: [&str; 19] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "LC_COLLATE",
        "LC_MESSAGES",
        "LC_MONETARY",
        "LC_NUMERIC",
        "LC_TIME",
        "LC_PAPER",
        "LC_MEASUREMENT",
        crate::EXEC_ID_ENV,
    ];

    /// Creates a host whose commands get the variables `env`. A `PATH` is added if there is none.
    pub fn new(env: impl IntoIterator<Item = (String, String)>) -> Self {
        let fixed = DEFAULT_ENV.into_iter().chain([("PATH", PATH)]);
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env: BTreeMap<String, String> = fixed.chain(env).collect();
        let shell = find_program(env.get("PATH").map_or(PATH, String::as_str), "bash")
            .unwrap_or_else(|| PathBuf::from(SH));
        Self { env, shell }
    }

    /// Returns the shell that runs commands.
    pub fn shell(&self) -> &Path {
        &self.shell
    }
}

/// Returns the first program of a name on the path.
pub(crate) fn find_program(path: &str, name: &str) -> Option<PathBuf> {
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders
        .map(|folder| Path::new(folder).join(name))
        .find(|program| program.is_file())
}

impl fmt::Debug for Host {
    /// Omits the values of variables, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("shell", &self.shell)
            .field("env", &self.env.keys())
            .finish()
    }
}

impl Sandbox for Host {
    fn describe(&self) -> String {
        let shell = self.shell.file_name().unwrap_or_default().display();
        format!("with `{shell}` on this machine, outside any sandbox")
    }

    fn isolation(&self) -> Isolation {
        Isolation::NONE
    }

    fn exec<'a>(
        &'a self,
        exec: Exec,
        sink: &'a mut dyn OutputSink,
    ) -> BoxFuture<'a, Result<ExecOutcome, SandboxError>> {
        Box::pin(async move {
            let Exec {
                command: text,
                cwd,
                env,
                mounts: _,
                timeout,
                cancel,
            } = exec;
            let mut command = Command::new(SH);
            command.args(["-c", PRELUDE]).arg(&self.shell).arg(text);
            command
                .current_dir(cwd)
                .env_clear()
                .envs(&self.env)
                .envs(env);
            capture(command, sink, &ExecLimits { timeout, cancel }).await
        })
    }
}
