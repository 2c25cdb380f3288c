//! The place for tests of skill sources: addresses, installing, updating, removing and sharing on
//! every place.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use stead_skills::*;
use stead_testkit::servers::{ServerKind, shared};
use stead_vfs::{StoreVfs, Vfs};

#[test]
fn an_address_is_understood_or_refused() {
    let fine = [
        (
            "https://git.example/team/skills.git",
            SourceKind::Git,
            "https://git.example/team/skills.git",
            None,
            "skills",
        ),
        (
            "https://git.example/team/skills#v1.2",
            SourceKind::Git,
            "https://git.example/team/skills",
            Some("v1.2"),
            "skills",
        ),
        (
            "git+ssh://git@git.example:2222/a/b.git#feature/x",
            SourceKind::Git,
            "ssh://git@git.example:2222/a/b.git",
            Some("feature/x"),
            "b",
        ),
        (
            "git@git.example:team/skills.git",
            SourceKind::Git,
            "git@git.example:team/skills.git",
            None,
            "skills",
        ),
        (
            "https://${USER}:${TOKEN}@git.example/x.git",
            SourceKind::Git,
            "https://${USER}:${TOKEN}@git.example/x.git",
            None,
            "x",
        ),
        (
            "file:///srv/x.git",
            SourceKind::Git,
            "file:///srv/x.git",
            None,
            "x",
        ),
        (
            "repo#main",
            SourceKind::Git,
            "/base/repo",
            Some("main"),
            "repo",
        ),
        ("/srv/x.git", SourceKind::Git, "/srv/x.git", None, "x"),
        (
            "./skills",
            SourceKind::Directory,
            "/base/skills",
            None,
            "skills",
        ),
        (".", SourceKind::Directory, "/base", None, "base"),
        ("../a/./b/../c/", SourceKind::Directory, "/a/c", None, "c"),
        (
            "Team.ZIP",
            SourceKind::Archive,
            "/base/Team.ZIP",
            None,
            "team.zip",
        ),
        (
            "a/b.tar.gz",
            SourceKind::Archive,
            "/base/a/b.tar.gz",
            None,
            "b",
        ),
        (
            "postgres://me@db.example/agents",
            SourceKind::Store,
            "postgres://me@db.example/agents",
            None,
            "agents",
        ),
        (
            "mysql://me:${PW}@db.example/agents",
            SourceKind::Store,
            "mysql://me:${PW}@db.example/agents",
            None,
            "agents",
        ),
        (
            "redis://db.example:6379/1",
            SourceKind::Store,
            "redis://db.example:6379/1",
            None,
            "1",
        ),
        (
            "sqlite:team.db",
            SourceKind::Store,
            "sqlite:/base/team.db",
            None,
            "team",
        ),
    ];
    for (text, kind, from, rev, name) in fine {
        let source = SkillSource::parse(text, "/base").unwrap();
        let expected = SkillSource {
            kind,
            from: from.to_owned(),
            rev: rev.map(str::to_owned),
        };
        assert_eq!(
            (&source, source.default_name().as_str()),
            (&expected, name),
            "{text}"
        );
    }
    let refused = [
        ("", "not a source"),
        ("--upload-pack=evil", "not a source"),
        ("-x", "not a source"),
        ("ext::sh -c evil", "helper of git"),
        ("fd::17", "helper of git"),
        ("ftp://x/y", "there are no sources at ftp://"),
        ("https://me:s3cret@git.example/x.git", "holds a secret"),
        ("https://s3cret@git.example/x.git", "holds a secret"),
        ("https://${USER}:s3cret@git.example/x.git", "holds a secret"),
        (
            "https://${USER}:${TOKEN:-s3cret}@git.example/x.git",
            "holds a secret",
        ),
        (
            "https://git.example/x.git?access_token=s3cret",
            "holds a secret",
        ),
        ("postgres://me:s3cret@db.example/agents", "holds a secret"),
        ("postgres://me:s3/cret@db.example/agents", "holds a secret"),
        (
            "mysql://db.example/agents?password=s3cret",
            "holds a secret",
        ),
        ("redis://:s3cret@db.example/", "holds a secret"),
        ("ssh://-oProxyCommand=evil/x", "cannot begin with `-`"),
        (
            "https://git.example/x.git#--upload-pack=evil",
            "not a revision",
        ),
        ("https://git.example/x.git#a:b", "not a revision"),
        ("https://git.example/x.git#a..b", "not a revision"),
        ("https://git.example/x.zip", "download it"),
    ];
    for (text, said) in refused {
        let error = SkillSource::parse(text, "/base").unwrap_err().to_string();
        assert!(
            error.contains(said) && !error.contains("s3cret") && !error.contains("s3/cret"),
            "{text}: {error}"
        );
    }
}

async fn fetched(source: &SkillSource) -> FetchedSkills {
    source
        .fetch("team", &|_| None, &SkillProgress::default())
        .await
        .unwrap()
}

async fn names(installation: &Installation) -> Vec<String> {
    let catalogue = SkillLibrary::default()
        .catalogue(&installation.layers())
        .await;
    catalogue
        .skills()
        .map(|skill| format!("{} of {}", skill.name(), skill.origin))
        .collect()
}

async fn round_trip(files: Arc<dyn Vfs>, what: &str) {
    put(&*files, "AGENTS.md", "persona").await;
    let before = tree(&*files).await;
    let team = Folder::new();
    put(&*team.files, "pdf/SKILL.md", skill_md("pdf", "one")).await;
    put(&*team.files, "pdf/run.sh", "#!/bin/sh\n").await;
    team.files
        .set_mode(&path("pdf/run.sh"), 0o755)
        .await
        .unwrap();
    put(
        &*team.files,
        "more/notes/SKILL.md",
        skill_md("notes", "one"),
    )
    .await;
    put(&*team.files, "README.md", "not installed").await;
    put(&*team.files, "broken/SKILL.md", "nothing").await;
    let source = SkillSource::parse(team.path(), "/").unwrap();

    let mut installation = Installation::open(files.clone()).await.unwrap();
    let first = fetched(&source).await;
    assert_eq!(first.broken_skills().len(), 1);
    let progress = SkillProgress::default();
    assert_eq!(
        installation
            .install("team", &first, &progress)
            .await
            .unwrap(),
        InstallOutcome::New,
        "{what}"
    );
    assert_eq!(
        names(&installation).await,
        ["notes of repository team", "pdf of repository team"]
    );
    assert_eq!(
        installation
            .install("team", &first, &progress)
            .await
            .unwrap(),
        InstallOutcome::Unchanged
    );
    let script = tree(&*files).await[".stead/skills/team/pdf/run.sh"].clone();
    assert_eq!(script, Some((b"#!/bin/sh\n".to_vec(), true)), "{what}");
    assert!(matches!(
        installation.check_new("team"),
        Err(SourceError::Exists(_))
    ));
    assert!(matches!(
        installation.check_new("Team"),
        Err(SourceError::Name(_))
    ));
    assert!(matches!(
        installation.check_new("../x"),
        Err(SourceError::Name(_))
    ));
    assert!(matches!(
        installation.remove("other").await,
        Err(SourceError::Unknown { .. })
    ));

    team.files.remove(&path("more")).await.unwrap();
    put(&*team.files, "pdf/SKILL.md", skill_md("pdf", "two")).await;
    put(&*team.files, "new/SKILL.md", skill_md("new", "two")).await;
    let mut installation = Installation::open(files.clone()).await.unwrap();
    let again = installation.source("team").unwrap().source();
    let second = fetched(&again).await;
    assert_ne!(first.pinned, second.pinned);
    assert_eq!(
        installation
            .install("team", &second, &progress)
            .await
            .unwrap(),
        InstallOutcome::Updated
    );
    assert_eq!(
        names(&installation).await,
        ["new of repository team", "pdf of repository team"]
    );
    assert_eq!(
        installation.modified_skills("team").await.unwrap(),
        Vec::<String>::new()
    );
    put(&*files, ".stead/skills/team/pdf/SKILL.md", "tampered").await;
    assert_eq!(installation.modified_skills("team").await.unwrap(), ["pdf"]);

    installation
        .install("other", &second, &progress)
        .await
        .unwrap();
    installation.remove("team").await.unwrap();
    assert_eq!(
        names(&installation).await,
        ["new of repository other", "pdf of repository other"]
    );
    installation.remove("other").await.unwrap();
    assert_eq!(
        tree(&*files).await,
        before,
        "{what}: what was installed is gone without a trace"
    );
    assert_eq!(Installation::open(files).await.unwrap().sources(), []);
}

#[tokio::test]
async fn a_source_is_installed_renewed_and_removed_on_every_place() {
    let folder = Folder::new();
    round_trip(folder.files.clone(), "folder").await;
    round_trip(Arc::new(StoreVfs::in_memory()), "memory").await;
}

#[tokio::test]
async fn a_failure_at_any_change_leaves_the_workspace_as_it_was() {
    let team = Folder::new();
    for name in ["a", "b"] {
        put(
            &*team.files,
            &format!("{name}/SKILL.md"),
            skill_md(name, "one"),
        )
        .await;
    }
    let source = SkillSource::parse(team.path(), "/").unwrap();
    let first = fetched(&source).await;
    put(&*team.files, "a/SKILL.md", skill_md("a", "two")).await;
    let second = fetched(&source).await;
    let progress = SkillProgress::default();
    for renewing in [None, Some(&first)] {
        let mut failures = 0;
        for n in 0.. {
            let folder = Folder::new();
            let counting = Arc::new(Counting::new(folder.files.clone()));
            let files: Arc<dyn Vfs> = counting.clone();
            let mut installation = Installation::open(files.clone()).await.unwrap();
            if let Some(first) = renewing {
                installation
                    .install("team", first, &progress)
                    .await
                    .unwrap();
            }
            let before = tree(&*folder.files).await;
            counting.fail_from.store(
                counting.changes.load(Ordering::Relaxed) + n,
                Ordering::Relaxed,
            );
            let done = installation.install("team", &second, &progress).await;
            if done.is_ok() {
                break;
            }
            failures += 1;
            assert_eq!(tree(&*folder.files).await, before, "change {n}");
        }
        assert!(failures >= 6, "{failures}");
    }
}

#[tokio::test]
async fn two_who_install_at_once_do_not_lose_each_others_work() {
    let folder = Folder::new();
    let team = Folder::new();
    put(&*team.files, "a/SKILL.md", skill_md("a", "one")).await;
    let skills = fetched(&SkillSource::parse(team.path(), "/").unwrap()).await;
    let mut one = Installation::open(folder.files.clone()).await.unwrap();
    let mut other = Installation::open(folder.files.clone()).await.unwrap();
    one.install("one", &skills, &SkillProgress::default())
        .await
        .unwrap();
    assert!(
        other
            .install("other", &skills, &SkillProgress::default())
            .await
            .is_err()
    );
    let now = Installation::open(folder.files.clone()).await.unwrap();
    assert_eq!(names(&now).await, ["a of repository one"]);
    assert!(
        !tree(&*folder.files)
            .await
            .keys()
            .any(|path| path.contains("other"))
    );
}

#[tokio::test]
async fn a_damaged_list_is_an_error_with_its_place_and_is_left_alone() {
    let folder = Folder::new();
    for (text, said) in [
        (
            "{\n  \"version\": 1,\n  \"sources\": [\n",
            ".stead/skills.json:4:0: EOF",
        ),
        ("{\"version\": 2, \"sources\": []}", "newer version"),
        (
            "{\"version\": 1, \"sources\": [], \"x\": 1}",
            "unknown field `x`",
        ),
        (
            "{\"version\": 1, \"sources\": [{\"name\": \"../x\", \"kind\": \"git\", \"from\": \"\", \"pinned\": \"\", \"skills\": []}]}",
            "is not the name of a source",
        ),
    ] {
        put(&*folder.files, MANIFEST, text).await;
        let error = Installation::open(folder.files.clone())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
        let files: Arc<dyn Vfs> = folder.files.clone();
        assert!(SkillLibrary::default().repositories(&files).await.is_err());
        assert_eq!(
            tree(&*folder.files).await[MANIFEST],
            Some((text.as_bytes().to_vec(), false))
        );
    }
}

#[tokio::test]
async fn the_list_of_sources_is_read_once() {
    let folder = Folder::new();
    let team = Folder::new();
    put(&*team.files, "a/SKILL.md", skill_md("a", "one")).await;
    let skills = fetched(&SkillSource::parse(team.path(), "/").unwrap()).await;
    let counting = Arc::new(Counting::new(folder.files.clone()));
    let files: Arc<dyn Vfs> = counting.clone();
    let library = SkillLibrary::default();
    assert!(library.repositories(&files).await.unwrap().is_empty());
    for name in ["one", "two"] {
        let mut installation = Installation::open(folder.files.clone()).await.unwrap();
        installation
            .install(name, &skills, &SkillProgress::default())
            .await
            .unwrap();
        let reads = counting.reads();
        library.repositories(&files).await.unwrap();
        let layers = library.repositories(&files).await.unwrap();
        assert_eq!(
            layers.last().unwrap().origin,
            SkillOrigin::Repository(name.to_owned())
        );
        assert_eq!(counting.reads(), reads + 1);
    }
}

#[tokio::test]
async fn a_link_in_a_skill_is_refused_and_one_beside_it_is_not_followed() {
    let team = Folder::new();
    put(&*team.files, "a/SKILL.md", skill_md("a", "one")).await;
    std::os::unix::fs::symlink("/etc/passwd", team.dir.path().join("readme")).unwrap();
    let source = SkillSource::parse(team.path(), "/").unwrap();
    assert_eq!(fetched(&source).await.broken_skills(), Vec::<String>::new());
    std::os::unix::fs::symlink("/etc/passwd", team.dir.path().join("a/data.txt")).unwrap();
    let refused = source
        .fetch("team", &|_| None, &SkillProgress::default())
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "a/data.txt is a link or not a regular file, and skills must be plain files"
    );
}

async fn by_store(url: &str) {
    let team = Folder::new();
    put(&*team.files, "pdf/SKILL.md", skill_md("pdf", "one")).await;
    put(&*team.files, "pdf/run.sh", "#!/bin/sh\n").await;
    team.files
        .set_mode(&path("pdf/run.sh"), 0o755)
        .await
        .unwrap();
    let store = published_tree(stead_store::connect(url).await.unwrap());
    for (old, _) in store
        .walk(&path("."), None, 1000)
        .await
        .unwrap()
        .entries
        .iter()
        .filter(|(p, _)| p.parts().count() == 1)
    {
        store.remove(old).await.unwrap();
    }
    let progress = SkillProgress::default();
    assert_eq!(
        publish(team.path(), &store, &progress).await.unwrap(),
        ["pdf"]
    );
    put(&*team.files, "pdf/SKILL.md", skill_md("pdf", "two")).await;
    assert_eq!(
        publish(team.path(), &store, &progress).await.unwrap(),
        ["pdf"]
    );
    put(
        &*team.files,
        "bad/SKILL.md",
        "---\nname: Bad\ndescription: d\n---\n",
    )
    .await;
    let refused = publish(team.path(), &store, &progress)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("SKILL.md:2:7") && refused.contains("lower case"),
        "{refused}"
    );
    assert_eq!(
        tree(&store).await.keys().collect::<Vec<_>>(),
        ["pdf", "pdf/SKILL.md", "pdf/run.sh"]
    );

    // Servers of tests have passwords; an address that is kept has variables.
    let (from, password) = match url
        .split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)))
    {
        Some((scheme, (user, host))) if user.contains(':') => {
            let (name, password) = user.split_once(':').unwrap();
            (
                format!("{scheme}://{name}:${{PW}}@{host}"),
                Some(password.to_owned()),
            )
        }
        _ => (url.to_owned(), None),
    };
    let source = SkillSource::parse(&from, "/").unwrap();
    let lookup = move |name: &str| password.clone().filter(|_| name == "PW");
    let fetched = source.fetch("team", &lookup, &progress).await.unwrap();
    let folder = Folder::new();
    let mut installation = Installation::open(folder.files.clone()).await.unwrap();
    installation
        .install("team", &fetched, &progress)
        .await
        .unwrap();
    let tree = tree(&*folder.files).await;
    assert_eq!(
        tree[".stead/skills/team/pdf/run.sh"],
        Some((b"#!/bin/sh\n".to_vec(), true))
    );
    assert_eq!(
        tree[".stead/skills/team/pdf/SKILL.md"],
        Some((skill_md("pdf", "two").into_bytes(), false))
    );
}

#[tokio::test]
async fn a_team_shares_skills_in_sqlite() {
    let folder = Folder::new();
    by_store(&format!("sqlite:{}/skills.db", folder.path())).await;
}

#[tokio::test]
async fn a_team_shares_skills_in_every_kind_of_server() {
    for kind in [ServerKind::Redis, ServerKind::Postgres, ServerKind::Mysql] {
        by_store(&shared(kind)).await;
    }
}
