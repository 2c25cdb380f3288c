//! Tests of the HTTP model against a raw TCP server: responses that are late, broken or missing.

use super::*;
use crate::retry::RetryingModel;
use crate::wire::anthropic::Anthropic;
use futures_util::StreamExt;
use std::sync::Arc;
use stead_core::{Block, Message, StopReason, Usage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const KEY: &str = "sk-test-key";

/// An action of the server for one request.
#[derive(Clone)]
enum Act {
    /// Writes these bytes.
    Send(Vec<u8>),
    Wait(Duration),
    /// Closes the connection with a reset.
    Reset,
    /// Waits until the client disconnects.
    Hang,
}

/// A server that performs one list of actions per request, over any number of connections.
struct Server {
    url: String,
    seen: Arc<std::sync::Mutex<Seen>>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    connections: usize,
}

async fn server(answers: Vec<Vec<Act>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(std::sync::Mutex::new(Seen::default()));
    let mut tasks = JoinSet::new();
    let told = seen.clone();
    tasks.spawn(async move {
        let answers = Arc::new(std::sync::Mutex::new(answers.into_iter()));
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            told.lock().unwrap().connections += 1;
            connections.spawn(serve(stream, answers.clone(), told.clone()));
        }
    });
    Server { url, seen, tasks }
}

type Answers = Arc<std::sync::Mutex<std::vec::IntoIter<Vec<Act>>>>;

async fn serve(mut stream: TcpStream, answers: Answers, seen: Arc<std::sync::Mutex<Seen>>) {
    while let Some(request) = read_request(&mut stream).await {
        seen.lock().unwrap().requests.push(request);
        let acts = answers
            .lock()
            .unwrap()
            .next()
            .expect("one request too many");
        for act in acts {
            match act {
                Act::Send(bytes) => stream.write_all(&bytes).await.unwrap(),
                Act::Wait(time) => tokio::time::sleep(time).await,
                Act::Reset => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
                Act::Hang => {
                    let _ = stream.read(&mut [0; 1]).await;
                    return;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

fn events() -> Vec<String> {
    [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hé"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"llo"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#,
        r#"{"type":"message_stop"}"#,
    ]
    .map(|data| format!("data: {data}\n\n"))
    .into()
}

const SSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn send(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Send(bytes.into())
}

fn streamed() -> Vec<Act> {
    vec![send(format!(
        "{SSE_HEAD}{}0\r\n\r\n",
        events()
            .iter()
            .map(|event| chunk(event))
            .collect::<String>()
    ))]
}

fn plain(head: &str, body: &str) -> Vec<Act> {
    vec![send(format!(
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))]
}

fn model(server: &Server, mode: WireMode, timeouts: Timeouts) -> HttpModel {
    HttpModel::new(HttpSettings {
        facts: ModelFacts::unknown("anthropic:m".into()),
        wire: Box::new(Anthropic::new("m")),
        base_url: server.url.clone(),
        key: Some(KEY.into()),
        limits_queries: Vec::new(),
        mode,
        timeouts,
    })
    .unwrap()
}

fn short() -> Timeouts {
    Timeouts {
        idle_seconds: 0.2,
        ..Timeouts::default()
    }
}

fn question() -> Request {
    Request {
        messages: vec![Arc::new(Message::user("hi"))],
        ..Request::default()
    }
}

type Items = Vec<Result<Delta, ModelError>>;

async fn ask(model: &dyn Model) -> Items {
    model.stream(&question()).collect().await
}

fn answer() -> Items {
    let reply = Reply {
        content: vec![Block::text("héllo")],
        usage: Usage {
            input_tokens: 3,
            output_tokens: 4,
            ..Usage::default()
        },
        stop: StopReason::EndTurn,
        model: "anthropic:m".into(),
    };
    vec![
        first_usage(),
        Ok(Delta::Text("hé".into())),
        Ok(Delta::Text("llo".into())),
        Ok(Delta::Done(Box::new(reply))),
    ]
}

/// What the beginning of a streamed answer says about its tokens.
fn first_usage() -> Result<Delta, ModelError> {
    Ok(Delta::Usage(Usage {
        input_tokens: 3,
        output_tokens: 1,
        ..Usage::default()
    }))
}

#[tokio::test]
async fn a_streamed_answer_arrives_and_its_connection_serves_the_next() {
    let server = server(vec![streamed(), streamed(), streamed()]).await;
    let model = model(&server, WireMode::Stream, Timeouts::default());
    for _ in 0..3 {
        assert_eq!(ask(&model).await, answer());
    }
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.connections, 1);
    let request = seen.requests[0].to_lowercase();
    for line in [
        "post /v1/messages http/1.1",
        "x-api-key: sk-test-key",
        "accept: text/event-stream",
        "content-length: ",
    ] {
        assert!(request.contains(line), "{line:?} is not in {request}");
    }
    assert!(!request.contains("transfer-encoding"));
}

#[tokio::test]
async fn pieces_of_any_size_at_any_pace_are_the_same_answer() {
    let mut slow = vec![send(SSE_HEAD)];
    // Pieces of 2 bytes split the é.
    for piece in events().concat().as_bytes().chunks(2) {
        slow.extend([
            send(format!("{:x}\r\n", piece.len())),
            send(piece),
            send("\r\n"),
            Act::Wait(Duration::from_micros(100)),
        ]);
    }
    slow.push(send("0\r\n\r\n"));
    let server = server(vec![slow]).await;
    assert_eq!(
        ask(&model(&server, WireMode::Stream, Timeouts::default())).await,
        answer()
    );
}

#[tokio::test]
async fn a_whole_answer_is_read_whole_asked_for_or_not() {
    let body = r#"{"type":"message","content":[{"type":"text","text":"héllo"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}"#;
    let json = || plain("200 OK\r\ncontent-type: application/json", body);
    let server = server(vec![json(), json()]).await;
    let [_, _, _, done] = answer().try_into().unwrap();
    let want = vec![Ok(Delta::Text("héllo".into())), done];
    for mode in [WireMode::Whole, WireMode::Stream] {
        assert_eq!(ask(&model(&server, mode, Timeouts::default())).await, want);
    }
}

#[tokio::test]
async fn a_whole_answer_may_be_silent_for_as_long_as_it_may_take() {
    let server = server(vec![vec![Act::Hang]]).await;
    let timeouts = Timeouts {
        idle_seconds: 0.01,
        total_seconds: 0.1,
        ..Timeouts::default()
    };
    let want = vec![Err(ModelError::TimedOut(
        "the answer took longer than 100ms".into(),
    ))];
    assert_eq!(ask(&model(&server, WireMode::Whole, timeouts)).await, want);
}

#[tokio::test]
async fn every_way_to_fail_has_its_error() {
    let begun = || send(format!("{SSE_HEAD}{}", chunk(&events()[..3].concat())));
    let cut = || {
        vec![send(format!(
            "{SSE_HEAD}{}0\r\n\r\n",
            chunk(&events()[..5].concat())
        ))]
    };
    let text = || vec![first_usage(), Ok(Delta::Text("hé".into()))];
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let leak =
        format!(r#"{{"error":{{"type":"authentication_error","message":"bad key {KEY}"}}}}"#);
    let idle = || ModelError::TimedOut("the provider sent nothing for 200ms".into());
    let failed = |error| vec![Err(error)];
    let cases: Vec<(&str, Vec<Act>, Items)> = vec![
        ("silence", vec![Act::Hang], failed(idle())),
        (
            "silence after a piece",
            vec![begun(), Act::Hang],
            [text(), failed(idle())].concat(),
        ),
        ("a clean but early end", cut(), {
            [
                vec![
                    first_usage(),
                    Ok(Delta::Text("hé".into())),
                    Ok(Delta::Text("llo".into())),
                ],
                failed(ModelError::Cut),
            ]
            .concat()
        }),
        (
            "a web page",
            plain(
                "200 OK
content-type: text/html",
                "<p>Hello</p>",
            ),
            {
                failed(ModelError::NotFound(
                    "the endpoint answered with a web page; check the base URL".into(),
                ))
            },
        ),
        (
            "no events",
            plain(
                "200 OK
content-type: text/event-stream",
                "Hello",
            ),
            failed(ModelError::Cut),
        ),
        (
            "overloaded",
            plain("529 Overloaded\r\nretry-after: 3", overloaded),
            failed(ModelError::Unavailable {
                status: 529,
                retry_after: Some(Duration::from_secs(3)),
                message: "Overloaded".into(),
            }),
        ),
        (
            "a leaked key",
            plain("401 No", &leak),
            failed(ModelError::Auth("bad key [redacted]".into())),
        ),
        (
            "a redirect",
            plain("302 Found\r\nlocation: http://127.0.0.1:1/", ""),
            failed(ModelError::BadRequest(
                "the endpoint redirects; check the base URL (HTTP 302 with no explanation)".into(),
            )),
        ),
    ];
    for (case, acts, want) in cases {
        let server = server(vec![acts]).await;
        assert_eq!(
            ask(&model(&server, WireMode::Stream, short())).await,
            want,
            "{case}"
        );
    }
}

#[tokio::test]
async fn broken_connections_and_garbage_are_network_errors() {
    let begun = send(format!("{SSE_HEAD}{}", chunk(&events()[..3].concat())));
    let pause = Act::Wait(Duration::from_millis(30));
    for acts in [
        vec![Act::Reset],
        vec![begun, pause, Act::Reset],
        vec![send("not http at all\r\n\r\n"), Act::Hang],
    ] {
        let server = server(vec![acts]).await;
        let items = ask(&model(&server, WireMode::Stream, short())).await;
        assert!(
            matches!(items.last(), Some(Err(ModelError::Network(_)))),
            "{items:?}"
        );
    }
    let mut gone = server(vec![]).await;
    let model = model(&gone, WireMode::Stream, short());
    gone.tasks.shutdown().await;
    let items = ask(&model).await;
    assert!(
        matches!(items.as_slice(), [Err(ModelError::Network(words))] if words.contains("refused")),
        "{items:?}"
    );
}

#[tokio::test]
async fn an_answer_that_never_ends_meets_the_total_limit() {
    let mut acts = vec![send(SSE_HEAD)];
    acts.extend((0..200).flat_map(|_| {
        [
            send(chunk(": ping\n\n")),
            Act::Wait(Duration::from_millis(20)),
        ]
    }));
    let server = server(vec![acts]).await;
    let timeouts = Timeouts {
        total_seconds: 0.3,
        ..Timeouts::default()
    };
    let want = vec![Err(ModelError::TimedOut(
        "the answer took longer than 300ms".into(),
    ))];
    assert_eq!(ask(&model(&server, WireMode::Stream, timeouts)).await, want);
}

#[tokio::test]
async fn a_rate_limited_request_succeeds_after_the_wait_it_was_told() {
    let limited = plain(
        "429 Slow\r\nretry-after-ms: 600",
        r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#,
    );
    let server = server(vec![limited, streamed()]).await;
    let model = RetryingModel::new(
        Arc::new(model(&server, WireMode::Stream, Timeouts::default())),
        1,
        crate::retry::RateLimitPatience::AsOtherFailures,
    );
    let start = Instant::now();
    let items = ask(&model).await;
    assert!(start.elapsed() >= Duration::from_millis(600));
    let retry = Delta::Retry {
        attempt: 2,
        wait_ms: 600,
        reason: "rate limited by the provider: slow".into(),
    };
    assert_eq!(items, [vec![Ok(retry)], answer()].concat());
}

#[tokio::test]
async fn dropping_the_stream_cancels_the_request() {
    let server = server(vec![
        vec![
            send(format!("{SSE_HEAD}{}", chunk(&events()[..3].concat()))),
            Act::Hang,
        ],
        streamed(),
    ])
    .await;
    let model = model(&server, WireMode::Stream, Timeouts::default());
    let asked = question();
    let mut stream = model.stream(&asked);
    assert_eq!(stream.next().await, Some(first_usage()));
    assert_eq!(stream.next().await, Some(Ok(Delta::Text("hé".into()))));
    drop(stream);
    assert_eq!(ask(&model).await, answer());
    assert_eq!(server.seen.lock().unwrap().connections, 2);
}

#[test]
fn a_client_for_plain_http_is_made_without_loading_certificates() {
    let url = Url::parse("http://127.0.0.1:1/").unwrap();
    let start = std::time::Instant::now();
    client(&url, Duration::from_secs(1)).unwrap();
    let first = start.elapsed();
    assert!(first < Duration::from_millis(50), "{first:?}");
}

/// Returns the window that the endpoint of `name` reports, and the requested paths.
async fn described(name: &str, below: &str, answers: Vec<Vec<Act>>) -> (Option<u64>, Vec<String>) {
    let server = server(answers).await;
    let settings = crate::ModelSettings {
        name: name.into(),
        base_url: Some(format!("{}{below}", server.url)),
        api_key: Some(KEY.into()),
        ..crate::ModelSettings::default()
    };
    let model = crate::connect(&settings, &|_| None).unwrap();
    let reported = model.describe().await;
    let seen = server.seen.lock().unwrap();
    let path = |request: &String| {
        request
            .split(" HTTP/")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    (
        reported.context_window,
        seen.requests.iter().map(path).collect(),
    )
}

#[tokio::test]
async fn an_endpoint_is_asked_about_its_model_in_its_own_wording() {
    let none = || plain("404 Not Found", "{}");
    let ok = |body: &str| plain("200 OK", body);
    let list = r#"{"data":[{"id":"m","max_model_len":32768},{"id":"n"}]}"#;
    let show = r#"{"model_info":{"qwen3.context_length":40960}}"#;
    let props = r#"{"default_generation_settings":{"n_ctx":16384}}"#;
    type Case<'a> = (&'a str, &'a str, Vec<Vec<Act>>, Option<u64>, &'a [&'a str]);
    let table: [Case<'_>; 9] = [
        (
            "vllm:m",
            "/v1",
            vec![ok(list)],
            Some(32768),
            &["GET /v1/models"],
        ),
        (
            "responses:m",
            "/v1",
            vec![ok(list)],
            Some(32768),
            &["GET /v1/models"],
        ),
        (
            "ollama:m",
            "/v1",
            vec![ok(show)],
            Some(40960),
            &["POST /api/show"],
        ),
        (
            "llamacpp:m",
            "/v1",
            vec![ok(props)],
            Some(16384),
            &["GET /props"],
        ),
        (
            "llamacpp:m",
            "/v1",
            vec![
                none(),
                ok(r#"{"data":[{"id":"x","meta":{"n_ctx_train":8192}}]}"#),
            ],
            Some(8192),
            &["GET /props", "GET /v1/models"],
        ),
        (
            "compatible:m",
            "/v1",
            vec![ok(r#"{"data":[{"id":"m"}]}"#), none(), ok(show)],
            Some(40960),
            &["GET /v1/models", "GET /props", "POST /api/show"],
        ),
        (
            "anthropic:m",
            "",
            vec![ok(r#"{"id":"m","max_input_tokens":200000}"#)],
            Some(200_000),
            &["GET /v1/models/m"],
        ),
        (
            "gemini:m",
            "/v1beta",
            vec![ok(r#"{"inputTokenLimit":1048576}"#)],
            Some(1_048_576),
            &["GET /v1beta/models/m"],
        ),
        (
            "vllm:m",
            "/v1",
            vec![ok("<html>")],
            None,
            &["GET /v1/models"],
        ),
    ];
    for (name, below, answers, window, paths) in table {
        assert_eq!(
            described(name, below, answers).await,
            (window, paths.iter().map(|p| (*p).to_owned()).collect()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_not_waited_for() {
    let started = Instant::now();
    let (window, _) = described("vllm:m", "/v1", vec![vec![Act::Hang]]).await;
    assert_eq!(window, None);
    let waited = started.elapsed();
    assert!(
        waited >= Duration::from_secs(2) && waited < Duration::from_secs(10),
        "{waited:?}"
    );
}
