//! `stead auth`: keys of providers, kept in the person's configuration folder.
//!
//! Effects: the terminal, the local disk (writes).

use super::args::{AuthArgs, AuthCommand};
use super::env::ProcessEnv;
use super::error::CliError;
use super::personal::PersonalFolder;
use super::print::{err, errln, out_json, outln};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use serde_json::json;
use std::io::Read;
use std::process::ExitCode;
use stead::model::{Provider, providers};

/// The maximum length of a key.
const MAX_KEY_BYTES: u64 = 16 * 1024;

pub(crate) fn auth(env: &ProcessEnv, args: AuthArgs) -> Result<ExitCode, CliError> {
    let folder = PersonalFolder::new(env);
    match args.command {
        AuthCommand::Add { provider } => {
            let provider = find(&provider)?;
            let key = check_key(&read_key(env, provider)?)?;
            folder.store_key(provider.name, &key)?;
            outln!("the key of {} is stored", provider.name);
            let set = |name: &&&str| env.get(name).is_some();
            if let Some(variable) = provider.key_variables.iter().find(set) {
                errln!("{variable} is set and goes before it");
            }
        }
        AuthCommand::List { json } => {
            for name in folder.keys()?.keys() {
                match json {
                    true => out_json(&json!({"provider": name})),
                    false => outln!("{name}"),
                }
            }
        }
        AuthCommand::Remove { provider } => {
            let provider = find(&provider)?;
            if !folder.remove_key(provider.name)? {
                return Err(CliError::usage(format!(
                    "no key of {} is stored (`stead auth list`)",
                    provider.name
                )));
            }
            outln!("the key of {} is removed", provider.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> Result<&'static Provider, CliError> {
    let is_meant = |known: &&Provider| known.name == name || known.aliases.contains(&name);
    match providers().iter().find(is_meant) {
        None => Err(CliError::usage(format!(
            "there is no provider {name:?}; `stead models` lists them"
        ))),
        Some(provider) if provider.key_variables.is_empty() => {
            Err(CliError::usage(format!("{} needs no key", provider.name)))
        }
        Some(provider) => Ok(provider),
    }
}

/// Returns the key without white space around it, if it can be one.
fn check_key(text: &str) -> Result<String, CliError> {
    let key = text.trim();
    if key.is_empty() {
        return Err(CliError::usage("the key is empty"));
    }
    if key.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(CliError::usage("a key is one word on one line"));
    }
    Ok(key.to_owned())
}

/// Reads a key from standard input; at a terminal, without showing it.
fn read_key(env: &ProcessEnv, provider: &Provider) -> Result<String, CliError> {
    if !env.stdin_is_terminal {
        let mut text = String::new();
        let input = std::io::stdin().lock().take(MAX_KEY_BYTES);
        std::io::BufReader::new(input).read_to_string(&mut text)?;
        return Ok(text);
    }
    err(format_args!("Key of {} (it is not shown): ", provider.name));
    enable_raw_mode()?;
    let typed = read_hidden();
    disable_raw_mode()?;
    errln!("");
    typed
}

/// Reads keys up to Enter. The terminal shows none of them.
fn read_hidden() -> Result<String, CliError> {
    let mut text = String::new();
    while text.len() as u64 <= MAX_KEY_BYTES {
        let Event::Key(key) = read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
            (KeyCode::Enter, _) => return Ok(text),
            (KeyCode::Char('c' | 'd'), true) | (KeyCode::Esc, _) => {
                return Err(CliError::Interrupted("no key is stored".to_owned()));
            }
            (KeyCode::Backspace, _) => drop(text.pop()),
            (KeyCode::Char(c), false) => text.push(c),
            (_, _) => {}
        }
    }
    Err(CliError::usage("this is too long for a key"))
}
