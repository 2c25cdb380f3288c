//! Models that need no network: `scripted:FILE`, `replay:FILE`, and `record:FILE=provider:model`.
//!
//! Effects: the local disk (writes).

use crate::{Model, ModelError, Recorder, Replay, ScriptedModel};
use std::path::Path;
use std::sync::Arc;
use stead_core::{Price, Redactor};

/// The providers of this module.
pub(crate) const LOCAL_PROVIDERS: [&str; 3] = ["scripted", "record", "replay"];

/// Creates the model `provider:rest`, if `provider` is one of this module's. `price` comes from the
/// settings; `connect` creates the model that a recorder wraps, from its `provider:model` name, and
/// `redactor` knows what must not be recorded.
pub(crate) fn connect_local(
    provider: &str,
    rest: &str,
    price: Option<Price>,
    redactor: &Redactor,
    connect: impl FnOnce(&str) -> Result<Arc<dyn Model>, ModelError>,
) -> Option<Result<Arc<dyn Model>, ModelError>> {
    match provider {
        "scripted" => Some(
            ScriptedModel::load(Path::new(rest))
                .map(|model| Arc::new(model.with_price(price)) as _),
        ),
        "replay" => {
            Some(Replay::load(Path::new(rest)).map(|model| Arc::new(model.with_price(price)) as _))
        }
        "record" => Some(connect_recorder(rest, redactor, connect)),
        _ => None,
    }
}

fn connect_recorder(
    rest: &str,
    redactor: &Redactor,
    connect: impl FnOnce(&str) -> Result<Arc<dyn Model>, ModelError>,
) -> Result<Arc<dyn Model>, ModelError> {
    let parts = rest
        .split_once('=')
        .filter(|(file, name)| !file.is_empty() && name.contains(':'));
    let (file, name) = parts.ok_or_else(|| {
        ModelError::Config(format!(
            "record:{rest} must be record:FILE=provider:model, for example record:tape.jsonl=openai:gpt-5"
        ))
    })?;
    let recorder = Recorder::new(connect(name)?, Path::new(file), redactor.clone())?;
    Ok(Arc::new(recorder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelSettings, Request, connect};
    use stead_core::Message;

    const PRICE: Price = Price {
        input: 1.0,
        output: 2.0,
        cache_read: None,
        cache_write: None,
    };

    fn open(name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let settings = ModelSettings {
            name: name.into(),
            price: Some(PRICE),
            ..ModelSettings::default()
        };
        connect(&settings, &|_| None)
    }

    #[tokio::test]
    async fn a_script_can_be_recorded_and_replayed_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("s.yaml");
        let tape = dir.path().join("t.jsonl");
        std::fs::write(&script, "[{error: {kind: cut}}, {text: hello}]").unwrap();
        let script = script.display();
        let tape = tape.display();
        let request = Request {
            messages: vec![Message::user("hi").into()],
            ..Request::default()
        };
        let recorder = open(&format!("record:{tape}=scripted:{script}")).unwrap();
        // The scripted failure is retried, as a real one would be.
        let recorded = recorder.complete(&request).await.unwrap();
        assert_eq!(recorder.name(), format!("scripted:{script}"));
        let replay = open(&format!("replay:{tape}")).unwrap();
        assert_eq!(replay.complete(&request).await, Ok(recorded.clone()));
        assert_eq!(replay.facts().price_for(&recorded.model), Some(PRICE));
    }

    #[test]
    fn names_that_cannot_be_opened_say_why() {
        for name in [
            "record:tape.jsonl",
            "record:=openai:gpt-5",
            "record:t=gpt-5",
        ] {
            let message = open(name).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("{name} must be record:FILE=provider:model")),
                "{message}"
            );
        }
        let message = open("record:/nowhere/t=x:y").unwrap_err().to_string();
        assert!(
            message.starts_with("x:y: no provider is named \"x\""),
            "{message}"
        );
        let message = open("replay:/nowhere/t").unwrap_err().to_string();
        assert_eq!(
            message,
            "cannot read /nowhere/t: there is no such file or folder"
        );
    }
}
