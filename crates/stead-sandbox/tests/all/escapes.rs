//! Attempts to get out of a sandbox, from `escapes.txt`, and what they may not reach, looked at
//! from outside.

use super::bubblewrap::World;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use stead_sandbox::{MountAccess, ResourceLimits};

const ATTEMPTS: &str = include_str!("escapes.txt");
const MIB: u64 = 1024 * 1024;
/// What no attempt may say: it stands in every file, variable and answer outside.
const CANARY: &str = "CANARY";
/// The time of an attempt, and how much longer it may take to stop it.
const TIME: Duration = Duration::from_secs(6);
const STOP_TIME: Duration = Duration::from_secs(6);
const LIMITS: ResourceLimits = ResourceLimits {
    memory: 512 * MIB,
    processes: 200,
    cpu_seconds: 3,
    file_size: 100 * MIB,
    disk: 200 * MIB,
    temporary: 64 * MIB,
    open_files: 500,
};

/// A world outside of the sandbox that an attempt may not touch.
struct Outside {
    world: World,
    victim: Child,
    contacts: Arc<AtomicUsize>,
    variables: Vec<(&'static str, String)>,
    before: BTreeMap<PathBuf, String>,
}

impl Outside {
    fn new() -> Self {
        let mut world = World::new();
        world.settings.limits = LIMITS;
        for (name, content) in [
            (".env", "CANARY-env"),
            ("keys/k.pem", "CANARY-key"),
            ("agent.yaml", "mine"),
            ("conf/deep/rules.yaml", "mine"),
            ("journal/session.jsonl", "mine"),
            ("../outside/secret.txt", "CANARY-outside"),
            ("../private/.ssh/id_ed25519", "CANARY-ssh"),
            ("../private/.netrc", "CANARY-netrc"),
            ("../private/.aws/credentials", "CANARY-aws"),
            ("../private/.bashrc", "mine"),
        ] {
            world.write(name, content);
        }
        world.rules = vec![
            (".env", MountAccess::Hidden),
            ("keys", MountAccess::Hidden),
            ("agent.yaml", MountAccess::ReadOnly),
            ("conf/deep/rules.yaml", MountAccess::ReadOnly),
            ("journal", MountAccess::ReadOnly),
        ];
        let victim = Command::new("sleep")
            .arg("600")
            .env("SECRET", "CANARY-victim")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let contacts = Arc::new(AtomicUsize::new(0));
        let abstract_name = format!("stead-escape-{}", victim.id());
        let socket = world.folder().join("outside.sock");
        let port = serve(&contacts, &abstract_name, &socket);
        let folder = |name: &str| world.folder().join(name).display().to_string();
        let variables = vec![
            ("OUTSIDE", folder("outside")),
            ("PRIVATE", folder("private")),
            ("WORK", folder("work")),
            ("VICTIM", victim.id().to_string()),
            ("PORT", port.to_string()),
            ("ABSTRACT", abstract_name),
            ("SOCKET", socket.display().to_string()),
        ];
        let before = guarded_files(&world);
        Self {
            world,
            victim,
            contacts,
            variables,
            before,
        }
    }

    /// Makes an attempt, and returns what it reached.
    async fn attempt(&mut self, command: &str) -> Vec<String> {
        let set: String = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}='{value}'; "))
            .collect();
        let export: Vec<&str> = self.variables.iter().map(|(name, _)| *name).collect();
        let line = format!("{set}export {}; {command}", export.join(" "));
        let begun = Instant::now();
        let (ended, said) = self.world.run_within(&line, TIME).await;
        let taken = begun.elapsed();
        let mut reached = Vec::new();
        if said.contains(CANARY) || shadow().iter().any(|line| said.contains(line)) {
            reached.push(format!("it read what is outside: {said:.600}"));
        }
        let after = guarded_files(&self.world);
        if after != self.before {
            reached.push(format!("it changed what is outside: {after:?}"));
        }
        if self.victim.try_wait().unwrap().is_some() {
            reached.push("it ended a process outside".to_owned());
        }
        if self.contacts.load(Ordering::SeqCst) > 0 {
            reached.push("it reached a server outside".to_owned());
        }
        let survivors = survivors(&self.world);
        if !survivors.is_empty() {
            reached.push(format!("it left processes: {survivors:?}"));
        }
        if taken > TIME + STOP_TIME {
            reached.push(format!("it took {taken:?} and ended with {ended:?}"));
        }
        let used = bytes_below(&self.world.work());
        if used > LIMITS.disk * 2 {
            reached.push(format!("it filled the disk with {used} bytes"));
        }
        reached
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Serves on the host's loopback and on two sockets, and counts whoever comes.
fn serve(contacts: &Arc<AtomicUsize>, abstract_name: &str, socket: &Path) -> u16 {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let address = SocketAddr::from_abstract_name(abstract_name).unwrap();
    let named = [
        UnixListener::bind_addr(&address).unwrap(),
        UnixListener::bind(socket).unwrap(),
    ];
    let count = Arc::clone(contacts);
    thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nCANARY-tcp");
        }
    });
    let count = Arc::clone(contacts);
    thread::spawn(move || {
        while udp.recv_from(&mut [0; 64]).is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    for listener in named {
        let count = Arc::clone(contacts);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(b"CANARY-unix");
                let _ = stream.read(&mut [0; 64]);
            }
        });
    }
    port
}

/// Returns the files that no attempt may change or add to, with their content.
fn guarded_files(world: &World) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for name in ["outside", "private", "work/keys", "work/journal"] {
        collect(&world.folder().join(name), &mut files);
    }
    for name in ["work/.env", "work/agent.yaml", "work/conf/deep/rules.yaml"] {
        let path = world.folder().join(name);
        let content = std::fs::read_to_string(&path).unwrap_or_else(|error| error.to_string());
        files.insert(path, content);
    }
    for system in [
        "/etc/passwd",
        "/etc/cron.d/evil",
        "/etc/ld.so.preload",
        "/usr/evil",
        "/opt/evil",
    ] {
        let content = std::fs::read_to_string(system).unwrap_or_default();
        files.insert(system.into(), content);
    }
    files
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        files.insert(folder.to_owned(), "is no folder any more".to_owned());
        return;
    };
    for entry in entries.flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => collect(&entry.path(), files),
            false => {
                let content = std::fs::read_to_string(entry.path());
                files.insert(
                    entry.path(),
                    content.unwrap_or_else(|error| error.to_string()),
                );
            }
        }
    }
}

/// Returns the passwords of this machine, as far as this process can read them.
fn shadow() -> Vec<String> {
    let shadow = std::fs::read_to_string("/etc/shadow").unwrap_or_default();
    shadow.lines().map(str::to_owned).collect()
}

/// Returns the processes that see the workspace as a mount: those of its sandbox.
fn survivors(world: &World) -> Vec<String> {
    let work = world.work().display().to_string();
    let own = std::fs::read_link("/proc/self/ns/mnt").unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = processes.filter(|entry| {
        let mounts = std::fs::read_to_string(entry.path().join("mountinfo")).unwrap_or_default();
        let namespace = std::fs::read_link(entry.path().join("ns/mnt"));
        namespace.is_ok_and(|namespace| namespace != own) && mounts.contains(&work)
    });
    inside
        .map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        })
        .collect()
}

fn bytes_below(folder: &Path) -> u64 {
    let shown = Command::new("du")
        .arg("-sb")
        .arg(folder)
        .stderr(Stdio::null())
        .output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    shown
        .split_whitespace()
        .next()
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(0)
}

/// Returns the attempts of a group, each as its name and its command.
fn group(name: &str) -> Vec<(&'static str, &'static str)> {
    let begin = format!("\n== {name}\n");
    let group = ATTEMPTS
        .split(begin.as_str())
        .nth(1)
        .unwrap_or_else(|| panic!("no group {name}"));
    let group = group.split("\n== ").next().unwrap();
    let lines = group
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").unwrap()).collect()
}

async fn none_of(group_name: &str) {
    let mut escaped = Vec::new();
    for (name, command) in group(group_name) {
        let reached = Outside::new().attempt(command).await;
        escaped.extend(reached.into_iter().map(|what| format!("{name}: {what}")));
    }
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
}

#[tokio::test]
async fn files_outside_are_not_reached() {
    none_of("files outside").await;
}

#[tokio::test]
async fn hidden_files_are_not_read_or_changed() {
    none_of("files that rules hide").await;
}

#[tokio::test]
async fn protected_files_are_not_changed() {
    none_of("files that rules protect").await;
}

#[tokio::test]
async fn processes_outside_are_not_reached() {
    none_of("processes outside").await;
}

#[tokio::test]
async fn the_network_is_not_reached() {
    none_of("network").await;
}

#[tokio::test]
async fn no_command_takes_more_than_its_share() {
    none_of("more than its share").await;
}

/// The world outside is really there: without a sandbox the attempts succeed that do no harm.
#[test]
fn without_a_sandbox_the_attempts_reach_what_they_want() {
    let outside = Outside::new();
    let set = outside.variables.iter().cloned();
    for command in [
        "cat $OUTSIDE/secret.txt",
        "cat .env",
        "cat /proc/$VICTIM/environ",
        "exec 9<>/dev/tcp/127.0.0.1/$PORT; timeout 2 cat <&9",
    ] {
        let mut bash = Command::new("bash");
        bash.args(["-c", command])
            .envs(set.clone())
            .current_dir(outside.world.work());
        let said = bash.output().unwrap().stdout;
        assert!(String::from_utf8_lossy(&said).contains(CANARY), "{command}");
    }
    assert!(outside.contacts.load(Ordering::SeqCst) > 0);
}
