use super::*;

fn map<const N: usize>(fields: [(&str, YamlValue); N]) -> YamlValue {
    YamlValue::Map(
        fields
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    )
}

#[test]
fn what_is_written_is_read_again_and_only_plain_words_go_without_quotes() {
    let table = [
        (YamlValue::Null, "null"),
        (YamlValue::Int(-3), "-3"),
        (YamlValue::Int(u64::MAX.into()), "18446744073709551615"),
        (YamlValue::Float(1e20), "1.0e+20"),
        (YamlValue::Float(0.5), "0.5"),
        (YamlValue::text("research"), "research"),
        (YamlValue::text("output/report.md"), "output/report.md"),
        (YamlValue::text("Yes"), "\"Yes\""),
        (
            YamlValue::text("2026-02-01T10:00:00+00:00"),
            "\"2026-02-01T10:00:00+00:00\"",
        ),
        (YamlValue::text("12"), "\"12\""),
        (YamlValue::text("a: b # c"), "\"a: b # c\""),
        (YamlValue::text(""), "\"\""),
        (
            YamlValue::text("zwei\nZeilen \"ü\" \u{85}\u{2028}"),
            "\"zwei\\nZeilen \\\"ü\\\" \\u0085\\u2028\"",
        ),
        (YamlValue::List(vec![]), "[]"),
        (YamlValue::Map(vec![]), "{}"),
    ];
    for (value, text) in table {
        let value = map([("key", value)]);
        assert_eq!(value.to_string(), format!("key: {text}\n"));
        assert_eq!(value.to_string().parse(), Ok(value));
    }
    let nested = map([
        (
            "b",
            YamlValue::List(vec![map([
                ("x", YamlValue::Int(1)),
                ("no", YamlValue::Null),
            ])]),
        ),
        (
            "a",
            map([(
                "l",
                YamlValue::List(vec![YamlValue::List(vec![YamlValue::Bool(true)])]),
            )]),
        ),
    ]);
    assert_eq!(
        nested.to_string(),
        "b:\n- x: 1\n  \"no\": null\na:\n  l:\n  -\n    - true\n"
    );
    assert_eq!(nested.to_string().parse(), Ok(nested));
}

#[test]
fn an_error_has_its_line_and_a_key_must_not_occur_twice() {
    for (text, line, kind) in [
        ("a: [", 1, YamlErrorKind::Syntax),
        ("x: 1\na: 'b", 2, YamlErrorKind::Syntax),
        ("a: 1\na: 2\n", 2, YamlErrorKind::DuplicateKey),
        ("x:\n  1: a\n  \"1\": b\n", 2, YamlErrorKind::DuplicateKey),
    ] {
        let error = text.parse::<YamlDocument>().unwrap_err();
        assert!(error.position.line >= line, "{text:?}: {error:?}");
        assert_eq!(error.kind, kind, "{text:?}: {error:?}");
        assert!(!error.message.contains('\n'), "{text:?}: {error:?}");
        assert_eq!(text.parse::<YamlValue>(), Err(error));
    }
}

#[test]
fn a_document_without_content_is_an_empty_map() {
    for text in ["", "\u{feff}\n", "# nothing yet\n"] {
        assert_eq!(text.parse(), Ok(YamlValue::Map(Vec::new())), "{text:?}");
    }
    assert_eq!("null".parse(), Ok(YamlValue::Null));
}

#[test]
fn json_and_yaml_values_convert_into_each_other() {
    let json = serde_json::json!({
        "a": [1, -2, u64::MAX, 0.5, null, true, "x"],
        "b": {"c": {}},
    });
    assert_eq!(serde_json::Value::from(YamlValue::from(&json)), json);
    assert_eq!(
        serde_json::Value::from(YamlValue::Float(f64::INFINITY)),
        serde_json::Value::Null
    );
}
