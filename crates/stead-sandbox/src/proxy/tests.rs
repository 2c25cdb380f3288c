//! Tests of the proxy over real sockets.

use super::*;
use crate::network::HostPattern;
use tokio::net::TcpListener;

/// Sends a request through a proxy that allows `hosts`, and returns the answer and what was refused.
async fn ask(hosts: &[String], request: &str) -> (String, BTreeSet<String>) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("proxy");
    let patterns = hosts
        .iter()
        .map(|host| host.parse::<HostPattern>().unwrap());
    let proxy = Proxy::start(socket.clone(), AllowedHosts::new(patterns)).unwrap();
    let mut inner = UnixStream::connect(&socket).await.unwrap();
    inner.write_all(request.as_bytes()).await.unwrap();
    inner.shutdown().await.unwrap();
    let mut answer = String::new();
    let reading = inner.read_to_string(&mut answer);
    timeout(Duration::from_secs(10), reading)
        .await
        .unwrap()
        .unwrap();
    (answer, proxy.take_refused())
}

/// A host that answers one request with what it was asked.
async fn host() -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = vec![0; 4096];
            let read = stream.read(&mut asked).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
            let answer = format!("HTTP/1.1 200 OK\r\n\r\n<{asked}>");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, tasks)
}

#[tokio::test]
async fn an_allowed_host_answers_a_request_and_a_connection() {
    let (port, _host) = host().await;
    let allowed = [format!("127.0.0.1:{port}")];
    let request = format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\n\r\n");
    let (answer, refused) = ask(&allowed, &request).await;
    assert!(answer.contains("<GET /x HTTP/1.1\r\n"), "{answer}");
    assert_eq!(refused, BTreeSet::new());
    let request = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello");
    let (answer, _) = ask(&allowed, &request).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 Connection established"),
        "{answer}"
    );
    assert!(answer.ends_with("<hello>"), "{answer}");
}

#[tokio::test]
async fn other_hosts_are_refused_and_named() {
    let (port, _host) = host().await;
    let allowed = ["example.org".to_owned(), format!("localhost:{port}")];
    for (request, status, host) in [
        (
            "GET http://evil.net/ HTTP/1.1\r\n\r\n".to_owned(),
            "403",
            Some("evil.net".to_owned()),
        ),
        (
            "CONNECT example.org:22 HTTP/1.1\r\n\r\n".to_owned(),
            "403",
            Some("example.org:22".to_owned()),
        ),
        (
            "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n".to_owned(),
            "403",
            Some("169.254.169.254".to_owned()),
        ),
        // The name is allowed, but its address is not public.
        (
            format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n"),
            "403",
            Some(format!("localhost:{port}")),
        ),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "400", None),
        ("x".repeat(MAX_HEAD_BYTES), "400", None),
        ("CONN".to_owned(), "400", None),
    ] {
        let (answer, refused) = ask(&allowed, &request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request:.40}: {answer}"
        );
        assert_eq!(refused, host.into_iter().collect(), "{request:.40}");
    }
}
