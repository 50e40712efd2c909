//! The HTTP client of the command line: speaks to the operator's own server and to nobody else.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use std::time::Duration;

use super::{ServerArgs, exit::Failure, output::printable};

/// A server that doesn't answer within this time counts as unreachable.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of the largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A client of one server.
pub(super) struct Client {
    base: String,
    api_key: Option<String>,
    tenant: Option<String>,
    idempotency_key: Option<String>,
    http: HyperClient<HttpConnector, Full<Bytes>>,
}

/// What the server answered to a request that it may refuse with more than a sentence.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    /// The answer, or the problem.
    pub(super) body: Value,
}

impl Reply {
    /// The refusal as a person reads it.
    pub(super) fn refusal(&self) -> Failure {
        refusal(self.status, &self.body)
    }
}

/// What the server answered.
pub(super) struct Answer {
    /// `null` where the answer has none.
    pub(super) body: Value,
}

impl Client {
    /// A client of the server that the arguments name.
    pub(super) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let base = args.url.trim_end_matches('/').to_owned();
        if !base.starts_with("http://") {
            return Err(Failure::usage(format!(
                "--url: {:?} is no http:// address; for a server behind TLS, run the command beside it or use curl",
                args.url
            )));
        }
        let http = HyperClient::builder(TokioExecutor::new()).build_http();
        Ok(Self {
            base,
            api_key: args.api_key.clone(),
            tenant: args.tenant.clone(),
            idempotency_key: None,
            http,
        })
    }

    /// The same, with an `Idempotency-Key` in each `POST`.
    pub(super) fn with_idempotency_key(self, key: Option<&str>) -> Self {
        Self { idempotency_key: key.map(str::to_owned), ..self }
    }

    /// `GET`. Errors: what the server refused, or that it can't be reached.
    pub(super) async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.send(Method::GET, path, None).await
    }

    /// `GET` of a list: all its pages as one.
    pub(super) async fn all(&self, path: &str) -> Result<Value, Failure> {
        let mut page = self.get(path).await?.body;
        let separator = if path.contains('?') { '&' } else { '?' };
        while let Some(cursor) = page["next_cursor"].as_str() {
            let next = format!("{path}{separator}cursor={}", encoded(cursor));
            let mut next = self.get(&next).await?.body;
            let (Some(rows), Some(more)) = (page["data"].as_array_mut(), next["data"].as_array_mut()) else {
                break;
            };
            rows.append(more);
            page["next_cursor"] = next["next_cursor"].take();
        }
        Ok(page)
    }

    /// `POST` with a JSON body.
    pub(super) async fn post(&self, path: &str, body: Bytes) -> Result<Answer, Failure> {
        self.send(Method::POST, path, Some(body)).await
    }

    /// `POST` with a JSON body, for whoever tells a refusal in words of its own.
    pub(super) async fn ask(&self, path: &str, body: Bytes) -> Result<Reply, Failure> {
        self.exchange_within(Method::POST, path, Some(body)).await
    }

    /// `DELETE`.
    pub(super) async fn delete(&self, path: &str) -> Result<Answer, Failure> {
        self.send(Method::DELETE, path, None).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Answer, Failure> {
        let reply = self.exchange_within(method, path, body).await?;
        if reply.status.is_success() { Ok(Answer { body: reply.body }) } else { Err(reply.refusal()) }
    }

    async fn exchange_within(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Reply, Failure> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(key) = &self.api_key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        if let Some(tenant) = &self.tenant {
            request = request.header("posthaste-tenant", tenant);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = self.idempotency_key.as_ref().filter(|_| body.is_some()) {
            request = request.header("idempotency-key", key);
        }
        // Errors name no header: a key that can't be sent must not be shown.
        let request = request.body(Full::new(body.unwrap_or_default())).map_err(|_| {
            Failure::usage("the address, the API key, the tenant or the idempotency key can't be sent")
        })?;
        let answered = tokio::time::timeout(TIMEOUT, self.exchange(request)).await;
        answered.unwrap_or_else(|_| Err(self.unreachable("no answer in 30 s")))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Reply, Failure> {
        let response = self.http.request(request).await.map_err(|error| self.unreachable(&chain(&error)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.unreachable(&error.to_string()))?.to_bytes();
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).map_err(|_| {
                Failure::refused(format!(
                    "{} answered {status} with something that is no JSON: is it posthaste?",
                    self.base
                ))
            })?
        };
        Ok(Reply { status, body })
    }

    fn unreachable(&self, why: &str) -> Failure {
        Failure::Unreachable(format!(
            "{} can't be reached: {why}\n  is `posthaste serve` running there? another address: --url or POSTHASTE_URL",
            self.base
        ))
    }
}

/// A problem (RFC 9457) as a person reads it: `title: detail (code)`.
fn refusal(status: StatusCode, problem: &Value) -> Failure {
    let member = |name: &str| problem.get(name).and_then(Value::as_str).map(printable);
    let title = member("title").unwrap_or_else(|| status.to_string());
    let detail = member("detail").map(|detail| format!(": {detail}")).unwrap_or_default();
    let code = member("code").unwrap_or_else(|| status.as_u16().to_string());
    let hint = match status {
        StatusCode::UNAUTHORIZED => {
            "\n  give a key with --api-key or POSTHASTE_API_KEY; `posthaste serve` printed one on its first start"
        }
        _ => "",
    };
    Failure::refused(format!("{title}{detail} ({code}){hint}"))
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = cause.to_string();
        source = cause.source();
    }
    text
}

/// `text` as it stands in a query or path.
pub(super) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
