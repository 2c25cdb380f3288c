//! The `execute:` settings of agent.yaml: the environment of commands.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The environment of commands, in addition to the few variables that every program needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecuteSettings {
    /// Variables and their values: `CI: "1"`.
    pub env: BTreeMap<String, String>,
    /// Variables of the process, or of the workspace's `.env`, that commands may see:
    /// `[GITHUB_TOKEN]`. Their values are redacted in journals and results.
    pub pass: Vec<String>,
}

impl ExecuteSettings {
    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        let passed = self
            .pass
            .iter()
            .enumerate()
            .map(|(i, name)| (format!("execute.pass[{i}]"), name));
        let set = self
            .env
            .keys()
            .map(|name| (format!("execute.env.{name}"), name));
        let (key, name) = passed
            .chain(set)
            .find(|(_, name)| !is_variable_name(name))?;
        let rule = "a variable's name has letters, digits and _ and does not begin with a digit";
        Some((
            key.clone(),
            format!("{key}: {name:?} is no variable: {rule}"),
        ))
    }

    /// Returns the environment of every command: the variables of `process` named in `usual`, the
    /// passed variables from `lookup`, and the variables that are set. Later ones override earlier
    /// ones.
    pub fn environment(
        &self,
        usual: &[&str],
        process: &dyn Fn(&str) -> Option<String>,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> BTreeMap<String, String> {
        let usual = usual
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), process(name)?)));
        let passed = self
            .pass
            .iter()
            .filter_map(|name| Some((name.clone(), lookup(name)?)));
        usual.chain(passed).chain(self.env.clone()).collect()
    }

    /// Returns the values of the passed variables, which are redacted in journals.
    pub fn secrets(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        self.pass.iter().filter_map(|name| lookup(name)).collect()
    }
}

fn is_variable_name(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use crate::AgentConfig;

    #[test]
    fn commands_see_what_is_usual_passed_and_set_and_nothing_else() {
        let text = "execute: {env: {CI: '1', TOKEN: 'set ${KEY}'}, pass: [SECRET, MISSING, TOKEN]}";
        let variables = |name: &str| {
            let known = [
                ("PATH", "/bin"),
                ("KEY", "sk-123456"),
                ("SECRET", "hush-hush"),
                ("TOKEN", "passed"),
            ];
            known
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let config = AgentConfig::parse(text, &variables).unwrap();
        let seen = config
            .execute
            .environment(&["PATH", "HOME"], &variables, &variables);
        let expected = [
            ("CI", "1"),
            ("PATH", "/bin"),
            ("SECRET", "hush-hush"),
            ("TOKEN", "set sk-123456"),
        ];
        assert_eq!(
            seen,
            expected
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        );
        assert_eq!(config.execute.secrets(&variables), ["hush-hush", "passed"]);
        assert_eq!(config.secrets, ["sk-123456"]);
    }

    #[test]
    fn names_that_are_none_are_refused_at_their_place() {
        let table = [
            (
                "execute:\n  pass: [A, B-C]",
                "agent.yaml:2:13: execute.pass[1]: \"B-C\" is no variable",
            ),
            (
                "execute:\n  env:\n    1A: x",
                "agent.yaml:3:5: execute.env.1A: \"1A\" is no variable",
            ),
            ("execute: {envs: {}}", "agent.yaml:1:11: "),
        ];
        for (text, start) in table {
            let error = AgentConfig::parse(text, &|_| None).unwrap_err()[0].to_string();
            assert!(error.starts_with(start), "{text:?}: {error}");
        }
    }
}
