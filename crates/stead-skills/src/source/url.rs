//! Parsing the address of a source of skills.
//!
//! Effects: none.

use super::{ArchiveFormat, SkillSource, SourceError, SourceKind};
use serde_json::Value;
use stead_core::{Substitution, substitute};

const STORE_SCHEMES: [&str; 6] = [
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "redis",
    "rediss",
];
const GIT_SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

impl SkillSource {
    /// Parses an address. Relative paths are resolved from the directory `base`.
    ///
    /// ```
    /// use stead_skills::{SkillSource, SourceKind};
    ///
    /// let source = SkillSource::parse("https://git.example/team/skills.git#v2", "/home/me").unwrap();
    /// assert_eq!((source.kind, source.rev.as_deref()), (SourceKind::Git, Some("v2")));
    /// assert_eq!(SkillSource::parse("skills.zip", "/home/me").unwrap().from, "/home/me/skills.zip");
    /// assert!(SkillSource::parse("https://me:s3cret@git.example/team/skills.git", "/").is_err());
    /// ```
    pub fn parse(text: &str, base: &str) -> Result<Self, SourceError> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
            return Err(SourceError::Address(format!(
                "{text:?} is not a source: give a repository, a directory, an archive or a store"
            )));
        }
        if let Some(file) = text.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            return Ok(Self {
                kind: SourceKind::Store,
                from: format!("sqlite:{}", absolute(file, base)),
                rev: None,
            });
        }
        match text.split_once("://") {
            Some((scheme, _)) if STORE_SCHEMES.contains(&scheme) => {
                refuse_secrets(text)?;
                Ok(Self {
                    kind: SourceKind::Store,
                    from: text.to_owned(),
                    rev: None,
                })
            }
            Some((scheme, _)) if GIT_SCHEMES.contains(&scheme.trim_start_matches("git+")) => {
                parse_repository(text.strip_prefix("git+").unwrap_or(text))
            }
            Some((scheme, _)) => {
                let known = [&GIT_SCHEMES[..], &STORE_SCHEMES[..], &["sqlite"]]
                    .concat()
                    .join(", ");
                Err(SourceError::Address(format!(
                    "there are no sources at {scheme}://; there are {known}"
                )))
            }
            None if text.contains("::") => Err(SourceError::Address(
                "a helper of git (`name::address`) is not taken as a source".to_owned(),
            )),
            None if is_scp(text) => parse_repository(text),
            None => parse_local(text, base),
        }
    }

    /// Returns the address as a person would type it.
    pub(crate) fn display_address(&self) -> String {
        match (&self.rev, self.kind) {
            (Some(rev), _) => format!("{}#{rev}", self.from),
            (None, _) => self.from.clone(),
        }
    }

    /// Returns the name used if none is given: the last part of the address.
    pub fn default_name(&self) -> String {
        let address = self.from.trim_end_matches('/');
        let last = address.rsplit(['/', ':']).next().unwrap_or(address);
        let last = last.split('?').next().unwrap_or(last);
        let stem = [".git", ".tar.gz", ".tgz", ".tar", ".zip", ".db", ".sqlite"]
            .iter()
            .find_map(|end| last.strip_suffix(end))
            .unwrap_or(last);
        stem.to_lowercase()
    }

    /// Returns the address with its variables replaced, and their values.
    pub(crate) fn resolve_address(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(String, Vec<String>), SourceError> {
        let mut value = Value::String(self.from.clone());
        let mut found = Substitution::default();
        substitute(&mut value, "", lookup, &mut found);
        if !found.unset.is_empty() {
            return Err(SourceError::Variables(
                found
                    .unset
                    .into_iter()
                    .map(|missing| missing.name)
                    .collect(),
            ));
        }
        Ok((value.as_str().unwrap_or_default().to_owned(), found.values))
    }
}

fn parse_repository(text: &str) -> Result<SkillSource, SourceError> {
    let (address, rev) = split_rev(text)?;
    refuse_secrets(address)?;
    if address.starts_with("http") && ArchiveFormat::of_name(address).is_some() {
        return Err(SourceError::Address(format!(
            "{address} is an archive: download it, check it, and add the file"
        )));
    }
    Ok(SkillSource {
        kind: SourceKind::Git,
        from: address.to_owned(),
        rev,
    })
}

fn parse_local(text: &str, base: &str) -> Result<SkillSource, SourceError> {
    let (path, rev) = split_rev(text)?;
    let kind = match ArchiveFormat::of_name(path) {
        _ if rev.is_some() || path.ends_with(".git") => SourceKind::Git,
        Some(_) => SourceKind::Archive,
        None => SourceKind::Directory,
    };
    Ok(SkillSource {
        kind,
        from: absolute(path, base),
        rev,
    })
}

/// Returns an absolute path without `.` and `..`.
fn absolute(path: &str, base: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns whether a text has the form `user@host:path` of ssh.
fn is_scp(text: &str) -> bool {
    let host = text.split_once(':').map(|(host, _)| host);
    host.is_some_and(|host| host.contains('@') && !host.contains('/') && !host.contains("@-"))
}

/// Splits an address from the revision after `#`.
fn split_rev(text: &str) -> Result<(&str, Option<String>), SourceError> {
    let Some((address, rev)) = text.rsplit_once('#') else {
        return Ok((text, None));
    };
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    let fits = !rev.is_empty()
        && !rev.starts_with(['-', '/', '.'])
        && !rev.contains("..")
        && rev.chars().all(is_plain);
    if !fits || address.is_empty() {
        return Err(SourceError::Address(format!(
            "#{rev} is not a revision: give a branch, a tag or a commit"
        )));
    }
    Ok((address, Some(rev.to_owned())))
}

/// Refuses an address with a password: addresses are stored and shown.
fn refuse_secrets(url: &str) -> Result<(), SourceError> {
    // An address without a scheme cannot hold a password.
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok(());
    };
    let shown = || SourceError::Credentials(format!("the address {scheme}://…"));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority
        .rsplit_once('@')
        .map_or((None, authority), |(user, host)| (Some(user), host));
    if host.starts_with('-') {
        return Err(SourceError::Address(format!(
            "a host cannot begin with `-`: {host}"
        )));
    }
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    // `user:pass/word@host` looks like a host `user` with an odd port.
    if host
        .rsplit_once(':')
        .is_some_and(|(name, port)| !is_port(port) && !name.starts_with('['))
    {
        return Err(shown());
    }
    let takes_tokens_as_names = matches!(scheme, "http" | "https");
    if let Some(user) = user {
        let (name, password) = user
            .split_once(':')
            .map_or((user, None), |(name, password)| (name, Some(password)));
        if password.is_some_and(|password| !is_variable(password))
            || (takes_tokens_as_names && !is_variable(name))
        {
            return Err(shown());
        }
    }
    if STORE_SCHEMES.contains(&scheme) && path.contains('@') {
        return Err(shown());
    }
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let secret = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = key.to_lowercase();
        ["pass", "token", "secret", "key", "auth"]
            .iter()
            .any(|word| key.contains(word))
            && !is_variable(value)
    };
    if query
        .split('&')
        .any(|pair| !pair.is_empty() && secret(pair))
    {
        Err(shown())
    } else {
        Ok(())
    }
}

/// Returns whether a text is empty or a single variable.
fn is_variable(text: &str) -> bool {
    text.is_empty()
        || (text.starts_with("${")
            && text.ends_with('}')
            && !text.contains(":-")
            && text.matches('}').count() == 1)
}
