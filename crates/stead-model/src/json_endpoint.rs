//! JSON requests to an endpoint that is not a model.
//!
//! Effects: the clock, the environment, the local disk (reads), the network.

use crate::ModelError;
use crate::http::{client, network_error};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use std::collections::BTreeMap;
use std::time::Duration;

/// An endpoint for JSON requests. Redirects are not followed, because they would send headers to
/// another host.
#[derive(Debug, Clone)]
pub struct JsonEndpoint {
    url: Url,
    method: Method,
    headers: HeaderMap,
}

impl JsonEndpoint {
    /// Creates an endpoint for `url`, called with `method` and these headers beside those for JSON.
    pub fn new(
        url: &str,
        method: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<Self, ModelError> {
        let config = |problem: String| ModelError::Config(problem);
        let parsed = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = parsed
            .ok_or_else(|| config("the address must begin with http:// or https://".to_owned()))?;
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| config(format!("{method} is no method")))?;
        let mut all = HeaderMap::new();
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        all.insert(ACCEPT, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            let parsed = (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(value),
            );
            let (Ok(key), Ok(mut value)) = parsed else {
                return Err(config(format!(
                    "the header {name:?} has characters that no header may have"
                )));
            };
            value.set_sensitive(true);
            all.insert(key, value);
        }
        Ok(Self {
            url,
            method,
            headers: all,
        })
    }

    /// Sends one request and returns the body of a successful response. A body longer than `limit`
    /// bytes, or any other status, is an error.
    pub async fn request(
        &self,
        body: Vec<u8>,
        limit: usize,
        timeout: Duration,
    ) -> Result<Vec<u8>, ModelError> {
        let late = || ModelError::TimedOut(format!("no answer within {} s", timeout.as_secs()));
        tokio::time::timeout(timeout, self.request_once(body, limit, timeout))
            .await
            .unwrap_or_else(|_| Err(late()))
    }

    async fn request_once(
        &self,
        body: Vec<u8>,
        limit: usize,
        timeout: Duration,
    ) -> Result<Vec<u8>, ModelError> {
        let client = client(&self.url, timeout)?;
        let request = client
            .request(self.method.clone(), self.url.clone())
            .headers(self.headers.clone())
            .body(body);
        let mut response = request.send().await.map_err(network_error)?;
        let status = response.status();
        if !status.is_success() {
            return Err(ModelError::Protocol(format!(
                "the answer's status is {}",
                status.as_u16()
            )));
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(network_error)? {
            if answer.len() + chunk.len() > limit {
                return Err(ModelError::Protocol(format!(
                    "the answer has more than {limit} bytes"
                )));
            }
            answer.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}
