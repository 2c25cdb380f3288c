//! `heartbeat:` of OpenPaw: scheduled check-ins of the agent.
//!
//! Effects: none.

use serde::Deserialize;

/// Check-ins on a schedule.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Heartbeat {
    #[serde(rename = "enabled")]
    _enabled: bool,
    interval_minutes: Option<u32>,
    active_hours: Option<String>,
    #[serde(rename = "suppress_ok")]
    _suppress_ok: Option<bool>,
    #[serde(rename = "target_channel")]
    _target_channel: Option<String>,
    target_id: Option<ChatTarget>,
    target_chat_id: Option<ChatTarget>,
    target_channel_id: Option<ChatTarget>,
    #[serde(rename = "delivery")]
    _delivery: Option<Delivery>,
    #[serde(rename = "output")]
    _output: Option<DeliveryOutput>,
}

/// The destination of an answer that nobody waits for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DeliveryOutput {
    pub(super) channel: Option<String>,
    #[serde(rename = "chat_id")]
    _chat_id: Option<ChatTarget>,
    #[serde(rename = "channel_id")]
    _channel_id: Option<ChatTarget>,
    #[serde(rename = "guild_id")]
    _guild_id: Option<ChatTarget>,
    #[serde(rename = "target_id")]
    _target_id: Option<ChatTarget>,
    #[serde(rename = "delivery")]
    _delivery: Option<Delivery>,
}

/// A chat, by number or by name.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum ChatTarget {
    Number(#[expect(dead_code, reason = "only its form is checked")] i64),
    Name(#[expect(dead_code, reason = "only its form is checked")] String),
}

/// The recipient of an answer.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Delivery {
    Channel,
    Agent,
    Both,
}

impl Heartbeat {
    /// Returns the problems, each with its key.
    pub(super) fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        if self.interval_minutes == Some(0) {
            let key = "heartbeat.interval_minutes".to_owned();
            problems.push((
                key,
                "heartbeat.interval_minutes must be at least 1".to_owned(),
            ));
        }
        if let Some(hours) = self
            .active_hours
            .as_deref()
            .filter(|hours| !is_time_span(hours))
        {
            let message = format!(
                "heartbeat.active_hours: {hours:?}: two times are needed here, such as 09:00-17:00"
            );
            problems.push(("heartbeat.active_hours".to_owned(), message));
        }
        let targets = [
            &self.target_id,
            &self.target_chat_id,
            &self.target_channel_id,
        ];
        if targets.iter().filter(|target| target.is_some()).count() > 1 {
            let message =
                "heartbeat.target_id: keep one of target_id, target_chat_id and target_channel_id";
            problems.push(("heartbeat.target_id".to_owned(), message.to_owned()));
        }
        problems
    }
}

/// Whether `text` is `HH:MM-HH:MM`. The span may pass midnight.
fn is_time_span(text: &str) -> bool {
    text.split_once('-')
        .is_some_and(|(from, to)| is_time(from.trim()) && is_time(to.trim()))
}

fn is_time(text: &str) -> bool {
    let below = |part: &str, end: u8| {
        let digits =
            !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && part.parse::<u8>().is_ok_and(|number| number < end)
    };
    text.split_once(':')
        .is_some_and(|(hour, minute)| below(hour, 24) && minute.len() == 2 && below(minute, 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_hours_are_two_times_of_day() {
        for good in ["09:00-17:00", "9:30-17:00", "22:00-06:00", "00:00 - 23:59"] {
            assert!(is_time_span(good), "{good}");
        }
        for bad in [
            "",
            "09:00",
            "09:00-24:00",
            "9-17",
            "09:60-10:00",
            "09:0-10:00",
            "a:00-b:00",
            "+9:00-10:00",
        ] {
            assert!(!is_time_span(bad), "{bad}");
        }
    }
}
