use super::*;

fn rate(seconds: Option<u64>, message: &str) -> ModelError {
    ModelError::RateLimited {
        retry_after: seconds.map(Duration::from_secs),
        message: message.into(),
    }
}

fn busy(status: u16, message: &str) -> ModelError {
    ModelError::Unavailable {
        status,
        retry_after: None,
        message: message.into(),
    }
}

#[test]
fn every_providers_wording_has_its_meaning() {
    use ModelError::{Auth, BadRequest, NotFound, Quota};
    let cases: Vec<(u16, &str, ModelError)> = vec![
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Auth("invalid x-api-key".into()),
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            Quota("Your credit balance is too low".into()),
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            busy(529, "Overloaded"),
        ),
        (
            IN_STREAM_STATUS,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            busy(IN_STREAM_STATUS, "Overloaded"),
        ),
        (
            IN_STREAM_STATUS,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
            rate(None, "slow"),
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Quota("You exceeded your current quota".into()),
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-4 on tokens per min (TPM)","type":"tokens","code":"rate_limit_exceeded"}}"#,
            rate(None, "Request too large for gpt-4 on tokens per min (TPM)"),
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
            NotFound("The model `x` does not exist".into()),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            Auth("API key not valid. Please pass a valid API key.".into()),
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"34s"}]}}]"#,
            rate(Some(34), "quota"),
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance"}}"#,
            Quota("Insufficient Balance".into()),
        ),
        (
            400,
            r#"{"error":{"message":"foo/bar is not a valid model ID","code":400}}"#,
            NotFound("foo/bar is not a valid model ID".into()),
        ),
        (
            IN_STREAM_STATUS,
            r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream died"}}}"#,
            busy(502, "Provider returned error: upstream died"),
        ),
        (
            404,
            r#"{"error":"model 'x' not found, try pulling it first"}"#,
            { NotFound("model 'x' not found, try pulling it first".into()) },
        ),
        (
            422,
            r#"{"detail":"bad field"}"#,
            BadRequest("bad field".into()),
        ),
        (
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            busy(503, "Loading model"),
        ),
        (
            502,
            "<html>Bad Gateway</html>",
            busy(502, "<html>Bad Gateway</html>"),
        ),
        (500, "", busy(500, "HTTP 500 with no explanation")),
        (
            400,
            r#"{"object":"error","message":"odd","type":"BadRequestError"}"#,
            BadRequest("odd".into()),
        ),
        (408, "slow", ModelError::TimedOut("slow".into())),
        (
            301,
            "moved",
            BadRequest("the endpoint redirects; check the base URL (moved)".into()),
        ),
    ];
    for (status, body, want) in cases {
        assert_eq!(
            classify(status, None, body.as_bytes()),
            want,
            "{status} {body}"
        );
    }
}

#[test]
fn an_overflow_is_recognised_in_every_wording() {
    let wordings = [
        "prompt is too long: 213456 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
        "Your input exceeds the context window of this model",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "the request exceeds the available context size (4096 tokens), try increasing it",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "the input length exceeds the context length",
        "Please reduce the length of the messages or completion.",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    ];
    for wording in wordings {
        let body =
            serde_json::json!({"error": {"message": wording, "type": "invalid_request_error"}})
                .to_string();
        assert_eq!(
            classify(400, None, body.as_bytes()),
            ModelError::ContextOverflow(wording.into())
        );
    }
    let by_code = br#"{"error":{"message":"no","code":"context_length_exceeded"}}"#;
    assert_eq!(
        classify(400, None, by_code),
        ModelError::ContextOverflow("no".into())
    );
    assert_eq!(
        classify(413, None, b"big"),
        ModelError::ContextOverflow("big".into())
    );
}

#[test]
fn a_wait_is_read_from_milliseconds_seconds_or_a_date() {
    let now: jiff::Timestamp = "2015-10-21T07:28:00Z".parse().unwrap();
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(Headers, Option<u64>); 7] = [
        (&[], None),
        (&[("retry-after", "2")], Some(2000)),
        (&[("retry-after", " 0.5 ")], Some(500)),
        (
            &[("retry-after", "7"), ("retry-after-ms", "1500")],
            Some(1500),
        ),
        (
            &[("retry-after", "Wed, 21 Oct 2015 07:28:09 GMT")],
            Some(9000),
        ),
        (&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT")], Some(0)),
        (&[("retry-after", "-3")], None),
    ];
    for (headers, want) in cases {
        let header = |name: &str| {
            headers
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        };
        assert_eq!(
            retry_after(header, now),
            want.map(Duration::from_millis),
            "{headers:?}"
        );
    }
}

#[test]
fn a_long_page_is_shortened() {
    let page = "é".repeat(10_000);
    let ModelError::BadRequest(message) = classify(400, None, page.as_bytes()) else {
        panic!("not a bad request")
    };
    assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS + 1);
}

#[test]
fn a_refusal_is_not_taken_for_an_overloaded_provider() {
    let body = br#"{"error": {"type": "api_error", "message": "unsupported parameter"}}"#;
    for status in [400, 422] {
        let error = classify(status, None, body);
        assert!(
            matches!(error, ModelError::BadRequest(_)),
            "{status}: {error:?}"
        );
    }
    for status in [IN_STREAM_STATUS, 500] {
        assert!(classify(status, None, body).is_transient(), "{status}");
    }
}
