//! Commands behind the walls of bubblewrap.

use super::Said;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stead_sandbox::{
    AllowedHosts, Bubblewrap, BubblewrapSettings, Exec, ExecOutcome, Mount, MountAccess, Mounts,
    ResourceLimits, Sandbox, Walls,
};
use tempfile::TempDir;

/// A sandbox with a workspace.
pub(super) struct World {
    folder: TempDir,
    pub(super) settings: BubblewrapSettings,
    pub(super) rules: Vec<(&'static str, MountAccess)>,
    walls: Walls,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| folder.path().join(name);
        std::fs::create_dir(below("work")).unwrap();
        let settings = BubblewrapSettings {
            helper: PathBuf::from(env!("CARGO_BIN_EXE_stead-sandbox-helper")),
            home: below("home"),
            runtime: below("runtime"),
            env: BTreeMap::new(),
            tools: Vec::new(),
            limits: ResourceLimits::DEFAULT,
            hosts: AllowedHosts::default(),
        };
        Self {
            folder,
            settings,
            rules: Vec::new(),
            walls: Walls::ALL,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.work().join(name)).ok()
    }

    fn mounts(&self) -> Mounts {
        let mount = |path: PathBuf, access| Mount {
            source: path.clone(),
            target: path,
            access,
        };
        let rules = self.rules.iter();
        let rules = rules.map(|(name, access)| mount(self.work().join(name), *access));
        Mounts::new(rules.chain([mount(self.work(), MountAccess::Writable)]))
    }

    async fn run(&self, command: &str) -> (ExecOutcome, String) {
        self.run_within(command, Duration::from_secs(30)).await
    }

    pub(super) async fn run_within(
        &self,
        command: &str,
        timeout: Duration,
    ) -> (ExecOutcome, String) {
        let sandbox = Bubblewrap::new(self.settings.clone())
            .unwrap()
            .with_walls(self.walls);
        let exec = Exec::new(command, self.work())
            .with_mounts(self.mounts())
            .with_timeout(timeout);
        let mut said = Said::default();
        let ended = sandbox.exec(exec, &mut said).await;
        let text = String::from_utf8_lossy(&said.0).into_owned();
        (
            ended.unwrap_or_else(|error| panic!("{error}\n{text}")),
            text,
        )
    }
}

#[tokio::test]
async fn a_command_works_in_the_workspace_and_in_a_home_that_is_kept() {
    let world = World::new();
    world.write("a.txt", "alpha");
    let (ended, said) = world
        .run("cat a.txt; echo beta > b.txt; echo mine > ~/kept; id -u; pwd; ls /; exit 7")
        .await;
    assert_eq!(ended, ExecOutcome::Exited(7), "{said}");
    assert!(said.starts_with("alpha1000\n"), "{said}");
    assert!(
        said.contains(&format!("{}\n", world.work().display())),
        "{said}"
    );
    assert_eq!(world.read("b.txt").as_deref(), Some("beta\n"));
    assert_eq!(world.run("cat ~/kept; ls /tmp").await.1, "mine\n");
}

#[tokio::test]
async fn rules_hold_as_mounts() {
    let mut world = World::new();
    world.write(".env", "SECRET");
    world.write("keys/k.pem", "SECRET");
    world.write("conf/deep/agent.yaml", "mine");
    world.rules = vec![
        (".env", MountAccess::Hidden),
        ("keys", MountAccess::Hidden),
        ("conf/deep/agent.yaml", MountAccess::ReadOnly),
    ];
    let (_, said) = world
        .run(
            "cat .env; ls keys; cat keys/k.pem; cp .env x; mv .env y; cat conf/deep/agent.yaml; \
             echo evil > conf/deep/agent.yaml; mv conf conf2; mv conf/deep deep2; rm -rf conf; \
             ln conf/deep/agent.yaml hard; echo evil > hard; echo z > conf/deep/new",
        )
        .await;
    assert!(!said.contains("SECRET"), "{said}");
    assert!(said.contains("mine"), "{said}");
    assert_eq!(world.read("conf/deep/agent.yaml").as_deref(), Some("mine"));
    assert_eq!(world.read("keys/k.pem").as_deref(), Some("SECRET"));
    assert_eq!(world.read(".env").as_deref(), Some("SECRET"));
    assert_eq!(
        world.read("conf/deep/new").as_deref(),
        Some("z\n"),
        "{said}"
    );
}

#[tokio::test]
async fn a_stopped_command_is_asked_to_end_first_and_nothing_survives() {
    let world = World::new();
    let mark = format!("survivor-{}", uuid_like());
    let command = format!(
        "trap 'echo asked > asked; exit 0' TERM; \
         setsid sh -c 'exec -a {mark} sleep 300' & (setsid bash -c 'exec -a {mark} sleep 300' &) & \
         while true; do sleep 0.05; done"
    );
    let command = command.replace("sh -c 'exec -a", "bash -c 'exec -a");
    let (ended, said) = world.run_within(&command, Duration::from_secs(1)).await;
    assert_eq!(ended, ExecOutcome::TimedOut, "{said}");
    assert_eq!(world.read("asked").as_deref(), Some("asked\n"), "{said}");
    assert_eq!(processes_named(&mark), Vec::<String>::new());
}

fn uuid_like() -> String {
    format!("{}-{:?}", std::process::id(), std::time::Instant::now())
        .replace([' ', '{', '}', ':', '.'], "")
}

/// Returns the processes whose command line contains `mark`.
fn processes_named(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(mark) && !line.contains("bubblewrap"))
        .collect()
}

#[tokio::test]
async fn what_cannot_start_runs_nothing_and_says_why() {
    let mut world = World::new();
    world.settings.helper = Path::new("/usr/bin/env").to_owned();
    let sandbox = Bubblewrap::new(world.settings.clone()).unwrap();
    let exec = Exec::new("touch ran", world.work()).with_mounts(world.mounts());
    let error = sandbox
        .exec(exec, &mut Said::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("the sandbox did not start"), "{error}");
    assert_eq!(world.read("ran"), None);
}

/// A host that answers every request with `inside`.
fn host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ninside");
        }
    });
    port
}

#[tokio::test]
async fn an_allowed_host_is_reached_through_the_proxy_and_no_other_one() {
    let port = host();
    let other = host();
    let mut world = World::new();
    world.settings.hosts = AllowedHosts::new([format!("127.0.0.1:{port}").parse().unwrap()]);
    world.write(
        "ask.py",
        "import os, sys, urllib.request as u\n\
         way = u.ProxyHandler({'http': os.environ['HTTP_PROXY']})\n\
         os.environ.pop('no_proxy'); os.environ.pop('NO_PROXY')\n\
         print(u.build_opener(way).open(f'http://127.0.0.1:{sys.argv[1]}/').read())\n",
    );
    let (ended, said) = world.run(&format!("python3 ask.py {port}; exit $?")).await;
    assert_eq!(ended, ExecOutcome::Exited(0), "{said}");
    assert!(said.contains("inside"), "{said}");
    let (ended, said) = world.run(&format!("python3 ask.py {other}; exit 3")).await;
    assert_eq!(ended, ExecOutcome::Exited(3), "{said}");
    assert!(said.contains("403"), "{said}");
    let told = format!("did not let the command reach 127.0.0.1:{other}");
    assert!(said.contains(&told), "{said}");
}
