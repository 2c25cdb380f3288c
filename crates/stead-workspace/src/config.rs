//! The settings in `agent.yaml`: every key is typed; unknown keys are errors with their position.
//!
//! Effects: the environment.

use crate::{
    Approval, BudgetSettings, ClientToolSettings, CompactionSettings, DisabledFeatures,
    ExecuteSettings, Finding, MemoryModelChoice, MemorySettings, OffloadSettings, PlanSettings,
    Policy, QueueSettings, SearchSettings, SettingsDocument, Surface, TrustSettings, UndoSettings,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use stead_core::{AgentId, PermissionMode, Price};
use stead_model::ModelSettings;
use stead_place::{FilesystemMode, FilesystemSettings, SessionSettings};
use stead_shell::CommandRules;
use stead_vfs::{CheckedRule, Rule};

/// The settings of an agent. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The agent's id; its sessions are stored under `agents/<name>/` (default `main`).
    #[schemars(with = "Option<String>")]
    pub name: Option<AgentId>,
    /// A one-line description of the agent's purpose.
    pub description: Option<String>,
    /// The model: `provider:model`, or a map of settings with `name:`, or with `provider:` and
    /// `model:`.
    #[serde(deserialize_with = "model")]
    #[schemars(with = "Option<ModelNameOrSettings>")]
    pub model: Option<ModelSettings>,
    /// The limits of a run.
    pub policy: Policy,
    /// Dollars per million tokens by `provider:model`. These prices override the built-in table.
    pub prices: BTreeMap<String, Price>,
    /// Tools with calls that wait for a person: `write_file: true`, or a map that says when, how
    /// and by whom.
    pub approvals: BTreeMap<String, Approval>,
    /// Tools that the client executes: their calls wait, and `respond` gives the result.
    pub client_tools: Vec<ClientToolSettings>,
    /// The permission mode: `default`, `accept_edits`, `explore`, `dont_ask` or `bypass`.
    pub permission_mode: PermissionMode,
    /// The rules for commands: which are allowed, asked about or denied.
    pub commands: CommandRules,
    /// The folder of plans.
    pub plan: PlanSettings,
    /// The place of the tree.
    pub filesystem: FilesystemSettings,
    /// The place of sessions, if they are not stored with the tree.
    pub sessions: SessionSettings,
    /// How long, and in how much space, changes of runs are kept for undo.
    pub undo: UndoSettings,
    /// The rules for reading and writing files. The first rule that matches a path decides.
    #[serde(deserialize_with = "permissions")]
    #[schemars(with = "Vec<Rule>")]
    pub permissions: Vec<CheckedRule>,
    /// How messages that arrive during a run are handled.
    pub queue: QueueSettings,
    /// The first text of the prompt, before everything that is read from files.
    pub system_prompt: Option<String>,
    /// Files that are shown whole in the prompt, in addition to `AGENTS.md`.
    pub context_files: Vec<String>,
    /// The sources of skills, and how they are shown to the model.
    pub skills: SkillSettings,
    /// The settings of long-term memory.
    pub memory: MemorySettings,
    /// How memory and sessions are searched.
    pub search: SearchSettings,
    /// When the context is compacted, and how much of it is kept.
    pub compaction: CompactionSettings,
    /// The limits on spending.
    pub budget: BudgetSettings,
    /// The length at which a text is moved from the conversation to a file.
    pub offload: OffloadSettings,
    /// The environment of commands.
    pub execute: ExecuteSettings,
    /// The sources whose content is trusted: hosts, tool servers, files.
    pub trust: TrustSettings,
    /// The names under which tools are shown to the model (default: as the layout does).
    pub surface: Option<Surface>,
    /// The time zone of dates and schedules, by its IANA name: `Europe/Paris` (default: the
    /// machine's).
    pub timezone: Option<String>,
    /// The features that are switched off.
    pub disable: DisabledFeatures,
    /// The values of variables, which are redacted in journals and logs.
    #[serde(skip)]
    pub secrets: Vec<String>,
    /// The variables of the workspace's `.env`.
    #[serde(skip)]
    pub variables: BTreeMap<String, String>,
}

/// The sources of skills, and how they are shown to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillSettings {
    /// `catalogue` (names and descriptions; default) or `full` (whole bodies). The layout decides
    /// if it is left out.
    pub mode: Option<SkillMode>,
    /// Further folders of skills in the workspace. Later ones override earlier ones.
    pub dirs: Vec<String>,
}

/// How skills are shown to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillMode {
    /// Names and descriptions; the model loads bodies when it needs them.
    #[default]
    Catalogue,
    /// Whole bodies.
    Full,
}

impl AgentConfig {
    /// Parses `agent.yaml`, taking variables from `lookup`.
    pub fn parse(
        text: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<Finding>> {
        let mut document =
            SettingsDocument::parse_yaml("agent.yaml", text).map_err(|finding| vec![finding])?;
        let (secrets, missing) = document.resolve_variables(lookup);
        if !missing.is_empty() {
            return Err(missing);
        }
        let config = Self::from_document(&document).map_err(|finding| vec![finding])?;
        Ok(Self { secrets, ..config })
    }

    /// Returns the settings in `document`, in which variables are already replaced.
    pub fn from_document(document: &SettingsDocument) -> Result<Self, Finding> {
        let mut config: Self = document.deserialize_into()?;
        let joined = config
            .model
            .take()
            .map(ModelSettings::with_joined_name)
            .transpose();
        config.model = joined.map_err(|(key, message)| {
            document.error(&format!("model.{key}"), format!("model.{key}: {message}"))
        })?;
        match config.problem() {
            Some((key, message)) => Err(document.error(&key, message)),
            None => Ok(config),
        }
    }

    /// Returns the agent's id.
    pub fn agent_id(&self) -> AgentId {
        self.name.clone().unwrap_or_else(AgentId::main)
    }

    /// Returns the first problem of the settings as a whole with the key it is about.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        let zero = [
            (self.policy.max_steps == 0, "policy.max_steps"),
            (
                self.policy.run_timeout_seconds == 0,
                "policy.run_timeout_seconds",
            ),
            (
                self.policy.tool_timeout_seconds == 0,
                "policy.tool_timeout_seconds",
            ),
            (
                self.policy.parallel_tool_calls == 0,
                "policy.parallel_tool_calls",
            ),
            (
                self.policy.max_concurrent_subagents == 0,
                "policy.max_concurrent_subagents",
            ),
            (
                self.policy.subagent_timeout_seconds == 0,
                "policy.subagent_timeout_seconds",
            ),
        ];
        if let Some((_, key)) = zero.into_iter().find(|(is_zero, _)| *is_zero) {
            return Some((key.to_owned(), format!("{key} must be at least 1")));
        }
        let found = |(key, message): (&str, String)| (key.to_owned(), message);
        if let Some(message) = self.timezone.as_deref().and_then(timezone_problem) {
            return Some(found(("timezone", message)));
        }
        if let Some(problem) = self.filesystem.problem() {
            return Some(found(problem));
        }
        if self.sessions.url.is_some() && self.filesystem.mode == FilesystemMode::Local {
            return Some(found((
                "sessions.url",
                "sessions.url has no meaning with filesystem.mode: local".to_owned(),
            )));
        }
        let of_memory = match self.memory.model_choice() {
            MemoryModelChoice::Named(name) => Some(name),
            MemoryModelChoice::Cheap | MemoryModelChoice::Own => None,
        };
        let side = [
            ("compaction.model", self.compaction.model.as_deref()),
            ("memory.model", of_memory),
        ];
        for (key, name) in side {
            if let Some(Err(error)) = name.map(stead_model::check_name) {
                return Some((key.to_owned(), format!("{key}: {error}")));
            }
        }
        if let Some(problem) = self.search.problem() {
            return Some(found(problem));
        }
        if let Some(problem) = self.compaction.problem().or_else(|| self.memory.problem()) {
            return Some(found(problem));
        }
        if let Some(problem) = self.budget.problem(&self.disable) {
            return Some(problem);
        }
        if let Some(problem) = self
            .offload
            .problem()
            .or_else(|| self.plan.problem())
            .or_else(|| self.queue.problem())
        {
            return Some(found(problem));
        }
        if let Some(problem) = self
            .approvals
            .iter()
            .find_map(|(tool, approval)| approval.problem(tool))
        {
            return Some(problem);
        }
        if let Some(problem) = self.execute.problem().or_else(|| self.trust.problem()) {
            return Some(problem);
        }
        if let Some(problem) = ClientToolSettings::problem(&self.client_tools) {
            return Some(problem);
        }
        let Policy {
            repeat_nudge,
            repeat_end,
            ..
        } = self.policy;
        if repeat_end > 0 && repeat_nudge > repeat_end {
            let message = "policy.repeat_nudge must not be more than policy.repeat_end".to_owned();
            return Some(found(("policy.repeat_nudge", message)));
        }
        self.price_problem()
    }

    fn price_problem(&self) -> Option<(String, String)> {
        let own = self
            .model
            .iter()
            .filter_map(|model| Some(("model.price".to_owned(), model.price.as_ref()?)));
        let set = self
            .prices
            .iter()
            .map(|(name, price)| (format!("prices.{name}"), price));
        let amounts = |price: &Price| {
            [
                Some(price.input),
                Some(price.output),
                price.cache_read,
                price.cache_write,
            ]
        };
        let wrong = |price: &Price| {
            amounts(price)
                .into_iter()
                .flatten()
                .any(|amount| !amount.is_finite() || amount < 0.0)
        };
        let (key, _) = own.chain(set).find(|(_, price)| wrong(price))?;
        let message = format!("{key} must be 0 or more");
        Some((key, message))
    }
}

/// Returns the problem of the name of a time zone, if it is not a valid one.
pub(crate) fn timezone_problem(name: &str) -> Option<String> {
    if jiff::tz::TimeZone::get(name).is_ok() {
        return None;
    }
    let zones: Vec<String> = jiff::tz::db()
        .available()
        .map(|zone| zone.to_string())
        .collect();
    let known: Vec<&str> = zones.iter().map(String::as_str).collect();
    let hint = crate::closest_name(name, &known)
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Some(format!(
        "timezone: there is no time zone {name:?}; IANA names are needed, such as Europe/Paris{hint}"
    ))
}

/// The forms of `model:`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum ModelNameOrSettings {
    /// `provider:model`.
    Name(String),
    /// A map with `name:`.
    Settings(Box<ModelSettings>),
}

fn model<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ModelSettings>, D::Error> {
    struct ModelVisitor;
    impl<'de> serde::de::Visitor<'de> for ModelVisitor {
        type Value = Option<ModelSettings>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("`provider:model`, or a map with `name:`, or with `provider:` and `model:`")
        }
        fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
            Ok(Some(ModelSettings {
                name: name.to_owned(),
                ..ModelSettings::default()
            }))
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            ModelSettings::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Some)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(ModelVisitor)
}

/// Reads and compiles rule by rule, so that an invalid one is reported at its position in the file.
pub(crate) fn permissions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<CheckedRule>, D::Error> {
    struct RuleSeed(usize);
    impl<'de> serde::de::DeserializeSeed<'de> for RuleSeed {
        type Value = CheckedRule;
        fn deserialize<D: Deserializer<'de>>(
            self,
            deserializer: D,
        ) -> Result<CheckedRule, D::Error> {
            let rule = Rule::deserialize(deserializer)?;
            CheckedRule::new(self.0, rule).map_err(serde::de::Error::custom)
        }
    }
    struct RulesVisitor;
    impl<'de> serde::de::Visitor<'de> for RulesVisitor {
        type Value = Vec<CheckedRule>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of rules, each with `operations`, `paths` and `mode`")
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut list: A,
        ) -> Result<Self::Value, A::Error> {
            let mut rules: Vec<CheckedRule> = Vec::new();
            while let Some(rule) = list.next_element_seed(RuleSeed(rules.len()))? {
                rules.push(rule);
            }
            Ok(rules)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(RulesVisitor)
}

#[cfg(test)]
mod tests;
