//! The demo's HTTP client: plays provider, publisher, worker and operator towards the demo's own server.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(20);

const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A client of the demo's server.
pub(super) struct Client {
    base: String,
    api_key: String,
    http: HyperClient<HttpConnector, Full<Bytes>>,
}

/// What the server answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Client {
    pub(super) fn new(base: String, api_key: String) -> Self {
        Self { base, api_key, http: HyperClient::builder(TokioExecutor::new()).build_http() }
    }

    /// A request with these headers and no API key: a provider's.
    pub(super) async fn signed(
        &self,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(Method::POST).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        self.exchange(request.body(Full::new(body))?).await
    }

    /// A call of the API.
    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        let request = self.authorized(Method::POST, path).header(header::CONTENT_TYPE, "application/json");
        self.exchange(request.body(Full::new(body.to_string().into()))?).await
    }

    /// A read of the API.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.exchange(self.authorized(Method::GET, path).body(Full::default())?).await
    }

    fn authorized(&self, method: Method, path: &str) -> http::request::Builder {
        let bearer = format!("Bearer {}", self.api_key);
        Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::AUTHORIZATION, bearer)
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        let response =
            tokio::time::timeout(TIMEOUT, self.http.request(request)).await.context("no answer")??;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer broke off: {error}"))?.to_bytes();
        let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
        Ok(Answer { status, body })
    }
}
