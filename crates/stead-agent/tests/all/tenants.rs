//! The place for tests of isolation between owners: files, searches, prompts, listings, journals
//! and undo on every place and scope.

use super::support::text;
use super::tenant_fixtures::{Rng, Visit, Witness, marks, names, owner, shares, shares_sessions};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::{AgentId, NewSession, Owner, Redactor, RunOutcome, SessionId};
use stead_place::{
    FilesystemMode, FilesystemSettings, IsolationScope, LocalPlace, Place, PlaceSettings,
    StorePlace,
};
use stead_store::{DocVersion, OsDisk, RunKey, Store, connect};
use stead_testkit::servers::{ServerKind, shared};
use stead_vfs::{
    Bounds, Case, Expect, FileKind, GlobQuery, GrepMode, GrepQuery, Guarded, LocalVfs, ReadRange,
    Syntax, VPath, Vfs,
};
use stead_workspace::FeatureSwitch;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const AT_ONCE: usize = 64;
const DEADLINE: Duration = Duration::from_secs(300);
const SCOPES: [IsolationScope; 4] = [
    IsolationScope::Session,
    IsolationScope::User,
    IsolationScope::Agent,
    IsolationScope::Global,
];

fn p(path: &str) -> VPath {
    VPath::parse(path).unwrap()
}

pub(crate) fn template() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("AGENTS.md"), "You serve everybody.").unwrap();
    folder
}

/// The tree of an agent in `store`, in a namespace of its own, for servers are shared by all tests.
pub(crate) fn in_store(
    store: &Arc<dyn Store>,
    folder: &Path,
    agent: &str,
    namespace: &str,
    scope: IsolationScope,
) -> StorePlace {
    let local = Arc::new(LocalVfs::open(folder, Arc::new(OsDisk)).unwrap());
    let namespace = Some(namespace.to_owned());
    let settings = FilesystemSettings {
        mode: FilesystemMode::Store,
        scope,
        namespace,
        ..FilesystemSettings::default()
    };
    let agent = AgentId::new(agent).unwrap();
    StorePlace::new(
        store.clone(),
        store.clone(),
        local,
        agent,
        &settings,
        Redactor::default(),
    )
    .unwrap()
}

pub(crate) fn in_folder(folder: &Path, scope: IsolationScope) -> LocalPlace {
    let mut settings = PlaceSettings::local(folder, AgentId::main());
    settings.filesystem.scope = scope;
    LocalPlace::open(&settings, Arc::new(OsDisk), Redactor::default()).unwrap()
}

struct World {
    agent: Arc<Agent>,
    witness: Arc<Witness>,
    scope: IsolationScope,
    tenants: [&'static str; 2],
    visits: Vec<Visit>,
}

impl World {
    async fn new(
        folder: &Path,
        place: Arc<dyn Place>,
        scope: IsolationScope,
        tenants: [&'static str; 2],
        sessions: usize,
    ) -> Self {
        let witness = Arc::new(Witness::new(scope, 7));
        let agent = super::support::builder(folder, witness.clone())
            .place(place)
            .disable(FeatureSwitch::Shell)
            .configure(|config| config.memory.flush = Some(false))
            .build()
            .await
            .unwrap();
        let users = names().len();
        let visit = |n: usize, tenant| match scope {
            IsolationScope::Session | IsolationScope::User => Visit {
                tenant,
                user: n % users,
                session: n / users,
            },
            // Users share sessions, so one id is one session, and each has its own.
            IsolationScope::Agent | IsolationScope::Global => Visit {
                tenant,
                user: n % users,
                session: n,
            },
        };
        let visits = (0..2)
            .flat_map(|tenant| (0..sessions).map(move |n| visit(n, tenant)))
            .collect();
        Self {
            agent,
            witness,
            scope,
            tenants,
            visits,
        }
    }

    /// Runs all sessions in random order, many at once, and a part of them a second time.
    async fn run(&self) {
        let mut rng = Rng(99);
        let mut first = self.visits.clone();
        rng.shuffle(&mut first);
        let again: Vec<Visit> = first
            .iter()
            .copied()
            .filter(|_| rng.below(5) == 0)
            .collect();
        for (visits, word) in [(first, "first"), (again, "again")] {
            let limit = Arc::new(Semaphore::new(AT_ONCE));
            let mut tasks = JoinSet::new();
            for visit in visits {
                let agent = self.agent.clone();
                let limit = limit.clone();
                let tenants = self.tenants;
                tasks.spawn(async move {
                    let _permit = limit.acquire_owned().await.unwrap();
                    let wait = stead_store::LockWait::AtMost(DEADLINE);
                    let options = RunOptions {
                        wait,
                        // A session that has searched the records of others asks before it writes
                        // where prompts of users come from.
                        approvals: ApprovalPolicy::ApproveAll,
                        ..RunOptions::default()
                    };
                    let input = text(&format!("{word} {}", visit.mark()));
                    let mut session = agent.session_of(visit.owner(tenants), visit.id());
                    let report = session.run(input, options).await.unwrap();
                    assert_eq!(
                        (report.outcome, report.text),
                        (RunOutcome::Completed, format!("done {}", visit.mark()))
                    );
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.unwrap();
            }
        }
    }

    fn check(&self, visit: Visit, what: &str, text: &str) -> usize {
        let found = marks(text);
        for mark in &found {
            assert!(
                shares(self.scope, visit, *mark),
                "{visit:?} sees {mark:?} in {what}: {text}"
            );
        }
        found.len()
    }

    /// All that each owner can see. `visits` has one of each owner, or each session where those are
    /// apart.
    async fn look(&self) {
        let leaks = self.witness.leaks.lock().unwrap().clone();
        assert_eq!(leaks, [], "the model was shown what is another's");
        let mut seen = BTreeSet::new();
        for visit in &self.visits {
            let owner = visit.owner(self.tenants);
            let (user, session) = match self.scope {
                IsolationScope::Session => (visit.user, visit.session),
                IsolationScope::User => (visit.user, 0),
                // All see the same; it is enough to ask a few.
                IsolationScope::Agent | IsolationScope::Global => (visit.user % 3, 0),
            };
            if seen.insert((visit.tenant, user, session)) {
                self.look_at_files(*visit, &owner).await;
            }
            if seen.insert((visit.tenant, user, usize::MAX)) {
                self.look_at_sessions(*visit, &owner).await;
                self.look_at_changes(*visit, &owner).await;
            }
        }
    }

    async fn look_at_files(&self, visit: Visit, owner: &Owner) {
        let files = self.agent.place().files(owner, &visit.id(), None);
        let files = Guarded::new(files, self.agent.workspace().rules.clone());
        let mut found = 0;
        for (path, entry) in files.walk(&p(""), None, usize::MAX).await.unwrap().entries {
            found += self.check(visit, "a path", path.as_str());
            if entry.kind == FileKind::File {
                let (content, _) = files.read(&path, ReadRange::ALL).await.unwrap();
                found += self.check(visit, path.as_str(), std::str::from_utf8(&content).unwrap());
            }
        }
        assert!(found > 0, "{visit:?} does not see its own");
        let query = GrepQuery {
            pattern: "⟦".into(),
            syntax: Syntax::Literal,
            case: Case::Sensitive,
            root: p(""),
            glob: Some("**".into()),
            file_type: None,
            mode: GrepMode::Content {
                before: 1,
                after: 1,
            },
        };
        let hits = files
            .search()
            .grep(query, Bounds::new(100_000, CancellationToken::new()))
            .await
            .unwrap();
        assert!(
            !hits.files.is_empty() && !hits.truncated && !hits.timed_out && hits.failed.is_empty(),
            "{hits:?}"
        );
        self.check(visit, "the hits", &format!("{:?}", hits.files));
        let query = GlobQuery {
            pattern: "notes/*".into(),
            root: p(""),
        };
        let names = files
            .search()
            .glob(query, Bounds::new(100_000, CancellationToken::new()))
            .await
            .unwrap()
            .paths;
        let may_see = |other: &&Visit| shares(self.scope, visit, **other);
        let expected: BTreeSet<String> = self
            .visits
            .iter()
            .filter(may_see)
            .map(|other| format!("notes/{}.txt", other.id()))
            .collect();
        assert_eq!(
            names
                .iter()
                .map(ToString::to_string)
                .collect::<BTreeSet<_>>(),
            expected,
            "{visit:?}"
        );
    }

    async fn look_at_sessions(&self, visit: Visit, owner: &Owner) {
        let sessions = self.agent.place().sessions(owner);
        let listed = sessions.list_all().await.unwrap();
        let may_see = |other: &&Visit| shares_sessions(self.scope, visit, **other);
        let expected: BTreeSet<SessionId> = self
            .visits
            .iter()
            .filter(may_see)
            .map(|other| other.id())
            .collect();
        assert_eq!(
            listed
                .iter()
                .map(|summary| summary.id.clone())
                .collect::<BTreeSet<_>>(),
            expected,
            "{visit:?}"
        );
        for summary in listed {
            let title = marks(&format!("{summary:?}"));
            assert!(
                !title.is_empty() && title.iter().all(|mark| may_see(&mark)),
                "{visit:?}: {summary:?}"
            );
            let journal = sessions.export(&summary.id).await.unwrap();
            let journal: Vec<&str> = journal
                .iter()
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let found = marks(&journal.join("\n"));
            assert!(
                !found.is_empty() && found.iter().all(|mark| may_see(&mark)),
                "{visit:?}: {}",
                summary.id
            );
        }
    }

    async fn look_at_changes(&self, visit: Visit, owner: &Owner) {
        let may_see = |other: &Visit| shares_sessions(self.scope, visit, *other);
        let log = self.agent.place().changes(owner);
        let runs = log.runs().await.unwrap();
        assert!(!runs.is_empty(), "{visit:?} can undo nothing");
        for run in runs {
            let records = log.records(&run.key).await.unwrap().join("\n");
            assert!(marks(&records).iter().all(may_see), "{visit:?}: {records}");
        }
        for image in log.images().await.unwrap() {
            let content = log.image(&image.hash).await.unwrap().unwrap();
            assert!(
                marks(std::str::from_utf8(&content).unwrap())
                    .iter()
                    .all(may_see),
                "{visit:?}: {image:?}"
            );
        }
    }
}

async fn everything(
    folder: &Path,
    place: Arc<dyn Place>,
    scope: IsolationScope,
    tenants: [&'static str; 2],
    sessions: usize,
) {
    let world = World::new(folder, place, scope, tenants, sessions).await;
    let work = async {
        let t = std::time::Instant::now();
        world.run().await;
        eprintln!("RUN {:?}", t.elapsed());
        world.look().await;
        eprintln!("LOOK {:?}", t.elapsed());
    };
    tokio::time::timeout(DEADLINE, work)
        .await
        .expect("it took too long");
    let shared = world.witness.shared.load(Ordering::Relaxed);
    match scope {
        IsolationScope::Session => assert_eq!(shared, 0),
        IsolationScope::User | IsolationScope::Agent | IsolationScope::Global => {
            assert!(
                shared > 0,
                "nothing was shared, so nothing was put to the test"
            );
        }
    }
}

async fn everything_in(
    url: &str,
    scope: IsolationScope,
    tenants: [&'static str; 2],
    sessions: usize,
) {
    let folder = template();
    let store = connect(url).await.unwrap();
    let namespace = DocVersion::fresh().to_string();
    let place = Arc::new(in_store(&store, folder.path(), "main", &namespace, scope));
    everything(folder.path(), place, scope, tenants, sessions).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parties_and_two_thousand_sessions_in_memory() {
    everything_in("memory:", IsolationScope::User, ["a", "a/b"], 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parties_and_two_thousand_sessions_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    everything_in(&url, IsolationScope::User, ["agents", "users"], 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parties_on_servers() {
    everything_in(
        &shared(ServerKind::Postgres),
        IsolationScope::User,
        ["a ", "a"],
        100,
    )
    .await;
    everything_in(
        &shared(ServerKind::Redis),
        IsolationScope::User,
        ["..", "."],
        100,
    )
    .await;
    everything_in(
        &shared(ServerKind::Mysql),
        IsolationScope::User,
        ["A", "a"],
        100,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parties_in_every_other_scope() {
    everything_in("memory:", IsolationScope::Session, ["_default", "а"], 80).await;
    everything_in("memory:", IsolationScope::Agent, ["é", "e\u{301}"], 80).await;
    everything_in("memory:", IsolationScope::Global, ["%2F", "/"], 80).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_parties_in_one_folder() {
    for (scope, tenants) in [
        (IsolationScope::User, ["a/b", "a"]),
        (IsolationScope::Session, ["a", "@"]),
        (IsolationScope::Agent, ["a", "a@b"]),
        (IsolationScope::Global, ["a", "а"]),
    ] {
        let folder = template();
        let place = Arc::new(in_folder(folder.path(), scope));
        everything(folder.path(), place, scope, tenants, 80).await;
    }
}

#[tokio::test]
async fn whoever_works_on_the_folder_itself_sees_no_folder_of_others() {
    for scope in SCOPES {
        let folder = template();
        let place = Arc::new(in_folder(folder.path(), scope));
        std::fs::write(folder.path().join("@types"), "a name like others").unwrap();
        let id = SessionId::new("s").unwrap();
        let others = [
            owner("a", "b"),
            owner("a/b", &"x".repeat(256)),
            owner("a", "_default"),
        ];
        for (number, owner) in others.iter().enumerate() {
            let files = place.files(owner, &id, None);
            files
                .write(
                    &p(&format!("secret{number}.txt")),
                    "needle".into(),
                    Expect::Absent,
                )
                .await
                .unwrap();
        }
        let world = World::new(folder.path(), place, scope, ["a", "b"], 0).await;
        let call = async |tool: &str, args: serde_json::Value| {
            let called = world
                .agent
                .sessionless()
                .call_tool(
                    tool,
                    args,
                    &ApprovalPolicy::ApproveAll,
                    CancellationToken::new(),
                )
                .await;
            format!("{called:?}")
        };
        let mut told = call("ls", json!({"path": "."})).await;
        assert!(
            told.contains("AGENTS.md") && told.contains("@types"),
            "{told}"
        );
        told += &call("glob_files", json!({"pattern": "**"})).await;
        told += &call(
            "grep_files",
            json!({"pattern": "need[l]e", "glob": "**/*.txt"}),
        )
        .await;
        let folders = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let folders: Vec<String> = folders.map(|name| name.into_string().unwrap()).collect();
        let folders: Vec<&String> = folders
            .iter()
            .filter(|name| name.starts_with("@@"))
            .collect();
        assert!(!folders.is_empty());
        for other in folders {
            assert!(!told.contains(other), "{scope:?}: {told}");
            for (tool, args) in [
                ("ls", json!({"path": other})),
                (
                    "read_file",
                    json!({"file_path": format!("{other}/secret0.txt")}),
                ),
                (
                    "overwrite_file",
                    json!({"file_path": format!("{other}/secret0.txt"), "content": ""}),
                ),
                ("delete_file", json!({"file_path": other})),
                ("move_file", json!({"from": other, "to": "mine"})),
                ("grep_files", json!({"pattern": "need[l]e", "path": other})),
            ] {
                let refused = call(tool, args).await;
                assert!(
                    refused.contains("Denied") && !refused.contains("needle"),
                    "{tool}: {refused}"
                );
            }
        }
        assert!(
            !told.contains("needle") && !told.contains("secret"),
            "{scope:?}: {told}"
        );
    }
}

/// Every name as a party and as a user, each in its own files, sessions and memory of undo.
async fn no_two_meet(place: &dyn Place, tenants: &[String]) {
    let names = names();
    let owners: Vec<Owner> = tenants
        .iter()
        .flat_map(|t| names.iter().map(|u| owner(t, u)))
        .collect();
    let id = SessionId::new("s").unwrap();
    for (number, owner) in owners.iter().enumerate() {
        let files = place.files(owner, &id, None);
        files
            .write(&p("own.txt"), number.to_string().into(), Expect::Absent)
            .await
            .unwrap();
        place
            .sessions(owner)
            .create(&id, NewSession::default())
            .await
            .unwrap()
            .writer
            .close()
            .await;
        let run = RunKey {
            session: id.clone(),
            run: stead_core::RunId::new(format!("r{number}")).unwrap(),
        };
        place
            .changes(owner)
            .record(&run, number.to_string(), Vec::new())
            .await
            .unwrap();
    }
    for (number, owner) in owners.iter().enumerate() {
        let (own, _) = place
            .files(owner, &id, None)
            .read(&p("own.txt"), ReadRange::ALL)
            .await
            .unwrap();
        assert_eq!(own, number.to_string(), "{owner:?}");
        assert_eq!(
            place.sessions(owner).list_all().await.unwrap().len(),
            1,
            "{owner:?}"
        );
        let runs: Vec<_> = place
            .changes(owner)
            .runs()
            .await
            .unwrap()
            .into_iter()
            .map(|run| run.key.run)
            .collect();
        assert_eq!(
            runs,
            [stead_core::RunId::new(format!("r{number}")).unwrap()],
            "{owner:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pair_of_names_is_taken_for_another() {
    let folder = template();
    let store = connect("memory:").await.unwrap();
    no_two_meet(
        &in_store(&store, folder.path(), "main", "n", IsolationScope::User),
        &names(),
    )
    .await;
    no_two_meet(
        &in_folder(folder.path(), IsolationScope::User),
        &names()[..8],
    )
    .await;
    for kind in [ServerKind::Redis, ServerKind::Postgres, ServerKind::Mysql] {
        let store = connect(&shared(kind)).await.unwrap();
        let namespace = DocVersion::fresh().to_string();
        no_two_meet(
            &in_store(
                &store,
                folder.path(),
                "main",
                &namespace,
                IsolationScope::User,
            ),
            &names()[..4],
        )
        .await;
    }
}

#[tokio::test]
async fn a_scope_is_shared_with_exactly_those_it_names() {
    for scope in SCOPES {
        let folder = template();
        let store = connect("memory:").await.unwrap();
        let agents =
            ["main", "other"].map(|agent| in_store(&store, folder.path(), agent, "n", scope));
        let mut all = BTreeMap::new();
        for (agent, place) in agents.iter().enumerate() {
            for (tenant, user, session) in [
                (0, 0, 0),
                (0, 0, 1),
                (0, 1, 0),
                (0, 1, 1),
                (1, 0, 0),
                (1, 1, 1),
            ] {
                let visit = Visit {
                    tenant,
                    user,
                    session,
                };
                let files = place.files(&visit.owner(["a", "b"]), &visit.id(), None);
                let name = format!("{agent}{tenant}{user}{session}");
                files
                    .write(&p(&name), "x".into(), Expect::Absent)
                    .await
                    .unwrap();
                all.insert(name, (agent, visit, files));
            }
        }
        for (name, (agent, visit, files)) in &all {
            let seen: BTreeSet<String> = files
                .list(&p(""))
                .await
                .unwrap()
                .into_iter()
                .map(|entry| entry.name)
                .collect();
            let same_agent = |other: usize| scope == IsolationScope::Global || other == *agent;
            let may_see = all
                .iter()
                .filter(|(_, (a, v, _))| same_agent(*a) && shares(scope, *visit, *v));
            let expected: BTreeSet<String> = may_see
                .map(|(name, _)| name.clone())
                .chain(["AGENTS.md".into()])
                .collect();
            assert_eq!(seen, expected, "{scope:?} {name}");
        }
    }
}
