//! Logging in with an API key, and out again. The browser keeps the key in a cookie that no script can read and that no
//! other site's request carries.

use askama::Template;
use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::Response,
};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header, request::Parts};
use url::form_urlencoded;

use super::answer;
use crate::http::{AppState, Caller};

const COOKIE: &str = "posthaste_key";

/// How long a login lasts: a working day.
const MAX_AGE_SECONDS: u32 = 12 * 3_600;

/// Bytes of a filled-in form.
const FORM_BYTES_MAX: usize = 8 * 1024;

/// The form.
#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    /// Where to go afterwards.
    next: &'a str,
    /// What was wrong with the last try.
    refusal: Option<&'a str>,
}

/// Somebody who is logged in and may read. Others are sent to the form.
pub(super) struct Reader(pub(super) Caller);

impl FromRequestParts<AppState> for Reader {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let directory = state.engine().directory();
        let by_cookie = cookie(&parts.headers).and_then(|key| Caller::with_key(key, &directory));
        let caller = match by_cookie {
            Some(caller) => caller,
            None => Caller::from_request_parts(parts, state).await.map_err(|_| to_form(&parts.uri))?,
        };
        caller.require_read().map_err(|problem| answer::problem(&problem))?;
        Ok(Self(caller))
    }
}

fn to_form(uri: &Uri) -> Response {
    let next = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    answer::see_other(&format!("/login?{query}"))
}

/// Shows the form.
pub(super) async fn form(uri: Uri) -> Response {
    let query = uri.query().unwrap_or("");
    let next = field(query.as_bytes(), "next").unwrap_or_default();
    answer::page(StatusCode::OK, &LoginPage { next: safe(&next), refusal: None })
}

/// Takes the form.
pub(super) async fn log_in(State(state): State<AppState>, headers: HeaderMap, body: Body) -> Response {
    let body = match state.read(&headers, body, FORM_BYTES_MAX).await {
        Ok(body) => body,
        Err(problem) => return answer::problem(&problem),
    };
    let next = field(&body, "next").unwrap_or_default();
    let key = field(&body, "key").unwrap_or_default();
    let key = key.trim();
    let caller = Caller::with_key(key, &state.engine().directory()).filter(|_| fits_cookie(key));
    let refusal = match caller.map(|caller| caller.require_read()) {
        Some(Ok(())) => return logged_in(&state, key, safe(&next)),
        Some(Err(_)) => "This key may not read: it lacks the scope read.",
        None => "This key is not known, or was revoked.",
    };
    answer::page(StatusCode::UNAUTHORIZED, &LoginPage { next: safe(&next), refusal: Some(refusal) })
}

/// Forgets the key.
pub(super) async fn log_out(State(state): State<AppState>) -> Response {
    let mut response = answer::see_other("/login");
    set_cookie(&mut response, &state, "", 0);
    response
}

fn logged_in(state: &AppState, key: &str, next: &str) -> Response {
    let mut response = answer::see_other(next);
    set_cookie(&mut response, state, key, MAX_AGE_SECONDS);
    response
}

fn set_cookie(response: &mut Response, state: &AppState, key: &str, max_age: u32) {
    let secure = state.options().public_url.as_deref().is_some_and(|url| url.starts_with("https://"));
    let secure = if secure { "; Secure" } else { "" };
    let text = format!("{COOKIE}={key}; Path=/; HttpOnly; SameSite=Strict; Max-Age={max_age}{secure}");
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == COOKIE && !value.is_empty()).then_some(value))
}

/// What a cookie may hold: RFC 6265, section 4.1.1.
fn fits_cookie(key: &str) -> bool {
    key.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\'))
}

fn field(form: &[u8], name: &str) -> Option<String> {
    form_urlencoded::parse(form).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// A path on this server, or the start page: nobody may send a fresh login elsewhere.
fn safe(next: &str) -> &str {
    let here = next.starts_with('/') && !next[1..].starts_with(['/', '\\']);
    if here && next.bytes().all(|byte| byte.is_ascii_graphic()) { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_nowhere_else() {
        for next in ["/", "/timeline?key=a%2Fb", "/?a=//b"] {
            assert_eq!(next, safe(next));
        }
        for next in ["", "//evil.example", "/\\evil.example", "https://evil.example", "/a\r\nb", "/é", "x"] {
            assert_eq!("/", safe(next), "{next}");
        }
    }

    #[test]
    fn the_key_is_found_among_other_cookies() {
        let headers = |text: &str| HeaderMap::from_iter([(header::COOKIE, text.parse().unwrap())]);
        assert_eq!(Some("phk_a"), cookie(&headers("a=b; posthaste_key=phk_a; c=d")));
        assert_eq!(None, cookie(&headers("xposthaste_key=phk_a; posthaste_key=")));
    }
}
