//! `tools.json`: allowed and denied tools, and tool servers.
//!
//! Effects: none.

use crate::{Finding, SettingsDocument, Severity, Strictness};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stead_tools::{Availability, closest_name, known_tool, known_tools, rules_follow};

/// The keys of the lists in `tools.json`.
const LISTS: [&str; 2] = ["allow", "deny"];

/// Lists of allowed and denied tools, by any of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolLists {
    /// The allowed tools; none = all.
    pub allow: Option<Vec<String>>,
    /// The denied tools. A denial overrides `allow`.
    pub deny: Vec<String>,
}

impl ToolLists {
    /// Whether the lists allow the tool with this canonical name.
    pub fn allows(&self, tool: &str) -> bool {
        !self.denies(tool)
            && self
                .allow
                .as_ref()
                .is_none_or(|allow| allow.iter().any(|listed| is_name_of(listed, tool)))
    }

    /// Whether the lists deny the tool by name.
    pub fn denies(&self, tool: &str) -> bool {
        self.deny
            .iter()
            .any(|listed| is_name_of(listed, tool) || denial_covers(listed, tool))
    }
}

/// Whether `listed` is one of the names of `tool`.
fn is_name_of(listed: &str, tool: &str) -> bool {
    listed == tool || known_tool(listed).is_some_and(|known| known.name == tool)
}

/// Whether denying `listed` denies `tool` too.
fn denial_covers(listed: &str, tool: &str) -> bool {
    rules_follow(tool)
        .is_some_and(|other| known_tool(listed).is_some_and(|known| known.name == other))
}

/// The checked contents of `tools.json`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolsConfig {
    /// The lists of allowed and denied tools.
    pub lists: ToolLists,
    /// The tool servers by name.
    pub servers: BTreeMap<String, McpServer>,
    /// The values of variables, which are redacted.
    pub secrets: Vec<String>,
}

/// The meaning of an empty `allow` list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyAllow {
    /// No tool at all.
    Nothing,
    /// No restriction, as AgentScope reads it.
    Everything,
}

/// How a layout reads `tools.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolsDialect {
    /// The meaning of an empty `allow` list.
    pub empty_allow: EmptyAllow,
    /// What happens to unknown keys and to servers that cannot be used.
    pub strictness: Strictness,
}

#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsFile {
    /// The only tools that are allowed, built-in ones included.
    allow: Option<Vec<String>>,
    /// The tools that are denied.
    deny: Vec<String>,
    /// MCP servers by name.
    #[serde(rename = "mcpServers")]
    mcp_servers: BTreeMap<String, McpServer>,
    /// The JSON schema, for editors.
    #[serde(rename = "$schema")]
    _schema: Option<String>,
}

/// An MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct McpServer {
    /// The transport (default: `stdio` with a command, `streamableHttp` with a url).
    pub transport: Option<Transport>,
    /// `stdio`: the program.
    pub command: Option<String>,
    /// `stdio`: the arguments.
    pub args: Vec<String>,
    /// `stdio`: the environment.
    pub env: BTreeMap<String, String>,
    /// Other transports: the address.
    pub url: Option<String>,
    /// Other transports: the headers of each request.
    pub headers: BTreeMap<String, String>,
    /// Other transports: the parameters added to the url.
    pub query_params: BTreeMap<String, String>,
    /// The only tools of the server that are enabled.
    pub enable_tools: Option<Vec<String>>,
    /// The time limit of a call, in seconds.
    pub timeout: Option<f64>,
    /// The time limit for the start, in seconds.
    pub initialization_timeout: Option<f64>,
}

/// The transport of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Transport {
    /// A child process.
    #[serde(rename = "stdio")]
    Stdio,
    /// Server-sent events.
    #[serde(rename = "sse")]
    Sse,
    /// Streamable HTTP.
    #[serde(rename = "streamableHttp", alias = "streamable-http", alias = "http")]
    StreamableHttp,
}

impl ToolsConfig {
    /// Parses `tools.json`. A variable that is not set becomes an empty text, with a finding.
    pub fn parse(
        file: &str,
        text: &str,
        dialect: ToolsDialect,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<Finding>), Finding> {
        let mut document = SettingsDocument::parse_json(file, text)?;
        let mut findings: Vec<Finding> = document.remove_comment_keys().into_iter().collect();
        if dialect.strictness == Strictness::Lenient {
            findings.extend(document.remove_unknown_keys::<ToolsFile>());
        }
        for key in LISTS {
            if document
                .value()
                .get(key)
                .is_some_and(|list| list.to_string().contains("${"))
            {
                let text = format!(
                    "{key}: names of tools are written out; a variable has no meaning here"
                );
                return Err(document.error(key, text));
            }
        }
        let (secrets, missing) = document.resolve_variables(lookup);
        findings.extend(missing.into_iter().map(|finding| Finding {
            severity: Severity::NonFatal,
            ..finding
        }));
        let ToolsFile {
            allow,
            deny,
            mcp_servers,
            _schema,
        } = document.deserialize_into()?;
        let allow = match (allow, dialect.empty_allow) {
            (Some(list), EmptyAllow::Everything) if list.is_empty() => None,
            (allow, _) => allow,
        };
        let severity = match dialect.strictness {
            Strictness::Strict => Severity::Error,
            Strictness::Lenient => Severity::NonFatal,
        };
        for (name, server) in &mcp_servers {
            let key = format!("mcpServers.{name}");
            findings.extend(
                server
                    .problem()
                    .map(|problem| document.finding(severity, &key, format!("{key}: {problem}"))),
            );
            let later = format!("{key}: tool servers are connected in a later version");
            findings.push(document.finding(Severity::Inactive, &key, later));
        }
        if let Some(error) = findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
        {
            return Err(error.clone());
        }
        Ok((
            Self {
                lists: ToolLists { allow, deny },
                servers: mcp_servers,
                secrets,
            },
            findings,
        ))
    }
}

impl ToolsConfig {
    /// Returns all problems and inactive settings of `tools.json`.
    pub fn check(
        file: &str,
        text: &str,
        dialect: ToolsDialect,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<Finding> {
        let (config, mut findings) = match Self::parse(file, text, dialect, lookup) {
            Ok(parsed) => parsed,
            Err(finding) => return vec![finding],
        };
        let Ok(document) = SettingsDocument::parse_json(file, text) else {
            return findings;
        };
        let lists = [
            ("allow", config.lists.allow.unwrap_or_default()),
            ("deny", config.lists.deny),
        ];
        for (key, names) in &lists {
            for (i, name) in names.iter().enumerate() {
                let key = format!("{key}[{i}]");
                findings.extend(
                    tool_problem(name)
                        .map(|(severity, text)| document.finding(severity, &key, text)),
                );
            }
        }
        findings
    }
}

/// Returns the problem of a tool that settings name, if there is one.
pub fn tool_problem(name: &str) -> Option<(Severity, String)> {
    match known_tool(name).map(|tool| tool.availability) {
        Some(Availability::Available) => None,
        Some(Availability::Planned) => Some((
            Severity::Inactive,
            format!("the tool {name} comes in a later version"),
        )),
        None if name.starts_with("mcp__") => None,
        None => {
            let known: Vec<&str> = known_tools().map(|tool| tool.name).collect();
            let hint = closest_name(name, &known)
                .map_or(String::new(), |near| format!("; did you mean {near}?"));
            Some((Severity::NonFatal, format!("there is no tool {name}{hint}")))
        }
    }
}

impl McpServer {
    fn problem(&self) -> Option<&'static str> {
        match (self.transport, &self.command, &self.url) {
            (_, Some(_), Some(_)) => Some("has both `command` and `url`; keep one"),
            (Some(Transport::Stdio), None, _) => Some("stdio needs `command`"),
            (Some(Transport::Sse | Transport::StreamableHttp), _, None) => {
                Some("this transport needs `url`")
            }
            (None, None, None) => Some("needs `command` or `url`"),
            _ if self.command.as_deref() == Some("") || self.url.as_deref() == Some("") => {
                Some("is empty")
            }
            _ if [self.timeout, self.initialization_timeout]
                .iter()
                .flatten()
                .any(|s| !s.is_finite() || *s <= 0.0) =>
            {
                Some("a time limit must be more than 0 seconds")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, empty: EmptyAllow) -> Result<(ToolsConfig, Vec<Finding>), Finding> {
        parse_as(text, empty, Strictness::Strict)
    }

    fn parse_as(
        text: &str,
        empty_allow: EmptyAllow,
        strictness: Strictness,
    ) -> Result<(ToolsConfig, Vec<Finding>), Finding> {
        let dialect = ToolsDialect {
            empty_allow,
            strictness,
        };
        ToolsConfig::parse("tools.json", text, dialect, &|name| {
            (name == "KEY").then(|| "secret".to_owned())
        })
    }

    #[test]
    fn comment_keys_are_ignored_in_every_layout() {
        let text = "{\n\"// why\": [\"x\"],\n\"deny\": [\"execute\"], \"//allow\": []}";
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            let (config, findings) = parse_as(text, EmptyAllow::Nothing, strictness).unwrap();
            assert_eq!(
                (config.lists.allow, config.lists.deny),
                (None, vec!["execute".to_owned()])
            );
            let told: Vec<_> = findings
                .iter()
                .map(|f| (f.severity, f.place.line))
                .collect();
            assert_eq!(told, [(Severity::Warning, 2)]);
        }
    }

    #[test]
    fn a_lenient_layout_ignores_unknown_keys_unless_one_may_be_a_list() {
        let text = "{\"version\": 1,\n\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": true}, \"b\": {}}}";
        let (config, findings) = parse_as(text, EmptyAllow::Nothing, Strictness::Lenient).unwrap();
        assert_eq!(config.servers.len(), 2);
        let failing = findings.iter().filter(|f| f.severity == Severity::NonFatal);
        let told: Vec<&str> = failing
            .map(|f| f.message.split(':').next().unwrap())
            .collect();
        assert_eq!(told, ["mcpServers.a.disabled", "version", "mcpServers.b"]);
        let error = parse_as(
            "{\"version\": 1, \"deni\": [\"execute\"]}",
            EmptyAllow::Nothing,
            Strictness::Lenient,
        );
        assert!(error.is_err());
    }

    #[test]
    fn comments_variables_and_servers_are_read() {
        let text = r#"{
            // only these
            "allow": ["read_file", "Grep"], "deny": ["write_file"],
            "mcpServers": {
                "amap": {"transport": "streamableHttp", "url": "http://x/mcp?key=${KEY}"},
                "py": {"transport": "stdio", "command": "python", "args": ["s.py"], "env": {"A": "${GONE}"}},
            },
        }"#;
        let (config, findings) = parse(text, EmptyAllow::Nothing).unwrap();
        assert_eq!(
            config.lists.allow.as_deref(),
            Some(&["read_file".to_owned(), "Grep".to_owned()][..])
        );
        assert_eq!(
            config.servers["amap"].url.as_deref(),
            Some("http://x/mcp?key=secret")
        );
        assert_eq!(
            (config.servers["py"].env["A"].as_str(), config.secrets),
            ("", vec!["secret".to_owned()])
        );
        let severities: Vec<_> = findings
            .iter()
            .map(|finding| (finding.severity, finding.place.line))
            .collect();
        assert_eq!(
            severities,
            [
                (Severity::NonFatal, 6),
                (Severity::Inactive, 5),
                (Severity::Inactive, 6)
            ]
        );
    }

    #[test]
    fn an_empty_list_means_what_the_layout_says() {
        for (empty, expected) in [
            (EmptyAllow::Nothing, Some(Vec::new())),
            (EmptyAllow::Everything, None),
        ] {
            assert_eq!(
                parse(r#"{"allow": []}"#, empty).unwrap().0.lists.allow,
                expected
            );
        }
        assert_eq!(
            parse("", EmptyAllow::Nothing).unwrap().0,
            ToolsConfig::default()
        );
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, line, said) in [
            ("{\n\"alow\": []}", 2, "did you mean `allow`"),
            (
                "{\"mcpServers\": {\n\"a\": {\"transport\": \"stdio\"}}}",
                2,
                "needs `command`",
            ),
            (
                "{\"mcpServers\": {\n\"a\": {}}}",
                2,
                "needs `command` or `url`",
            ),
            (
                "{\"mcpServers\": {\n\"a\": {\"command\": \"x\", \"url\": \"y\"}}}",
                2,
                "both",
            ),
            (
                "{\"mcpServers\": {\"a\": {\n\"transport\": \"pigeon\"}}}",
                2,
                "pigeon",
            ),
            ("[1]", 1, "pairs are needed"),
        ] {
            let error = parse(text, EmptyAllow::Nothing).unwrap_err();
            assert!(
                error.place.line == line && error.message.contains(said),
                "{text}: {error}"
            );
        }
    }
}
