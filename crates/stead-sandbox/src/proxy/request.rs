//! Requests to a proxy, as HTTP/1.1 has them.
//!
//! Effects: none.

/// The head of a request, and what came after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub(super) host: String,
    pub(super) port: u16,
    /// What follows the head.
    pub(super) body: Vec<u8>,
    kind: RequestKind,
}

#[derive(Debug, PartialEq, Eq)]
enum RequestKind {
    /// A connection to the host, for whatever protocol.
    Connect,
    /// A request that is passed on, with this head.
    Forward(String),
}

/// Why a request cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the request is too long")]
    TooLong,
    #[error("the request is not complete")]
    Incomplete,
    #[error(
        "the request is not one for a proxy: give CONNECT, or a whole address that begins with http://"
    )]
    NotForProxy,
}

impl ProxyRequest {
    /// Parses what has come so far. Nothing if the head is not complete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Result<Self, RequestError>> {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
        let (head, body) = (bytes.get(..end)?, bytes.get(end + 4..)?);
        Some(parse_head(head, body).ok_or(RequestError::NotForProxy))
    }

    /// Returns the head to pass on to the host; nothing for a connection.
    pub(super) fn forwarded(&self) -> Option<Vec<u8>> {
        match &self.kind {
            RequestKind::Connect => None,
            RequestKind::Forward(head) => Some(head.clone().into_bytes()),
        }
    }
}

fn parse_head(head: &[u8], body: &[u8]) -> Option<ProxyRequest> {
    let head = std::str::from_utf8(head).ok()?;
    let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    if method == "CONNECT" {
        let (host, port) = host_and_port(target, None)?;
        return Some(ProxyRequest {
            host,
            port,
            body: body.to_vec(),
            kind: RequestKind::Connect,
        });
    }
    let rest = target.strip_prefix("http://")?;
    let path_at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(path_at)?;
    let (host, port) = host_and_port(authority, Some(80))?;
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    // The connection serves this request alone, or a later one could name another host. The host is
    // told in the header, too, and must be the one that was checked.
    let kept = headers.split("\r\n").filter(|header| {
        let name = header.split(':').next().unwrap_or_default().trim();
        let dropped = [
            "host",
            "connection",
            "proxy-connection",
            "proxy-authorization",
            "keep-alive",
        ];
        !header.is_empty() && !dropped.iter().any(|own| name.eq_ignore_ascii_case(own))
    });
    let kept: String = kept.map(|header| format!("{header}\r\n")).collect();
    let forwarded = format!(
        "{method} {path} {version}\r\nHost: {authority}\r\nConnection: close\r\n{kept}\r\n"
    );
    Some(ProxyRequest {
        host,
        port,
        body: body.to_vec(),
        kind: RequestKind::Forward(forwarded),
    })
}

/// Splits `host:port`, also with an address of version 6 in brackets.
fn host_and_port(authority: &str, usual: Option<u16>) -> Option<(String, u16)> {
    if authority.contains('@') {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => usual?,
    };
    (!host.is_empty()).then(|| (host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ProxyRequest {
        ProxyRequest::parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_connection_names_its_host_and_port() {
        let request = parsed("CONNECT Example.org:443 HTTP/1.1\r\nHost: x\r\n\r\nmore");
        assert_eq!((request.host.as_str(), request.port), ("example.org", 443));
        assert_eq!(
            (request.forwarded(), request.body.as_slice()),
            (None, &b"more"[..])
        );
        let request = parsed("CONNECT [::1]:80 HTTP/1.1\r\n\r\n");
        assert_eq!((request.host.as_str(), request.port), ("::1", 80));
    }

    #[test]
    fn a_request_is_passed_on_with_the_host_that_was_checked_and_once() {
        let request = parsed(
            "GET http://example.org/a?b HTTP/1.1\r\nHost: evil.net\r\nProxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n",
        );
        assert_eq!((request.host.as_str(), request.port), ("example.org", 80));
        let head = String::from_utf8(request.forwarded().unwrap()).unwrap();
        assert_eq!(
            head,
            "GET /a?b HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
        let request = parsed("GET http://example.org:8080?q HTTP/1.1\r\n\r\n");
        assert_eq!(request.port, 8080);
        assert!(
            request
                .forwarded()
                .unwrap()
                .starts_with(b"GET /?q HTTP/1.1\r\nHost: example.org:8080\r\n")
        );
    }

    #[test]
    fn everything_else_is_refused() {
        assert!(ProxyRequest::parse(b"GET http://a.org/ HTTP/1.1\r\n").is_none());
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://user@a.org/ HTTP/1.1\r\n\r\n",
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT a.org:x HTTP/1.1\r\n\r\n",
            "CONNECT :443 HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443 extra HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443 HTTP/2\r\n\r\n",
            "\r\n\r\n",
        ] {
            let parsed = ProxyRequest::parse(text.as_bytes());
            assert_eq!(parsed, Some(Err(RequestError::NotForProxy)), "{text:?}");
        }
    }
}
