//! Asking an endpoint for the limits of a model.
//!
//! Effects: the environment, the local disk (reads), the network.

use super::HttpModel;
use super::client::headers_for;
use crate::ReportedLimits;
use crate::reported_limits::{LimitsQuery, UrlBase};
use reqwest::Url;

/// The maximum size of a description; some endpoints list hundreds of models at once.
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024 * 1024;

impl HttpModel {
    /// Asks the endpoint for the model's limits in every known way until one gives the window.
    pub(super) async fn fetch_limits(&self) -> ReportedLimits {
        for query in &self.limits_queries {
            let reported = self.query_limits(query).await.unwrap_or_default();
            if reported.context_window.is_some() {
                return reported;
            }
        }
        ReportedLimits::default()
    }

    async fn query_limits(&self, query: &LimitsQuery) -> Option<ReportedLimits> {
        let server = self.url.origin().ascii_serialization();
        let start = match query.url_base {
            UrlBase::Base => &self.base_url,
            UrlBase::Server => &server,
        };
        let client = self.client().ok()?;
        let url = Url::parse(&format!("{start}/{}", query.path)).ok()?;
        let call = match &query.body {
            Some(body) => client.post(url).body(body.to_string()),
            None => client.get(url),
        };
        let headers = headers_for(&self.headers, "application/json");
        let mut response = call.headers(headers).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            if body.len() + chunk.len() > MAX_DESCRIPTION_BYTES {
                return None;
            }
            body.extend_from_slice(&chunk);
        }
        Some((query.parse)(
            &serde_json::from_slice(&body).ok()?,
            self.wire.model(),
        ))
    }
}
