//! The HTTP client and the headers of requests to models and other endpoints.
//!
//! Effects: the environment, the local disk (reads).

use super::error::error_chain;
use crate::ModelError;
use crate::wire::{Wire, WireMode};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use std::sync::Arc;
use std::time::Duration;

/// The number of idle connections kept per host.
const MAX_IDLE_CONNECTIONS: usize = 64;

/// Creates the client for requests to `url`.
pub(crate) fn client(url: &Url, connect_timeout: Duration) -> Result<Client, ModelError> {
    let builder = Client::builder()
        .user_agent(concat!("stead/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .connect_timeout(connect_timeout)
        // A redirect would send the key to another host.
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(
            tls(url).map_err(|error| ModelError::Config(format!("TLS: {error}")))?,
        );
    let builder = if is_loopback(url) {
        builder.no_proxy()
    } else {
        builder
    };
    builder
        .build()
        .map_err(|error| ModelError::Config(format!("HTTP client: {}", error_chain(&error))))
}

/// Returns the TLS configuration. For `http:` it is an empty one that trusts no certificate and is
/// cheap to create.
fn tls(url: &Url) -> Result<rustls::ClientConfig, rustls::Error> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?;
    let mut config = match url.scheme() {
        "https" => builder.with_platform_verifier()?.with_no_client_auth(),
        _ => builder
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Whether `url` points at this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

/// Returns the headers of requests.
pub(super) fn headers(
    wire: &dyn Wire,
    mode: WireMode,
    key: Option<&str>,
) -> Result<HeaderMap, &'static str> {
    let accept = match mode {
        WireMode::Stream => "text/event-stream",
        WireMode::Whole => "application/json",
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    for (name, value) in wire.headers(key) {
        let secret = key.is_some_and(|key| value.contains(key));
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| "the key has characters that no header may have")?;
        value.set_sensitive(secret);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

/// Returns the headers for another content type of the response.
pub(super) fn headers_for(headers: &HeaderMap, accept: &'static str) -> HeaderMap {
    let mut headers = headers.clone();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers
}
