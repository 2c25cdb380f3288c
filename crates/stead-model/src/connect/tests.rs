use super::*;

#[test]
fn a_model_without_its_provider_is_answered_with_the_full_name() {
    for (name, advice) in [
        ("gpt-5", "did you mean openai:gpt-5?"),
        (
            "claude-sonnet-4-5",
            "did you mean anthropic:claude-sonnet-4-5?",
        ),
        ("nonsense", "a model is named as provider:model"),
        ("openai:", "a model is named as provider:model"),
    ] {
        let error = name.parse::<ModelName>().unwrap_err().to_string();
        assert!(error.contains(advice), "{error}");
    }
}

fn none(_: &str) -> Option<String> {
    None
}

fn named(name: &str) -> ModelSettings {
    ModelSettings {
        name: name.into(),
        ..ModelSettings::default()
    }
}

fn reached(
    settings: &ModelSettings,
    env: EnvLookup<'_>,
) -> Result<(String, Option<String>), ModelError> {
    let name: ModelName = settings.name.parse()?;
    let provider = find(&name.provider).ok_or_else(|| unknown_provider(&name))?;
    let base_url = settings.base_url.as_ref();
    let keys = KeyPolicy::default();
    let api_key = settings.api_key.as_ref();
    let endpoint = resolve_endpoint(provider, &name, base_url, api_key, env, &keys)?;
    let base_url = without_version(provider.wire, &endpoint.base_url);
    let path = wire_for(provider.wire, &name.model, None).endpoint(WireMode::Stream);
    Ok((format!("{base_url}{path}"), endpoint.key))
}

#[test]
fn a_name_is_split_at_its_first_colon() {
    let cases = [
        (
            "anthropic:claude-sonnet-4-5",
            Some(("anthropic", "claude-sonnet-4-5")),
        ),
        (" ollama:qwen3:8b ", Some(("ollama", "qwen3:8b"))),
        ("openrouter:meta/llama", Some(("openrouter", "meta/llama"))),
        ("claude", None),
        (":x", None),
        ("openai:", None),
        ("", None),
    ];
    for (name, want) in cases {
        let got = name
            .parse::<ModelName>()
            .ok()
            .map(|name| (name.provider, name.model));
        assert_eq!(
            got,
            want.map(|(provider, model)| (provider.to_owned(), model.to_owned())),
            "{name:?}"
        );
    }
}

#[test]
fn endpoint_and_key_come_from_settings_then_variables_then_the_table() {
    let env = |variable: &str| match variable {
        "ANTHROPIC_BASE_URL" => Some("http://127.0.0.1:9/v1/".to_owned()),
        "OPENAI_BASE_URL" => Some("http://localhost:9/v1".to_owned()),
        "DEEPSEEK_API_KEY" => Some(" sk-deep\n".to_owned()),
        "GROQ_API_KEY" => Some("  ".to_owned()),
        "GOOGLE_API_KEY" => Some("AIza".to_owned()),
        _ => None,
    };
    let cases = [
        (named("anthropic:m"), "http://127.0.0.1:9/v1/messages", None),
        (
            named("openai:m"),
            "http://localhost:9/v1/chat/completions",
            None,
        ),
        (
            named("openai-responses:m"),
            "http://localhost:9/v1/responses",
            None,
        ),
        (
            named("ollama:m"),
            "http://127.0.0.1:11434/v1/chat/completions",
            None,
        ),
        (
            named("deepseek:m"),
            "https://api.deepseek.com/v1/chat/completions",
            Some("sk-deep"),
        ),
        (
            named("google:m"),
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            Some("AIza"),
        ),
        (
            ModelSettings {
                base_url: Some("https://here/v1".into()),
                api_key: Some("k".into()),
                ..named("openai-compatible:m")
            },
            "https://here/v1/chat/completions",
            Some("k"),
        ),
    ];
    for (settings, url, key) in cases {
        assert_eq!(
            reached(&settings, &env),
            Ok((url.to_owned(), key.map(str::to_owned))),
            "{}",
            settings.name
        );
    }
    let ModelError::Config(words) = reached(&named("groq:m"), &env).unwrap_err() else {
        panic!("not a config error")
    };
    assert!(words.contains("GROQ_API_KEY"), "{words}");
}

#[test]
fn what_is_missing_is_named() {
    let bad_timeout = ModelSettings {
        timeouts: crate::Timeouts {
            idle_seconds: -1.0,
            ..crate::Timeouts::default()
        },
        ..named("ollama:m")
    };
    let cases = [
        (named("anthropic:m"), "ANTHROPIC_API_KEY"),
        (named("openai-compatible:m"), "OPENAI_COMPATIBLE_BASE_URL"),
        (named("nobody:m"), "known are anthropic, openai"),
        (named("m"), "provider:model"),
        (
            ModelSettings {
                base_url: Some("ftp://x".into()),
                ..named("ollama:m")
            },
            "http://",
        ),
        (
            ModelSettings {
                base_url: Some("not a url".into()),
                ..named("ollama:m")
            },
            "base URL",
        ),
        (
            ModelSettings {
                api_key: Some("a\u{7}b".into()),
                ..named("ollama:m")
            },
            "key has characters",
        ),
        (
            ModelSettings {
                fallbacks: vec!["openai:m".into()],
                ..named("ollama:m")
            },
            "OPENAI_API_KEY",
        ),
        (bad_timeout, "idle_seconds"),
    ];
    for (settings, word) in cases {
        match connect(&settings, &none) {
            Err(ModelError::Config(words)) => {
                assert!(words.contains(word), "{words:?} lacks {word:?}")
            }
            other => panic!("{other:?} for {settings:?}"),
        }
    }
}

#[test]
fn every_key_that_may_be_used_is_a_secret() {
    let env = |variable: &str| match variable {
        "OPENAI_API_KEY" => Some("sk-open\n".to_owned()),
        "ANTHROPIC_API_KEY" => Some("sk-ant".to_owned()),
        "XAI_API_KEY" => Some(String::new()),
        _ => None,
    };
    let settings = ModelSettings {
        api_key: Some("sk-mine".into()),
        ..named("openai:m")
    };
    assert_eq!(secrets(&settings, &env), ["sk-ant", "sk-mine", "sk-open"]);
}

#[test]
fn no_form_of_a_model_shows_its_key() {
    let settings = ModelSettings {
        api_key: Some("sk-secret-key".into()),
        ..named("openai:m")
    };
    let model = connect(&settings, &none).unwrap();
    assert!(!format!("{model:?}").contains("sk-secret"), "{model:?}");
}
