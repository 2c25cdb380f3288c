//! `channel:` and `channels:` of OpenPaw: chat channels of the agent.
//!
//! Effects: none.

use super::settings::OpenpawSettings;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The kinds of channels that OpenPaw has.
const KINDS: [&str; 2] = ["telegram", "discord"];
/// The maximum number of earlier messages that are shown with a message.
const MAX_CONTEXT_MESSAGES: u32 = 100;

/// A channel.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Channel {
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    token: Option<String>,
    allowed_users: Vec<i64>,
    allowed_groups: Vec<i64>,
    allow_all: bool,
    #[serde(rename = "mention_required")]
    _mention_required: bool,
    #[serde(rename = "triggers")]
    _triggers: Vec<String>,
    user_aliases: BTreeMap<String, String>,
    context_messages: Option<u32>,
    channel_log: Option<ChannelLog>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ChannelLog {
    #[serde(rename = "enabled")]
    _enabled: Option<bool>,
    retention_days: Option<u32>,
}

impl Channel {
    /// Returns the kind of the channel, if it is set.
    pub(super) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Returns the channel's name, or the name of its kind.
    fn display_name(&self) -> Option<&str> {
        self.name.as_deref().or(self.kind.as_deref())
    }

    fn problems(&self, key: &str) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut wrong = |field: &str, message: String| {
            let key = format!("{key}.{field}");
            problems.push((key.clone(), format!("{key}: {message}")));
        };
        if self.kind.is_none() {
            wrong(
                "type",
                format!("is missing; one of {} is needed", KINDS.join(", ")),
            );
        }
        if self
            .context_messages
            .is_some_and(|number| number > MAX_CONTEXT_MESSAGES)
        {
            wrong(
                "context_messages",
                format!("a number from 0 to {MAX_CONTEXT_MESSAGES} is needed here"),
            );
        }
        if self.channel_log.as_ref().and_then(|log| log.retention_days) == Some(0) {
            wrong(
                "channel_log.retention_days",
                "must be at least 1".to_owned(),
            );
        }
        for id in self
            .user_aliases
            .keys()
            .filter(|id| id.parse::<i64>().is_err())
        {
            wrong(
                &format!("user_aliases.{id}"),
                format!("{id:?} is no user's number"),
            );
        }
        problems
    }

    /// Returns warnings about settings with surprising effects, each with its key.
    pub(super) fn warnings(&self, key: &str) -> Vec<(String, String)> {
        let mut doubts = Vec::new();
        let mut doubt =
            |field: &str, message: String| doubts.push((format!("{key}.{field}"), message));
        if let Some(kind) = self.kind().filter(|kind| !KINDS.contains(kind)) {
            let near = crate::closest_name(kind, &KINDS)
                .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            doubt(
                "type",
                format!("{key}.type: channels of type {kind:?} are not known{near}"),
            );
        }
        if self.token.as_deref().is_none_or(str::is_empty) {
            doubt(
                "token",
                format!("{key}.token: is missing; nothing is received without it"),
            );
        }
        if !self.allow_all && self.allowed_users.is_empty() && !self.allowed_groups.is_empty() {
            let text = "a group alone lets nobody in; list its people in allowed_users, or set allow_all: true";
            doubt("allowed_groups", format!("{key}.allowed_groups: {text}"));
        }
        doubts
    }
}

/// Returns the problems of all channels, each with its key.
pub(super) fn problems(settings: &OpenpawSettings) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    if settings.channel.is_some() && settings.channels.is_some() {
        let message = "`channel` and `channels` are both set; keep one of them";
        problems.push(("channels".to_owned(), message.to_owned()));
    }
    let mut names = BTreeSet::new();
    for (key, channel) in settings.all_channels() {
        problems.extend(channel.problems(&key));
        if let Some(name) = channel
            .display_name()
            .filter(|name| !names.insert(name.to_owned()))
        {
            problems.push((
                format!("{key}.name"),
                format!("{key}: two channels are named {name:?}; give each its own"),
            ));
        }
    }
    problems
}
