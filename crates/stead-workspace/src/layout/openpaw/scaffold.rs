//! The files and folders of a new workspace of the openpaw layout.
//!
//! Effects: none.

use crate::{ScaffoldChoices, ScaffoldFile};
use std::fmt::Write;

/// The files of a new workspace.
pub(super) const SCAFFOLD: [ScaffoldFile; 9] = [
    ScaffoldFile {
        path: "agent/AGENT.md",
        content: include_str!("../../scaffold/openpaw/AGENT.md"),
    },
    ScaffoldFile {
        path: "agent/SOUL.md",
        content: include_str!("../../scaffold/openpaw/SOUL.md"),
    },
    ScaffoldFile {
        path: "agent/USER.md",
        content: include_str!("../../scaffold/openpaw/USER.md"),
    },
    ScaffoldFile {
        path: "agent/HEARTBEAT.md",
        content: include_str!("../../scaffold/openpaw/HEARTBEAT.md"),
    },
    ScaffoldFile {
        path: "agent/skills/writing-style/SKILL.md",
        content: include_str!("../../scaffold/openpaw/writing-style.md"),
    },
    ScaffoldFile {
        path: "config/agent.yaml",
        content: include_str!("../../scaffold/openpaw/agent.yaml"),
    },
    ScaffoldFile {
        path: "config/.env",
        content: include_str!("../../scaffold/openpaw/env"),
    },
    ScaffoldFile {
        path: "config/crons/daily-summary.yaml",
        content: include_str!("../../scaffold/openpaw/daily-summary.yaml"),
    },
    ScaffoldFile {
        path: ".gitignore",
        content: include_str!("../../scaffold/openpaw/gitignore"),
    },
];

/// The folders of a new workspace.
pub(super) const DIRS: [&str; 6] = [
    "agent/tools",
    "data/uploads",
    "memory/conversations",
    "memory/logs",
    "workspace/downloads",
    "workspace/screenshots",
];

/// The provider of a model that names none, as OpenPaw has it.
const DEFAULT_PROVIDER: &str = "anthropic";
/// Providers without a key of their own.
const WITHOUT_KEY: [&str; 3] = ["bedrock", "bedrock_converse", "ollama"];

/// Puts a model and a channel into the settings, and the variables of their keys into `.env`.
pub(super) fn configure(choices: &ScaffoldChoices, file: ScaffoldFile) -> Result<String, String> {
    let mut text = file.content.to_owned();
    let model = choices.model.as_deref().map(split_model).transpose()?;
    let channel = choices.channel.as_deref().map(check_channel).transpose()?;
    match file.path {
        "config/agent.yaml" => {
            if let Some((provider, model)) = model {
                let _ = write!(
                    text,
                    "\nmodel:\n  provider: {provider}\n  model: {model:?}\n"
                );
                if let Some(variable) = key_variable(provider) {
                    let _ = writeln!(text, "  api_key: ${{{variable}}}");
                }
            }
            if let Some(kind) = channel {
                let _ = write!(
                    text,
                    "\nchannel:\n  type: {kind}\n  token: ${{{}}}\n  allowed_users: []\n",
                    token_variable(kind)
                );
            }
        }
        "config/.env" => {
            let key = model.and_then(|(provider, _)| key_variable(provider));
            for variable in key.into_iter().chain(channel.map(token_variable)) {
                // The file shows some variables already, as comments.
                if !text
                    .lines()
                    .any(|line| line.starts_with(&format!("{variable}=")))
                {
                    let _ = writeln!(text, "{variable}=");
                }
            }
        }
        _ => {}
    }
    Ok(text)
}

fn split_model(name: &str) -> Result<(&str, &str), String> {
    let (provider, model) = name.split_once(':').unwrap_or((DEFAULT_PROVIDER, name));
    match provider.trim().is_empty() || model.trim().is_empty() {
        true => Err(format!(
            "{name:?} is not a model name: provider:model is needed"
        )),
        false => Ok((provider, model)),
    }
}

fn check_channel(kind: &str) -> Result<&str, String> {
    let is_kind = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    match is_kind {
        true => Ok(kind),
        false => Err(format!("{kind:?} is no kind of channel, such as telegram")),
    }
}

fn key_variable(provider: &str) -> Option<String> {
    let name = provider.to_uppercase().replace('-', "_");
    (!WITHOUT_KEY.contains(&provider)).then(|| format!("{name}_API_KEY"))
}

fn token_variable(channel: &str) -> String {
    format!("{}_BOT_TOKEN", channel.to_uppercase())
}
