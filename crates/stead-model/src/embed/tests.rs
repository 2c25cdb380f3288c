use super::*;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const KEY: &str = "sk-embed-key";

/// A server that gives each text the vector `[its length, its position in the batch + 1]`, last
/// first, or always `fixed`.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

async fn server(fixed: Option<(u16, &'static str)>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = request(&mut stream).await;
            let (status, body) = match fixed {
                Some((0, _)) => std::future::pending().await,
                Some((status, body)) => (status, body.to_owned()),
                None => (200, vectors(&request)),
            };
            told.lock().unwrap().push(request);
            let head = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nretry-after: 7\r\n"
            );
            let answer = format!(
                "{head}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    Server {
        url,
        seen,
        _tasks: tasks,
    }
}

/// Reads a whole request.
async fn request(stream: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        if count == 0 || length.is_some_and(|length: usize| body.len() >= length) {
            return text;
        }
    }
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn vectors(request: &str) -> String {
    let input = body_of(request)["input"].as_array().unwrap().clone();
    let item = |(at, text): (usize, &Value)| json!({"index": at, "embedding": [text.as_str().unwrap().len(), at + 1]});
    let data: Vec<Value> = input.iter().enumerate().map(item).rev().collect();
    json!({"object": "list", "data": data}).to_string()
}

fn settings(url: &str) -> EmbeddingSettings {
    EmbeddingSettings {
        name: "openai:small".into(),
        base_url: Some(url.into()),
        ..EmbeddingSettings::default()
    }
}

#[tokio::test]
async fn texts_get_their_vectors_batch_by_batch_in_their_own_order() {
    let server = server(None).await;
    let env = |name: &str| (name == "OPENAI_API_KEY").then(|| KEY.to_owned());
    let embedder = Embedder::new(
        &EmbeddingSettings {
            dimensions: Some(2),
            ..settings(&server.url)
        },
        &env,
        &KeyPolicy::default(),
    )
    .unwrap();
    let texts: Vec<String> = (0..BATCH_TEXTS + 2).map(|n| "x".repeat(n + 1)).collect();
    let vectors = embedder.embed(&texts).await.unwrap();
    let expected = (0..texts.len()).map(|n| vec![(n + 1) as f32, (n % BATCH_TEXTS + 1) as f32]);
    assert_eq!(vectors, expected.collect::<Vec<_>>());
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(
        seen[0].starts_with("POST /v1/embeddings HTTP/1.1\r\n")
            && seen[0].contains(&format!("Bearer {KEY}"))
    );
    let last = json!({"model": "small", "dimensions": 2, "encoding_format": "float", "input": texts[BATCH_TEXTS..]});
    assert_eq!(body_of(&seen[1]), last);
    assert_eq!(embedder.name(), "openai:small/2");
}

#[tokio::test]
async fn what_goes_wrong_is_told_by_meaning_and_without_the_key() {
    let wait = Some(Duration::from_secs(7));
    let cases = [
        (
            401,
            "{\"error\": {\"message\": \"bad key sk-embed-key\"}}",
            ModelError::Auth("bad key [redacted]".into()),
        ),
        (
            429,
            "{\"error\": {\"message\": \"slow\"}}",
            ModelError::RateLimited {
                retry_after: wait,
                message: "slow".into(),
            },
        ),
        (
            404,
            "{\"error\": {\"message\": \"no small\"}}",
            ModelError::NotFound("no small".into()),
        ),
        (
            200,
            "{\"data\": []}",
            ModelError::Protocol("not every one of 1 texts got a vector of the same length".into()),
        ),
        (
            200,
            "{\"data\": [{\"index\": 4, \"embedding\": [1]}]}",
            ModelError::Protocol("a vector has the index 4 of 1".into()),
        ),
        (
            0,
            "",
            ModelError::TimedOut("no vectors within 200ms".into()),
        ),
    ];
    for (status, body, expected) in cases {
        let server = server(Some((status, body))).await;
        let settings = EmbeddingSettings {
            api_key: Some(KEY.into()),
            timeout_seconds: 0.2,
            ..settings(&server.url)
        };
        let embedder = Embedder::new(&settings, &|_| None, &KeyPolicy::default()).unwrap();
        assert_eq!(
            embedder.embed(&["x".to_owned()]).await.unwrap_err(),
            expected
        );
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let of = |name: &str| EmbeddingSettings {
        name: name.into(),
        ..EmbeddingSettings::default()
    };
    let table = [
        ("small", "is not a model name"),
        ("nobody:small", "no provider is named \"nobody\""),
        ("anthropic:x", "has no embeddings endpoint"),
        ("gemini:x", "has no embeddings endpoint"),
    ];
    for (name, words) in table {
        assert!(
            of(name)
                .problem()
                .is_some_and(|problem| problem.contains(words)),
            "{name}"
        );
    }
    assert_eq!(of("ollama:nomic-embed-text").problem(), None);
    let hasty = EmbeddingSettings {
        timeout_seconds: 0.0,
        ..of("ollama:x")
    };
    assert!(
        hasty
            .problem()
            .is_some_and(|problem| problem.contains("must be more than 0"))
    );
    let error = Embedder::new(&of("openai:small"), &|_| None, &KeyPolicy::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("OPENAI_API_KEY"), "{error}");
}
