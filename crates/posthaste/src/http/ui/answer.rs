//! How pages are answered: never cached, never framed, nothing loaded from elsewhere.

use askama::Template;
use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};

use crate::http::{Code, Problem};

/// Styles from here, forms to here, and nothing else: no script can run.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// A page that says what went wrong.
#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    title: &'a str,
    detail: &'a str,
    code: &'a str,
    logged_in: bool,
}

/// Answers with a page.
pub(super) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => {
            let mut response = Response::new(Body::from(html));
            *response.status_mut() = status;
            protect(&mut response);
            response
        }
        Err(error) => {
            tracing::error!(event = "request_failed", error = %error, "a page could not be rendered");
            Problem::new(Code::Internal, Code::Internal.title()).into_response()
        }
    }
}

/// Answers with a page that says what went wrong.
pub(super) fn problem(problem: &Problem) -> Response {
    let code = problem.code();
    let status = StatusCode::from_u16(code.status()).expect("the table holds statuses");
    let logged_in = code != Code::Unauthenticated;
    page(
        status,
        &ProblemPage { title: code.title(), detail: problem.detail(), code: code.as_str(), logged_in },
    )
}

/// Sends the browser elsewhere on this server.
pub(super) fn see_other(to: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(header::LOCATION, to);
    protect(&mut response);
    response
}

/// Answers with the style sheet.
pub(super) fn style(css: &'static str) -> Response {
    let mut response = Response::new(Body::from(css));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Addresses of pages hold keys.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}
