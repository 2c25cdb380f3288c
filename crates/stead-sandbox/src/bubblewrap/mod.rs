//! Running commands behind walls of the kernel on this machine, with the program `bwrap`.
//!
//! A command gets namespaces of its own for users, processes, the network, hosts' names and
//! messages between processes. It sees the system's programs and libraries read-only, an empty
//! `/tmp`, a home of its own that is kept, and the [`Mounts`] it is given. Behind these walls stand
//! Landlock, a filter of system calls, and limits of resources, which the
//! [helper](crate::run_helper) puts up. If a wall cannot be put up, nothing runs.
//!
//! Effects: the clock, randomness, the local disk (writes), the network, processes.

mod arguments;
mod system;

use crate::capture::{Keeper, capture_with};
use crate::cgroup::{Cgroup, CgroupParents};
use crate::inside::{FileRights, HELPER_COMPLAINT, PROXY_PORT, Setup, SyscallFilter};
use crate::proxy::Proxy;
use crate::{
    Access, AllowedHosts, Exec, ExecLimits, ExecOutcome, Isolation, MountAccess, Mounts,
    OutputSink, ResourceLimits, Sandbox, SandboxError, SinkState,
};
use arguments::{BEGUN, HIDDEN, HOME, MountWalls, OURS, OWN_FILES, PROXY, View, arguments};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::{SystemPart, system_parts};
use tokio::process::Command;
use tokio::time::interval;

/// The time between two looks at the free space of the disk.
const DISK_INTERVAL: Duration = Duration::from_millis(200);
/// The part of the first output that tells why a sandbox did not start.
const MAX_COMPLAINT_BYTES: usize = 2000;

/// The content of files that belong to a command alone.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
    agent:x:1000:1000:agent:/home/agent:/bin/sh\n\
    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost sandbox\n::1 localhost\n";

/// The settings of [`Bubblewrap`].
#[derive(Debug, Clone)]
pub struct BubblewrapSettings {
    /// The program that is the [helper](crate::run_helper): usually that of this process.
    pub helper: PathBuf,
    /// The folder that is the home of commands. It is made if it does not exist.
    pub home: PathBuf,
    /// The folder for what belongs to one command alone. It is made if it does not exist.
    pub runtime: PathBuf,
    /// The variables of commands.
    pub env: BTreeMap<String, String>,
    /// Folders of programs beside those of the system, read-only.
    pub tools: Vec<PathBuf>,
    /// How much of the machine a command may use.
    pub limits: ResourceLimits,
    /// The hosts that commands may reach.
    pub hosts: AllowedHosts,
}

/// Runs each command behind walls of the kernel.
pub struct Bubblewrap {
    program: PathBuf,
    shell: PathBuf,
    settings: BubblewrapSettings,
    system: Vec<SystemPart>,
    cgroups: Option<CgroupParents>,
    walls: Walls,
}

/// The walls that are put up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walls {
    mounts: MountWalls,
    landlock: LandlockWall,
    syscalls: SyscallFilter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LandlockWall {
    On,
    Off,
}

impl Walls {
    /// All of them.
    pub const ALL: Self = Self {
        mounts: MountWalls::On,
        landlock: LandlockWall::On,
        syscalls: SyscallFilter::On,
    };

    /// All but the mounts: the whole machine is mounted. For tests of the other walls.
    #[must_use]
    pub fn without_mounts(self) -> Self {
        let mounts = MountWalls::Off;
        Self { mounts, ..self }
    }

    /// All but Landlock. For tests of the other walls.
    #[must_use]
    pub fn without_landlock(self) -> Self {
        let landlock = LandlockWall::Off;
        Self { landlock, ..self }
    }

    /// All but the filter of system calls. For tests of the other walls.
    #[must_use]
    pub fn without_syscall_filter(self) -> Self {
        let syscalls = SyscallFilter::Off;
        Self { syscalls, ..self }
    }
}

/// Why bubblewrap cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BubblewrapError {
    /// The program is not there.
    #[error("`bwrap` is not installed; on Debian and Ubuntu `apt-get install bubblewrap` does it")]
    NoProgram,
    /// A folder of the settings cannot be used.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Bubblewrap {
    /// Finds `bwrap` on the path of commands, and makes the folders of the settings.
    ///
    /// Whether the kernel lets it work shows only when a command runs; see
    /// [`probe`](Bubblewrap::probe).
    pub fn new(settings: BubblewrapSettings) -> Result<Self, BubblewrapError> {
        let path = settings
            .env
            .get("PATH")
            .map_or(crate::host::PATH, String::as_str);
        let program = crate::host::find_program(path, "bwrap").ok_or(BubblewrapError::NoProgram)?;
        let shell = crate::host::find_program(path, "bash");
        for folder in [&settings.home, &settings.runtime] {
            let made = fs::create_dir_all(folder)
                .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)));
            made.map_err(|source| BubblewrapError::Folder {
                path: folder.clone(),
                source,
            })?;
        }
        let cgroups = CgroupParents::find().ok();
        if let Some(cgroups) = &cgroups {
            cgroups.remove_orphans();
        }
        Ok(Self {
            shell: shell.unwrap_or_else(|| PathBuf::from("/bin/sh")),
            system: system_parts(),
            walls: Walls::ALL,
            cgroups,
            program,
            settings,
        })
    }

    /// Leaves walls out. For tests of the others.
    #[must_use]
    pub fn with_walls(self, walls: Walls) -> Self {
        Self { walls, ..self }
    }

    /// Runs a command that does nothing. An error says which wall cannot be put up here.
    pub async fn probe(&self) -> Result<(), SandboxError> {
        let exec = Exec::new("true", "/tmp").with_timeout(Duration::from_secs(10));
        match self.exec(exec, &mut Nothing).await? {
            ExecOutcome::Exited(0) => Ok(()),
            ended => Err(SandboxError::Start(io::Error::other(format!(
                "`true` ended with {ended:?}"
            )))),
        }
    }

    /// Returns the mechanism that limits memory and processes together, if there is one here.
    pub fn group_limits(&self) -> Option<&'static str> {
        self.cgroups.as_ref().map(CgroupParents::mechanism)
    }

    /// Returns the rights on files for Landlock.
    fn file_rights(&self, mounts: &Mounts) -> FileRights {
        let system = self.system.iter().filter_map(|part| match part {
            SystemPart::Shown(path) => Some(path.clone()),
            SystemPart::Link { .. } => None,
        });
        let ours = ["/etc", "/run/stead"].map(PathBuf::from);
        let of = |access| {
            let mounts = mounts.iter().filter(move |mount| mount.access == access);
            mounts.map(|mount| mount.target.clone())
        };
        let open = ["/tmp", "/var/tmp", "/dev", "/proc", HOME].map(PathBuf::from);
        FileRights {
            readable: system
                .chain(self.settings.tools.iter().cloned())
                .chain(of(MountAccess::ReadOnly))
                .chain(ours)
                .collect(),
            writable: open.into_iter().chain(of(MountAccess::Writable)).collect(),
        }
    }

    fn setup(&self, command: String, mounts: &Mounts) -> Setup {
        let shell = self.shell.display().to_string();
        Setup {
            command: vec![shell, "-c".to_owned(), command],
            limits: self.settings.limits,
            files: match self.walls.landlock {
                LandlockWall::On => Some(self.file_rights(mounts)),
                LandlockWall::Off => None,
            },
            syscalls: self.walls.syscalls,
            proxy: match self.settings.hosts.is_empty() {
                true => None,
                false => Some(Path::new(OURS).join(PROXY)),
            },
        }
    }

    /// Returns the variables of a command beside its own.
    fn env(&self) -> BTreeMap<String, String> {
        let own = [
            ("HOME", HOME),
            ("USER", "agent"),
            ("LOGNAME", "agent"),
            ("TMPDIR", "/tmp"),
        ];
        let fixed = crate::host::DEFAULT_ENV.iter().copied();
        let mut env: BTreeMap<String, String> = fixed
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .chain(self.settings.env.clone())
            .collect();
        env.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if !self.settings.hosts.is_empty() {
            let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
            for name in [
                "HTTP_PROXY",
                "HTTPS_PROXY",
                "http_proxy",
                "https_proxy",
                "ALL_PROXY",
            ] {
                env.insert(name.to_owned(), proxy.clone());
            }
            for name in ["NO_PROXY", "no_proxy"] {
                env.insert(name.to_owned(), "localhost,127.0.0.1,::1".to_owned());
            }
        }
        env
    }

    /// Returns the command that starts the sandbox. It joins the control group first.
    fn launch(&self, group: Option<&Cgroup>, arguments: Vec<std::ffi::OsString>) -> Command {
        let Some(group) = group else {
            let mut command = Command::new(&self.program);
            command.args(arguments);
            return command;
        };
        let mut script = String::new();
        let mut command = Command::new("/bin/sh");
        let files: Vec<PathBuf> = group.join_files().collect();
        for _ in &files {
            script.push_str("echo $$ > \"$1\" || exit 125; shift; ");
        }
        script.push_str("exec \"$@\"");
        command.args(["-c", &script, "stead-launch"]).args(files);
        command.arg(&self.program).args(arguments);
        command
    }

    async fn run(
        &self,
        exec: Exec,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let setup = self.setup(exec.command, &exec.mounts);
        let own = OwnFiles::create(&self.settings.runtime, &setup).map_err(SandboxError::Start)?;
        let hosts = &self.settings.hosts;
        let proxy = match hosts.is_empty() {
            true => None,
            false => {
                Some(Proxy::start(own.path(PROXY), hosts.clone()).map_err(SandboxError::Start)?)
            }
        };
        let limits = &self.settings.limits;
        let group = self.cgroups.as_ref().map(|parents| parents.create(limits));
        let group = group.transpose().map_err(SandboxError::Start)?;
        let arguments = arguments(&View {
            system: &self.system,
            tools: &self.settings.tools,
            mounts: &exec.mounts,
            home: &self.settings.home,
            own: &own.folder,
            helper: &self.settings.helper,
            cwd: &exec.cwd,
            limits,
            walls: self.walls.mounts,
        });
        let mut command = self.launch(group.as_ref(), arguments);
        command
            .current_dir("/")
            .env_clear()
            .envs(self.env())
            .envs(exec.env);
        let stop = exec.cancel.child_token();
        let bounds = ExecLimits {
            timeout: exec.timeout,
            cancel: stop.clone(),
        };
        let mut first = FirstOutput::new(sink);
        let ended = {
            let watched = disk_of(&exec.mounts);
            let capturing = capture_with(command, &mut first, &bounds, Keeper::Namespace);
            tokio::pin!(capturing);
            tokio::select! {
                ended = &mut capturing => ended?,
                () = disk_exceeded(watched, limits.disk) => {
                    stop.cancel();
                    match capturing.await? {
                        ExecOutcome::Cancelled => ExecOutcome::OutOfDisk,
                        ended => ended,
                    }
                }
            }
        };
        if !own.has_begun() && matches!(ended, ExecOutcome::Exited(_) | ExecOutcome::Signalled(_)) {
            return Err(SandboxError::Start(io::Error::other(first.complaint())));
        }
        let refused = proxy.as_ref().map(Proxy::take_refused).unwrap_or_default();
        let out_of_memory = group.as_ref().is_some_and(Cgroup::ran_out_of_memory);
        for note in notes(&refused, out_of_memory.then_some(limits.memory)) {
            if sink.write(note.as_bytes()).await == SinkState::Full {
                break;
            }
        }
        Ok(ended)
    }
}

impl Sandbox for Bubblewrap {
    fn describe(&self) -> String {
        let shell = self.shell.file_name().unwrap_or_default().display();
        let network = match self.settings.hosts.is_empty() {
            true => "without a network".to_owned(),
            false => {
                let hosts: Vec<String> = self
                    .settings
                    .hosts
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                format!("with a network that reaches only {}", hosts.join(", "))
            }
        };
        format!(
            "with `{shell}` in a sandbox of this machine (bubblewrap), {network}; beside the workspace they can change \
             `/tmp`, which is empty each time, and `{HOME}`, which is kept"
        )
    }

    fn isolation(&self) -> Isolation {
        let blocked = |by| Access::Blocked { by };
        Isolation {
            files: blocked("mounts and Landlock"),
            processes: blocked("a process namespace"),
            network: match self.settings.hosts.is_empty() {
                true => blocked("a network namespace"),
                false => Access::Allowed,
            },
            limits: blocked(self.group_limits().unwrap_or("limits of each process")),
        }
    }

    fn exec<'a>(
        &'a self,
        exec: Exec,
        sink: &'a mut dyn OutputSink,
    ) -> BoxFuture<'a, Result<ExecOutcome, SandboxError>> {
        Box::pin(self.run(exec, sink))
    }
}

impl fmt::Debug for Bubblewrap {
    /// Omits the values of variables, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bubblewrap")
            .field("program", &self.program)
            .field("home", &self.settings.home)
            .field("env", &self.settings.env.keys())
            .field("hosts", &self.settings.hosts)
            .field("walls", &self.walls)
            .finish_non_exhaustive()
    }
}

/// Returns the lines that tell what the walls have stopped.
fn notes(refused: &BTreeSet<String>, out_of_memory: Option<u64>) -> Vec<String> {
    let mut notes = Vec::new();
    if !refused.is_empty() {
        let hosts: Vec<&str> = refused.iter().map(String::as_str).collect();
        notes.push(format!(
            "\n[stead: the sandbox did not let the command reach {}; `sandbox.network.allow` names the hosts it may reach]\n",
            hosts.join(", ")
        ));
    }
    if let Some(bytes) = out_of_memory {
        notes.push(format!(
            "\n[stead: a process was ended because the command used more than {} MiB of memory (`sandbox.limits.memory`)]\n",
            bytes / (1024 * 1024)
        ));
    }
    notes
}

/// Returns a folder on the disk that commands can fill.
fn disk_of(mounts: &Mounts) -> Option<PathBuf> {
    let mut writable = mounts
        .iter()
        .filter(|mount| mount.access == MountAccess::Writable);
    writable.next().map(|mount| mount.source.clone())
}

/// Waits until the free space of the disk of `folder` has shrunk by `most` bytes.
async fn disk_exceeded(folder: Option<PathBuf>, most: u64) {
    let free = |folder: &PathBuf| {
        let stat = rustix::fs::statvfs(folder).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    };
    let begun = folder.as_ref().and_then(free);
    let mut ticks = interval(DISK_INTERVAL);
    loop {
        ticks.tick().await;
        if let (Some(begun), Some(now)) = (begun, folder.as_ref().and_then(free))
            && begun.saturating_sub(now) > most
        {
            return;
        }
    }
}

/// The files that belong to one command alone. They are removed when this value is dropped.
struct OwnFiles {
    folder: PathBuf,
}

impl OwnFiles {
    fn create(runtime: &Path, setup: &Setup) -> io::Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let own = Self {
            folder: runtime.join(name),
        };
        fs::create_dir(&own.folder)?;
        let setup = serde_json::to_string(setup)?;
        let content = [PASSWD, GROUP, HOSTS, &setup, ""];
        for ((name, _), content) in OWN_FILES.iter().zip(content) {
            fs::write(own.path(name), content)?;
        }
        fs::write(own.path(HIDDEN), "")?;
        fs::set_permissions(own.path(HIDDEN), Permissions::from_mode(0o000))?;
        Ok(own)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns whether the helper has put up its walls.
    fn has_begun(&self) -> bool {
        fs::metadata(self.path(BEGUN)).is_ok_and(|file| file.len() > 0)
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        // What is left, the next process removes.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Passes output on, and keeps its beginning.
struct FirstOutput<'a> {
    sink: &'a mut dyn OutputSink,
    first: Vec<u8>,
}

impl<'a> FirstOutput<'a> {
    fn new(sink: &'a mut dyn OutputSink) -> Self {
        let first = Vec::new();
        Self { sink, first }
    }

    /// Returns why the sandbox did not start.
    fn complaint(&self) -> String {
        let said = String::from_utf8_lossy(&self.first);
        let said = said.trim().trim_start_matches(HELPER_COMPLAINT.trim());
        match said.is_empty() {
            true => "the sandbox did not start, and gave no reason".to_owned(),
            false => format!("the sandbox did not start: {}", said.trim()),
        }
    }
}

impl OutputSink for FirstOutput<'_> {
    fn write<'a>(&'a mut self, piece: &'a [u8]) -> BoxFuture<'a, SinkState> {
        let room = MAX_COMPLAINT_BYTES.saturating_sub(self.first.len());
        self.first.extend(piece.iter().take(room));
        self.sink.write(piece)
    }
}

/// Drops output.
struct Nothing;

impl OutputSink for Nothing {
    fn write<'a>(&'a mut self, _: &'a [u8]) -> BoxFuture<'a, SinkState> {
        Box::pin(async { SinkState::Accepting })
    }
}
