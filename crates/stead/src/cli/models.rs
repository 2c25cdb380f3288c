//! `stead models`: who can be asked, and at what price.

use super::args::{Common, ModelsArgs};
use super::env::Env;
use super::error::CliError;
use super::style::Style;
use serde_json::json;
use stead::model::{catalogue, providers};
use std::process::ExitCode;

pub(crate) async fn models(_: &Common, env: &Env, args: &ModelsArgs) -> Result<ExitCode, CliError> {
    let style = Style::stdout(env);
    if !args.json {
        println!("{}", style.bold("Providers (use as provider:model)"));
    }
    for provider in providers() {
        let key = provider.key_variables.iter().find(|name| env.get(name).is_some());
        let ready = key.is_some() || provider.key_variables.is_empty();
        if args.json {
            println!("{}", json!({"provider": provider.name, "base_url": provider.base_url, "key": provider.key_variables, "ready": ready}));
        } else {
            let state = match (ready, provider.key_variables.first()) {
                (true, Some(_)) => style.good("key set"),
                (true, None) => style.good("no key needed"),
                (false, Some(name)) => style.dim(&format!("set {name}")),
                (false, None) => String::new(),
            };
            println!("  {:<20} {:<52} {state}", provider.name, provider.base_url);
        }
    }
    if !args.json {
        println!("\n{}", style.bold("Known models (dollars per million tokens; others work, at an unknown price)"));
    }
    for info in catalogue() {
        let price = info.price.map(|price| json!(price)).unwrap_or_default();
        if args.json {
            println!("{}", json!({"model": info.name, "context_window": info.context_window, "max_output_tokens": info.max_output_tokens, "price": price}));
        } else if let Some(price) = info.price {
            println!("  {:<44} {:>9} window  {:>7.3} in {:>7.3} out", info.name, info.context_window, price.input, price.output);
        }
    }
    Ok(ExitCode::SUCCESS)
}
