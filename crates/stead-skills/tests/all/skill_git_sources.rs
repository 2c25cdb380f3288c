//! The place for tests of skill sources in git repositories.

use crate::support::*;
use std::process::Command;
use stead_skills::*;

fn git(dir: &Folder, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir.dir.path()).args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "-c",
        "commit.gpgsign=false",
    ]);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    let done = command.args(args).output().unwrap();
    assert!(
        done.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A repository with two commits, the first tagged `v1`. Returns both.
async fn repository(dir: &Folder) -> [String; 2] {
    git(dir, &["init", "-q", "-b", "main"]);
    put(&*dir.files, "skills/pdf/SKILL.md", skill_md("pdf", "one")).await;
    put(&*dir.files, "skills/pdf/run.sh", "#!/bin/sh\n").await;
    dir.files
        .set_mode(&path("skills/pdf/run.sh"), 0o755)
        .await
        .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.dir.path().join("link")).unwrap();
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-qm", "one"]);
    git(dir, &["tag", "v1"]);
    let first = git(dir, &["rev-parse", "HEAD"]);
    put(&*dir.files, "skills/pdf/SKILL.md", skill_md("pdf", "two")).await;
    git(dir, &["commit", "-qam", "two"]);
    [first, git(dir, &["rev-parse", "HEAD"])]
}

async fn fetch(text: &str) -> Result<(String, Folder), String> {
    let source = SkillSource::parse(text, "/").unwrap();
    let progress = SkillProgress::default();
    let fetched = source
        .fetch("team", &|_| None, &progress)
        .await
        .map_err(|error| error.to_string())?;
    let folder = Folder::new();
    let mut installation = Installation::open(folder.files.clone()).await.unwrap();
    installation
        .install("team", &fetched, &progress)
        .await
        .map_err(|error| error.to_string())?;
    assert_eq!(installation.sources()[0].pinned, fetched.pinned);
    Ok((fetched.pinned, folder))
}

#[tokio::test]
async fn a_revision_is_resolved_to_its_commit_and_recorded() {
    let dir = Folder::new();
    let [first, second] = repository(&dir).await;
    let from = dir.path();
    for (text, commit, body) in [
        (format!("{from}#main"), &second, "two"),
        (format!("{from}#v1"), &first, "one"),
        (format!("{from}#{first}"), &first, "one"),
        (format!("{from}#{}", &first[..10]), &first, "one"),
        (format!("file://{from}"), &second, "two"),
        (format!("file://{from}#v1"), &first, "one"),
    ] {
        let (pinned, folder) = fetch(&text).await.unwrap();
        assert_eq!(pinned, *commit, "{text}");
        let tree = tree(&*folder.files).await;
        assert_eq!(
            tree[".stead/skills/team/pdf/SKILL.md"],
            Some((skill_md("pdf", body).into_bytes(), false)),
            "{text}"
        );
        assert_eq!(
            tree[".stead/skills/team/pdf/run.sh"],
            Some((b"#!/bin/sh\n".to_vec(), true)),
            "{text}"
        );
        assert!(!tree.contains_key("link"));
    }
    for (text, said) in [
        (format!("{from}#nope"), "git: "),
        ("/not/there.git".to_owned(), "git: "),
        ("http://127.0.0.1:9/x.git".to_owned(), "git: "),
    ] {
        let refused = fetch(&text).await.map(|_| ()).unwrap_err();
        assert!(
            refused.starts_with(said) && refused.len() > 20,
            "{text}: {refused}"
        );
    }
}

#[tokio::test]
async fn nothing_in_a_repository_is_run_and_no_link_is_followed() {
    let dir = Folder::new();
    repository(&dir).await;
    let proof = dir.dir.path().join("proof");
    put(&*dir.files, ".gitattributes", "* filter=evil\n").await;
    git(&dir, &["add", "-A"]);
    git(&dir, &["commit", "-qm", "attributes"]);
    for hook in [
        "post-checkout",
        "post-merge",
        "reference-transaction",
        "pre-auto-gc",
    ] {
        let hook = format!(".git/hooks/{hook}");
        put(
            &*dir.files,
            &hook,
            format!("#!/bin/sh\ntouch {}\n", proof.display()),
        )
        .await;
        dir.files.set_mode(&path(&hook), 0o755).await.unwrap();
    }
    fetch(&format!("{}#main", dir.path())).await.unwrap();
    assert!(!proof.exists());
    std::os::unix::fs::symlink("/etc/passwd", dir.dir.path().join("skills/pdf/passwd")).unwrap();
    git(&dir, &["add", "-A"]);
    git(
        &dir,
        &["-c", "core.hooksPath=/dev/null", "commit", "-qm", "link"],
    );
    let refused = fetch(&format!("{}#main", dir.path()))
        .await
        .map(|_| ())
        .unwrap_err();
    assert!(refused.contains("skills/pdf/passwd is a link"), "{refused}");
}

#[tokio::test]
async fn a_secret_of_the_address_is_in_no_error() {
    let source = SkillSource::parse("http://${TOKEN}@127.0.0.1:9/x.git", "/").unwrap();
    let lookup = |name: &str| (name == "TOKEN").then(|| "s3cret-t0ken".to_owned());
    let refused = source
        .fetch("x", &lookup, &SkillProgress::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("git: ") && !refused.contains("s3cret"),
        "{refused}"
    );
    let missing = source
        .fetch("x", &|_| None, &SkillProgress::default())
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(missing, "not set: TOKEN");
}
