//! Repositories of skills, read with the `git` command.
//!
//! Nothing is checked out: the commit is fetched into a private bare repository and exported as a
//! tar, which is read like any other. So no hook, filter, submodule or link of the repository has
//! any effect.
//!
//! Effects: the clock, the local disk (writes), processes.

use super::SourceError;
use super::archive::MAX_UNPACKED_BYTES;
use super::bundle::{Bundle, LinkPolicy};
use super::tar;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// The timeout of one command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);
/// The maximum size of an error message of git.
const MAX_MESSAGE_BYTES: u64 = 8 * 1024;
/// The maximum size of an exported repository: files and tar headers.
const MAX_TAR_BYTES: u64 = MAX_UNPACKED_BYTES + 20 * 1024 * 1024;
/// The remote. Its address is passed in the environment, where it cannot be taken for an option and
/// other users of the machine cannot read it.
const REMOTE: &str = "source";

/// Settings of every command. The person's own git settings apply otherwise, for example for
/// credentials.
const GIT_SETTINGS: [(&str, &str); 11] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("protocol.allow", "never"),
    ("protocol.https.allow", "always"),
    ("protocol.http.allow", "always"),
    ("protocol.ssh.allow", "always"),
    ("protocol.git.allow", "always"),
    ("protocol.file.allow", "always"),
    ("credential.interactive", "never"),
    ("fetch.recurseSubmodules", "no"),
    ("gc.auto", "0"),
];
/// Variables that would make git use another repository.
const CLEARED_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
];

/// Returns the files of the repository at `url` at `rev`, by default its HEAD, and the commit.
pub(crate) async fn fetch(
    url: &str,
    rev: Option<&str>,
    secrets: &[String],
) -> Result<(Bundle, String), SourceError> {
    let scratch = tempfile::Builder::new().prefix("stead-git-").tempdir();
    let scratch = scratch
        .map_err(|error| SourceError::Git(format!("no place for the repository: {error}")))?;
    let repository = GitRepository {
        dir: scratch.path(),
        url,
        secrets,
    };
    repository
        .run_git(&["init", "--quiet", "--bare", "."])
        .await?;
    let wanted = rev.unwrap_or("HEAD");
    let shallow = repository
        .run_git(&[
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--end-of-options",
            REMOTE,
            wanted,
        ])
        .await;
    let commit = match (shallow, rev) {
        (Ok(_), _) => repository.commit("FETCH_HEAD").await?,
        (Err(error), None) => return Err(error),
        // An abbreviated commit, or a server that serves only branches and tags.
        (Err(error), Some(rev)) => {
            let all = [
                "fetch",
                "--quiet",
                "--tags",
                REMOTE,
                "+refs/heads/*:refs/heads/*",
            ];
            repository.run_git(&all).await.map_err(|_| error)?;
            repository.commit(rev).await?
        }
    };
    let packed = repository
        .run_git(&["archive", "--format=tar", &commit])
        .await?;
    let bundle = tar::read(&*packed, packed.len() as u64, LinkPolicy::Record)?;
    Ok((bundle, commit))
}

struct GitRepository<'a> {
    dir: &'a std::path::Path,
    url: &'a str,
    secrets: &'a [String],
}

impl GitRepository<'_> {
    async fn commit(&self, rev: &str) -> Result<String, SourceError> {
        let name = format!("{rev}^{{commit}}");
        let found = self
            .run_git(&[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &name,
            ])
            .await;
        let found = found.map_err(|_| {
            SourceError::Git(format!("the repository has no branch, tag or commit {rev}"))
        })?;
        let commit = String::from_utf8_lossy(&found).trim().to_owned();
        let is_commit = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_commit {
            Ok(commit)
        } else {
            Err(SourceError::Git(format!("{rev} is not a commit")))
        }
    }

    /// Runs one command to its end and returns its output.
    async fn run_git(&self, args: &[&str]) -> Result<Vec<u8>, SourceError> {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Prompts for credentials run `true`, which gives no answer.
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "true");
        command
            .env("SSH_ASKPASS", "true")
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("LC_ALL", "C");
        for name in CLEARED_VARIABLES {
            command.env_remove(name);
        }
        let address = (format!("remote.{REMOTE}.url"), self.url.to_owned());
        let settings = GIT_SETTINGS
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .chain([address]);
        for (i, (key, value)) in settings.enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{i}"), key)
                .env(format!("GIT_CONFIG_VALUE_{i}"), value);
            command.env("GIT_CONFIG_COUNT", (i + 1).to_string());
        }
        // A process group of its own, so that everything git starts ends with it.
        let child = command.process_group(0).kill_on_drop(true).spawn();
        let child = child.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                SourceError::Git("there is no command `git`; install it".to_owned())
            }
            _ => SourceError::Git(format!("cannot be run: {error}")),
        })?;
        let mut owned = GitChild(child);
        match tokio::time::timeout(COMMAND_TIMEOUT, owned.finish()).await {
            Err(_) => Err(SourceError::Git(format!(
                "no end after {} s: {}",
                COMMAND_TIMEOUT.as_secs(),
                args[0]
            ))),
            Ok(Err(error)) => Err(SourceError::Git(error.to_string())),
            Ok(Ok(GitOutput {
                is_success: true,
                out,
                ..
            })) => Ok(out),
            Ok(Ok(GitOutput { message, .. })) => {
                Err(SourceError::Git(self.sanitize_message(&message)))
            }
        }
    }

    /// Returns the error message of git without secrets, in one line.
    fn sanitize_message(&self, message: &[u8]) -> String {
        let message = String::from_utf8_lossy(message);
        let lines: Vec<&str> = message
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let mut message = lines.join("; ");
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            message = message.replace(secret.as_str(), "…");
        }
        if message.is_empty() {
            "it failed and did not say why".to_owned()
        } else {
            message
        }
    }
}

struct GitOutput {
    is_success: bool,
    out: Vec<u8>,
    message: Vec<u8>,
}

/// A child process that is killed on drop.
struct GitChild(Child);

impl GitChild {
    async fn finish(&mut self) -> std::io::Result<GitOutput> {
        let out = self.0.stdout.take();
        let message = self.0.stderr.take();
        let (out, message) = tokio::try_join!(read_all(out, MAX_TAR_BYTES), read_head(message))?;
        let is_success = self.0.wait().await?.success();
        Ok(GitOutput {
            is_success,
            out,
            message,
        })
    }
}

impl Drop for GitChild {
    fn drop(&mut self) {
        let id = self
            .0
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        // A child has an id until it is waited for, so the id cannot belong to another process.
        if let Some(id) = id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

async fn read_all(stream: Option<impl AsyncRead + Unpin>, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let Some(stream) = stream else { return Ok(all) };
    stream.take(limit + 1).read_to_end(&mut all).await?;
    if all.len() as u64 > limit {
        return Err(std::io::Error::other(format!(
            "the repository has more than {limit} bytes"
        )));
    }
    Ok(all)
}

async fn read_head(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else {
        return Ok(kept);
    };
    (&mut stream)
        .take(MAX_MESSAGE_BYTES)
        .read_to_end(&mut kept)
        .await?;
    // The rest is read and dropped, or git would block on writing it.
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(kept)
}
