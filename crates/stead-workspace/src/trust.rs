//! `trust:` in agent.yaml: the sources that a person vouches for.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_vfs::{PathPatterns, VPath};

/// The sources whose content is trusted. What comes from them does not taint a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrustSettings {
    /// Machines by name: `docs.example.com`, or `*.example.com` for all below it. They count for
    /// tools that say which machine they reach.
    pub hosts: Vec<String>,
    /// Tool servers by name: `crm` for the tools `mcp__crm__…`.
    pub servers: Vec<String>,
    /// Files of the workspace, as path patterns: `vendor/**`.
    pub files: Vec<String>,
}

impl TrustSettings {
    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        let host = self.hosts.iter().position(|host| !is_host(host)).map(|i| {
            let host = &self.hosts[i];
            let why = "write the name of a machine, such as docs.example.com or *.example.com";
            (
                format!("trust.hosts[{i}]"),
                format!("{host:?} is no host: {why}"),
            )
        });
        let server = self
            .servers
            .iter()
            .position(|name| name.is_empty() || name.contains(char::is_whitespace))
            .map(|i| {
                let name = &self.servers[i];
                (
                    format!("trust.servers[{i}]"),
                    format!("{name:?} is no name of a tool server"),
                )
            });
        let file = PathPatterns::new(&self.files)
            .err()
            .map(|(i, problem)| (format!("trust.files[{i}]"), problem));
        let (key, problem) = host.or(server).or(file)?;
        Some((key.clone(), format!("{key}: {problem}")))
    }

    /// Whether the machine `host` is trusted.
    pub fn trusts_host(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        self.hosts.iter().any(|trusted| {
            let trusted = trusted.to_lowercase();
            match trusted.strip_prefix("*.") {
                Some(domain) => host
                    .strip_suffix(domain)
                    .is_some_and(|name| name.len() > 1 && name.ends_with('.')),
                None => host == trusted,
            }
        })
    }

    /// Whether the tool server `name` is trusted.
    pub fn trusts_server(&self, name: &str) -> bool {
        self.servers.iter().any(|server| server == name)
    }

    /// Whether the file at `path` is trusted.
    pub fn trusts_file(&self, path: &VPath) -> bool {
        !self.files.is_empty()
            && PathPatterns::new(&self.files).is_ok_and(|patterns| patterns.covers(path))
    }
}

/// Whether a text is the name of a machine, or of all below a domain.
fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    !name.is_empty() && name.chars().all(is_plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use crate::AgentConfig;
    use stead_vfs::VPath;

    #[test]
    fn only_what_is_named_is_trusted() {
        let text =
            "trust: {hosts: [docs.example.com, '*.corp.test'], servers: [crm], files: [vendor/**]}";
        let trust = AgentConfig::parse(text, &|_| None).unwrap().trust;
        for (host, trusted) in [
            ("docs.example.com", true),
            ("DOCS.example.com", true),
            ("example.com", false),
            ("evil-docs.example.com", false),
            ("docs.example.com.evil.org", false),
            ("a.corp.test", true),
            ("a.b.corp.test", true),
            ("corp.test", false),
            (".corp.test", false),
            ("evilcorp.test", false),
        ] {
            assert_eq!(trust.trusts_host(host), trusted, "{host}");
        }
        assert!(trust.trusts_server("crm") && !trust.trusts_server("crm2"));
        let file = |path: &str| trust.trusts_file(&VPath::parse(path).unwrap());
        assert!(file("vendor/a/b") && !file("src/vendor/a"));
    }

    #[test]
    fn names_that_could_never_match_are_refused_at_their_place() {
        let table = [
            (
                "trust:\n  hosts: [a.org, 'https://x.org/']",
                "agent.yaml:2:18: trust.hosts[1]: \"https://x.org/\" is no host",
            ),
            (
                "trust:\n  servers: ['']",
                "agent.yaml:2:13: trust.servers[0]: ",
            ),
            (
                "trust:\n  files: [../x]",
                "agent.yaml:2:11: trust.files[0]: ",
            ),
            ("trust: {urls: []}", "agent.yaml:1:9: "),
        ];
        for (text, start) in table {
            let error = AgentConfig::parse(text, &|_| None).unwrap_err()[0].to_string();
            assert!(error.starts_with(start), "{text:?}: {error}");
        }
    }
}
